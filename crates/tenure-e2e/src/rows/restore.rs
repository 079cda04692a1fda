//! F53: a database in which everything is in use is dumped, restored into a younger cluster and rehomed: everything goes on.

use std::process::Command;
use std::time::Duration;

use tenure_cluster::postgres_server::{Options, Postgres, psql};
use tenure_core::cron::Timing;
use tenure_core::gate::GateRule;
use tenure_core::unique::{Policy, Unique};
use tenure_core::{JobId, Json, NewJob, RunId, RunState};
use tenure_postgres::PgStore;
use tenure_store::gate::SetRule;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::schedule::{SetSchedule, Template};

use crate::Act;
use crate::ingest::{Consolidate, Ill, Ingest};
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;
use tenure_worker::Job;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F53",
    fault: "dump, restore and rehome with every feature in use",
    injected: "`pg_dump` while workers run pages, pass gates and complete in transactions; `kill -9` of all of them, `psql` into \
               a cluster with younger transaction ids, `rehome`, and new workers",
    run: |size| Box::pin(run(size)),
};

const LEASE: Duration = Duration::from_secs(2);
const FLAGS: [&str; 2] = ["--queue", "default=8"];
/// Rows of a partition: several pages.
const ROWS: u64 = 70;
const LIMIT: u32 = 20;
/// Transaction ids that the new cluster does not reach.
const BURN: &str = "do $$ begin for i in 1..20000 loop perform pg_current_xact_id(); commit; end loop; end $$";

async fn run(size: Size) -> Report {
    let (rounds, partitions) = size.pick((1, 12), (5, 60));
    let mut report = Report::default();
    let (mut in_flight, mut runs) = (0, Vec::new());
    let mut cluster = Postgres::start(&Options::default()).unwrap();
    let mut stage = Stage::at(cluster.url("postgres")).await;
    stage.sql(crate::ingest::TABLES);
    stage.set_lease("default", LEASE).await;
    let rule = Some(GateRule { concurrency: Some(2), ..GateRule::default() });
    let request = SetRule { pattern: "g".parse().unwrap(), rule, word: Word::default() };
    stage.store.set_rule(request).await.unwrap();
    set_schedule(&stage).await;
    let unique = keyed(&stage).await;
    for round in 0..rounds {
        stage.sql(BURN);
        let mut workers = workers(&stage, round);
        let run = create_run(&stage, partitions).await;
        runs.push(run);
        for n in 0..partitions {
            let waits = |ms| stage.client.enqueue(Act::Wait { ms });
            let stored = if n % 2 == 0 { waits(500).gate("g").await } else { waits(200).await };
            stage.history.acknowledge(&[stored.unwrap()]);
        }
        stage.charge(partitions, 20).await;
        watch("pages are committed and counted", async || {
            let shown = stage.store.show_run(&Sight::All, run).await.unwrap().run;
            (shown.done >= 1).then_some(())
        })
        .await;
        while stage.store.seal_journal().await.unwrap().is_some() {}
        let dump = dump(&cluster, stage.directory());
        in_flight += open_in(&dump, &mut cluster, &mut stage, &mut workers).await;
    }
    let workers = workers(&stage, rounds);
    for run in &runs {
        watch("a run is consolidated after the restore", async || {
            let shown = stage.store.show_run(&Sight::All, *run).await.unwrap().run;
            (shown.state == RunState::Succeeded).then_some(())
        })
        .await;
    }
    let fires = "select count(*) from tenure.schedule_fire";
    let fired: u64 = stage.sql(fires).parse().unwrap();
    watch("the schedule fires on", async || (stage.sql(fires).parse::<u64>().unwrap() > fired).then_some(())).await;
    stage.sql("select tenure.pause_schedule('each-second')");
    // The key of a job that has not ended still holds.
    let again = NewJob { id: new_id(&stage, 2).await, ..unique.clone() };
    let found = stage.store.enqueue_jobs(vec![again]).await.unwrap()[0].job();
    report.must(found == unique.id, format!("a unique key holds: {found} and {}", unique.id));
    stage.sql(&format!("select tenure.cancel('{}')", unique.id));
    let (line, record) = PassLine::measure(&mut stage).await;
    drop(workers);
    while stage.store.fold_rollups().await.unwrap() > 0 {}
    let claimed = stage.sql("select sum(cardinality(jobs)) from tenure.journal where event = 1");
    let summed = stage.sql("select sum(claimed) from tenure.rollup where step = 3 and tenant = 0");
    report.must(claimed == summed, format!("charts count every claim once: {summed} of {claimed}"));
    let permits = stage.sql("select sum(in_use) from tenure.gate");
    let violations = stage.sql("select count(*) from tenure.violations");
    report.must(violations == "0", format!("{violations} violations"));
    report.number(format!(
        "{rounds} restores of {} runs with {partitions} partitions each: {in_flight} leases were live in the dumps; the journal has \
         {} eras; gates hold {permits} permits; attempts {:?}",
        runs.len(),
        stage.sql("select count(*) from tenure.home"),
        record.tally()
    ));
    report.line(line);
    report.bite(in_flight, rounds, "leases that were live in the dump");
    report
}

/// Restores a dump into a new cluster, which takes the place of the old one; answers the leases that were live in it.
async fn open_in(dump: &str, cluster: &mut Postgres, stage: &mut Stage, workers: &mut [Process]) -> usize {
    for worker in workers.iter_mut() {
        worker.kill();
    }
    let younger = Postgres::start(&Options::default()).unwrap();
    let url = younger.url("postgres");
    let mut psql_file = Command::new(younger.bin_dir().join("psql"));
    psql_file.args(["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", "--output=/dev/null"]);
    assert!(psql_file.args(["--file", dump]).arg(&url).status().unwrap().success());
    let refused = crate::Place::Postgres(url.clone()).open().await.err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|why| why.contains("rehome")), "{refused:?}");
    PgStore::rehome(&url, false).await.unwrap();
    stage.move_to(url.clone()).await;
    *cluster = younger;
    let live = "select count(*) from tenure.lease l where exists (select from unnest(l.jobs) j (job)
        where not exists (select from tenure.attempt a where a.job = j.job and a.lease = l.no))";
    psql(&url, live).unwrap().parse().unwrap()
}

fn dump(cluster: &Postgres, directory: &std::path::Path) -> String {
    let file = directory.join("dump.sql").display().to_string();
    let mut dump = Command::new(cluster.bin_dir().join("pg_dump"));
    assert!(dump.args(["--file", &file]).arg(cluster.url("postgres")).status().unwrap().success());
    file
}

fn workers(stage: &Stage, round: usize) -> Vec<Process> {
    ["a", "b"].iter().map(|name| stage.worker(&format!("{name}{round}"), &FLAGS)).collect()
}

async fn create_run(stage: &Stage, partitions: usize) -> RunId {
    let mut new = stage.client.new_run();
    for n in 0..partitions {
        let job = Ingest { rows: ROWS, ms: 100, ill: Ill::Nothing };
        new = new.partition(&format!("p{n}"), stage.client.enqueue(job), LIMIT);
    }
    new.consolidate(stage.client.enqueue(Consolidate)).await.unwrap()
}

async fn set_schedule(stage: &Stage) {
    let timing = Timing::new("* * * * * *".parse().unwrap());
    let payload = Json::parse("payload", r#"{"do":"wait","ms":5}"#).unwrap();
    let template = Template::new(Act::KIND.parse().unwrap(), payload);
    let (tenant, name) = (Default::default(), "each-second".parse().unwrap());
    stage.store.set_schedule(SetSchedule { tenant, name, timing, template, word: Word::default() }).await.unwrap();
}

async fn new_id(stage: &Stage, n: u8) -> JobId {
    JobId::from_parts(stage.store.now().await.unwrap(), [n; 10])
}

/// A job with a unique key, in a queue that no worker serves.
async fn keyed(stage: &Stage) -> NewJob {
    let unique = Some(Unique::new("k", Policy::WhileActive));
    let queue = "unserved".parse().unwrap();
    let job = NewJob { unique, queue, ..NewJob::new(new_id(stage, 1).await, "noop".parse().unwrap(), Json::null()) };
    stage.store.enqueue_jobs(vec![job.clone()]).await.unwrap();
    job
}
