//! [`Demo`]: six thousand stones, a worker that dies, a supplier that goes away, a partition that fails, told in seconds.
//!
//! A lock lasts two seconds here where it is two minutes in earnest, and a supplier that cannot be reached is left alone
//! for one second instead of five. The numbers in earnest are shown by tests that move the clock.

mod watch;

use std::time::Duration;

use kit::{BoxError, Check, Product, Running, Show, Showing, Site, Stage, Valve, until};
use tenure::{Client, How, JobState, PartitionRecord, RunId, RunState, Worker, row};

use crate::deliver::{self, Delivered};
use crate::markup::Markup;
use crate::price_range::PriceRange;
use crate::settings::Settings;
use crate::split::Limits;
use crate::stone::Stone;
use crate::tell::Tell;
use crate::work_item::WorkItem;
use crate::worker::Diamonds;
use crate::world::{Act, Ask, Fault, HELD, World};
use crate::{GATE, TABLES, monitor, schedule, worker};
use watch::Watch;

/// Stones at the beginning.
const STONES: u32 = 6_000;
/// Most stones of a partition.
const SIZE_MAX: u64 = 250;

/// The product, shown.
pub struct Demo;

impl Product for Demo {
    fn name(&self) -> &'static str {
        "diamonds"
    }

    fn says(&self) -> &'static str {
        "a catalogue that changes, read page by page by workers that die, published once"
    }

    fn show(&self, stage: Stage) -> Showing {
        Box::pin(async move {
            let mut story = Story::begin(stage).await?;
            let run = story.schedule().await?;
            let listed = World::all(&story.world.latest());
            story.die_in_the_middle(run).await?;
            story.read_while_it_changes(run).await?;
            story.fail_and_resume(run).await?;
            story.check_published(run, &listed).await?;
            story.read_again().await?;
            let Story { checks, site, running, watch, .. } = story;
            Ok(Show { checks, going_on: Box::new((site, running, watch)) })
        })
    }
}

struct Story {
    stage: Stage,
    client: Client,
    diamonds: Diamonds,
    world: World,
    site: Option<Site>,
    running: Vec<Running>,
    watch: Option<Watch>,
    /// The partition in which a worker dies, the one that fails, and one that is on its way when the supplier goes.
    chosen: Vec<PartitionRecord>,
    checks: Vec<Check>,
}

impl Story {
    async fn begin(stage: Stage) -> Result<Self, BoxError> {
        let world = World::new(1, STONES)?;
        let site = world.open().await?;
        let settings = Settings {
            supplier_url: site.url(),
            lease: Duration::from_secs(2),
            pause: Duration::from_secs(1),
            limits: Limits { size_max: SIZE_MAX, partitions_max: 99 },
            ..Settings::read(&stage.env)?
        };
        stage.database.make_tables(TABLES).await?;
        let client = Client::new(&stage.database);
        worker::prepare(&client, &settings).await?;
        let diamonds = Diamonds::new(&stage.database, &settings)?;
        stage.tell(format!("a supplier lists {STONES} stones and prices them anew all day; a page has 30 of them"));
        let (site, running, watch) = (Some(site), Vec::new(), None);
        Ok(Self { stage, client, diamonds, world, site, running, watch, chosen: Vec::new(), checks: Vec::new() })
    }

    /// Counts, cuts, creates.
    async fn schedule(&mut self) -> Result<RunId, BoxError> {
        let job = schedule::ask(&self.client, None).await?;
        let control = worker::control(Worker::builder(&self.stage.database).name("scheduler"), self.diamonds.clone());
        control.build()?.run_until_idle().await?;
        let run: RunId = job.to_string().parse()?;
        let partitions = self.client.partitions_of(run).await?;
        let (counts, cut) = (self.world.traffic().of("count").calls, partitions.len());
        let stones: u64 = partitions.iter().filter_map(|partition| partition.expected).sum();
        let is_large = |partition: &PartitionRecord| partition.expected > Some(SIZE_MAX);
        let (large, usual): (Vec<_>, Vec<_>) = partitions.iter().cloned().partition(is_large);
        let largest = usual.iter().filter_map(|partition| partition.expected).max().unwrap_or_default();
        let mut crowds = 0;
        for partition in &large {
            crowds += usize::from(is_one_price(&self.world, prices(partition)?));
        }
        self.stage.tell(format!("{counts} counts cut it by price into {cut} partitions of at most {largest} stones"));
        self.check(
            "the partitions have every stone once, and none is too large that could be smaller",
            stones == u64::from(STONES) && crowds == large.len(),
            format!(
                "{cut} partitions, {stones} stones, {crowds} of {} with more than {SIZE_MAX} are of one price",
                large.len()
            ),
        );
        let is_long = |partition: &PartitionRecord| partition.expected > Some(100);
        self.chosen = partitions.into_iter().filter(is_long).take(3).collect();
        if self.chosen.len() < 3 {
            return Err("no three partitions are long enough".into());
        }
        self.watch = Some(Watch::start(self.client.clone(), run));
        Ok(run)
    }

    /// A worker is in the second page of a partition when it dies.
    async fn die_in_the_middle(&mut self, run: RunId) -> Result<(), BoxError> {
        self.world.fault(Fault::on(Ask::page_of(prices(&self.chosen[0])?, 30), Act::Hold(Valve::shut())).times(1));
        // Without a keeper of leases: nobody gives back what it holds.
        let worker = self.worker("worker-1")?;
        let working = tokio::spawn(async move { worker.run_until_idle().await });
        self.world.traffic().wait_for(HELD, |held| held.now > 0).await;
        working.abort();
        let name = &self.chosen[0].name;
        self.stage.tell(format!("worker-1 died in the page at 30 of {name}; its lock has two seconds left"));
        let stored = self.find(run, 0).await?.next_offset;
        self.check("nothing of the page is stored", stored == 30, format!("the partition goes on at {stored}"));
        Ok(())
    }

    /// Two workers, three revisions, a supplier that goes away, and messages that come twice.
    async fn read_while_it_changes(&mut self, run: RunId) -> Result<(), BoxError> {
        let valve = Valve::shut();
        self.world.fault(Fault::on(Ask::page_of(prices(&self.chosen[1])?, 60), Act::Status(404)).times(1));
        self.world.fault(Fault::on(Ask::page_of(prices(&self.chosen[2])?, 30), Act::Hold(valve.clone())).times(1));
        for name in ["worker-2", "worker-3"] {
            self.running.push(Running::start(self.worker(name)?));
        }
        for revision in 1..=3 {
            self.wait_for_rows(run, 600 * revision).await?;
            let told = self.world.advance();
            let (repriced, withdrawn, appeared) = (told.repriced, told.withdrawn, told.appeared);
            self.stage.tell(format!("meanwhile: {repriced} new prices, {withdrawn} withdrawn, {appeared} new stones"));
        }
        let site = self.site.take().ok_or("there is no supplier")?;
        let (address, client) = (site.address(), self.client.clone());
        site.close().await;
        // Who is being served is served; the page behind it finds nobody.
        valve.open();
        let gate = GATE.parse()?;
        until("a page that finds nobody", async || {
            Ok(client.store().show_gate(&gate).await?.gate.failed_at.map(|_| ()))
        })
        .await?;
        self.site = Some(Site::open_at(address, self.world.router()).await?);
        self.stage.tell("the supplier was away: a page found out, all waited a second, and it is back");
        self.send_twice(run).await
    }

    /// Messages of pages that are over, and of some that are far ahead.
    async fn send_twice(&mut self, run: RunId) -> Result<(), BoxError> {
        let mut sent = Vec::new();
        for partition in self.client.partitions_of(run).await? {
            for offset in [0, partition.next_offset + 300] {
                let message = WorkItem::by_hand(&partition, offset)?.to_json().to_string();
                sent.push(deliver::send(&self.client, &self.diamonds.settings, message.as_bytes()).await?.job());
            }
        }
        let (client, mut skipped) = (&self.client, 0);
        for job in &sent {
            let record = until("a message that was heard", async || {
                Ok(Some(client.show(*job).await?).filter(|record| record.summary.state == JobState::Succeeded))
            })
            .await?;
            let result = record.attempts.last().and_then(|attempt| attempt.result.as_ref());
            let delivered: Delivered = serde_json::from_str(result.ok_or("no result")?.as_str())?;
            skipped += usize::from(delivered != Delivered::Resumed);
        }
        self.stage.tell(format!("{} messages came twice or out of order; none of them changed anything", sent.len()));
        self.check(
            "duplicates and strays are skipped",
            skipped == sent.len(),
            format!("{skipped} of {} messages", sent.len()),
        );
        Ok(())
    }

    /// One partition fails for good, so nothing is published; then somebody resumes it.
    async fn fail_and_resume(&mut self, run: RunId) -> Result<(), BoxError> {
        self.wait_for_state(run, RunState::Failed).await?;
        let published = self.count("select count(*) as n from diamonds_stone").await?;
        let tell = self.client.enqueue(Tell {}).await?.job();
        let client = self.client.clone();
        until("somebody who tells", async || {
            Ok((client.show(tell).await?.summary.state == JobState::Succeeded).then_some(()))
        })
        .await?;
        let failed = self.count("select count(*) as n from diamonds_work_done where status = 'failed'").await?;
        let record = self.client.show_run(run).await?;
        let (done, total) = (record.run.done, record.run.total);
        self.stage
            .tell(format!("{done} of {total} partitions are done, one was refused for good: nothing is published"));
        self.check(
            "a partition that failed is told by WORK_DONE and stops the publication",
            (published, failed, record.run.failed) == (0, 1, 1),
            format!("{published} stones published, {failed} WORK_DONE with status failed"),
        );
        monitor::resume(&self.stage.database, &self.client, run, &self.chosen[1].name).await?;
        self.stage.tell("somebody resumes it where it stopped");
        self.wait_for_state(run, RunState::Succeeded).await
    }

    async fn check_published(&mut self, run: RunId, listed: &[Stone]) -> Result<(), BoxError> {
        let stones = self.sold().await?;
        self.stage.tell(format!("consolidated: {} stones with our prices", stones.len()));
        let markup = Markup::standard();
        let priced = |stone: &Stone| (stone.supplier_stone_id.clone(), markup.retail_cents(stone));
        let expected: Vec<(String, u64)> = listed.iter().map(priced).collect();
        let seen = format!("{} of {} stones, each once and with its markup", stones.len(), expected.len());
        self.check("no stone is lost or doubled, whatever died or changed", stones == expected, seen);
        let (record, looks) = (self.client.show_run(run).await?, self.watch.as_ref().map(Watch::seen));
        let consolidate = self.client.show(record.consolidate.ok_or("nothing was to be consolidated")?).await?;
        // It was canceled when the run had failed, before it began.
        let times = consolidate.attempts.iter().filter(|attempt| attempt.how != How::Canceled).count();
        self.check("it was consolidated once", times == 1, format!("{times} of one, after {} rows", record.rows));
        let (looks, back) = looks.unwrap_or_default();
        self.check("offsets never went back", back == 0 && looks > 0, format!("{back} times in {looks} looks"));
        let told = self.count("select count(*) as n from diamonds_work_done where status = 'completed'").await?;
        let is_all = u64::try_from(told)? == record.run.total;
        self.check("one WORK_DONE for each partition", is_all, format!("{told} of {}", record.run.total));
        let hows = self.tries_of_the_page().await?;
        let by_another = hows == [(How::Lost, "worker-1".to_owned()), (How::Succeeded, String::new())];
        let seen = if by_another { "lost by worker-1, done by another".to_owned() } else { format!("{hows:?}") };
        self.check("the dead worker's page was done by another", by_another, seen);
        Ok(())
    }

    /// The next run finds what has changed.
    async fn read_again(&mut self) -> Result<(), BoxError> {
        let job = schedule::ask(&self.client, None).await?;
        let run: RunId = job.to_string().parse()?;
        let client = self.client.clone();
        until("another run", async || Ok(client.show_run(run).await.ok().map(|_| ()))).await?;
        self.wait_for_state(run, RunState::Succeeded).await?;
        let markup = Markup::standard();
        let latest = World::all(&self.world.latest());
        let expected: Vec<(String, u64)> =
            latest.iter().map(|stone| (stone.supplier_stone_id.clone(), markup.retail_cents(stone))).collect();
        let stones = self.sold().await?;
        self.stage.tell("the next run reads the latest revision: new prices, new stones, none that was withdrawn");
        let seen = format!("{} stones as the supplier lists them now", stones.len());
        self.check("the next run finds what has changed", stones == expected, seen);
        Ok(())
    }

    fn worker(&self, name: &str) -> Result<Worker, BoxError> {
        Ok(worker::worker(Worker::builder(&self.stage.database).name(name), self.diamonds.clone()).build()?)
    }

    async fn wait_for_rows(&self, run: RunId, rows: u64) -> Result<(), BoxError> {
        let client = &self.client;
        until("more stones", async || Ok((client.show_run(run).await?.rows >= rows).then_some(()))).await
    }

    async fn wait_for_state(&self, run: RunId, state: RunState) -> Result<(), BoxError> {
        let client = &self.client;
        until("the end of a run", async || Ok((client.show_run(run).await?.run.state == state).then_some(()))).await
    }

    /// One of the chosen partitions, as it is now.
    async fn find(&self, run: RunId, chosen: usize) -> Result<PartitionRecord, BoxError> {
        let name = &self.chosen[chosen].name;
        let found = self.client.partitions_of(run).await?.into_iter().find(|partition| partition.name == *name);
        found.ok_or_else(|| format!("there is no partition {name}").into())
    }

    /// How the page went in which a worker died; who did it in the end does not matter.
    async fn tries_of_the_page(&self) -> Result<Vec<(How, String)>, BoxError> {
        let part = WorkItem::by_hand(&self.chosen[0], 30)?.message_id();
        let mut filter = tenure::JobFilter { queue: Some(crate::PAGES_QUEUE.parse()?), ..tenure::JobFilter::default() };
        filter.limit = 1_000;
        for job in self.client.store().list_jobs(&filter).await? {
            let record = self.client.show(job.id).await?;
            if record.part.is_some_and(|it| it.to_string() == part) {
                let name = |how, worker: Option<String>| worker.filter(|_| how != How::Succeeded).unwrap_or_default();
                return Ok(record.attempts.into_iter().map(|it| (it.how, name(it.how, it.worker))).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Our price by id.
    async fn sold(&self) -> Result<Vec<(String, u64)>, BoxError> {
        let select = "select supplier_stone_id, retail_cents from diamonds_stone order by supplier_stone_id";
        let rows = self.stage.database.query(select, row![]).await?;
        rows.iter().map(|row| Ok((row.get("supplier_stone_id")?, row.get("retail_cents")?))).collect()
    }

    async fn count(&self, sql: &'static str) -> Result<i64, BoxError> {
        let rows = self.stage.database.query(sql, row![]).await?;
        Ok(rows.first().ok_or("no count")?.get("n")?)
    }

    fn check(&mut self, name: &str, holds: bool, seen: impl Into<String>) {
        self.checks.push(Check::new(name, holds, seen));
    }
}

/// The prices of a partition are its name.
fn prices(partition: &PartitionRecord) -> Result<PriceRange, BoxError> {
    Ok(partition.name.as_str().parse()?)
}

/// Whether all stones of a range cost the same.
fn is_one_price(world: &World, range: PriceRange) -> bool {
    let mut prices = World::all(&world.latest()).into_iter().map(|stone| stone.price_cents);
    let mut first = None;
    prices.all(|cents| !range.contains(cents) || *first.get_or_insert(cents) == cents)
}
