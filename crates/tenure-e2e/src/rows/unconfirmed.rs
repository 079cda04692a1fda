//! F51: a repeat is acknowledged before the standby has the row.
//!
//! Under synchronous replication a commit waits for the standby. When its backend is terminated or canceled meanwhile, or
//! the server restarts, the row is there and the standby does not have it. A repeated call finds the row; answered "it is
//! there already", it acknowledges what a failover loses. So a repeat waits for the standby as the first call does.

use std::time::Duration;

use tenure_cluster::postgres_server::{Options, Postgres, psql};
use tenure_core::unique::Policy;
use tenure_core::{JobId, Json, KindName, NewJob, QueueName, RunId, State, Timestamp, Timing, Unique};
use tenure_postgres::{PgOptions, PgStore};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending};
use tenure_store::operate::{CancelJob, PauseQueue, Word};
use tenure_store::operation::{self, NewOperation};
use tenure_store::record::Sight;
use tenure_store::run::{AdvancePage, Members, NewPartition, NewRun};
use tenure_store::schedule::{FireSchedule, Fired, SetSchedule, Template};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, JobStore, LeaseStore, OperationStore, RunStore, ScheduleStore, StoreError};

use crate::ledger::wall_clock;
use crate::report::{Report, Row, Size};
use crate::watch::watch;

/// Row F51.
pub(super) const ROW: Row = Row {
    id: "F51",
    fault: "a call is repeated whose first commit the synchronous standby never got",
    injected: "the stream to a synchronous standby is cut; the backends that wait for it are terminated, canceled, or restarted with \
               their server; every call is repeated; then the standby is promoted or comes back",
    run: |size| Box::pin(unconfirmed(size)),
};

const WAITING: &str = "pg_stat_activity where wait_event = 'SyncRep'";
/// How long a repeated call is awaited. It has no answer before the standby is back, however long that takes.
const DEADLINE: Duration = Duration::from_millis(300);

/// How the wait for the standby ends.
#[derive(Debug, Clone, Copy)]
enum Interruption {
    Terminate,
    Cancel,
    Restart,
}

/// What becomes of the standby.
#[derive(Debug, Clone, Copy)]
enum Standby {
    Promoted,
    Back,
}

/// A call that may be repeated, and the query that counts the row it leaves.
struct Call {
    name: &'static str,
    request: Request,
    look: String,
}

enum Request {
    Enqueue(NewJob),
    EnqueueWithNewId(NewJob),
    End(EndJobs),
    Advance(AdvancePage),
    Fire(FireSchedule),
    Cancel(CancelJob),
    Pause(PauseQueue),
    Operate(NewOperation),
}

#[derive(Default)]
struct Tally {
    visible: usize,
    acknowledged: usize,
    lost: Vec<&'static str>,
    confirmed: usize,
    first_acknowledged: Vec<&'static str>,
}

async fn unconfirmed(size: Size) -> Report {
    let ways = [
        (Interruption::Terminate, Standby::Promoted),
        (Interruption::Cancel, Standby::Back),
        (Interruption::Restart, Standby::Promoted),
        (Interruption::Cancel, Standby::Promoted),
        (Interruption::Terminate, Standby::Back),
        (Interruption::Restart, Standby::Back),
    ];
    let rounds = size.pick(3, 30);
    let (mut tally, mut returned) = (Tally::default(), 0);
    for round in 0..rounds {
        let (interruption, standby) = ways[round % ways.len()];
        returned += usize::from(matches!(standby, Standby::Back));
        play(interruption, standby, &mut tally).await;
    }
    let calls = rounds * CALLS;
    let mut report = Report::default();
    report.number(format!(
        "{calls} calls whose wait for the standby was ended, {} of them left their row on the primary alone; {} repeats were \
         acknowledged without the standby, {} of them lost; {} repeats were answered once the standby was back",
        tally.visible,
        tally.acknowledged,
        tally.lost.len(),
        tally.confirmed
    ));
    report.must(tally.lost.is_empty(), format!("acknowledged and lost: {:?}", tally.lost));
    report.must(tally.acknowledged == 0, format!("{} repeats did not wait for the standby", tally.acknowledged));
    report.must(
        tally.first_acknowledged.is_empty(),
        format!("acknowledged though the standby did not confirm it: {:?}", tally.first_acknowledged),
    );
    report.must(tally.confirmed == returned * CALLS, "every repeat is answered once the standby is back");
    report.bite(tally.visible, calls, "calls whose row only the primary had");
    report
}

async fn play(interruption: Interruption, fate: Standby, tally: &mut Tally) {
    let mut primary = Postgres::start(&Options::default()).unwrap();
    psql(&primary.admin_url(), "create database tenure").unwrap();
    let url = primary.url("tenure");
    let first = connect(&url, Duration::from_secs(5)).await;
    first.migrate().await.unwrap();
    let calls = prepare(&first).await;
    let standby = primary.back_up().unwrap().start_standby().unwrap();
    let admin = primary.admin_url();
    psql(&admin, "alter system set synchronous_standby_names = '*'").unwrap();
    psql(&admin, "select pg_reload_conf()").unwrap();
    watch("the standby is synchronous", async || {
        let synchronous = psql(&admin, "select count(*) from pg_stat_replication where sync_state = 'sync'").unwrap();
        (synchronous == "1").then_some(())
    })
    .await;
    standby.cut_off().unwrap();

    let waiting = async {
        watch("every call waits for the standby", async || {
            (psql(&admin, &format!("select count(*) from {WAITING}")).unwrap() == calls.len().to_string()).then_some(())
        })
        .await;
        match interruption {
            Interruption::Terminate => {
                psql(&admin, &format!("select pg_terminate_backend(pid) from {WAITING}")).unwrap();
            }
            Interruption::Cancel => {
                psql(&admin, &format!("select pg_cancel_backend(pid) from {WAITING}")).unwrap();
            }
            Interruption::Restart => {
                primary.stop().unwrap();
                primary.start_again().unwrap();
            }
        }
    };
    let (answers, ()) = tokio::join!(all(&first, &calls), waiting);
    for (call, answer) in calls.iter().zip(answers) {
        match answer {
            Err(StoreError::Unavailable(..)) => {}
            answer => tally.first_acknowledged.push(named(call, &answer)),
        }
    }
    tally.visible += calls.iter().filter(|call| psql(&url, &call.look).unwrap() == "1").count();

    let repeat = connect(&url, DEADLINE).await;
    let answers = all(&repeat, &calls).await;
    let acknowledged: Vec<&Call> =
        calls.iter().zip(&answers).filter(|(_, answer)| answer.is_ok()).map(|(call, _)| call).collect();
    tally.acknowledged += acknowledged.len();
    match fate {
        Standby::Promoted => {
            primary.stop().unwrap();
            standby.promote().unwrap();
            let promoted = standby.url("tenure");
            let lost = acknowledged.iter().filter(|call| psql(&promoted, &call.look).unwrap() == "0");
            tally.lost.extend(lost.map(|call| call.name));
        }
        Standby::Back => {
            let conninfo = format!("host=127.0.0.1 port={} user=postgres", primary.port());
            psql(&standby.admin_url(), &format!("alter system set primary_conninfo = '{conninfo}'")).unwrap();
            psql(&standby.admin_url(), "select pg_reload_conf()").unwrap();
            let patient = connect(&url, Duration::from_secs(60)).await;
            tally.confirmed += all(&patient, &calls).await.iter().filter(|answer| answer.is_ok()).count();
        }
    }
}

/// What the answer is, for a report.
fn named(call: &Call, answer: &Result<(), StoreError>) -> &'static str {
    println!("{}: {answer:?}", call.name);
    call.name
}

async fn connect(url: &str, deadline: Duration) -> PgStore {
    // Each call by itself, so that each waits for the standby on a connection of its own.
    let options = PgOptions {
        deadline,
        long_deadline: deadline,
        share_enqueues: false,
        connections_max: 20,
        ..PgOptions::default()
    };
    PgStore::connect(url, options).await.unwrap()
}

/// Sends all calls at the same time.
async fn all(store: &PgStore, calls: &[Call]) -> Vec<Result<(), StoreError>> {
    let sent: Vec<_> = calls.iter().map(|call| (store.clone(), call.request.copy())).collect();
    let tasks: Vec<_> =
        sent.into_iter().map(|(store, request)| tokio::spawn(async move { request.send(&store).await })).collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

/// How many calls a round makes.
const CALLS: usize = 9;

/// Stores what the calls are about, while nothing waits for a standby.
async fn prepare(store: &PgStore) -> Vec<Call> {
    let worker = store.register_worker(&"w".parse().unwrap()).await.unwrap();
    let (ending, canceled, page) = (new_job(), new_job(), new_job());
    let next = JobId::from_parts(Timestamp::from_micros(wall_clock()), [9; 10]);
    let run = RunId::from_uuid(*new_job().id.as_uuid());
    let partition =
        NewPartition { name: "p".parse().unwrap(), job: page.clone(), offset: 0, limit: 30, expected: None };
    let members = Members { partitions: vec![partition], ..Members::default() };
    let new_run = NewRun {
        id: run,
        tenant: Default::default(),
        owner: None,
        source: None,
        members,
        sealed: true,
        consolidate: None,
        fail_fast: false,
        tolerated: 0,
        deadline: None,
    };
    store.create_run(new_run).await.unwrap();
    store.enqueue_jobs(vec![ending.clone()]).await.unwrap();
    let claim = ClaimJobs::new(worker, QueueName::default(), 10);
    let lease = store.claim_jobs(claim).await.unwrap().unwrap().lease;
    store.enqueue_jobs(vec![canceled.clone()]).await.unwrap();
    let timing = Timing::new("* * * * * *".parse().unwrap());
    let schedule = SetSchedule {
        tenant: Default::default(),
        name: "s".parse().unwrap(),
        timing,
        template: Template::new(KindName::new("noop").unwrap(), Json::null()),
        word: Word::default(),
    };
    store.set_schedule(schedule).await.unwrap();
    let due = watch("the schedule is due", async || {
        let due = store.due_schedules(1).await.unwrap();
        let fire = due.due.first().map(|record| record.decide(new_job().id));
        fire.filter(|fire| fire.fire_at.is_some())
    })
    .await;

    let succeeded = Ending::Succeeded { result: None, usage: None };
    let by_id = new_job();
    let by_key = NewJob { idempotency_key: Some("order:42".to_owned()), ..new_job() };
    let unique = NewJob { unique: Some(Unique::new("invoice:42", Policy::Forever)), ..new_job() };
    let ended = EndJobs { worker, lease, jobs: vec![EndJob::new(ending.id, succeeded)] };
    let advance = AdvancePage { page: CompleteJob::new(worker, lease, page.id), rows: 30, next: Some(next) };
    let cancel = CancelJob { sight: Sight::All, job: canceled.id, force: false, word: Word::default() };
    let pause = PauseQueue { queue: QueueName::default(), paused: true, word: Word::default() };
    let operate = NewOperation {
        id: new_job().id,
        tenant: None,
        name: "revive".to_owned(),
        act: operation::Act::Requeue,
        state: State::Dead,
        queue: None,
        kind: None,
        group: None,
        word: Word::default(),
    };
    let attempt = |job: JobId| format!("select count(*) from tenure.attempt where job = '{job}'");
    let key = |key: &str| format!("select count(*) from tenure.unique_key where key = '{key}'");
    let call = |name, request, look| Call { name, request, look };
    vec![
        call(
            "enqueue by id",
            Request::Enqueue(by_id.clone()),
            format!("select count(*) from tenure.job where id = '{}'", by_id.id),
        ),
        call("enqueue by idempotency key", Request::EnqueueWithNewId(by_key), key("order:42")),
        call("enqueue by unique key", Request::EnqueueWithNewId(unique), key("invoice:42")),
        call("outcome", Request::End(ended), attempt(ending.id)),
        call("page advance", Request::Advance(advance), attempt(page.id)),
        call("schedule fire", Request::Fire(due), "select count(*) from tenure.schedule_fire".to_owned()),
        call("cancel", Request::Cancel(cancel), attempt(canceled.id)),
        call(
            "pause",
            Request::Pause(pause),
            "select count(*) from tenure.queue where name = 'default' and paused".to_owned(),
        ),
        call("operation", Request::Operate(operate), "select count(*) from tenure.operation".to_owned()),
    ]
}

fn new_job() -> NewJob {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst).to_be_bytes());
    let id = JobId::from_parts(Timestamp::from_micros(wall_clock()), random);
    NewJob::new(id, KindName::new("noop").unwrap(), Json::null())
}

impl Request {
    /// The same call again: where a key names the job, with another id.
    fn copy(&self) -> Self {
        match self {
            Self::Enqueue(job) => Self::Enqueue(job.clone()),
            Self::EnqueueWithNewId(job) => Self::EnqueueWithNewId(NewJob { id: new_job().id, ..job.clone() }),
            Self::End(end) => Self::End(end.clone()),
            Self::Advance(advance) => Self::Advance(advance.clone()),
            Self::Fire(fire) => Self::Fire(fire.clone()),
            Self::Cancel(cancel) => Self::Cancel(cancel.clone()),
            Self::Pause(pause) => Self::Pause(pause.clone()),
            Self::Operate(operate) => Self::Operate(operate.clone()),
        }
    }

    async fn send(self, store: &PgStore) -> Result<(), StoreError> {
        match self {
            Self::Enqueue(job) | Self::EnqueueWithNewId(job) => store.enqueue_jobs(vec![job]).await.map(drop),
            Self::End(end) => {
                let answers = store.end_jobs(end).await?;
                assert!(!matches!(answers[..], [Ended::LeaseLost { .. }]), "{answers:?}");
                Ok(())
            }
            Self::Advance(advance) => store.advance_page(advance).await,
            Self::Fire(fire) => {
                let fired = store.fire_schedule(fire).await?;
                assert!(matches!(fired, Fired::Stored(_)), "{fired:?}");
                Ok(())
            }
            Self::Cancel(cancel) => store.cancel_job(cancel).await.map(drop),
            Self::Pause(pause) => store.pause_queue(pause).await,
            Self::Operate(operate) => store.create_operation(operate).await.map(drop),
        }
    }
}
