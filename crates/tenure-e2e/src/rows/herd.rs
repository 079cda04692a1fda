//! F35: everything is due in the same second; everything that failed together comes back spread out.

use std::time::{Duration, Instant};

use tenure_core::{Backoff, How};

use crate::Act;
use crate::ledger::wall_clock;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F35",
    fault: "a thundering herd",
    injected: "all jobs due in the same second; then as many handlers as there are slots fail in the same moment, under the default backoff",
    run: |size| Box::pin(run(size)),
};

const WORKERS: usize = 4;
const SLOTS: usize = 250;
/// A policy like the default, 10 s and up to 10 % more, and how long a tenth of its spread is.
const POLICY: [(&str, i64); 2] =
    [("exponential 3s..1h by failures jitter 10%", 30), ("exponential 10s..1h by failures jitter 10%", 100)];

async fn run(size: Size) -> Report {
    let jobs = size.pick(5_000, 100_000);
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(10)).await;
    let slots = format!("default={SLOTS}");
    let workers: Vec<Process> =
        (0..WORKERS).map(|n| stage.worker(&format!("w{n}"), &["--queue", &slots, "--threads", "2"])).collect();
    let mut report = Report::default();
    due_together(&mut stage, jobs, size.pick(2_000_000, 10_000_000), &mut report).await;
    let spread = fail_together(&mut stage, size.pick(POLICY[0], POLICY[1]), &mut report).await;
    let (line, record) = PassLine::measure(&mut stage).await;
    report.must(record.count(How::Lost) == 0, "nobody loses a lease in the rush");
    report.must(record.succeeded().len() == jobs, "every job that can succeeds");
    drop(workers);
    report.line(line);
    report.bite(spread, WORKERS * SLOTS, "handlers that failed in the same moment");
    report
}

async fn due_together(stage: &mut Stage, jobs: usize, notice_us: i64, report: &mut Report) {
    for _ in 0..jobs / 1_000 {
        let acts = (0..1_000).map(|_| Act::Wait { ms: 1 });
        let far = Duration::from_secs(3_600);
        let stored = stage.client.enqueue_many(acts).each(|_, one| one.delay(far)).await.unwrap();
        stage.history.acknowledge(&stored);
    }
    // However long it took to store them: they become due together, a little later.
    let due = wall_clock() + notice_us;
    stage.sql(&format!("update tenure.ready set run_at = timestamptz 'epoch' + {due} * interval '1 us'"));
    let early = stage.count("start");
    let in_time = wall_clock() < due;
    let (mut most_at_once, mut most_held, mut most_sessions) = (0, 0, 0);
    let mut rates: Vec<(Instant, usize)> = Vec::new();
    watch("all of them are done", async || {
        let begun = stage.count("start");
        let done = stage.count("end");
        rates.push((Instant::now(), done));
        most_at_once = most_at_once.max(begun.saturating_sub(done));
        let queues = stage.store.list_queues().await.unwrap();
        most_held = most_held.max(queues.iter().map(|queue| queue.running).sum::<u64>());
        let sessions = stage.sql("select count(*) from pg_stat_activity where datname = current_database()");
        most_sessions = most_sessions.max(sessions.parse::<usize>().unwrap());
        (done == jobs).then_some(())
    })
    .await;
    let first = stage.noted("start").iter().map(|entry| entry.at).min().unwrap();
    let peak = peak_per_second(&rates);
    report.number(format!(
        "{jobs} jobs due at once: first start {} ms after that, peak {peak} a second, at most {most_at_once} handlers at once in {} slots, \
         {most_held} jobs held with those being reported, {most_sessions} sessions",
        (first - due) / 1_000,
        WORKERS * SLOTS
    ));
    report.must(early == 0 && first >= due && in_time, "none starts before it is due");
    report.must(most_at_once <= WORKERS * SLOTS, "no more handlers run than there are slots");
    // A slot runs its next job while the one before is reported.
    report.must(most_held <= 2 * (WORKERS * SLOTS) as u64, "nobody claims more than its free slots");
}

/// The most that were done within one second.
fn peak_per_second(rates: &[(Instant, usize)]) -> usize {
    let within =
        |at: Instant| rates.iter().filter(move |(then, _)| *then >= at && *then <= at + Duration::from_secs(1));
    rates.iter().map(|(at, done)| within(*at).map(|(_, later)| later - done).max().unwrap_or(0)).max().unwrap_or(0)
}

/// Lets every slot fail in the same moment; answers how many did.
async fn fail_together(stage: &mut Stage, (policy, bucket_ms): (&str, i64), report: &mut Report) -> usize {
    let backoff: Backoff = policy.parse().unwrap();
    let (before, all) = (stage.count("start"), WORKERS * SLOTS);
    let acts = (0..all).map(|_| Act::HoldTrouble { gate: "fail".into() });
    let stored =
        stage.client.enqueue_many(acts).each(|_, one| one.max_attempts(2).backoff(backoff.clone())).await.unwrap();
    stage.history.acknowledge(&stored);
    watch("every slot holds one", async || (stage.count("start") == before + all).then_some(())).await;
    stage.gates.open("fail").unwrap();
    watch("all have failed", async || {
        (stage.sql("select count(*) from tenure.ready where state = 1") == all.to_string()).then_some(())
    })
    .await;
    let times =
        stage.sql("select (extract(epoch from run_at) * 1000)::bigint from tenure.ready where state = 1 order by 1");
    let times: Vec<i64> = times.lines().map(|line| line.parse().unwrap()).collect();
    let failed = stage.sql(
        "select (extract(epoch from max(ended_at) - min(ended_at)) * 1000)::int from tenure.attempt where how = 2",
    );
    let mut buckets = vec![0_usize; usize::try_from((times[times.len() - 1] - times[0]) / bucket_ms + 1).unwrap()];
    times.iter().for_each(|at| buckets[usize::try_from((at - times[0]) / bucket_ms).unwrap()] += 1);
    let (max, mean) = (buckets.iter().max().copied().unwrap(), times.len() as f64 / buckets.len() as f64);
    report.number(format!(
        "{} that failed within {failed} ms are due again over {} buckets of {bucket_ms} ms: the fullest has {max}, the mean is {mean:.0}",
        times.len(),
        buckets.len()
    ));
    report.must(max as f64 <= 2.0 * mean, "what failed together does not come back together");
    // Without its jitter all of them would be due within the time it took them to fail.
    report.must(buckets.len() >= 8, "and over as long as the policy says");
    watch("they are through", async || stage.open_jobs().await.filter(|open| *open == 0).map(drop)).await;
    times.len()
}
