//! F58: a user's transaction that stays open is the first to name a tenant, a queue, a queue's gate and a unique key.
//!
//! Eight producers use the same names meanwhile. None of them may wait for the transaction, since nothing but the commit
//! enters a name; only an enqueue of the very unique key that the transaction holds has to wait, by itself. Two more
//! transactions name two new queues in opposite order beside it, and both commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenure_core::JobId;
use tenure_store::enqueue::Enqueued;

use super::session::Session;
use crate::Act;
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// Row F58.
pub(super) const ROW: Row = Row {
    id: "F58",
    fault: "an open transaction is the first to name a tenant, a queue, a gate and a unique key",
    injected: "`begin; select tenure.enqueue(…)` held open, then committed or rolled back, beside 8 producers that use the \
               same names, a ninth that wants the same key, and two transactions that name two queues in opposite order",
    run: |size| Box::pin(run(size)),
};

const PRODUCERS: usize = 8;
/// How the transaction of each round ends.
const ENDS: [&str; 2] = ["commit", "rollback"];
/// Shorter latencies are noise on a busy machine.
const NOISE: Duration = Duration::from_millis(25);

/// The names of one round.
#[derive(Debug, Clone)]
struct Names {
    tenant: String,
    queue: String,
    /// A queue that is there, without a gate so far.
    gated: String,
    gate: String,
}

/// What producers measured.
#[derive(Debug, Default)]
struct Measured {
    latencies: Vec<Duration>,
    refused: Vec<String>,
}

impl Names {
    fn of(round: &str) -> Self {
        let name = |what: &str| format!("{what}-{round}");
        Self { tenant: name("tenant"), queue: name("queue"), gated: name("gated"), gate: name("gate") }
    }

    fn order(&self, which: &str) -> String {
        format!("order-{which}-{}", self.queue)
    }
}

impl Measured {
    fn p99(&self) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() * 99 / 100).copied().unwrap_or_default()
    }
}

async fn run(size: Size) -> Report {
    let (held, pause) = size.pick((2, 5), (60, 20));
    let (held, pause) = (Duration::from_secs(held), Duration::from_millis(pause));
    let mut stage = Stage::postgres().await;
    let known = Names::of("known");
    let rounds = ENDS.map(Names::of);
    let all = || rounds.iter().chain([&known]);
    for names in all() {
        stage.set_lease(&names.gated, Duration::from_secs(5)).await;
    }
    let queues = all().flat_map(|names| [names.queue.clone(), names.gated.clone(), names.order("a"), names.order("b")]);
    let queues: Vec<String> = queues.chain(["default".to_owned()]).map(|queue| format!("{queue}=4")).collect();
    let flags: Vec<&str> = queues.iter().flat_map(|queue| ["--queue", queue.as_str()]).collect();
    let _worker = stage.worker("w", &flags);

    // Once so that these names are known, then measured.
    produce(&stage, &known, held / 4, pause).await;
    let alone = produce(&stage, &known, held / 2, pause).await;
    let mut report = Report::default();
    let (mut beside, mut waited) = (Measured::default(), 0);
    for (names, end) in rounds.iter().zip(ENDS) {
        waited += hold(&mut stage, names, end, (held, pause), &mut beside, &mut report).await;
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let (p99_alone, p99_beside) = (alone.p99(), beside.p99());
    report.number(format!(
        "{} enqueues beside {} transactions open for {} s each, {} refused; p99 {} ms, {} ms without them; {waited} enqueues of \
         the held key waited for it; attempts {:?}",
        beside.latencies.len(),
        ENDS.len(),
        held.as_secs(),
        beside.refused.len(),
        p99_beside.as_millis(),
        p99_alone.as_millis(),
        record.tally()
    ));
    report.must(
        alone.refused.is_empty() && beside.refused.is_empty(),
        format!("none is refused: {:?}", beside.refused.first()),
    );
    report.must(
        p99_beside <= 2 * size.slack() * p99_alone.max(NOISE),
        format!("p99 is {p99_beside:?} beside the open transactions and {p99_alone:?} without them"),
    );
    report.must(waited > 0, "an enqueue of the held key waits for the transaction");
    report.must(record.succeeded().len() == stage.history.count(), "every job succeeds");
    let violations = stage.store.find_violations(10).await.unwrap();
    report.must(violations.is_empty(), format!("no invariant is broken: {violations:?}"));
    report.line(line);
    report.bite(beside.latencies.len(), size.pick(200, 5_000), "enqueues of names that an open transaction brought");
    report
}

/// One round; answers how many enqueues of the held key waited in vain.
async fn hold(
    stage: &mut Stage,
    names: &Names,
    end: &str,
    (held, pause): (Duration, Duration),
    beside: &mut Measured,
    report: &mut Report,
) -> usize {
    let url = stage.place.text();
    let Names { tenant, queue, gated, gate } = names;
    let user = Session::open(&url, "begin").await;
    let mut brought = vec![
        enqueue(&user, &format!("tenant => '{tenant}', queue => '{queue}', gate => '{gate}', unique_key => 'held'"))
            .await,
        enqueue(&user, &format!("queue => '{gated}', gate => '{gate}'")).await,
    ];

    let stop = Arc::<AtomicBool>::default();
    let wants_the_key = tokio::spawn(want_the_key(stage.client.clone(), names.clone(), Arc::clone(&stop)));
    let measured = produce(stage, names, held, pause).await;
    beside.latencies.extend(measured.latencies);
    beside.refused.extend(measured.refused);
    watch("what is stored beside the open transactions has run", async || {
        (stage.count("end") >= stage.history.count()).then_some(())
    })
    .await;
    stop.store(true, Ordering::SeqCst);
    let waited = wants_the_key.await.unwrap();
    // A task of its own: one that is refused panics, and the rest is reported all the same.
    let ordered = tokio::spawn(name_in_opposite_order(url, names.clone())).await;
    report.must(ordered.is_ok(), "two transactions that name two queues in opposite order both commit");
    brought.extend(ordered.unwrap_or_default());

    user.run(end).await;
    let rolled_back = if end == "rollback" { 2 } else { 0 };
    let stored: Vec<Enqueued> = brought.into_iter().skip(rolled_back).map(Enqueued::Created).collect();
    stage.history.acknowledge(&stored);
    let (order_a, order_b) = (names.order("a"), names.order("b"));
    let once = stage.sql(&format!(
        "select (select count(*) from tenure.tenant where name = '{tenant}'), count(*), count(distinct name), count(*) filter (where lined)
         from tenure.queue where name in ('{queue}', '{gated}', '{order_a}', '{order_b}')"
    ));
    let lined = if end == "commit" { 2 } else { 1 };
    report.must(once == format!("1|4|4|{lined}"), format!("each name is there once after the {end}: {once}"));
    waited
}

/// Two transactions name two queues in opposite order, and commit at the same time.
async fn name_in_opposite_order(url: String, names: Names) -> Vec<JobId> {
    let begin = "set lock_timeout = '5s'; begin";
    let (one, two) = (Session::open(&url, begin).await, Session::open(&url, begin).await);
    let mut brought = Vec::new();
    for (session, which) in [(&one, "a"), (&two, "b"), (&one, "b"), (&two, "a")] {
        let queue = names.order(which);
        brought.push(enqueue(session, &format!("queue => '{queue}'")).await);
    }
    tokio::join!(one.run("commit"), two.run("commit"));
    brought
}

/// Stores a job in the transaction of a session.
async fn enqueue(session: &Session, arguments: &str) -> JobId {
    let sql = format!(r#"select job from tenure.enqueue('act', '{{"do": "wait", "ms": 0}}', {arguments})"#);
    session.ask(&sql).await[0][0][0].as_deref().unwrap().parse().unwrap()
}

/// Enqueues the key that the open transaction holds until it is told to stop; answers how many of them waited in vain.
async fn want_the_key(client: tenure_worker::Client, names: Names, stop: Arc<AtomicBool>) -> usize {
    let mut waited = 0;
    while !stop.load(Ordering::SeqCst) {
        let job = client.enqueue(Act::Wait { ms: 0 }).tenant(&names.tenant).queue(&names.queue).unique("held");
        match job.await {
            Err(error) if error.is_passing() => waited += 1,
            answer => panic!("the key is held: {answer:?}"),
        }
    }
    waited
}

/// Eight producers that use these names for so long.
async fn produce(stage: &Stage, names: &Names, time: Duration, pause: Duration) -> Measured {
    let since = Instant::now();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let (client, history, names) = (stage.client.clone(), stage.history.clone(), names.clone());
            tokio::spawn(async move {
                let mut measured = Measured::default();
                while since.elapsed() < time {
                    let job = client.enqueue(Act::Wait { ms: 0 });
                    let job = match producer % 4 {
                        0 => job.tenant(&names.tenant),
                        1 => job.queue(&names.queue),
                        2 => job.queue(&names.gated).gate(&names.gate),
                        _ => job.tenant(&names.tenant).unique(crate::stage::unique()),
                    };
                    let begin = Instant::now();
                    match job.await {
                        Ok(stored) => {
                            measured.latencies.push(begin.elapsed());
                            history.acknowledge(&[stored]);
                        }
                        Err(error) => measured.refused.push(error.to_string()),
                    }
                    tokio::time::sleep(pause).await;
                }
                measured
            })
        })
        .collect();
    let mut all = Measured::default();
    for producer in producers {
        let measured = producer.await.unwrap();
        all.latencies.extend(measured.latencies);
        all.refused.extend(measured.refused);
    }
    all
}
