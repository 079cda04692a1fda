//! Producers with every kind of key, and operators who cancel, requeue and open.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::new_job::Due;
use tenure_core::unique::{Policy, Unique};
use tenure_core::{Backoff, GateName, JobId, Json, KindName, NewJob, Priority, Rules, State, TenantName};
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::{CancelJob, Canceled, OpenJob, RequeueJob, Word};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{JobStore, StoreError};

use crate::field::{Field, queues, some_queue};
use crate::rng::Rng;

/// How long `window` keys are held.
pub(crate) const WINDOW: Duration = Duration::from_millis(300);
/// Jobs that wait or run; above this producers rest, so that workers keep up.
const BACKLOG: u64 = 400;

/// Enqueues until the field is stopped.
pub(crate) async fn produce(field: Arc<Field>, mut rng: Rng) {
    let store = field.store().await;
    while !field.is_stopped() {
        field.pause(rng.millis(5, 30)).await;
        if field.ledger.tally("created") > BACKLOG + field.ledger.tally("attempts") {
            continue;
        }
        let count = if rng.percent(50) { 1 } else { rng.between(1, 50) };
        let mut jobs: Vec<NewJob> = (0..count).map(|_| some_job(&field, &mut rng)).collect();
        field.ledger.ask(&jobs);
        if rng.percent(10) {
            // The reply is late and the batch is sent again, in another order, while the first is still at work.
            let mut again = jobs.clone();
            rng.shuffle(&mut again);
            let (one, two) = tokio::join!(store.enqueue_jobs(jobs.clone()), store.enqueue_jobs(again.clone()));
            note(&field, &jobs, Some(one));
            note(&field, &again, Some(two));
        }
        rng.shuffle(&mut jobs);
        let enqueuing = store.enqueue_jobs(jobs.clone());
        let hang_up = rng.percent(5);
        let answer = if hang_up { field.hang_up(rng.millis(0, 5), enqueuing).await } else { Some(enqueuing.await) };
        note(&field, &jobs, answer);
    }
}

fn note(field: &Field, jobs: &[NewJob], answer: Option<Result<Vec<Enqueued>, StoreError>>) {
    match answer {
        Some(Ok(answers)) => {
            field.remember(answers.iter().map(Enqueued::job));
            field.ledger.answer(jobs, &answers);
        }
        Some(Err(error)) => field.refused("enqueue", &error),
        None => {}
    }
}

/// A job of any shape.
pub(crate) fn some_job(field: &Field, rng: &mut Rng) -> NewJob {
    let mut job = NewJob::new(rng.job_id(), KindName::new("attack").expect("a name"), Json::from_store("{}"));
    job.queue = some_queue(rng);
    if rng.percent(20) {
        job.tenant = TenantName::new("other").expect("a name");
    }
    job.priority = rng.pick(&Priority::ALL);
    job.due = match rng.between(1, 20) {
        1..=3 => Due::After(rng.millis(0, 100)),
        4 => Due::WhenOpened,
        5 => Due::At(job.id.made_at().minus(rng.millis(0, 60_000))),
        _ => Due::Now,
    };
    // One of the queues has gates, the other keeps to its one line.
    if job.queue == queues()[1] && rng.percent(60) {
        job.gate = Some(GateName::new(format!("g:{}", rng.between(1, 4))).expect("a name"));
    }
    let max_attempts = u16::try_from(rng.between(2, 5)).expect("small");
    job.rules = Rules { max_attempts, max_losses: max_attempts + 1, backoff: Backoff::default() };
    job.unique = rng.percent(50).then(|| some_key(field, rng));
    if rng.percent(15) {
        // The same key means the same body, but for a liar now and then.
        let key = format!("request {} {}", epoch(field), rng.between(1, 8));
        let body = if rng.percent(3) { "another".to_owned() } else { key.clone() };
        job.payload = Json::from_store(format!("{{\"body\":\"{body}\"}}"));
        job.queue = queues()[0].clone();
        job.tenant = TenantName::default();
        job.idempotency_key = Some(key);
    }
    job
}

/// Few keys, so that they meet. What is held for ever is used up: those keys change with time.
fn some_key(field: &Field, rng: &mut Rng) -> Unique {
    let n = rng.between(1, 6);
    match rng.between(1, 5) {
        1 => Unique::new(format!("unless failed {} {n}", epoch(field)), Policy::UnlessFailed),
        2 => Unique::new(format!("forever {} {n}", epoch(field)), Policy::Forever),
        3 => Unique::new(format!("window {n}"), Policy::Window(WINDOW)),
        4 => Unique::new(format!("while active {n}"), Policy::WhileActive),
        // Enough of these that some are free for a requeue.
        _ => Unique::new(format!("while active {}", rng.between(7, 60)), Policy::WhileActive),
    }
}

fn epoch(field: &Field) -> u128 {
    field.age().as_millis() / 700
}

/// Cancels, requeues and opens until the field is stopped.
pub(crate) async fn operate(field: Arc<Field>, mut rng: Rng) {
    let store = field.store().await;
    while !field.is_stopped() {
        field.pause(rng.millis(2, 20)).await;
        let done = match rng.between(1, 10) {
            1..=4 => cancel(&field, &store, &mut rng).await,
            5..=7 => requeue(&field, &store, &mut rng).await,
            8..=9 => open(&field, &store, &mut rng).await,
            _ => list(&field, &store, State::Running, &mut rng).await.map(|_| ()),
        };
        if let Err(error) = done {
            field.refused("operate", &error);
        }
    }
}

async fn cancel(field: &Field, store: &impl JobStore, rng: &mut Rng) -> Result<(), StoreError> {
    let Some(job) = field.some_job(rng) else { return Ok(()) };
    let force = rng.percent(50);
    match store.cancel_job(CancelJob { sight: Sight::All, job, force, word: word() }).await? {
        Canceled::Now if force => field.ledger.count("force cancels"),
        Canceled::Now => field.ledger.count("cancels"),
        Canceled::Requested => field.ledger.count("cancel requests"),
        Canceled::Before => field.ledger.count("canceled before"),
    }
    Ok(())
}

async fn requeue(field: &Field, store: &impl JobStore, rng: &mut Rng) -> Result<(), StoreError> {
    let state = rng.pick(&[State::Failed, State::Dead, State::Canceled]);
    let Some(job) = list(field, store, state, rng).await? else { return Ok(()) };
    store.requeue_job(RequeueJob { sight: Sight::All, job, word: word() }).await?;
    field.ledger.count("requeued");
    Ok(())
}

async fn open(field: &Field, store: &impl JobStore, rng: &mut Rng) -> Result<(), StoreError> {
    let Some(job) = list(field, store, State::Waiting, rng).await? else { return Ok(()) };
    store.open_job(OpenJob { sight: Sight::All, job, word: word() }).await?;
    field.ledger.count("opened");
    Ok(())
}

/// Some job in this state, a moment ago.
async fn list(field: &Field, store: &impl JobStore, state: State, rng: &mut Rng) -> Result<Option<JobId>, StoreError> {
    let jobs = store.list_jobs(&JobFilter { state: Some(state), limit: 30, ..JobFilter::default() }).await?;
    field.ledger.count("lists");
    Ok((!jobs.is_empty()).then(|| jobs[rng.index(jobs.len())].id))
}

pub(crate) fn word() -> Word {
    Word { actor: Some("attacker".to_owned()), reason: None }
}
