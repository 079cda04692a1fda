//! F57: one statement cancels very many jobs, and the processes that seal the journal are killed in the middle.

use std::time::{Duration, Instant};

use tenure_core::How;

use super::session::Session;
use crate::act::Act;
use crate::pass_line::PassLine;
use crate::place::Place;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F57",
    fault: "one statement cancels very many jobs, and sealers are killed",
    injected: "`select tenure.cancel(id) from …` over all jobs of a queue in one transaction, while 2 workers seal and do other \
               jobs; the one that has read a part and is about to write its seal is killed with -9, again and again",
    run: |size| Box::pin(run(size)),
};

/// Most rows of one seal.
const SEAL_ROWS_MAX: u64 = 5_000;
const FILL: &str = "insert into tenure.queue (name) values ('bulk');
    with j as (
      insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload)
      select tenure.new_id(), now(), now() + interval '1 day', 1, q.id, 'noop', '{}'
      from tenure.queue q, generate_series(1, :jobs) where q.name = 'bulk' returning id, run_at, queue, priority
    )
    insert into tenure.ready (run_at, job, queue, priority) select run_at, id, queue, priority from j;
    analyze tenure.job, tenure.ready";
const CANCEL: &str = "set statement_timeout = 0;
    select count(tenure.cancel(r.job, actor => 'bulk')) from tenure.ready r join tenure.queue q on q.id = r.queue where q.name = 'bulk'";
/// Reads go on, and a sealer waits when it writes its seal.
const HOLD_SEALS: &str = "begin; lock table tenure.seal in share row exclusive mode";
/// The worker that waits for [`HOLD_SEALS`]: each worker's connections have its name.
const WAITING_SEALER: &str = "select a.application_name from pg_locks l join pg_stat_activity a using (pid)
    where a.datname = current_database() and l.relation = 'tenure.seal'::regclass and not l.granted limit 1";
/// Cancels that the figures know.
const COUNTED: &str = "select coalesce(sum(canceled), 0) from tenure.rollup where step = 3 and tenant = 0";
const SEALED: &str = "select coalesce(sum(rows), 0) from tenure.seal";

async fn run(size: Size) -> Report {
    let (jobs, most_kills) = size.pick((20_000_u64, 4), (2_000_000, 20));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(2)).await;
    stage.sql(&FILL.replace(":jobs", &jobs.to_string()));
    let mut workers = ["a", "b"].map(|name| named_worker(&stage, name));
    let bulk = Session::open(&stage.place.text(), "begin").await;
    let bulk = tokio::spawn(async move { (bulk.ask(CANCEL).await.remove(1), bulk) });
    // Others work and seals go on while the statement runs.
    let mut beside = 0;
    while !bulk.is_finished() {
        stage.enqueue((0..20).map(|_| Act::Wait { ms: 5 }).collect()).await;
        tokio::time::sleep(Duration::from_millis(250)).await;
        beside += 20;
    }
    let (canceled, bulk) = bulk.await.unwrap();
    let canceled = canceled[0][0].clone().unwrap();
    let lock = Session::open(&stage.place.text(), HOLD_SEALS).await;
    bulk.run("commit").await;
    let (mut kills, mut sealed_at_kill) = (0, Vec::new());
    while kills < most_kills {
        // The lock is held: a sealer has read its part and waits to write the seal.
        let waiting = watch("a sealer has a part to write", async || {
            Some(stage.sql(WAITING_SEALER)).filter(|name| !name.is_empty())
        });
        let name = waiting.await;
        let victim = workers.iter_mut().find(|worker| worker.name == name).unwrap();
        victim.kill();
        sealed_at_kill.push(number(&stage, SEALED));
        kills += 1;
        *victim = named_worker(&stage, &format!("w{kills}"));
        // The killed sealer's seal is rolled back; the next sealer writes at least one part.
        lock.run("rollback").await;
        let before = number(&stage, SEALED);
        watch("a part is sealed", async || (number(&stage, SEALED) > before).then_some(())).await;
        if number(&stage, SEALED) >= jobs {
            break;
        }
        lock.run(HOLD_SEALS).await;
    }
    drop(lock);
    loop {
        let before = number(&stage, SEALED);
        if before >= jobs {
            break;
        }
        watch("a part is sealed", async || (number(&stage, SEALED) > before).then_some(())).await;
    }
    // Figures follow in parts, too.
    let sealed = Instant::now();
    loop {
        let before = number(&stage, COUNTED);
        if before >= jobs {
            break;
        }
        watch("figures follow", async || (number(&stage, COUNTED) > before).then_some(())).await;
    }
    let figures = sealed.elapsed().as_secs();
    let seals = number(&stage, "select count(*) from tenure.seal");
    let largest = number(&stage, "select max(rows) from tenure.seal");
    let (line, record) = PassLine::measure(&mut stage).await;
    let canceled_rows = record.count(How::Canceled);
    let mut report = Report::default();
    report.number(format!(
        "{canceled} jobs canceled by one statement, {beside} jobs beside it; {seals} seals of {largest} rows at most; \
         {kills} kills, the first with {} of {jobs} rows sealed; figures complete {figures} s after the last seal",
        sealed_at_kill.first().copied().unwrap_or_default()
    ));
    report.must(largest <= SEAL_ROWS_MAX, format!("a seal has at most {SEAL_ROWS_MAX} rows: {largest}"));
    report.must(
        canceled_rows as u64 == jobs,
        format!("every cancel is in the sealed record once: {canceled_rows} of {jobs}"),
    );
    report.line(line);
    report.bite(kills, size.pick(1, 5), "sealers killed while rows waited for their seal");
    report
}

/// A worker whose connections have its name.
fn named_worker(stage: &Stage, name: &str) -> Process {
    let url = stage.place.text();
    let sign = if url.contains('?') { '&' } else { '?' };
    let place = Place::parse(&format!("{url}{sign}application_name={name}"));
    stage.worker_at(&place, name, &["--queue", "default=4"])
}

fn number(stage: &Stage, sql: &str) -> u64 {
    stage.sql(sql).parse().unwrap()
}
