//! Runs across processes: E2 pages under kills, freezes and lost replies; F41 the one job that waits for all of them.

use std::time::Duration;

use tenure_core::journal::JournalEvent;
use tenure_core::{How, RunId, RunState};
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::run::{OperatePartition, PartitionAct, RunRecord};

use crate::ingest::{Consolidate, Ill, Ingest};
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// Row E2.
pub(super) const PAGES: Row = Row {
    id: "E2",
    fault: "workers of an ingest are killed, sleep past their lease, and lose replies to their commits",
    injected: "partitions of several pages on 3 workers; one after the other frozen past its lease and thawed, others \
               killed with -9; handlers that hear an error after their commit; a source that is broken until it is mended",
    run: |size| Box::pin(pages(size)),
};

/// Row F41.
pub(super) const FAN_IN: Row = Row {
    id: "F41",
    fault: "thousands of partitions end together, and a worker that counts them is killed",
    injected: "runs of 0, 1 and many partitions of one page each on 3 workers, `kill -9` in the middle",
    run: |size| Box::pin(fan_in(size)),
};

const LEASE: Duration = Duration::from_secs(2);
const LIMIT: u32 = 20;
/// Rows of a partition: three full pages and a short one.
const ROWS: u64 = 70;

async fn pages(size: Size) -> Report {
    let (partitions, harms) = size.pick((40, 4), (400, 40));
    let mut stage = stage().await;
    let mut new = stage.client.new_run().source("catalogue");
    for n in 0..partitions {
        let ill = match n {
            0 => Ill::Broken,
            n if n % 5 == 1 => Ill::Deaf,
            _ => Ill::Nothing,
        };
        let job = Ingest { rows: ROWS, ms: if n % 4 == 2 { 400 } else { 60 }, ill };
        new = new.partition(&format!("p{n}"), stage.client.enqueue(job), LIMIT);
    }
    let run = new.consolidate(stage.client.enqueue(Consolidate)).await.unwrap();
    let mut workers = ["a", "b", "c"].map(|name| stage.worker(name, &["--queue", "default=6"]));
    let (mut kills, mut freezes) = (0, 0);
    for n in 0..harms {
        let at = n % workers.len();
        let name = workers[at].name.clone();
        let before = stage.entries().iter().filter(|entry| entry.worker == name).count();
        // On a fast machine the others may have done all there was.
        let over = watch("it works", async || {
            let works = stage.entries().iter().filter(|entry| entry.worker == name).count() > before;
            if works { Some(false) } else { settled(&stage, run).await.then_some(true) }
        })
        .await;
        if over {
            break;
        }
        if n % 2 == 0 {
            workers[at].freeze();
            tokio::time::sleep(LEASE + LEASE / 4).await;
            workers[at].thaw();
            freezes += 1;
        } else {
            workers[at].kill();
            kills += 1;
            workers[at] = stage.worker(&format!("w{n}"), &["--queue", "default=6"]);
        }
    }
    // One partition is broken: the run fails, and nobody consolidates.
    let failed = ended(&stage, run).await;
    let early = stage.sql("select count(*) from e2e_consolidated");
    stage.gates.open("mended").unwrap();
    let act = PartitionAct::Resume;
    let (sight, partition, word) = (Sight::All, "p0".parse().unwrap(), Word::default());
    stage.store.operate_partition(OperatePartition { sight, run, partition, act, word }).await.unwrap();
    watch("the run is healed", async || (state(&stage, run).await == RunState::Succeeded).then_some(())).await;
    let (line, record) = PassLine::measure(&mut stage).await;
    let mut report = Report::default();
    let (lost, refused) = (record.count(How::Lost), record.refused.len());
    report.number(format!(
        "{partitions} partitions of {ROWS} rows; {freezes} freezes and {kills} kills; {lost} attempts lost, {refused} reports \
         refused; failed with {} done and {} failed, healed by one resume",
        failed.run.done, failed.run.failed
    ));
    report.must(failed.run.state == RunState::Failed && failed.run.failed == 1, "one broken partition fails the run");
    report.must(early == "0", format!("nobody consolidates a run that failed: {early}"));
    every_row_once(&mut report, &stage, partitions, ROWS);
    consolidated_once(&mut report, &stage, run, partitions as u64 * ROWS).await;
    let violations = stage.store.find_violations(10).await.unwrap();
    report.must(violations.is_empty(), format!("no invariant is broken: {violations:?}"));
    report.line(line);
    report.bite(lost, size.pick(2, 50), "attempts lost in the middle of a page");
    report
}

async fn fan_in(size: Size) -> Report {
    let many = size.pick(400, 10_000);
    let mut stage = stage().await;
    let none = stage.client.new_run().consolidate(stage.client.enqueue(Consolidate)).await.unwrap();
    let one = create(&stage, 1).await;
    let run = create(&stage, many).await;
    let mut workers = ["a", "b", "c"].map(|name| stage.worker(name, &["--queue", "default=20"]));
    let mut kills = 0;
    for part in 1..=size.pick(2, 6) {
        let wanted = many as u64 * part / (size.pick(2, 6) + 1);
        watch("some are done", async || (show(&stage, run).await.run.done >= wanted).then_some(())).await;
        workers[0].kill();
        kills += 1;
        workers[0] = stage.worker(&format!("w{part}"), &["--queue", "default=20"]);
    }
    for run in [none, one, run] {
        watch("it is consolidated", async || (state(&stage, run).await == RunState::Succeeded).then_some(())).await;
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let mut report = Report::default();
    report.number(format!(
        "runs of 0, 1 and {many} partitions, {kills} kills, {} attempts lost",
        record.count(How::Lost)
    ));
    every_row_once(&mut report, &stage, many + 1, 1);
    for (run, partitions) in [(none, 0), (one, 1), (run, many as u64)] {
        consolidated_once(&mut report, &stage, run, partitions).await;
    }
    let counted = show(&stage, run).await.run;
    report.must((counted.total, counted.done) == (many as u64, many as u64), format!("all are counted: {counted:?}"));
    let violations = stage.store.find_violations(10).await.unwrap();
    report.must(violations.is_empty(), format!("no invariant is broken: {violations:?}"));
    report.line(line);
    report.bite(record.count(How::Lost), size.pick(1, 20), "attempts lost by killed workers");
    report
}

async fn stage() -> Stage {
    let stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    stage.sql(crate::ingest::TABLES);
    stage
}

async fn create(stage: &Stage, partitions: usize) -> RunId {
    let mut new = stage.client.new_run();
    for n in 0..partitions {
        let job = Ingest { rows: 1, ms: 2, ill: Ill::Nothing };
        new = new.partition(&format!("p{n}"), stage.client.enqueue(job), LIMIT);
    }
    new.consolidate(stage.client.enqueue(Consolidate)).await.unwrap()
}

async fn show(stage: &Stage, run: RunId) -> RunRecord {
    stage.store.show_run(&Sight::All, run).await.unwrap()
}

async fn state(stage: &Stage, run: RunId) -> RunState {
    show(stage, run).await.run.state
}

async fn settled(stage: &Stage, run: RunId) -> bool {
    !state(stage, run).await.is_open()
}

async fn ended(stage: &Stage, run: RunId) -> RunRecord {
    watch("the run ends", async || {
        let record = show(stage, run).await;
        (!record.run.state.is_open()).then_some(record)
    })
    .await
}

/// Every row of every partition is there, once, and no partition went back.
fn every_row_once(report: &mut Report, stage: &Stage, partitions: usize, rows: u64) {
    let counts = stage.sql("select count(*), count(distinct (part, n)) from e2e_row");
    let wanted = partitions as u64 * rows;
    report.must(counts == format!("{wanted}|{wanted}"), format!("{wanted} rows, each once: {counts}"));
}

/// Opened once, run once, and not before all rows were there.
async fn consolidated_once(report: &mut Report, stage: &Stage, run: RunId, rows: u64) {
    let found = stage.sql(&format!("select rows from e2e_consolidated where run = '{run}'"));
    report.must(found == rows.to_string(), format!("consolidated once with {rows} rows: {found}"));
    let job = show(stage, run).await.consolidate.unwrap();
    let opened = stage.sql(&format!(
        "select count(*) from tenure.journal where event in ({}, {}) and jobs[1] = '{job}'",
        JournalEvent::Opened.code(),
        JournalEvent::Requeued.code()
    ));
    report.must(opened == "1", format!("it was opened {opened} times"));
}
