//! SIGSTOP past the lease, and SIGCONT while the successor runs: what the stale worker says is refused, each time.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tenure_core::{How, JobId, LeaseNo};
use tenure_e2e::{Act, Entry};

use crate::process::Process;
use crate::record::{Grant, Record};
use crate::stage::Stage;
use crate::watch::watch;

const ROUNDS: usize = 200;
/// Jobs in each freeze; what the frozen worker holds of them are its rounds.
const JOBS: usize = 24;
const LEASE: Duration = Duration::from_secs(1);
/// A third of the handlers may block their thread.
const FLAGS: [&str; 4] = ["--queue", "default=24", "--threads", "12"];

#[tokio::test(flavor = "multi_thread")]
async fn frozen_worker_is_refused() {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let workers = [stage.worker("a", &FLAGS), stage.worker("b", &FLAGS)];
    let mut stale: HashSet<Grant> = HashSet::new();
    let mut freezes = 0;
    while stale.len() < ROUNDS {
        stale.extend(freeze_once(&mut stage, &workers, freezes).await);
        freezes += 1;
        assert!(freezes < ROUNDS, "the freezes do not hit");
    }
    let record = Record::prove(&*stage.store).await;
    let mut refusals: HashMap<Grant, usize> = HashMap::new();
    record.refused.iter().for_each(|(grant, _)| *refusals.entry(*grant).or_default() += 1);
    let refused = stale.iter().filter(|grant| refusals.contains_key(grant)).count();
    let accepted = stale.iter().filter(|grant| record.ended[*grant] != How::Lost).count();
    let told = stage.count("told lease_lost");
    println!(
        "{} rounds in {freezes} freezes: {refused} refused, {accepted} stale accepted; {told} handlers were told; attempts {:?}",
        stale.len(),
        record.tally()
    );
    assert_eq!((refused, accepted), (stale.len(), 0));
    assert_eq!(record.succeeded().len(), freezes * JOBS, "and every job succeeds, under another lease");
    assert!(told > 0, "some handlers were in the middle of something, or the run is void");
}

/// Freezes one worker with what it holds; answers the grants that were refused while their successors ran.
async fn freeze_once(stage: &mut Stage, workers: &[Process; 2], freeze: usize) -> HashSet<Grant> {
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
    let victim = if held_by("a") >= held_by("b") { &workers[0] } else { &workers[1] };
    victim.freeze();
    let stale: HashSet<Grant> =
        held.iter().filter(|(_, (_, worker))| *worker == victim.name).map(|(job, (fence, _))| (*job, *fence)).collect();
    stage.gates.open(&format!("{ready}@{}", victim.name)).unwrap();
    watch("the other worker runs everything", async || {
        let now = newest(&stage.noted("start"));
        stale.iter().all(|(job, fence)| now[job].0 > *fence && now[job].1 != victim.name).then_some(())
    })
    .await;
    victim.thaw();
    watch("all that the stale worker says is refused", async || {
        let record = Record::read(&*stage.store).await;
        let refused: HashSet<Grant> = record.refused.iter().map(|(grant, _)| *grant).collect();
        stale.is_subset(&refused).then_some(())
    })
    .await;
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
