//! F57: one statement cancels very many jobs, and the processes that seal the journal are killed in the middle.

use std::thread;
use std::time::{Duration, Instant};

use tenure_cluster::postgres_server::psql;
use tenure_core::How;

use crate::act::Act;
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F57",
    fault: "one statement cancels very many jobs, and sealers are killed",
    injected: "`select tenure.cancel(id) from …` over all jobs of a queue in one transaction, while 2 workers seal and do other \
               jobs; one of them killed with -9 after every few seals",
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
/// Cancels that the figures know.
const COUNTED: &str = "select coalesce(sum(canceled), 0) from tenure.rollup where step = 3 and tenant = 0";
const SEALED: &str = "select coalesce(sum(rows), 0) from tenure.seal";

async fn run(size: Size) -> Report {
    let (jobs, most_kills) = size.pick((20_000_u64, 4), (2_000_000, 20));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(2)).await;
    stage.sql(&FILL.replace(":jobs", &jobs.to_string()));
    let mut workers = ["a", "b"].map(|name| stage.worker(name, &["--queue", "default=4"]));
    let url = stage.place.text();
    let bulk = thread::spawn(move || psql(&url, CANCEL).unwrap());
    // Others work and seals go on while the statement runs.
    let mut beside = 0;
    while !bulk.is_finished() {
        stage.enqueue((0..20).map(|_| Act::Wait { ms: 5 }).collect()).await;
        tokio::time::sleep(Duration::from_millis(250)).await;
        beside += 20;
    }
    let canceled = bulk.join().unwrap();
    let (mut kills, mut sealed_at_kill) = (0, Vec::new());
    loop {
        let before = number(&stage, SEALED);
        if before >= jobs {
            break;
        }
        watch("a part is sealed", async || (number(&stage, SEALED) > before).then_some(())).await;
        let now = number(&stage, SEALED);
        if kills < most_kills && now < jobs {
            let at = kills % workers.len();
            workers[at].kill();
            sealed_at_kill.push(now);
            kills += 1;
            let name = format!("w{kills}");
            workers[at] = stage.worker(&name, &["--queue", "default=4"]);
        }
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

fn number(stage: &Stage, sql: &str) -> u64 {
    stage.sql(sql).parse().unwrap()
}
