//! F12–F14: a claim, an ending or an enqueue is committed, and nobody hears of it.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use tenure_core::{How, JobId, LeaseNo};
use tenure_postgres::tokio_postgres::{Client, NoTls, connect};

use crate::history::History;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::report::{Report, Row, Size};
use crate::stage::{Stage, unique};
use crate::{Act, Place};

/// Row F12.
pub(super) const OF_CLAIMS: Row = Row {
    id: "F12",
    fault: "a claim is committed and its reply is lost",
    injected: "the proxy waits for the server's ReadyForQuery after every third claim that took something, drops the reply and resets",
    run: |size| Box::pin(claims(size)),
};

/// Row F13.
pub(super) const OF_ENDINGS: Row = Row {
    id: "F13",
    fault: "a completion is committed and its reply is lost",
    injected: "the same for every second report of endings",
    run: |size| Box::pin(endings(size)),
};

/// Row F14.
pub(super) const OF_ENQUEUES: Row = Row {
    id: "F14",
    fault: "an enqueue is committed, its reply is lost, the client sends it again",
    injected: "the same for every second enqueue with an idempotency key, by the Rust client and by plain SQL (HTTP: when there is an API)",
    run: |size| Box::pin(enqueues(size)),
};

const CLAIM: &[&str] = &["-- claim_jobs.sql"];
const END: &[&str] = &["-- complete_jobs.sql", "-- end_jobs.sql"];
const ENQUEUE: &[&str] = &["-- enqueue_plain.sql", "-- enqueue_jobs.sql", "tenure.enqueue("];

/// Short: some of what is taken and not heard of runs out before its claimer gives it back.
const LEASE: Duration = Duration::from_secs(2);
const WORKERS: usize = 4;

async fn claims(size: Size) -> Report {
    let bites = size.pick(20, 300);
    let (mut stage, proxy, workers) = start(&["--queue", "default=4"]).await;
    proxy.cut_replies(CLAIM, 3);
    let took = feed_until(&mut stage, &proxy, bites).await;
    proxy.cut_no_replies();
    let (line, record) = PassLine::measure(&mut stage).await;
    let started: HashSet<LeaseNo> = stage.noted("start").iter().map(|entry| entry.fence).collect();
    // A lease under which no handler started is one that nobody heard of.
    let unheard: Vec<(&(JobId, LeaseNo), &How)> =
        record.ended.iter().filter(|((_, no), _)| !started.contains(no)).collect();
    let mut became: BTreeMap<&str, usize> = BTreeMap::new();
    unheard.iter().for_each(|(_, how)| *became.entry(how.as_str()).or_default() += 1);
    let leases: HashSet<LeaseNo> = unheard.iter().map(|((_, no), _)| *no).collect();
    let succeeded = record.succeeded();
    let returned = unheard.iter().filter(|((job, _), _)| succeeded.contains_key(job)).count();
    let charged = charged(&stage);
    let mut report = Report::default();
    report.number(format!(
        "{} jobs in {} s; {} leases that nobody heard of held {} jobs, which became {became:?}; {returned} of them succeeded later; \
         attempts charged {charged}",
        stage.history.count(),
        took.as_secs(),
        leases.len(),
        unheard.len()
    ));
    report.must(returned == unheard.len(), "all of them come back");
    report.must(unheard.iter().all(|(_, how)| matches!(how, How::Released | How::Lost)), "given back or run out");
    report.must(leases.len() >= proxy.cuts(), "every cut reply is one of them");
    report.must(succeeded.len() == stage.history.count(), "every job succeeds");
    report.must(charged == "1", "nobody is charged for a claim that was not heard of");
    all_live(workers, &mut report);
    report.line(line);
    report.bite(proxy.cuts(), bites, "replies of claims cut");
    report
}

async fn endings(size: Size) -> Report {
    let bites = size.pick(20, 300);
    let (mut stage, proxy, workers) = start(&["--queue", "default=4"]).await;
    proxy.cut_replies(END, 2);
    let took = feed_until(&mut stage, &proxy, bites).await;
    proxy.cut_no_replies();
    let (line, record) = PassLine::measure(&mut stage).await;
    let (starts, jobs) = (stage.count("start"), stage.history.count());
    let mut report = Report::default();
    report.number(format!(
        "{jobs} jobs in {} s, {starts} starts; attempts {:?}; {} reports refused",
        took.as_secs(),
        record.tally(),
        record.refused.len()
    ));
    report.must(starts == jobs, "every handler runs once");
    report.must(
        record.tally() == BTreeMap::from([("succeeded", jobs)]),
        "every report that was sent again was answered as done",
    );
    report.must(record.refused.is_empty(), "and none of them was refused");
    all_live(workers, &mut report);
    report.line(line);
    report.bite(proxy.cuts(), bites, "replies of endings cut");
    report
}

/// Workers behind a proxy.
async fn start(flags: &[&str]) -> (Stage, Proxy, Vec<Process>) {
    let stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let through = Place::Postgres(through);
    let workers = (0..WORKERS).map(|n| stage.worker_at(&through, &format!("w{n}"), flags)).collect();
    (stage, proxy, workers)
}

/// Stores jobs as fast as they are done, until so many replies were cut.
async fn feed_until(stage: &mut Stage, proxy: &Proxy, bites: usize) -> Duration {
    let since = Instant::now();
    let mut news = (0, Instant::now());
    while proxy.cuts() < bites {
        if news.0 < proxy.cuts() {
            news = (proxy.cuts(), Instant::now());
        }
        assert!(news.1.elapsed() < Duration::from_secs(60), "nothing is cut for a minute");
        let (stored, done) = (stage.history.count(), stage.count("end"));
        if stored - done < 100 {
            stage.enqueue((0..40).map(|n| Act::Wait { ms: 5 + n % 3 }).collect()).await;
            stage.charge(4, 5).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    since.elapsed()
}

async fn enqueues(size: Size) -> Report {
    let bites = size.pick(20, 300);
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let _worker = stage.worker("w", &["--queue", "default=32"]);
    proxy.cut_replies(ENQUEUE, 2);
    let store = Place::Postgres(through.clone()).open().await.unwrap();
    let client = tenure_worker::Client::new(&store);
    while proxy.cuts() < bites / 2 {
        stage.history.enqueue(&client, Act::Wait { ms: 1 }).await;
    }
    let by_client = proxy.cuts();
    let mut sql = Sql { url: through, client: None };
    while proxy.cuts() - by_client < bites.div_ceil(2) {
        sql.enqueue(&stage.history).await;
    }
    proxy.cut_no_replies();
    let (line, record) = PassLine::measure(&mut stage).await;
    let jobs: usize = stage.sql("select count(*) from tenure.job").parse().unwrap();
    let mut report = Report::default();
    report.number(format!(
        "{} requests by key, {jobs} jobs; {} enqueues sent again by the client and {} by SQL, {} found what the first had stored",
        stage.history.count(),
        by_client,
        proxy.cuts() - by_client,
        stage.history.repeated()
    ));
    report.must(jobs == stage.history.count(), "one job for each key");
    report.must(stage.history.repeated() == proxy.cuts(), "what was sent again finds the first");
    report.must(record.succeeded().len() == jobs, "and each runs once");
    report.line(line);
    report.bite(proxy.cuts(), bites, "replies of enqueues cut");
    report
}

/// A producer without any library.
struct Sql {
    url: String,
    client: Option<Client>,
}

impl Sql {
    async fn enqueue(&mut self, history: &History) {
        let key = unique();
        let sql = "select job, created from tenure.enqueue('act', '{\"do\":\"wait\",\"ms\":1}', idempotency_key => $1)";
        loop {
            if self.client.as_ref().is_none_or(Client::is_closed) {
                let (client, connection) = connect(&self.url, NoTls).await.unwrap();
                tokio::spawn(connection);
                self.client = Some(client);
            }
            match self.client.as_ref().unwrap().query_one(sql, &[&key]).await {
                Ok(row) => return history.acknowledge_key(&key, JobId::from_uuid(row.get(0)), !row.get::<_, bool>(1)),
                Err(error) => {
                    assert!(error.as_db_error().is_none(), "{error:?}");
                    history.unknown();
                    self.client = None;
                }
            }
        }
    }
}

/// The attempts that jobs were charged, each number once.
fn charged(stage: &Stage) -> String {
    stage.sql("select string_agg(distinct attempt::text, ',') from tenure.attempt where final")
}

fn all_live(workers: Vec<Process>, report: &mut Report) {
    for mut worker in workers {
        report.must(worker.ended().is_none(), format!("{} lives\n{}", worker.name, worker.log()));
    }
}
