//! Handlers that block every thread of the runtime for three lease times keep their leases: the keeper has its own.

use std::time::Duration;

use tenure_core::How;
use tenure_e2e::{Act, Entry};

use crate::record::Record;
use crate::stage::Stage;
use crate::watch::watch;

const LEASE: Duration = Duration::from_secs(1);
const BLOCKED: Duration = Duration::from_millis(3_200);

const ROUNDS: usize = 40;
const DEAF: usize = 4;
const BESIDES: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn blocked_runtime_is_not_reclaimed() {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    stage.set_lease("bait", LEASE).await;
    // Whether the worker that stands by does take back what expires is seen by a bait, whose holder is killed.
    stage.client.enqueue(Act::Hold { gate: "bait".into() }).queue("bait").await.unwrap();
    let mut baited = stage.worker("baited", &["--queue", "bait=1"]);
    let bait = watch("the bait is taken", async || stage.noted("start").first().cloned()).await;
    // Two lots that block both threads: one asleep, one burning the processor.
    let ms = u64::try_from(BLOCKED.as_millis()).unwrap();
    let acts = vec![Act::Block { ms }, Act::Block { ms }, Act::Spin { ms }, Act::Spin { ms }];
    let jobs = acts.len();
    stage.enqueue(acts).await;
    let _blocked = stage.worker("blocked", &["--queue", "default=4", "--threads", "2"]);
    watch("all jobs are held", async || {
        let queues = stage.store.list_queues().await.unwrap();
        queues.iter().any(|queue| queue.name.as_str() == "default" && queue.running == jobs as u64).then_some(())
    })
    .await;
    let _standby = stage.worker("standby", &["--queue", "default=4", "--queue", "bait=4", "--reclaim-ms", "100"]);
    baited.kill();
    watch("the bait is taken back and runs again", async || {
        stage.noted("start").iter().any(|entry| entry.job == bait.job && entry.worker == "standby").then_some(())
    })
    .await;
    let blocked_meanwhile = jobs - by(&stage.noted("end"), "blocked").len();
    stage.gates.open("bait").unwrap();
    watch("everything ends", async || {
        let record = Record::read(&*stage.store).await;
        (record.succeeded().len() == jobs + 1).then_some(())
    })
    .await;
    check(&mut stage, &bait, blocked_meanwhile).await;
}

/// Handlers that block threads, and tell the runtime so, take nothing from the others: those go on, and so does the loop.
#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_thread_leaves_the_others_running() {
    let mut stage = Stage::postgres().await;
    let _worker = stage.worker("w", &["--queue", "default=16", "--threads", "8"]);
    for round in 0..ROUNDS {
        let gate = format!("round-{round}");
        let (starts, ends) = (stage.count("start"), stage.count("end"));
        stage.enqueue((0..DEAF).map(|_| Act::HoldDeaf { gate: gate.clone() }).collect()).await;
        watch("the deaf ones block their threads", async || (stage.count("start") == starts + DEAF).then_some(()))
            .await;
        stage.enqueue((0..BESIDES).map(|_| Act::Wait { ms: 1 }).collect()).await;
        watch(&format!("the others end in round {round}"), async || {
            (stage.count("end") == ends + BESIDES).then_some(())
        })
        .await;
        stage.gates.open(&gate).unwrap();
        watch("the deaf ones end", async || (stage.count("end") == ends + BESIDES + DEAF).then_some(())).await;
    }
    println!("{ROUNDS} rounds with {DEAF} of 8 threads blocked, and {BESIDES} jobs done meanwhile in each");
}

async fn check(stage: &mut Stage, bait: &Entry, blocked_meanwhile: usize) {
    let record = Record::prove(&*stage.store).await;
    let (starts, ends) = (stage.noted("start"), by(&stage.noted("end"), "blocked"));
    let longest = |entry: &Entry| {
        let start = starts.iter().find(|start| start.job == entry.job && start.fence == entry.fence).unwrap();
        Duration::from_micros(u64::try_from(entry.at - start.at).unwrap())
    };
    let blocked: Vec<Duration> = ends.iter().map(longest).collect();
    println!(
        "{} handlers blocked both threads for {blocked:.1?} with leases of {LEASE:?}; {blocked_meanwhile} still did when \
         the bait was taken back; attempts {:?}",
        blocked.len(),
        record.tally()
    );
    assert_eq!(record.ended[&(bait.job, bait.fence)], How::Lost, "the bait shows that somebody reclaims");
    assert_eq!(record.count(How::Lost), 1, "nothing else is taken back");
    assert!(blocked_meanwhile > 0, "the reclaimer was at work while threads were blocked, or the run is void");
    assert!(blocked.iter().all(|time| *time >= 3 * LEASE), "they blocked for three lease times, or the run is void");
    for end in &ends {
        assert_eq!(starts.iter().filter(|start| start.job == end.job).count(), 1, "one start each");
        assert_eq!(record.ended[&(end.job, end.fence)], How::Succeeded, "on its first lease");
    }
}

fn by(entries: &[Entry], worker: &str) -> Vec<Entry> {
    entries.iter().filter(|entry| entry.worker == worker).cloned().collect()
}
