//! A worker, a simulated web and imports, in a place with a clock that the test moves.

use std::time::Duration;

use kit::Env;
use kit::testing::Place;
use links::bookmarks::write::Writer;
use links::bookmarks::{self, Limits};
use links::import::{self, Import};
use links::link::{Link, LinkId};
use links::report::Report;
use links::world::World;
use links::{CanonicalUrl, Links, Settings, worker};
use tenure::{Client, Database, JobId, JobRecord, Record, Summary, Worker, row};

pub(crate) struct Bed {
    pub(crate) place: Place,
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) settings: Settings,
    pub(crate) worker: Worker,
}

impl Bed {
    /// With the seed's settings.
    pub(crate) async fn open(place: Place) -> Self {
        Self::with(place, &[]).await
    }

    pub(crate) async fn with(place: Place, env: &[(&str, &str)]) -> Self {
        let world = World::open().await.unwrap();
        let proxy = world.proxy().to_string();
        let env: Vec<(&str, &str)> = env.iter().copied().chain([("LINKS_PROXY", proxy.as_str())]).collect();
        let settings = Settings::read(&Env::of(&env)).unwrap();
        let client = place.client();
        worker::prepare(&client, &settings).await.unwrap();
        let worker = another_worker(&place, &settings);
        Self { place, client, world, settings, worker }
    }

    pub(crate) fn database(&self) -> &Database {
        &self.place.database
    }

    /// Imports these addresses for a user, one folder, one placement each. Answers the import's id.
    pub(crate) async fn import(&self, user: &str, urls: &[&str]) -> String {
        let file = export(urls);
        self.import_file(user, &file).await
    }

    pub(crate) async fn import_file(&self, user: &str, file: &str) -> String {
        let found = bookmarks::parse(file.as_bytes(), &Limits::default()).unwrap();
        let id = import::store(self.database(), &self.client, &self.settings, user, found).await.unwrap();
        id.to_string()
    }

    /// Runs what is due.
    pub(crate) async fn run(&self) -> Summary {
        self.worker.run_until_idle().await.unwrap()
    }

    /// Runs what is due, and once more when imports look again.
    pub(crate) async fn run_and_settle(&self) {
        self.run().await;
        // What failed for good is buried by the first look and counted by the second.
        for _ in 0..2 {
            self.advance(10);
            self.run().await;
        }
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.place.advance(Duration::from_secs(seconds));
    }

    /// What a user reads of an import.
    pub(crate) async fn find(&self, user: &str, id: &str) -> Import {
        Import::find(&self.client, self.database(), user, id).await.unwrap().expect("an import of this user")
    }

    /// Status, total, processed and failed.
    pub(crate) async fn counts(&self, user: &str, id: &str) -> (&'static str, u64, u64, u64) {
        let import = self.find(user, id).await;
        (import.status, import.total_items, import.processed_items, import.failed_items)
    }

    /// All links of a user, by address.
    pub(crate) async fn links(&self, user: &str) -> Vec<Link> {
        let mut links = Link::list(self.database(), user, "", 1_000).await.unwrap();
        links.sort_by(|one, other| one.url.cmp(&other.url));
        links
    }

    /// The row of a link.
    pub(crate) async fn row(&self, url: &str) -> Record {
        let select = "select id, job, state, title, enriched_at, aside_at, last_error, failed_at from link_canonical where id = $1";
        let id = LinkId::of(&CanonicalUrl::parse(url).unwrap());
        self.database().query(select, row![id.as_str()]).await.unwrap().remove(0)
    }

    /// The job of a link.
    pub(crate) async fn job(&self, url: &str) -> JobId {
        self.row(url).await.get("job").unwrap()
    }

    pub(crate) async fn show(&self, url: &str) -> JobRecord {
        self.client.show(self.job(url).await).await.unwrap()
    }

    /// Of the last day.
    pub(crate) async fn report(&self) -> Report {
        Report::read(&self.client, self.database(), Duration::from_secs(86_400)).await.unwrap()
    }

    /// How often a page was called for.
    pub(crate) fn calls(&self, url: &str) -> u64 {
        self.world.pages().of(url).calls
    }

    /// How a link stands.
    pub(crate) async fn state(&self, url: &str) -> String {
        self.row(url).await.get("state").unwrap()
    }
}

/// Another process, as far as the database can tell.
pub(crate) fn another_worker(place: &Place, settings: &Settings) -> Worker {
    let links = Links::open(&place.database, settings).unwrap();
    worker::worker(place.worker(), links).build().unwrap()
}

/// A file with these addresses in one folder.
pub(crate) fn export(urls: &[&str]) -> String {
    let mut file = Writer::new();
    file.open_folder("Folder", false);
    for url in urls {
        file.link(url, "A title of the user's own", Some(1_700_000_000), None);
    }
    file.finish()
}
