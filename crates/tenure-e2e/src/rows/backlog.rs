//! F27, F29: a claim costs the same beside a million due and a million future jobs, in every plan mode, with statistics,
//! with old ones and without any.
//!
//! Times are compared, never asserted: each claim on the full database is followed by one on an almost empty one, so that
//! whatever else the machine does happens to both.

use std::time::{Duration, Instant};

use super::session::Session;
use crate::Act;
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;

/// Row F27.
pub(super) const WITH_STATISTICS: Row = Row {
    id: "F27",
    fault: "a backlog of a million jobs, and a million future ones",
    injected: "the prepared claim beside them, 1,000 times in each plan mode, and after each the same on an almost empty database",
    run: |size| Box::pin(run(size, true)),
};

/// Row F29.
pub(super) const WITHOUT_STATISTICS: Row = Row {
    id: "F29",
    fault: "statistics that are old, and none at all",
    injected: "the same with autovacuum off: analyzed while the tables were as good as empty, and never",
    run: |size| Box::pin(run(size, false)),
};

const MODES: [&str; 3] = ["auto", "force_generic_plan", "force_custom_plan"];
const LIMIT: usize = 20;
const AT_MOST: f64 = 2.0;
/// As the store's own sessions for short verbs are, but for the mode.
const SETTINGS: &str = "set jit = off; set enable_seqscan = off";

async fn run(size: Size, statistics: bool) -> Report {
    let jobs = size.pick(50_000, 1_000_000);
    let empty = quiet_stage().await;
    let (mut stage, mut report) = (quiet_stage().await, Report::default());
    match statistics {
        true => {
            fill_up(&stage, jobs);
            analyze(&[&stage, &empty]);
            measure(&stage, &empty, size, "fresh statistics", &mut report).await;
        }
        false => {
            analyze(&[&stage, &empty]);
            fill_up(&stage, jobs);
            measure(&stage, &empty, size, "old statistics", &mut report).await;
            [&stage, &empty].into_iter().for_each(forget_statistics);
            measure(&stage, &empty, size, "no statistics", &mut report).await;
        }
    }
    let rows: usize = stage.sql("select count(*) from tenure.ready").parse().unwrap();
    report.bite(rows, 2 * jobs, "jobs beside the claim");
    // Emptied, and then the same database does ordinary work.
    stage.sql("truncate tenure.ready; truncate tenure.job");
    stage.set_lease("default", Duration::from_secs(5)).await;
    stage.enqueue((0..200).map(|_| Act::Wait { ms: 1 }).collect()).await;
    let _worker = stage.worker("w", &["--queue", "default=16"]);
    let (line, _) = PassLine::measure(&mut stage).await;
    report.line(line);
    report
}

/// A store with two hundred due jobs that nobody cleans up behind our back.
async fn quiet_stage() -> Stage {
    let stage = Stage::postgres().await;
    stage.sql("alter table tenure.job set unlogged");
    for table in ["ready", "job"] {
        stage.sql(&format!("alter table tenure.{table} set (autovacuum_enabled = off)"));
    }
    fill(&stage, 200, "now()");
    stage
}

fn analyze(stages: &[&Stage]) {
    for stage in stages {
        stage.sql("analyze");
    }
}

/// As if nobody had ever looked at these tables.
fn forget_statistics(stage: &Stage) {
    let tables = "('tenure.ready'::regclass, 'tenure.job'::regclass)";
    stage.sql(&format!("delete from pg_statistic where starelid in {tables}"));
    stage.sql(&format!("update pg_class set reltuples = -1, relpages = 0 where oid in {tables}"));
}

async fn measure(full: &Stage, empty: &Stage, size: Size, name: &str, report: &mut Report) {
    for mode in MODES {
        let (ratio, said) = compare(full, empty, mode, size).await;
        let (removed, scanned) = claimer(full, mode).await.waste(LIMIT).await;
        report.number(format!("{name}, {mode}: {said}, rows removed by filter {removed}"));
        report.must(
            removed == 0 && !scanned,
            format!("{name}, {mode}: {removed} rows in vain, whole table read: {scanned}"),
        );
        // A few claims on a busy machine tell nothing about time; the rows do.
        let fast = ratio <= AT_MOST || size == Size::Small;
        report.must(fast, format!("{name}, {mode}: p99 is {ratio:.2} times that of an empty table"));
    }
}

/// Claims on both in turn; answers p99 over p99, the middle one of three.
async fn compare(full: &Stage, empty: &Stage, mode: &str, size: Size) -> (f64, String) {
    // Left to itself the planner plans anew each time beside a backlog and keeps its plan without one. That is a choice,
    // not a cost of the backlog, so it is held against planning anew; the store's own sessions never leave it the choice.
    let fair = if mode == "auto" { "force_custom_plan" } else { mode };
    let (here, there) = (claimer(full, mode).await, claimer(empty, fair).await);
    let claims = size.pick(50, 334);
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for _ in 0..claims {
            long.push(claim(&here).await.as_secs_f64());
            short.push(claim(&there).await.as_secs_f64());
        }
        long.sort_unstable_by(f64::total_cmp);
        short.sort_unstable_by(f64::total_cmp);
        let at = claims * 99 / 100;
        ratios.push((long[at] / short[at], long[claims / 2] / short[claims / 2], short[at]));
    }
    ratios.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (p99, p50, p99_empty) = ratios[1];
    (p99, format!("p99 {p99:.2} times that of an empty table ({:.1} ms), p50 {p50:.2} times", 1_000.0 * p99_empty))
}

async fn claimer(stage: &Stage, mode: &str) -> Session {
    let session = Session::open(&stage.place.text(), &format!("{SETTINGS}; set plan_cache_mode = {mode}")).await;
    session.prepare_claim().await;
    session
}

/// One claim, taken back.
async fn claim(session: &Session) -> Duration {
    session.run("begin").await;
    let since = Instant::now();
    let answers = session.ask(&Session::claim(LIMIT)).await;
    let took = since.elapsed();
    assert_eq!(answers[0].len(), LIMIT);
    session.run("rollback").await;
    took
}

fn fill_up(stage: &Stage, jobs: usize) {
    fill(stage, jobs, "now()");
    fill(stage, jobs, "now() + interval '1 day' + i * interval '1 s'");
}

/// Jobs of the default queue, as one bulk.
fn fill(stage: &Stage, jobs: usize, run_at: &str) {
    stage.sql(&format!(
        "with j as (
           insert into tenure.job (id, created_at, run_at, tenant, queue, priority, kind, payload)
           select tenure.new_id(), now(), {run_at}, 1, 1, 2, 'noop', '{{}}' from generate_series(1, {jobs}) i
           returning id, run_at, priority
         )
         insert into tenure.ready (run_at, job, queue, priority) select run_at, id, 1, priority from j"
    ));
}
