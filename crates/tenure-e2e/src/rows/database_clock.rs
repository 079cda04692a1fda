//! F9: the database's clock is set ten minutes forward, and back: work goes on, what a dead worker held is taken back, and
//! nobody's end is accepted twice.
//!
//! A worker that sees the clock set forward takes nothing back for one lease time. One that looked at the clock right
//! before it was set and takes back right after cannot see it, nor can one that has just started and has nothing to
//! compare with; here one starts in that very moment. What they take from the living is counted, and what those say then
//! is refused.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tenure_cluster::postgres_server::{Options, Postgres};
use tenure_core::How;

use crate::Act;
use crate::history::Load;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::record::Record;
use crate::report::{Report, Row, Size};
use crate::skew::Skew;
use crate::stage::{Directory, Stage};
use crate::watch::watch;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F9",
    fault: "the database's clock jumps ten minutes forward, and back",
    injected: "Postgres under a preloaded clock that is set while handlers run, one worker having been killed right before",
    run: |size| Box::pin(run(size)),
};

const JUMP_S: i64 = 600;
const LEASE: Duration = Duration::from_secs(2);
const HELD: usize = 16;
const PROGRESS: usize = 50;
const SLOTS: usize = 32;
const FLAGS: [&str; 2] = ["--queue", "default=32"];
/// Leases that a worker takes back in one call.
const LEASES_MAX: usize = 100;

async fn run(size: Size) -> Report {
    let rounds = size.pick(1, 4);
    let directory = Directory::new();
    let skew = Skew::build(directory.path(), "postgres");
    let cluster = Postgres::start(&Options { environment: skew.environment().to_vec(), ..Options::default() }).unwrap();
    let mut stage = Stage::at(cluster.url("postgres")).await;
    stage.set_lease("default", LEASE).await;
    let mut workers: Vec<Process> = (0..2).map(|n| stage.worker(&format!("w{n}"), &FLAGS)).collect();
    let mut heirs = Vec::new();
    let load = Load::start(&stage.history, &stage.client, 1, &Act::Wait { ms: 5 });
    let (mut seen, mut baits, mut postponed) = (0, 0, Vec::new());
    for round in 0..rounds {
        // Forward: every lease seems to be over, and one really is.
        hold(&mut stage, &format!("forward-{round}")).await;
        heirs.push(kill_a_holder(&mut stage, round).await);
        baits += 1;
        seen += jump(&stage, &skew, JUMP_S).await;
        let set = Instant::now();
        watch("what the dead one held is taken back", async || {
            progress(&mut stage).await;
            let lost = Record::read(&*stage.store).await.count(How::Lost);
            (set.elapsed() > 2 * LEASE && lost >= baits).then_some(())
        })
        .await;
        stage.gates.open(&format!("bait-{round}")).unwrap();
        stage.gates.open(&format!("forward-{round}")).unwrap();
        // Back: leases seem to last ten minutes longer, and what was just stored is not due yet.
        hold(&mut stage, &format!("back-{round}")).await;
        seen += jump(&stage, &skew, 0).await;
        let set = Instant::now();
        watch("work goes on", async || {
            progress(&mut stage).await;
            (set.elapsed() > 2 * LEASE).then_some(())
        })
        .await;
        postponed
            .push(stage.sql("select count(*) from tenure.ready where run_at > clock_timestamp() + interval '1 min'"));
        stage.gates.open(&format!("back-{round}")).unwrap();
    }
    load.stop().await;
    // What was stored in the ten minutes that have not come yet is due when they have.
    jump(&stage, &skew, JUMP_S).await;
    let (line, record) = PassLine::measure(&mut stage).await;
    let alive = workers.iter_mut().map(Process::ended).filter(Option::is_none).count();
    let count = |word: &str| -> usize {
        let lines = workers.iter().flat_map(Process::log_lines);
        lines.filter(|line| line.text.contains(&format!("clock was set {word}"))).count()
    };
    let (told, told_back) = (count("forward"), count("back"));
    let alive_taken = record.count(How::Lost).saturating_sub(baits);
    let peak = peak_per_second(&record);
    let mut report = Report::default();
    report.number(format!(
        "{} jobs, {seen} jumps; jobs taken back from the dead {baits}, from the living {alive_taken}, at most {peak} in a second; {told} warnings of a clock set forward, {told_back} of one set back; \
         jobs that waited for the time to come again after a jump back {postponed:?}; attempts {:?}, {} refused",
        stage.history.count(),
        record.tally(),
        record.refused.len()
    ));
    report.must(record.count(How::Lost) >= baits, "what a dead worker held is taken back");
    report.must(peak <= LEASES_MAX * SLOTS, "what is taken back at once is bounded");
    report.must(record.succeeded().len() == stage.history.count(), "every job succeeds, once");
    report.must(told >= rounds, "somebody says that the clock was set forward");
    report.must(told_back > 0, "somebody says that the clock was set back");
    report.must(alive == 2, "no process ends");
    report.line(line);
    report.bite(seen, 2 * rounds, "jumps of the database's clock seen");
    report
}

/// Sets the clock and waits until the database has seen it; answers that this was one jump.
async fn jump(stage: &Stage, skew: &Skew, to_s: i64) -> usize {
    let clock = || stage.sql("select extract(epoch from clock_timestamp())::bigint").parse::<i64>().unwrap();
    let before = clock();
    skew.set(to_s);
    watch("the server has seen it", async || ((clock() - before).abs() > JUMP_S / 2).then_some(1)).await
}

/// Jobs that are held until their gate opens.
async fn hold(stage: &mut Stage, gate: &str) {
    stage.enqueue((0..HELD).map(|_| Act::Hold { gate: gate.to_owned() }).collect()).await;
    watch("they are held", async || {
        let running =
            stage.sql("select count(*) from tenure.jobs where state = 'running' and payload ->> 'do' = 'hold'");
        (running.parse::<usize>().unwrap() >= HELD).then_some(())
    })
    .await;
}

/// A worker is killed with a job in its hands; answers the one in its place.
async fn kill_a_holder(stage: &mut Stage, round: usize) -> Process {
    let (name, queue) = (format!("dead-{round}"), format!("alone-{round}"));
    let flag = format!("{queue}=1");
    stage.set_lease(&queue, LEASE).await;
    let mut worker = stage.worker(&name, &["--queue", &flag]);
    let stored = stage.client.enqueue(Act::Hold { gate: format!("bait-{round}") }).queue(&queue).await.unwrap();
    stage.history.acknowledge(&[stored]);
    watch("it holds its job", async || stage.noted("start").iter().any(|entry| entry.worker == name).then_some(()))
        .await;
    worker.kill();
    stage.worker(&format!("heir-{round}"), &["--queue", &flag])
}

/// The most jobs that were taken back within a second of the database's clock.
fn peak_per_second(record: &Record) -> usize {
    let mut seconds: HashMap<i64, usize> = HashMap::new();
    for (_, at) in record.ended_at.iter().filter(|(grant, _)| record.ended[*grant] == How::Lost) {
        *seconds.entry(at / 1_000_000).or_default() += 1;
    }
    seconds.into_values().max().unwrap_or(0)
}

async fn progress(stage: &mut Stage) {
    let done = stage.count("end");
    watch("work goes on", async || (stage.count("end") >= done + PROGRESS).then_some(())).await;
}
