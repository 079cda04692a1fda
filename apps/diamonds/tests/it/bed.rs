//! A supplier, a worker, and a clock that the test moves.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use diamonds::price_range::PriceRange;
use diamonds::settings::Settings;
use diamonds::stone::Stone;
use diamonds::worker::Diamonds;
use diamonds::world::{Act, Ask, Fault, HELD, World};
use diamonds::{monitor, schedule, worker};
use kit::testing::{Place, Process};
use kit::{Env, Site, Valve};
use serde_json::Value;
use tenure::core::Json;
use tenure::store::operate::Word;
use tenure::store::run::{OperatePartition, PartitionAct};
use tenure::{Client, JobId, JobRecord, PartitionRecord, RunId, RunRecord, Sight, Summary, Worker, row};
use tokio::task::JoinHandle;

pub(crate) struct Bed {
    pub(crate) place: Place,
    pub(crate) client: Client,
    pub(crate) world: World,
    site: Option<Site>,
    pub(crate) settings: Settings,
    pub(crate) diamonds: Diamonds,
    /// For processes.
    pub(crate) env: Vec<(String, String)>,
}

impl Bed {
    /// A catalogue of so many stones in partitions of 5,000: small ones are one partition.
    pub(crate) async fn open(place: Place, stones: u32) -> Self {
        Self::with(place, stones, &[]).await
    }

    pub(crate) async fn with(place: Place, stones: u32, env: &[(&str, &str)]) -> Self {
        let world = World::new(7, stones).unwrap();
        let site = world.open().await.unwrap();
        let (url, client) = (site.url(), place.client());
        let usual = [("DIAMONDS_SUPPLIER_URL", url.as_str()), ("DIAMONDS_PAUSE_SECONDS", "0")];
        let is_said = |name: &str| env.iter().any(|(said, _)| *said == name);
        let usual = usual.into_iter().filter(|(name, _)| !is_said(name));
        let pairs: Vec<(&str, &str)> = usual.chain(env.iter().copied()).collect();
        let settings = Settings::read(&Env::of(&pairs)).unwrap();
        worker::prepare(&client, &settings).await.unwrap();
        let diamonds = Diamonds::new(&place.database, &settings).unwrap();
        let env = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { place, client, world, site: Some(site), settings, diamonds, env }
    }

    /// Whoever calls from now on is refused. Answers where the supplier was.
    pub(crate) async fn stop_supplier(&mut self) -> SocketAddr {
        let site = self.site.take().unwrap();
        let address = site.address();
        site.close().await;
        address
    }

    pub(crate) async fn start_supplier(&mut self, address: SocketAddr) {
        self.site = Some(Site::open_at(address, self.world.router()).await.unwrap());
    }

    /// A worker that does everything.
    pub(crate) fn worker(&self, name: &str) -> Worker {
        worker::worker(self.place.worker().name(name), self.diamonds.clone()).build().unwrap()
    }

    /// A worker as a process of its own, killed when dropped.
    pub(crate) fn start(&self, name: &str) -> Process {
        let mut database = self.place.url().to_owned();
        if self.place.database.is_postgres() {
            // Its connections have its name.
            database.push(if database.contains('?') { '&' } else { '?' });
            database.push_str(&format!("application_name={name}"));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_diamonds"));
        command.args(["worker", "--database", &database]).env("WORKER_ID", name).envs(self.env.iter().cloned());
        Process::start(command)
    }

    /// Does whatever is due, one after the other.
    pub(crate) async fn work(&self) -> Summary {
        self.worker("worker-1").run_until_idle().await.unwrap()
    }

    /// Does whatever is due and is no page.
    pub(crate) async fn control(&self) -> Summary {
        let worker = worker::control(self.place.worker().name("control"), self.diamonds.clone()).build().unwrap();
        worker.run_until_idle().await.unwrap()
    }

    /// Creates a run, of which no page has begun.
    pub(crate) async fn schedule(&self) -> RunId {
        let job = schedule::ask(&self.client, Some("trace-7".to_owned())).await.unwrap();
        self.control().await;
        let told = self.result(job).await;
        assert_eq!(told["created"], true, "{told}");
        told["run"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn run(&self, run: RunId) -> RunRecord {
        self.client.show_run(run).await.unwrap()
    }

    pub(crate) async fn partitions(&self, run: RunId) -> Vec<PartitionRecord> {
        self.client.partitions_of(run).await.unwrap()
    }

    /// The only partition of a small catalogue.
    pub(crate) async fn partition(&self, run: RunId) -> PartitionRecord {
        let [only] = self.partitions(run).await.try_into().unwrap();
        only
    }

    pub(crate) async fn show(&self, job: JobId) -> JobRecord {
        self.client.show(job).await.unwrap()
    }

    /// What a job that succeeded says of itself.
    pub(crate) async fn result(&self, job: JobId) -> Value {
        let record = self.show(job).await;
        let attempt = record.attempts.last().unwrap_or_else(|| panic!("no attempt of {record:?}"));
        let result = attempt.result.as_ref().unwrap_or_else(|| panic!("no result of {record:?}"));
        serde_json::from_str(result.as_str()).unwrap()
    }

    /// Every job of a partition's pages, in the order of their offsets.
    pub(crate) async fn pages(&self) -> Vec<JobRecord> {
        let filter = tenure::JobFilter {
            queue: Some(diamonds::PAGES_QUEUE.parse().unwrap()),
            limit: 1_000,
            ..tenure::JobFilter::default()
        };
        let mut pages = Vec::new();
        for job in self.client.store().list_jobs(&filter).await.unwrap() {
            pages.push(self.show(job.id).await);
        }
        pages.sort_by_key(|page| page.summary.id);
        pages
    }

    /// Works until the page at `offset` of the only partition has asked the supplier, who keeps it waiting.
    pub(crate) async fn work_until_held(&self, offset: u64) -> Held {
        self.work_until_held_by(self.worker("worker-1"), offset).await
    }

    pub(crate) async fn work_until_held_by(&self, worker: Worker, offset: u64) -> Held {
        let valve = self.hold(offset);
        let working = tokio::spawn(async move { worker.run_until_idle().await.unwrap() });
        self.wait_for_page(offset).await;
        Held { valve, working }
    }

    /// The same for one of several partitions.
    pub(crate) async fn work_until_held_of(&self, partition: &PartitionRecord, offset: u64) -> Held {
        let valve = Valve::shut();
        let about = Ask::page_of(prices(partition), offset);
        self.world.fault(Fault::on(about, Act::Hold(valve.clone())).times(1));
        let worker = self.worker("worker-1");
        let working = tokio::spawn(async move { worker.run_until_idle().await.unwrap() });
        self.world.traffic().wait_for(HELD, |count| count.now > 0).await;
        Held { valve, working }
    }

    /// The next call for this page is kept waiting.
    pub(crate) fn hold(&self, offset: u64) -> Valve {
        let valve = Valve::shut();
        let about = Ask::Page { min: None, offset: Some(offset) };
        self.world.fault(Fault::on(about, Act::Hold(valve.clone())).times(1));
        valve
    }

    /// Waits until this page of the only partition is asked for.
    pub(crate) async fn wait_for_page(&self, offset: u64) {
        self.world.traffic().wait_for(&format!("{} {offset}", PriceRange::ALL), |count| count.now > 0).await;
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.place.advance(Duration::from_secs(seconds));
    }

    /// How many stones we sell.
    pub(crate) async fn sold(&self) -> i64 {
        self.place.count("select count(*) as n from diamonds_stone").await
    }

    /// Lets a partition that failed go on.
    pub(crate) async fn resume(&self, partition: &PartitionRecord) {
        monitor::resume(&self.place.database, &self.client, partition.run, &partition.name).await.unwrap();
    }

    /// Lets a partition begin again at an offset; answers the new page's job.
    pub(crate) async fn reset(&self, partition: &PartitionRecord, offset: u64) -> JobId {
        let job = JobId::from_parts(self.place.clock.now(), [7; 10]);
        let (run, partition, act) = (partition.run, partition.name.clone(), PartitionAct::Reset { offset, job });
        let request = OperatePartition { sight: Sight::All, run, partition, act, word: Word::default() };
        self.client.store().operate_partition(request).await.unwrap();
        job
    }

    /// Calls for pages so far.
    pub(crate) fn calls(&self) -> u64 {
        self.world.traffic().of("page").calls
    }

    /// The raw stones by id, each as the latest revision has it.
    pub(crate) async fn raw(&self) -> BTreeMap<String, Stone> {
        let select = "select supplier_stone_id, payload from diamonds_raw order by as_of";
        let rows = self.place.database.query(select, row![]).await.unwrap();
        let stone = |payload: Json| serde_json::from_str(payload.as_str()).unwrap();
        rows.iter().map(|row| (row.get("supplier_stone_id").unwrap(), stone(row.get("payload").unwrap()))).collect()
    }

    /// WORK_DONE of every partition, by name.
    pub(crate) async fn work_done(&self) -> Vec<Value> {
        let select = "select message from diamonds_work_done order by run_id, partition_id";
        let rows = self.place.database.query(select, row![]).await.unwrap();
        let read = |message: Json| serde_json::from_str(message.as_str()).unwrap();
        rows.iter().map(|row| read(row.get("message").unwrap())).collect()
    }
}

/// A worker in the middle of a page.
pub(crate) struct Held {
    pub(crate) valve: Valve,
    working: JoinHandle<Summary>,
}

impl Held {
    /// Lets the page go on, and waits until nothing is due any more.
    pub(crate) async fn go_on(self) -> Summary {
        self.valve.open();
        self.working.await.unwrap()
    }
}

/// A partition's prices are its name.
pub(crate) fn prices(partition: &PartitionRecord) -> PriceRange {
    partition.name.as_str().parse().unwrap()
}

/// What the supplier lists, by id.
pub(crate) fn listed(world: &World) -> BTreeMap<String, Stone> {
    let all = World::all(&world.latest());
    all.into_iter().map(|stone| (stone.supplier_stone_id.clone(), stone)).collect()
}
