//! F16: the server ends sessions at random, again and again, those that listen and renew among them.

use std::time::{Duration, Instant};

use tenure_core::How;

use crate::Act;
use crate::history::Load;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F16",
    fault: "sessions are ended by the server",
    injected: "`pg_terminate_backend` of a random session of producers and workers every 200 ms, listeners and keepers too",
    run: |size| Box::pin(run(size)),
};

const EVERY: Duration = Duration::from_millis(200);
const GAP_MS: i64 = 2_000;
const LEASE: Duration = Duration::from_secs(5);
/// A listener every so many-th time, if there is one.
const LISTENER_EVERY: u32 = 5;
/// Whoever it is, but not the one who asks.
const TERMINATE: &str =
    "select pg_terminate_backend(pid), application_name, query = 'listen tenure' from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    order by :listeners and query = 'listen tenure' desc, random() limit 1";

async fn run(size: Size) -> Report {
    let kills = size.pick(25, 600);
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let mut workers: Vec<Process> =
        (0..2).map(|n| stage.worker(&format!("w{n}"), &["--queue", "default=16"])).collect();
    let load = Load::start(&stage.history, &stage.client, 2, &Act::Wait { ms: 20 });
    let (mut ended, mut listeners, mut keepers) = (0, 0, 0);
    let since = Instant::now();
    for turn in 1..=kills {
        stage.charge_patiently(2).await;
        let terminate = TERMINATE.replace(":listeners", if turn % LISTENER_EVERY == 0 { "true" } else { "false" });
        if let [done, name, listens] = stage.sql(&terminate).split('|').collect::<Vec<_>>()[..] {
            ended += usize::from(done == "t");
            listeners += usize::from(listens == "t");
            keepers += usize::from(name == "tenure-keeper");
        }
        // The rhythm is the fault itself.
        tokio::time::sleep((EVERY * turn).saturating_sub(since.elapsed())).await;
    }
    let took = since.elapsed();
    load.stop().await;
    let (line, record) = PassLine::measure(&mut stage).await;
    let alive = workers.iter_mut().map(Process::ended).filter(Option::is_none).count();
    let mut done: Vec<i64> =
        record.ended_at.iter().filter(|(g, _)| record.ended[*g] == How::Succeeded).map(|(_, at)| *at).collect();
    done.sort_unstable();
    let mut gaps: Vec<i64> = done.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
    gaps.sort_unstable();
    let (p99, longest) = (gaps[gaps.len() * 99 / 100], gaps[gaps.len() - 1]);
    let mut report = Report::default();
    report.number(format!(
        "{ended} sessions ended in {} s, {listeners} of them listened, {keepers} renewed; {} jobs; between two completions p99 {p99} ms, \
         longest {longest} ms; {} enqueues repeated; attempts {:?}, {} refused",
        took.as_secs(),
        stage.history.count(),
        stage.history.unknowns(),
        record.tally(),
        record.refused.len()
    ));
    report.must(alive == 2, "no process ends");
    report.must(p99 <= GAP_MS * i64::from(size.slack()), "work goes on");
    report.must(record.succeeded().len() == stage.history.count(), "every job succeeds");
    report.line(line);
    report.bite(ended, size.pick(20, 500), "sessions ended");
    report
}
