//! A worker, its sources and a coin, in a place with a clock that the test moves.

use std::time::Duration;

use coins::collect::{Coins, Collected};
use coins::intake::Intake;
use coins::settings::Settings;
use coins::source::Source;
use coins::world::{World, morgan};
use coins::{scrape, worker};
use kit::Env;
use kit::testing::Place;
use tenure::core::name::GateName;
use tenure::store::gate::GateRecord;
use tenure::{Client, JobId, JobRecord, Summary, Worker};

pub(crate) struct Shop {
    pub(crate) place: Place,
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) coin: Intake,
    pub(crate) sources: Vec<Source>,
    pub(crate) coins: Coins,
    pub(crate) worker: Worker,
    pub(crate) settings: Settings,
}

impl Shop {
    /// With the seed's settings, and sources that allow a thousand calls a second.
    pub(crate) async fn open(place: Place) -> Self {
        Self::with(place, &[], 60_000).await
    }

    pub(crate) async fn with(place: Place, env: &[(&str, &str)], per_minute: u32) -> Self {
        let settings = Settings::read(&Env::of(env)).unwrap();
        let (client, coin) = (place.client(), morgan());
        let world = World::open(std::slice::from_ref(&coin)).await.unwrap();
        let sources = world.sources(per_minute);
        coin.add(&place.database).await.unwrap();
        for source in &sources {
            source.set(&client, &place.database, settings.source_pause).await.unwrap();
        }
        worker::prepare(&client, &settings).await.unwrap();
        let coins = worker::with_cache(&place.database, &settings, &place.database).unwrap();
        let worker = worker::worker(place.worker(), coins.clone(), &settings).build().unwrap();
        Self { place, client, world, coin, sources, coins, worker, settings }
    }

    /// Asks all sources about the coin; answers the jobs by the sources' names: bazaar, dealer, hammer.
    pub(crate) async fn ask(&self) -> Vec<JobId> {
        let asked = scrape::ask(&self.client, &self.coin, &self.sources, self.settings.retry_base).await.unwrap();
        asked.iter().map(|job| job.job()).collect()
    }

    /// Asks one source.
    pub(crate) async fn ask_one(&self, source: &str) -> JobId {
        let source = std::slice::from_ref(self.source(source));
        scrape::ask(&self.client, &self.coin, source, self.settings.retry_base).await.unwrap()[0].job()
    }

    /// Asks one source about any coin, so many times at once.
    pub(crate) async fn ask_times(&self, intake: &str, source: &str, times: usize) {
        let base = self.settings.retry_base;
        scrape::ask_times(&self.client, intake, self.source(source), times, base).await.unwrap();
    }

    /// bazaar, dealer or hammer.
    pub(crate) fn source(&self, id: &str) -> &Source {
        self.sources.iter().find(|source| source.id == id).unwrap()
    }

    pub(crate) async fn run(&self) -> Summary {
        self.worker.run_until_idle().await.unwrap()
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.place.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn show(&self, job: JobId) -> JobRecord {
        self.client.show(job).await.unwrap()
    }

    /// What a job that succeeded says of itself.
    pub(crate) async fn result(&self, job: JobId) -> Collected {
        let record = self.show(job).await;
        let result = record.attempts.last().and_then(|attempt| attempt.result.clone());
        serde_json::from_str(result.expect("a result").as_str()).unwrap()
    }

    pub(crate) async fn gate(&self, source: &str) -> GateRecord {
        self.client.store().show_gate(&GateName::new(format!("source:{source}")).unwrap()).await.unwrap()
    }
}

/// Waits for what must come, and not for ever.
pub(crate) async fn patiently<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("in a minute")
}
