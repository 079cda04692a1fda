//! [`Demo`]: the product in a few seconds. Failures wait for a second instead of five minutes, so that the second attempt is
//! seen; everything else is as the seed has it.

use std::time::Duration;

use kit::{BoxError, Check, Product, Running, Show, Showing, Stage, until};
use tenure::preset::LINKS;
use tenure::{Client, JobId, Timestamp, Worker, row};

use crate::bookmarks::write::Writer;
use crate::bookmarks::{self, Limits};
use crate::canonical::CanonicalUrl;
use crate::import::{self, Import};
use crate::link::{Link, LinkId};
use crate::report::Report;
use crate::settings::{PER_DOMAIN, Settings};
use crate::world::{Manner, World};
use crate::{Links, TABLES, worker};

/// Sites of Ada that are not as good as others.
const ODD: [Manner; 11] = [
    Manner::Korean,
    Manner::Huge,
    Manner::Paper,
    Manner::Moved,
    Manner::Away,
    Manner::ForbiddenOnce,
    Manner::Robots,
    Manner::Captcha,
    Manner::Forbidden,
    Manner::Gone,
    Manner::Broken,
];
/// Those of them that will not be enriched.
const LOST: u64 = 5;
/// Good sites, few enough that two pages of each and all the odd ones fit into the workers' twenty slots; pages of each.
const SITES: u32 = 4;
const PAGES: u32 = 14;

/// The show.
pub struct Demo;

impl Product for Demo {
    fn name(&self) -> &'static str {
        "links"
    }

    fn says(&self) -> &'static str {
        "bookmarks of Chrome: each link enriched once, two of a domain at once, whoever imports it"
    }

    fn show(&self, stage: Stage) -> Showing {
        Box::pin(async move {
            let mut story = Story::begin(stage).await?;
            story.change_ones_mind().await?;
            story.enrich().await?;
            story.import_again().await?;
            story.revive().await?;
            let checks = story.checks;
            Ok(Show { checks, going_on: Box::new((story.world, story.running)) })
        })
    }
}

struct Story {
    stage: Stage,
    client: Client,
    settings: Settings,
    world: World,
    running: Vec<Running>,
    /// Addresses of this show have it in their path: a database may have seen a show before.
    mark: String,
    checks: Vec<Check>,
}

impl Story {
    async fn begin(stage: Stage) -> Result<Self, BoxError> {
        let world = World::open().await?;
        let settings = Settings {
            // The story counts on them.
            concurrency: LINKS.claim_max.into(),
            per_domain: PER_DOMAIN,
            retry: Duration::from_secs(1),
            settle_every: Duration::from_millis(100),
            proxy: Some(world.proxy()),
            ..Settings::read(&stage.env)?
        };
        stage.database.make_tables(TABLES).await?;
        let client = Client::new(&stage.database);
        worker::prepare(&client, &settings).await?;
        let now: Timestamp = client.store().now().await?;
        let mark = format!("{:x}", now.as_micros());
        Ok(Self { stage, client, settings, world, running: Vec::new(), mark, checks: Vec::new() })
    }

    /// Carol imports links and cancels before anybody has looked.
    async fn change_ones_mind(&mut self) -> Result<(), BoxError> {
        let urls: Vec<String> = (0..20).map(|n| format!("http://carol.example/{}/{n}", self.mark)).collect();
        let id = self.import("carol", &export(&urls)).await?;
        Import::cancel(&self.client, &self.stage.database, "carol", &id).await?;
        for n in 1..=2 {
            let links = Links::open(&self.stage.database, &self.settings)?;
            let builder = Worker::builder(&self.stage.database).name(format!("links-worker-{n}"));
            self.running.push(Running::start(worker::worker(builder, links).build()?));
        }
        self.stage.tell("carol imported 20 links and changed her mind; then two workers began, ten links at once each");
        Ok(())
    }

    /// Ada's links, good ones and odd ones.
    async fn enrich(&mut self) -> Result<(), BoxError> {
        let good = self.good();
        let odd: Vec<String> = ODD.iter().map(|manner| self.odd(*manner)).collect();
        let file = export(&[good.as_slice(), &odd].concat());
        self.world.valve().close();
        let id = self.import("ada", &file).await?;
        let total = (good.len() + odd.len()) as u64;
        self.stage.tell(format!(
            "ada imported {total} links of {} sites, each twice, in folders",
            SITES as usize + ODD.len()
        ));
        until("two calls at each site", async || {
            let is_full = |site| self.world.domains().of(&format!("site-{site}.example")).now == 2;
            Ok((0..SITES).all(is_full).then_some(()))
        })
        .await?;
        let most = self.world.domains().all().into_values().map(|count| count.most).max().unwrap_or_default();
        self.stage.tell(format!("nobody answers for a moment: at every site {most} wait, and no more"));
        self.world.valve().open();
        let ada = self.end_of("ada", &id).await?;
        self.stage.tell(format!(
            "ada's import {}: {} of {} links, {} failed; who answered 403 once was asked once more",
            ada.status, ada.processed_items, ada.total_items, ada.failed_items
        ));
        let counts = (ada.total_items, ada.processed_items, ada.failed_items);
        self.check(
            "every link of the import has ended, and is counted once",
            counts == (total, total, LOST),
            format!("{counts:?}"),
        );
        let rows = self.client.show_run(id.parse()?).await?.rows;
        self.checks.push(Check::equal("the run of the import has counted the same", &total, &rows));
        let most = self.world.domains().all().into_values().map(|count| count.most).max().unwrap_or_default();
        self.checks.push(Check::equal("at most two of a domain at once, by two workers", &2, &most));
        let once = good.iter().filter(|url| self.world.pages().of(url).calls == 1).count();
        self.checks.push(Check::equal("each page was fetched once, in however many folders", &good.len(), &once));
        let carols = self.world.domains().of("carol.example").calls;
        self.check("nothing of what was canceled was fetched", carols == 0, format!("{carols} calls"));
        self.check_odd().await
    }

    async fn check_odd(&mut self) -> Result<(), BoxError> {
        let links = Link::list(&self.stage.database, "ada", "", 1_000).await?;
        let of = |manner: Manner| {
            let url = self.odd(manner);
            links.iter().find(move |link| link.url == url)
        };
        let title = of(Manner::Korean).and_then(|link| link.title.clone()).unwrap_or_default();
        let away = of(Manner::Away).and_then(|link| link.redirects_to.clone()).unwrap_or_default();
        let second = of(Manner::ForbiddenOnce).is_some_and(|link| link.status == "enriched");
        let report = Report::read(&self.client, &self.stage.database, Duration::from_secs(3_600)).await?;
        let mut reasons: Vec<&str> = report.block_candidates.iter().map(|it| it.reason.as_str()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        self.stage.tell(format!(
            "candidates for blocking: {} domains ({})",
            report.block_candidates.len(),
            reasons.join(", ")
        ));
        self.check("a page in EUC-KR has a title that can be read", title == "한국어 페이지", title);
        self.check("a redirect to another domain is told and not followed", away == "http://elsewhere.example/", away);
        self.check("one 403 is tried again, and its page was there", second, format!("enriched: {second}"));
        let names: Vec<&str> = report.block_candidates.iter().map(|it| it.domain.as_str()).collect();
        let refused = [Manner::Robots, Manner::Captcha, Manner::Forbidden].map(Manner::domain);
        let all = refused.iter().all(|domain| names.contains(domain)) && names.len() == refused.len();
        self.check("who refused us is a candidate for blocking, and nobody else", all, names.join(", "));
        Ok(())
    }

    /// Bob has the same bookmarks, as far as they are good.
    async fn import_again(&mut self) -> Result<(), BoxError> {
        let (urls, before) = (self.good(), self.world.domains().calls());
        let id = self.import("bob", &export(&urls)).await?;
        let bob = self.end_of("bob", &id).await?;
        let calls = self.world.domains().calls() - before;
        self.stage.tell(format!("bob imported {} of the same links: known, {calls} calls were made", bob.total_items));
        let whole = bob.processed_items == urls.len() as u64;
        self.check("a link that is known is never fetched again", calls == 0 && whole, format!("{calls} calls"));
        Ok(())
    }

    /// A site that wanted a person has calmed down, and somebody imports it again.
    async fn revive(&mut self) -> Result<(), BoxError> {
        let url = self.odd(Manner::Captcha);
        let before = self.job(&url).await?;
        self.world.set(Manner::Captcha.domain(), Manner::Good);
        let id = self.import("dave", &export(std::slice::from_ref(&url))).await?;
        let dave = self.end_of("dave", &id).await?;
        let is_same = self.job(&url).await? == before;
        self.stage
            .tell(format!("the captcha is gone; dave imported that link, and its own job ran again: {}", dave.status));
        let seen = format!("{}, the same job: {is_same}", dave.status);
        self.check("a dead link is requeued, never created again", is_same && dave.failed_items == 0, seen);
        Ok(())
    }

    fn good(&self) -> Vec<String> {
        let page = |n: u32| format!("http://site-{}.example/{}/{}", n % SITES, self.mark, n / SITES);
        (0..SITES * PAGES).map(page).collect()
    }

    fn odd(&self, manner: Manner) -> String {
        format!("http://{}/{}", manner.domain(), self.mark)
    }

    async fn import(&self, user: &str, file: &str) -> Result<String, BoxError> {
        let found = bookmarks::parse(file.as_bytes(), &Limits::default())?;
        Ok(import::store(&self.stage.database, &self.client, &self.settings, user, found).await?.to_string())
    }

    async fn end_of(&self, user: &str, id: &str) -> Result<Import, BoxError> {
        until("the end of an import", async || {
            let import = Import::find(&self.client, &self.stage.database, user, id).await?;
            Ok(import.filter(|import| import.finished_at.is_some()))
        })
        .await
    }

    async fn job(&self, url: &str) -> Result<JobId, BoxError> {
        let link = LinkId::of(&CanonicalUrl::parse(url)?);
        let found =
            self.stage.database.query("select job from link_canonical where id = $1", row![link.as_str()]).await?;
        Ok(found.first().ok_or("no such link")?.get("job")?)
    }

    fn check(&mut self, name: &str, holds: bool, seen: impl Into<String>) {
        self.checks.push(Check::new(name, holds, seen));
    }
}

/// An export with each of these in two folders.
fn export(urls: &[String]) -> String {
    let mut file = Writer::new();
    for (folder, mail) in [("Reading", ""), ("From a mail", "?utm_source=mail#top")] {
        file.open_folder(folder, false);
        for url in urls {
            file.link(&format!("{url}{mail}"), "A page", None, None);
        }
        file.close_folder();
    }
    file.finish()
}
