//! Jobs that harm: each becomes a stored failure, and nobody else notices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{JobId, Json, KindName, NewJob, State, Timestamp};
use tenure_e2e::Act;
use tenure_e2e::act::NUL;
use tenure_e2e::ledger::wall_clock;
use tenure_store::record::{JobRecord, Sight};

use crate::record::Record;
use crate::stage::Stage;
use crate::watch::watch;

const SLOTS: usize = 4;
const HEALTHY: usize = 50;
/// Deaths after which the job that ends its process is dead.
const DEATHS: u16 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_panicking_exiting_or_unknown_job_harms_nobody() {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(1)).await;
    let mut worker = stage.worker("w0", &["--queue", "default=4"]);
    let harms = harms();
    let mut ids = Vec::new();
    for harm in &harms {
        ids.push(stage.client.enqueue(harm.act.clone()).max_attempts(1).await.unwrap().job());
    }
    let unknown = enqueue_raw(&stage, "nobody", "{}", |_| ()).await;
    let garbled = enqueue_raw(&stage, "act", r#"{"do":"dance"}"#, |_| ()).await;
    stage.enqueue((0..HEALTHY).map(|_| Act::Wait { ms: 5 }).collect()).await;
    for (harm, id) in harms.iter().zip(&ids) {
        let job = ended(&stage, *id).await;
        let error = job.summary.error.as_ref().map(|error| error.as_str().to_owned()).unwrap_or_default();
        println!("{}: {} {:.100}", harm.what, job.summary.state.as_str(), error);
        assert_eq!(job.summary.state, harm.state, "{}: {error}", harm.what);
        assert!(error.contains(harm.says), "{}: {error}", harm.what);
    }
    assert_eq!(ended(&stage, garbled).await.summary.state, State::Failed, "a payload that is no job is a failure");
    let left = watch("the unknown kind is given back", async || {
        let job = stage.store.show_job(&Sight::All, unknown).await.unwrap();
        (!job.attempts.is_empty() && job.summary.state == State::Queued).then_some(job)
    })
    .await;
    assert_eq!((left.summary.attempt, left.losses), (0, 0), "for somebody who knows it, uncharged");
    // All slots are free again: so many can be held at once.
    stage.enqueue((0..SLOTS).map(|_| Act::Hold { gate: "slots".into() }).collect()).await;
    let before = harms.len() + HEALTHY;
    watch("every slot takes a job", async || (stage.count("start") == before + SLOTS).then_some(())).await;
    stage.gates.open("slots").unwrap();
    watch("the healthy ones are done", async || {
        let record = Record::read(&*stage.store).await;
        let succeeding = harms.iter().filter(|harm| harm.state == State::Succeeded).count();
        (record.succeeded().len() == HEALTHY + SLOTS + succeeding).then_some(())
    })
    .await;
    assert!(worker.ended().is_none(), "the process lives\n{}", worker.log());

    let exiting = enqueue_raw(&stage, "act", r#"{"do":"exit"}"#, |job| job.rules.max_losses = DEATHS).await;
    let mut deaths = 0;
    watch("the job is dead", async || {
        if worker.ended().is_some() {
            deaths += 1;
            worker = stage.worker(&format!("w{deaths}"), &["--queue", "default=4"]);
        }
        let job = stage.store.show_job(&Sight::All, exiting).await.unwrap();
        (job.summary.state == State::Dead).then_some(())
    })
    .await;
    let record = Record::prove(&*stage.store).await;
    println!("{deaths} processes ended by their job before it was dead; attempts {:?}", record.tally());
    assert_eq!(deaths, usize::from(DEATHS), "it kills so many and no more");
    assert_eq!(ended(&stage, exiting).await.losses, DEATHS);
    assert!(worker.ended().is_none(), "the last process lives");
}

struct Harm {
    what: &'static str,
    act: Act,
    state: State,
    says: &'static str,
}

fn harms() -> Vec<Harm> {
    let harm = |what, act, state, says| Harm { what, act, state, says };
    let nul = || format!("a{NUL}b");
    vec![
        harm("a panic", Act::Panic, State::Dead, "told to panic"),
        harm("a huge result", Act::Return { bytes: 3 << 20 }, State::Failed, "result"),
        harm("the largest result", Act::Return { bytes: (1 << 20) - 2 }, State::Succeeded, ""),
        harm("a NUL in a result", Act::Say { text: nul() }, State::Failed, "result"),
        harm("a NUL in an error", Act::Fail { text: nul() }, State::Failed, "b"),
        harm("controls in an error", Act::Fail { text: "\u{1}\u{7f}\u{85}\u{2028}x".into() }, State::Failed, "x"),
        harm("a huge error", Act::Fail { text: "\"\\é".repeat(50_000) }, State::Failed, "…"),
    ]
}

async fn ended(stage: &Stage, id: JobId) -> JobRecord {
    watch("the job ends", async || {
        let job = stage.store.show_job(&Sight::All, id).await.unwrap();
        job.summary.finished_at.is_some().then_some(job)
    })
    .await
}

/// A job that no type would make.
async fn enqueue_raw(stage: &Stage, kind: &str, payload: &str, change: impl FnOnce(&mut NewJob)) -> JobId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&NEXT.fetch_add(1, Ordering::SeqCst).to_be_bytes());
    let id = JobId::from_parts(Timestamp::from_micros(wall_clock()), random);
    let payload = Json::parse("payload", payload.to_owned()).unwrap();
    let mut job = NewJob::new(id, KindName::new(kind).unwrap(), payload);
    change(&mut job);
    stage.store.enqueue_jobs(vec![job]).await.unwrap();
    id
}
