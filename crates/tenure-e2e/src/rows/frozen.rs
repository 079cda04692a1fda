//! F2, F3: SIGSTOP past the lease, and SIGCONT while the successor runs, or after it has ended: what the stale worker
//! says is refused, each time.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tenure_core::{How, JobId, LeaseNo};

use crate::pass_line::PassLine;
use crate::process::Process;
use crate::record::{Grant, Record};
use crate::report::{Report, Row};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Entry};

/// Row F2.
pub(super) const WHILE_THE_SUCCESSOR_RUNS: Row = Row {
    id: "F2",
    fault: "a worker is paused past its lease and goes on while the successor runs",
    injected: "SIGSTOP of one of two workers with what it holds, SIGCONT once the other one has started all of it",
    run: |size| Box::pin(run(size.pick(200, 500), false)),
};

/// Row F3.
pub(super) const AFTER_THE_SUCCESSOR: Row = Row {
    id: "F3",
    fault: "a worker is paused past its lease and goes on after the successor completed",
    injected: "the same, SIGCONT once all of it has succeeded under later leases",
    run: |size| Box::pin(run(size.pick(24, 200), true)),
};

/// Jobs in each freeze; what the frozen worker holds of them are its rounds.
const JOBS: usize = 24;
const LEASE: Duration = Duration::from_secs(1);
/// A third of the handlers may block their thread.
const FLAGS: [&str; 4] = ["--queue", "default=24", "--threads", "12"];

async fn run(rounds: usize, after_the_end: bool) -> Report {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let workers = [stage.worker("a", &FLAGS), stage.worker("b", &FLAGS)];
    let mut stale: HashSet<Grant> = HashSet::new();
    let mut freezes = 0;
    while stale.len() < rounds {
        stale.extend(freeze_once(&mut stage, &workers, freezes, after_the_end).await);
        freezes += 1;
        assert!(freezes < rounds, "the freezes do not hit");
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let mut refusals: HashMap<Grant, usize> = HashMap::new();
    record.refused.iter().for_each(|(grant, _)| *refusals.entry(*grant).or_default() += 1);
    let refused = stale.iter().filter(|grant| refusals.contains_key(grant)).count();
    let accepted = stale.iter().filter(|grant| record.ended[*grant] != How::Lost).count();
    let told = stage.count("told lease_lost");
    let mut report = Report::default();
    report.number(format!(
        "{} stale grants in {freezes} freezes: {refused} refused, {accepted} accepted; {told} handlers were told; attempts {:?}",
        stale.len(),
        record.tally()
    ));
    report.must((refused, accepted) == (stale.len(), 0), "all that the stale worker says is refused");
    report.must(record.succeeded().len() == freezes * JOBS, "and every job succeeds, under another lease");
    report.must(told > 0, "some handlers were in the middle of something");
    if after_the_end {
        report.number("the rows of all jobs before and after: the same each time");
    }
    report.line(line);
    report.bite(
        refused,
        rounds,
        if after_the_end { "reports refused after the end" } else { "reports refused while the successor ran" },
    );
    report
}

/// Freezes one worker with what it holds; answers the grants that were refused while their successors ran.
async fn freeze_once(stage: &mut Stage, workers: &[Process; 2], freeze: usize, after_the_end: bool) -> HashSet<Grant> {
    // Some hold until they are told, some come to their end as soon as they wake up, and some of those are deaf.
    let (last, ready) = (format!("last-{freeze}"), format!("ready-{freeze}"));
    let act = |n: usize| match n % 3 {
        0 => Act::Hold { gate: last.clone() },
        1 => Act::Hold { gate: ready.clone() },
        _ => Act::HoldDeaf { gate: ready.clone() },
    };
    stage.enqueue((0..JOBS).map(act).collect()).await;
    let before = freeze * JOBS;
    let held = watch("every job is held by somebody", async || {
        // Jobs of earlier freezes have ended, so the newest start of each of these is the one that counts.
        let held = newest(&stage.noted("start"));
        let ended: HashSet<JobId> = stage.noted("end").iter().map(|entry| entry.job).collect();
        let held: HashMap<_, _> = held.into_iter().filter(|(job, _)| !ended.contains(job)).collect();
        (ended.len() == before && held.len() == JOBS).then_some(held)
    })
    .await;
    let held_by = |name: &str| held.values().filter(|(_, worker)| worker == name).count();
    let (victim, other) =
        if held_by("a") >= held_by("b") { (&workers[0], &workers[1]) } else { (&workers[1], &workers[0]) };
    victim.freeze();
    let stale: HashSet<Grant> =
        held.iter().filter(|(_, (_, worker))| *worker == victim.name).map(|(job, (fence, _))| (*job, *fence)).collect();
    stage.gates.open(&format!("{ready}@{}", victim.name)).unwrap();
    watch("the other worker runs everything", async || {
        let now = newest(&stage.noted("start"));
        stale.iter().all(|(job, fence)| now[job].0 > *fence && now[job].1 != victim.name).then_some(())
    })
    .await;
    let before_the_thaw = match after_the_end {
        false => None,
        true => {
            stage.gates.open(&format!("{ready}@{}", other.name)).unwrap();
            stage.gates.open(&format!("{last}@{}", other.name)).unwrap();
            watch("the successors end", async || {
                (Record::read(&*stage.store).await.succeeded().len() == before + JOBS).then_some(())
            })
            .await;
            Some(stage.sql(ROWS_NOW))
        }
    };
    victim.thaw();
    watch("all that the stale worker says is refused", async || {
        let record = Record::read(&*stage.store).await;
        let refused: HashSet<Grant> = record.refused.iter().map(|(grant, _)| *grant).collect();
        stale.is_subset(&refused).then_some(())
    })
    .await;
    if let Some(then) = before_the_thaw {
        assert_eq!(stage.sql(ROWS_NOW), then, "what has ended stays as it is");
        stage.gates.open(&ready).unwrap();
        stage.gates.open(&last).unwrap();
        return stale;
    }
    let done: HashSet<JobId> =
        stage.noted("end").iter().filter(|entry| entry.worker != victim.name).map(|entry| entry.job).collect();
    assert!(stale.iter().all(|(job, _)| !done.contains(job)), "the successors still run");
    stage.gates.open(&ready).unwrap();
    stage.gates.open(&last).unwrap();
    watch("the successors end", async || {
        let record = Record::read(&*stage.store).await;
        (record.succeeded().len() == before + JOBS).then_some(())
    })
    .await;
    stale
}

/// Every job and every attempt, as one number.
const ROWS_NOW: &str = "select md5(string_agg(j::text, ',' order by j.id)) ||
    (select md5(string_agg(a::text, ',' order by a.job, a.lease)) from tenure.attempt a) from tenure.jobs j";

/// The last start of each job: its fence and who it was.
fn newest(starts: &[Entry]) -> HashMap<JobId, (LeaseNo, String)> {
    let mut newest: HashMap<JobId, (LeaseNo, String)> = HashMap::new();
    for start in starts {
        let seen = newest.entry(start.job).or_insert((start.fence, start.worker.clone()));
        if start.fence > seen.0 {
            *seen = (start.fence, start.worker.clone());
        }
    }
    newest
}
