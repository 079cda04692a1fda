//! F33, F34: jobs that harm: each becomes a stored failure, and nobody else notices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{JobId, Json, KindName, NewJob, State, Timestamp};
use tenure_store::enqueue::Enqueued;
use tenure_store::lease::{ERROR_BYTES_MAX, RESULT_BYTES_MAX};
use tenure_store::operate::{CancelJob, Word};
use tenure_store::record::{JobRecord, Sight};

use crate::Act;
use crate::act::NUL;
use crate::ledger::wall_clock;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// Row F33.
pub(super) const OF_PROCESSES: Row = Row {
    id: "F33",
    fault: "a handler panics, overflows its stack or ends the process",
    injected: "handlers that do, beside healthy ones; a kind and a payload that nobody knows",
    run: |_| Box::pin(processes()),
};

/// Row F34.
pub(super) const OF_RESULTS: Row = Row {
    id: "F34",
    fault: "a handler returns what cannot be stored",
    injected: "results of 50 MB and with NUL, error texts with NUL, controls, 200 kB, and bytes that are no UTF-8",
    run: |size| Box::pin(results(size)),
};

const SLOTS: usize = 4;
const FLAGS: [&str; 2] = ["--queue", "default=4"];
const HEALTHY: usize = 50;
/// Deaths after which the job that ends its process is dead.
const DEATHS: u16 = 2;

async fn processes() -> Report {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(1)).await;
    let mut worker = stage.worker("w0", &FLAGS);
    let mut report = Report::default();
    let panicking = enqueue(&stage, Act::Panic).await;
    let unknown = enqueue_raw(&stage, "nobody", "{}", |_| ()).await;
    let garbled = enqueue_raw(&stage, "act", r#"{"do":"dance"}"#, |_| ()).await;
    stage.enqueue((0..HEALTHY).map(|_| Act::Wait { ms: 5 }).collect()).await;
    let (state, error) = ended(&stage, panicking).await;
    report.must(state == State::Dead && error.contains("told to panic"), format!("a panic is a failure: {error}"));
    report.must(ended(&stage, garbled).await.0 == State::Failed, "a payload that is no job is a failure");
    let left = watch("the unknown kind is given back", async || {
        let job = stage.store.show_job(&Sight::All, unknown).await.unwrap();
        (!job.attempts.is_empty() && job.summary.state == State::Queued).then_some(job)
    })
    .await;
    report.must(
        (left.summary.attempt, left.losses) == (0, 0),
        "an unknown kind waits for somebody who knows it, uncharged",
    );
    // Nobody here ever will.
    let word = Word::default();
    stage.store.cancel_job(CancelJob { sight: Sight::All, job: unknown, force: true, word }).await.unwrap();
    // All slots are free again: so many can be held at once.
    stage.enqueue((0..SLOTS).map(|_| Act::Hold { gate: "slots".into() }).collect()).await;
    let before = 1 + HEALTHY;
    watch("every slot takes a job", async || (stage.count("start") == before + SLOTS).then_some(())).await;
    stage.gates.open("slots").unwrap();
    watch("the healthy ones are done", async || (stage.count("end") == HEALTHY + SLOTS).then_some(())).await;
    report.must(worker.ended().is_none(), format!("the process lives\n{}", worker.log()));
    let panics = worker
        .log_lines()
        .iter()
        .filter(|line| line.text.starts_with("thread ") && line.text.contains("panicked at"))
        .count();

    let mut deaths = 0;
    for payload in [r#"{"do":"exit"}"#, r#"{"do":"overflow"}"#] {
        let (killed, next) = until_dead(&stage, worker, payload, deaths).await;
        report.must(killed == usize::from(DEATHS), format!("{payload} kills {killed} processes, not {DEATHS}"));
        (deaths, worker) = (deaths + killed, next);
    }
    report.must(worker.ended().is_none(), "the last process lives");
    let (line, record) = PassLine::measure(&mut stage).await;
    report.number(format!(
        "{SLOTS} of {SLOTS} slots free after a panic; panics outside of handlers {}; {deaths} processes ended by two jobs before \
         they were dead, {DEATHS} each; attempts {:?}",
        panics.saturating_sub(1),
        record.tally()
    ));
    report.must(panics == 1, "no panics but the handler's own");
    report.line(line);
    report.bite(1 + deaths, 1 + 2 * usize::from(DEATHS), "panics and deaths");
    report
}

/// Enqueues a job that ends its process, and starts another process each time; answers how often, and the last one.
async fn until_dead(stage: &Stage, mut worker: Process, payload: &str, before: usize) -> (usize, Process) {
    let job = enqueue_raw(stage, "act", payload, |job| job.rules.max_losses = DEATHS).await;
    let mut deaths = 0;
    watch("the job is dead", async || {
        if worker.ended().is_some() {
            deaths += 1;
            worker = stage.worker(&format!("w{}", before + deaths), &FLAGS);
        }
        let job = stage.store.show_job(&Sight::All, job).await.unwrap();
        (job.summary.state == State::Dead && job.losses == DEATHS).then_some(())
    })
    .await;
    (deaths, worker)
}

struct Harm {
    what: &'static str,
    act: Act,
    state: State,
    says: &'static str,
}

fn harms(size: Size) -> Vec<Harm> {
    let harm = |what, act, state, says| Harm { what, act, state, says };
    let nul = || format!("a{NUL}b");
    vec![
        harm("a huge result", Act::Return { bytes: size.pick(3 << 20, 50 << 20) }, State::Failed, "result"),
        harm("the largest result", Act::Return { bytes: (1 << 20) - 2 }, State::Succeeded, ""),
        harm("a NUL in a result", Act::Say { text: nul() }, State::Failed, "result"),
        harm("a NUL in an error", Act::Fail { text: nul() }, State::Failed, "b"),
        harm("controls in an error", Act::Fail { text: "\u{1}\u{7f}\u{85}\u{2028}x".into() }, State::Failed, "x"),
        harm("a huge error", Act::Fail { text: "\"\\é".repeat(50_000) }, State::Failed, "…"),
        harm(
            "bytes in an error",
            Act::FailBytes { bytes: vec![0x41, 0xff, 0xc3, 0xed, 0xa0, 0x80, 0] },
            State::Failed,
            "A\u{fffd}",
        ),
    ]
}

async fn results(size: Size) -> Report {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(2)).await;
    let mut worker = stage.worker("w0", &FLAGS);
    let (harms, mut ids, mut report) = (harms(size), Vec::new(), Report::default());
    for harm in &harms {
        ids.push(enqueue(&stage, harm.act.clone()).await);
    }
    stage.enqueue((0..HEALTHY).map(|_| Act::Wait { ms: 5 }).collect()).await;
    let mut stored = 0;
    for (harm, id) in harms.iter().zip(&ids) {
        let (state, error) = ended(&stage, *id).await;
        stored += usize::from(state == harm.state);
        report.must(
            state == harm.state && error.contains(harm.says),
            format!("{}: {} {error:.100}", harm.what, state.as_str()),
        );
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let largest =
        stage.sql("select max(octet_length(error::text)), max(octet_length(result::text)) from tenure.attempt");
    let (error, result) = largest.split_once('|').unwrap();
    let (error, result): (usize, usize) = (error.parse().unwrap(), result.parse().unwrap());
    report.number(format!(
        "{stored} of {} harmful endings stored as they should be; largest error {error} bytes, largest result {result} bytes; \
         attempts {:?}",
        harms.len(),
        record.tally()
    ));
    // The text is cut; its JSON has a few words around it, and what must be escaped takes more room.
    report.must(error <= 2 * ERROR_BYTES_MAX + 256 && result <= RESULT_BYTES_MAX, "rows are within their caps");
    report.must(record.tally().values().sum::<usize>() == harms.len() + HEALTHY, "one attempt each");
    report.must(worker.ended().is_none(), format!("the process lives\n{}", worker.log()));
    report.line(line);
    report.bite(harms.len(), harms.len(), "harmful endings");
    report
}

async fn enqueue(stage: &Stage, act: Act) -> JobId {
    let stored = stage.client.enqueue(act).max_attempts(1).await.unwrap();
    stage.history.acknowledge(&[stored]);
    stored.job()
}

/// How a job ended, and what it says about it.
async fn ended(stage: &Stage, id: JobId) -> (State, String) {
    let job: JobRecord = watch("the job ends", async || {
        let job = stage.store.show_job(&Sight::All, id).await.unwrap();
        job.summary.finished_at.is_some().then_some(job)
    })
    .await;
    (job.summary.state, job.summary.error.map(|error| error.as_str().to_owned()).unwrap_or_default())
}

/// A job that no type would make.
pub(super) async fn enqueue_raw(stage: &Stage, kind: &str, payload: &str, change: impl FnOnce(&mut NewJob)) -> JobId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&NEXT.fetch_add(1, Ordering::SeqCst).to_be_bytes());
    let id = JobId::from_parts(Timestamp::from_micros(wall_clock()), random);
    let payload = Json::parse("payload", payload.to_owned()).unwrap();
    let mut job = NewJob::new(id, KindName::new(kind).unwrap(), payload);
    change(&mut job);
    let stored: Vec<Enqueued> = stage.store.enqueue_jobs(vec![job]).await.unwrap();
    stage.history.acknowledge(&stored);
    id
}
