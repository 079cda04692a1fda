//! [`Demo`]: four coins, three sources, one of them down and one that asks for silence, told in a few seconds.
//!
//! Waits are seconds here where they are minutes in earnest: a retry after a second instead of a minute, a pause of two
//! seconds instead of five minutes. The numbers in earnest are shown by tests that move the clock.

use std::time::Duration;

use kit::{BoxError, Check, Product, Running, Show, Showing, Stage, until};
use tenure::core::name::GateName;
use tenure::store::gate::GateRecord;
use tenure::{Client, Worker, row};

use crate::collect::Coins;
use crate::intake::Intake;
use crate::monitor::source_health;
use crate::settings::Settings;
use crate::source::{FAILURE_STREAK_MAX, Source};
use crate::world::{Fault, Listing, World};
use crate::{TABLES, scrape, worker, world};

/// The product, shown.
pub struct Demo;

impl Product for Demo {
    fn name(&self) -> &'static str {
        "coins"
    }

    fn says(&self) -> &'static str {
        "what coins cost, from three sources with limits; one valuation for each coin"
    }

    fn show(&self, stage: Stage) -> Showing {
        Box::pin(async move {
            let mut story = Story::begin(stage).await?;
            story.collect().await?;
            story.ask_again().await?;
            let checks = story.checks;
            Ok(Show { checks, going_on: Box::new((story.world, story.running)) })
        })
    }
}

struct Story {
    stage: Stage,
    client: Client,
    settings: Settings,
    coins: Vec<Intake>,
    sources: Vec<Source>,
    world: World,
    handlers: Coins,
    running: Running,
    checks: Vec<Check>,
}

impl Story {
    /// Coins and sources are there, and a worker that has nothing to do yet.
    async fn begin(stage: Stage) -> Result<Self, BoxError> {
        // What the story tells of does not depend on what somebody has set.
        let settings = Settings {
            retry_base: Duration::from_secs(1),
            source_pause: Duration::from_secs(2),
            http_timeout: Duration::from_secs(10),
            cache_ttl: Duration::from_secs(3_600),
            cache_enabled: true,
            cache_path: stage.dir().join("coins-cache.db"),
            ..Settings::read(&stage.env)?
        };
        stage.database.make_tables(TABLES).await?;
        let client = Client::new(&stage.database);
        worker::prepare(&client, &settings).await?;
        let coins = world::coins();
        for coin in &coins {
            coin.add(&stage.database).await?;
        }
        let world = World::open(&coins).await?;
        let sources = world.sources(6_000);
        for source in &sources {
            source.set(&client, &stage.database, settings.source_pause).await?;
        }
        let handlers = worker::open(&stage.database, &settings).await?;
        let builder = Worker::builder(&stage.database).name("coins-worker");
        let running = Running::start(worker::worker(builder, handlers.clone(), &settings).build()?);
        stage.tell(format!("{} coins came in; {} sources sell, bid and ask", coins.len(), sources.len()));
        Ok(Self { stage, client, settings, coins, sources, world, handlers, running, checks: Vec::new() })
    }

    /// Everybody is asked about everything, while one source is down and another asks for silence.
    async fn collect(&mut self) -> Result<(), BoxError> {
        let down = FAILURE_STREAK_MAX as usize;
        self.world.market.shelf.fail_next(std::iter::repeat_n(Fault::Status(500), down));
        self.world.auction.shelf.fail_next([Fault::TooMany { seconds: 1 }]);
        self.stage.tell("bazaar is down, and hammer asks for a second of silence");
        self.ask().await?;

        let opened =
            until("an open breaker", async || self.bazaar(|gate| gate.gate.open_until.is_some()).await).await?;
        let (calls, streak) = (self.world.market.calls(), opened.gate.streak);
        self.stage.tell(format!("after {streak} failures in a row bazaar is left alone; its jobs wait, no slot does"));
        // The other coins may have been on their way when the fifth call failed.
        let most = u64::from(FAILURE_STREAK_MAX) + self.coins.len() as u64 - 1;
        self.check(
            "five failures in a row pause a source",
            streak >= FAILURE_STREAK_MAX && calls <= most,
            format!("{calls} calls, a streak of {streak}"),
        );
        until("a closed breaker", async || self.bazaar(|gate| gate.gate.open_until.is_none()).await).await?;
        self.stage.tell("one probe went well: bazaar is asked again");
        self.settle().await?;

        let health = source_health(&self.client, &self.stage.database).await?;
        let well = health.iter().all(|source| source.failure_streak == 0 && source.last_success_at.is_some());
        let down = health.iter().filter(|source| source.last_failure_at.is_some()).count();
        self.check("the probe closed it, and all sources do well", well, format!("{down} of them have failed before"));
        self.check_points().await?;
        self.check_values().await
    }

    /// The same questions, a moment later; then a source knows better than before.
    async fn ask_again(&mut self) -> Result<(), BoxError> {
        let before = self.calls();
        self.ask().await?;
        self.settle().await?;
        let called = self.calls() - before;
        let hits = self.handlers.cache().counts().hits;
        self.stage.tell(format!("everything was asked again: {hits} answers were kept, {called} calls were made"));
        self.check(
            "within the hour nobody is called twice",
            called == 0,
            format!("{called} calls, {hits} kept answers"),
        );

        let (coin, auction) = (self.coins[0].clone(), "hammer");
        self.world.auction.shelf.change(|listings| {
            for listing in listings.iter_mut().filter(|listing| listing.title.ends_with("toned")) {
                listing.title.push_str(" dollar D");
            }
        });
        self.handlers.cache().forget(&coin.cache_key(auction)).await?;
        self.ask().await?;
        self.settle().await?;
        let select = "select match_strength as n from coin_price_point \
                      where intake_id = $1 and source_id = 'hammer' and dedupe_key = $2";
        let key = format!("ext_auction-{}-4", coin.id);
        let found = self.stage.database.query(select, row![coin.id.as_str(), key]).await?;
        let strength = found.first().map(|row| row.get::<i64>("n")).transpose()?.unwrap_or_default();
        self.check("the stronger match replaced the weaker one", strength == 100, format!("strength {strength}"));
        self.stage.tell("hammer described a lot better: the stronger match stays");
        Ok(())
    }

    async fn check_points(&mut self) -> Result<(), BoxError> {
        let points = self.count("select count(*) as n from coin_price_point").await?;
        let twice = "select count(*) as n from (select 1 as one from coin_price_point \
                     group by intake_id, source_id, dedupe_key having count(*) > 1) as twice";
        let twice = self.count(twice).await?;
        // Six lots, four offers (three tellings of one are one), two bids.
        let expected = self.coins.len() as i64 * (6 + 4 + 2);
        self.stage.tell(format!("{points} price points, each known once"));
        self.check(
            "no price point is there twice",
            twice == 0 && points == expected,
            format!("{points} points of {expected}, {twice} twice"),
        );
        Ok(())
    }

    async fn check_values(&mut self) -> Result<(), BoxError> {
        let select = "select intake_id, cents, outliers from coin_valuation order by intake_id";
        let rows = self.stage.database.query(select, row![]).await?;
        let (mut near, mut outliers) = (0, 0);
        for (row, number) in rows.iter().zip(0..) {
            let (cents, fair): (i64, _) = (row.get("cents")?, Listing::fair_cents(number));
            near += i64::from((cents - fair).abs() * 20 <= fair);
            outliers += row.get::<i64>("outliers")?;
        }
        let coins = self.coins.len();
        let seen =
            format!("{} valuations, {near} within 5 % of the fair price, {outliers} outliers left out", rows.len());
        self.stage.tell(seen.as_str());
        self.check(
            "one valuation for each coin, whatever absurd prices there are",
            rows.len() == coins && near == coins as i64 && outliers >= 2 * coins as i64,
            seen,
        );
        Ok(())
    }

    async fn ask(&self) -> Result<(), BoxError> {
        for coin in &self.coins {
            scrape::ask(&self.client, coin, &self.sources, self.settings.retry_base).await?;
        }
        Ok(())
    }

    /// Until nothing of it waits or runs.
    async fn settle(&mut self) -> Result<(), BoxError> {
        let client = &self.client;
        until("the end of all jobs", async || {
            let queues = client.store().list_queues().await?;
            let ours = queues.iter().find(|queue| queue.name.as_str() == crate::QUEUE);
            Ok(ours.is_some_and(|it| it.due + it.scheduled + it.running == 0).then_some(()))
        })
        .await
    }

    async fn bazaar(&self, wanted: impl Fn(&GateRecord) -> bool) -> Result<Option<GateRecord>, BoxError> {
        let gate = self.client.store().show_gate(&GateName::new("source:bazaar")?).await?;
        Ok(wanted(&gate).then_some(gate))
    }

    async fn count(&self, sql: &'static str) -> Result<i64, BoxError> {
        let rows = self.stage.database.query(sql, row![]).await?;
        Ok(rows.first().ok_or("no count")?.get("n")?)
    }

    fn calls(&self) -> u64 {
        self.world.feeds().iter().map(|(_, feed)| feed.calls()).sum()
    }

    fn check(&mut self, name: &str, holds: bool, seen: impl Into<String>) {
        self.checks.push(Check::new(name, holds, seen));
    }
}
