//! Gates across processes: F36 a tenant that floods its queue (and F37, the lowest priority beside it), F38 a rate with a
//! worker that is killed, F39 a limit of two with frozen workers, F40 a source that flaps and hangs.

use std::time::{Duration, Instant};

use tenure_core::gate::{Breaker, GateRule, Rate};
use tenure_core::journal::JournalEvent;
use tenure_core::{How, Priority};
use tenure_store::gate::GateAct;
use tenure_store::operate::SetQueue;

use crate::Act;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::source::{Mood, Source};
use crate::stage::Stage;
use crate::watch::watch;

/// Row F39.
pub(super) const LIMIT: Row = Row {
    id: "F39",
    fault: "a limit of two per domain, and workers that go on after their lease",
    injected: "50 domains, 3 workers, one after the other frozen past its lease with what it holds and thawed again",
    run: |size| Box::pin(limit(size)),
};

/// Row F40.
pub(super) const BREAKER: Row = Row {
    id: "F40",
    fault: "a source answers badly, hangs, and comes back; all workers are killed while its breaker is open",
    injected: "a server that counts its callers and answers 200, 500 or never; `kill -9` of every worker",
    run: |size| Box::pin(breaker(size)),
};

/// Row F38.
pub(super) const RATE: Row = Row {
    id: "F38",
    fault: "one of four processes that share a rate is killed",
    injected: "50 a second by 4 workers, `kill -9` of one in the middle, at a server that counts its callers",
    run: |size| Box::pin(rate(size)),
};

/// Row F36.
pub(super) const FAIRNESS: Row = Row {
    id: "F36",
    fault: "one tenant floods a queue, another has a job now and then",
    injected: "a backlog of one tenant on 8 slots with jobs of 20 ms, a job of another every second",
    run: |size| Box::pin(fairness(size)),
};

const LEASE: Duration = Duration::from_secs(2);
/// Jobs at once for each domain.
const AT_ONCE: u32 = 2;
const DOMAINS: usize = 50;

async fn limit(size: Size) -> Report {
    // One in so many jobs takes so long: enough of them are in a worker's hands when it falls asleep.
    let (jobs, freezes, (one_in, ms)) = size.pick((1_500, 3, (20, 200)), (10_000, 20, (2, 400)));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    stage.client.set_gate("domain:*", GateRule::domain()).await.unwrap();
    let acts: Vec<Act> = (0..jobs).map(|n| Act::Wait { ms: if n % one_in == 0 { ms } else { 10 } }).collect();
    for page in acts.chunks(1_000) {
        let many = stage.client.enqueue_many(page.to_vec()).each(|n, one| one.gate(&format!("domain:{}", n % DOMAINS)));
        stage.history.acknowledge(&many.await.unwrap());
    }
    let workers = ["a", "b", "c"].map(|name| stage.worker(name, &["--queue", "default=40"]));
    let (mut most, mut full, mut looks, mut frozen) = (0, 0, 0, 0);
    for n in 0..freezes {
        let victim = &workers[n % 3];
        watch("it works", async || stage.entries().iter().any(|entry| entry.worker == victim.name).then_some(())).await;
        victim.freeze();
        let lost = Instant::now();
        // What it held is taken back and runs elsewhere, while it is asleep; then it wakes up and goes on.
        while lost.elapsed() < LEASE + LEASE / 2 {
            look(&stage, &mut most, &mut full);
            looks += 1;
        }
        victim.thaw();
        frozen += 1;
        for _ in 0..20 {
            look(&stage, &mut most, &mut full);
            looks += 1;
        }
        if stage.open_jobs().await == Some(0) {
            break;
        }
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let lost = record.count(How::Lost);
    let mut report = Report::default();
    report.number(format!(
        "{jobs} jobs over {DOMAINS} domains; {looks} looks at all leases: at most {most} live on one domain, {full} times as \
         many as allowed; {lost} attempts were lost and {} reports refused",
        record.refused.len()
    ));
    report.must(most <= i64::from(AT_ONCE), "never a third live lease on a domain");
    report.must(full > 0, "domains were full, so the limit was felt");
    let repairs = stage.store.repair_gates().await.unwrap();
    report.must(repairs == 0, format!("permits are what leases say: {repairs} repairs"));
    let violations = stage.store.find_violations(10).await.unwrap();
    report.must(violations.is_empty(), format!("no invariant is broken: {violations:?}"));
    report.must(record.succeeded().len() == jobs, "every job succeeds");
    report.must(lost > 0, format!("{frozen} freezes took leases away"));
    report.line(line);
    report.bite(lost, size.pick(3, 100), "attempts lost by frozen workers");
    report
}

/// How many live leases each domain has now.
fn look(stage: &Stage, most: &mut i64, full: &mut usize) {
    let counts = stage.sql(
        "select count(*) from tenure.lease l cross join lateral unnest(l.jobs) u (job) join tenure.job j on j.id = u.job
         where not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no) group by j.line",
    );
    for count in counts.lines().map(|line| line.parse::<i64>().unwrap()) {
        *most = (*most).max(count);
        *full += usize::from(count == i64::from(AT_ONCE));
    }
}

/// Failures in a row that open the breaker, and the jobs that can be inside when it does.
const FAILURES: u32 = 5;
const INSIDE: u32 = 4;
const COOLDOWN: Duration = Duration::from_millis(700);

async fn breaker(size: Size) -> Report {
    let rounds = size.pick(1, 6);
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let breaker = Some(Breaker { failures: FAILURES, cooldown: COOLDOWN });
    let rule = GateRule { concurrency: Some(INSIDE), breaker, ..GateRule::default() };
    stage.client.set_gate("source", rule).await.unwrap();
    let source = Source::start().await;
    let start = |stage: &Stage, n: usize| -> Vec<Process> {
        (0..2).map(|w| stage.worker(&format!("w{n}-{w}"), &["--queue", "default=8"])).collect()
    };
    let mut workers = start(&stage, 0);
    let (mut bad_calls, mut allowed, mut trips, mut kills) = (0, 0, 0, 0);
    for round in 1..=rounds {
        for mood in [Mood::Badly, Mood::Hangs] {
            call_source(&stage, &source, 40).await;
            watch("the source is called", async || (!source.calls().is_empty()).then_some(())).await;
            source.set(mood);
            let (before, tripped, lost) =
                (source.calls().len(), count(&stage, JournalEvent::GateTripped).await, losses(&stage).await);
            watch("the breaker opens, and opens again", async || {
                (count(&stage, JournalEvent::GateTripped).await >= tripped + 3).then_some(())
            })
            .await;
            // Nobody who remembers it is left.
            workers.iter_mut().for_each(Process::kill);
            kills += workers.len();
            workers = start(&stage, kills + round);
            let then = count(&stage, JournalEvent::GateTripped).await;
            watch("a new worker finds it open", async || {
                (count(&stage, JournalEvent::GateTripped).await > then).then_some(())
            })
            .await;
            // Before it is well again: what came while it was not. A probe may be out, and one that was killed is followed
            // by another.
            let (calls, now) = (source.calls().len() - before, count(&stage, JournalEvent::GateTripped).await);
            let lost = losses(&stage).await - lost;
            source.set(Mood::Well);
            bad_calls += calls;
            allowed += (FAILURES + INSIDE) as usize + (now - tripped) + lost + 1;
            trips += now - tripped;
            watch("it heals", async || (stage.open_jobs().await == Some(0)).then_some(())).await;
        }
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let healed = count(&stage, JournalEvent::GateHealed).await;
    let mut report = Report::default();
    report.number(format!(
        "{} calls, {bad_calls} of them while it did badly, {allowed} allowed ({FAILURES} failures, {INSIDE} inside, a probe a \
         trip); the breaker opened {trips} times and healed {healed} times; {kills} workers were killed",
        source.calls().len()
    ));
    report.must(bad_calls <= allowed, "an open breaker lets probes through and nothing else");
    report.must(healed >= rounds * 2, "and a source that is well again is used again");
    report.must(record.succeeded().len() == stage.history.count(), "every job succeeds in the end");
    let repairs = stage.store.repair_gates().await.unwrap();
    report.must(repairs == 0, format!("permits are what leases say: {repairs} repairs"));
    report.line(line);
    report.bite(trips, rounds * 8, "times that it opened");
    report
}

async fn count(stage: &Stage, event: JournalEvent) -> usize {
    stage.sql(&format!("select count(*) from tenure.journal where event = {}", event.code())).parse().unwrap()
}

async fn losses(stage: &Stage) -> usize {
    stage.sql("select count(*) from tenure.attempt where how = 8").parse().unwrap()
}

async fn call_source(stage: &Stage, source: &Source, jobs: usize) {
    let acts = vec![Act::Call { port: source.port }; jobs];
    let backoff: tenure_core::Backoff = "fixed 50ms".parse().unwrap();
    let many = stage.client.enqueue_many(acts);
    let many = many.each(|_, one| one.gate("source").max_attempts(1_000).backoff(backoff.clone()));
    stage.history.acknowledge(&many.await.unwrap());
}

const PER_SECOND: u32 = 50;
const BURST: u32 = 10;

/// The most attempts that began within any second, by the database's clock.
const MOST_STARTS: &str = "select max(n) from (
    select count(*) over (order by started_at range between current row and interval '999999 microseconds' following) as n
    from tenure.attempt where started_at is not null) s";

async fn rate(size: Size) -> Report {
    let seconds = size.pick(6, 30);
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let rate = Rate { burst: BURST, ..Rate::new(PER_SECOND, Duration::from_secs(1)) };
    stage.client.set_gate("source", GateRule { rate: Some(rate), ..GateRule::default() }).await.unwrap();
    // It waits for everybody: what the processes need to start is not measured.
    let operate =
        |act| tenure_store::gate::OperateGate { gate: "source".parse().unwrap(), act, word: Default::default() };
    stage.store.operate_gate(operate(GateAct::Pause(None))).await.unwrap();
    let source = Source::start().await;
    call_source(&stage, &source, (PER_SECOND * seconds) as usize).await;
    let names = ["a", "b", "c", "d"];
    let mut workers = names.map(|name| stage.worker(name, &["--queue", "default=8"]));
    watch("all are there", async || (stage.store.list_workers(10).await.unwrap().len() == 4).then_some(())).await;
    stage.store.operate_gate(operate(GateAct::Resume)).await.unwrap();
    let third = (PER_SECOND * seconds / 3) as usize;
    watch("a third is done", async || (source.calls().len() >= third).then_some(())).await;
    let killed_at = Instant::now();
    workers[0].kill();
    let (line, record) = PassLine::measure(&mut stage).await;
    let calls = source.calls();
    let (first, last) = (calls[0], calls[calls.len() - 1]);
    let took = last.duration_since(first).as_secs_f64();
    let after: Vec<&Instant> = calls.iter().filter(|call| **call > killed_at + LEASE).collect();
    let most = source.most_within(Duration::from_secs(1));
    let allowed = (PER_SECOND + BURST) as usize;
    let let_through: usize = stage.sql(MOST_STARTS).parse().unwrap();
    let mut report = Report::default();
    report.number(format!(
        "{} calls in {took:.1} s, {:.1} a second; at most {let_through} let through and {most} arrived in any second, {allowed} \
         allowed",
        calls.len(),
        calls.len() as f64 / took
    ));
    if let (Some(from), Some(to)) = (after.first(), after.last()) {
        let lasted = to.duration_since(**from).as_secs_f64();
        report.number(format!("{:.1} a second from a lease after the kill on", after.len() as f64 / lasted.max(0.1)));
    }
    report.must(let_through <= allowed, "in no second more are let through than the rate and its burst");
    // Calls are on their way for a while: on a busy machine some that were let through apart arrive together.
    let arrived = size.pick(allowed + allowed / 5, allowed);
    report.must(most <= arrived, "in no second more arrive than the rate and its burst");
    report.must(record.succeeded().len() == stage.history.count(), "every job succeeds");
    report.line(line);
    report.bite(calls.len(), third * 3, "calls counted");
    report
}

async fn fairness(size: Size) -> Report {
    let (flood, jobs, pause) = size.pick((20_000, 20, 200), (1_000_000, 60, 1_000));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(60)).await;
    let queue = SetQueue { fair: Some(true), ..SetQueue::new(Default::default(), Duration::from_secs(60)) };
    stage.store.set_queue(queue).await.unwrap();
    for page in vec![Act::Wait { ms: 20 }; flood].chunks(1_000) {
        // A third of the flood is of the lowest priority, behind the rest of it.
        let low = |n: usize| if n.is_multiple_of(3) { Priority::LOW } else { Priority::HIGH };
        stage.client.enqueue_many(page.to_vec()).each(|n, one| one.tenant("flood").priority(low(n))).await.unwrap();
    }
    let worker = stage.worker("a", &["--queue", "default=8"]);
    watch("it works", async || (stage.count("start") > 8).then_some(())).await;
    let mut waits = Vec::new();
    for _ in 0..jobs {
        let sent = Instant::now();
        let stored = stage.client.enqueue(Act::Wait { ms: 20 }).tenant("small").await.unwrap();
        stage.history.acknowledge(&[stored]);
        let job = stored.job();
        watch("its job starts", async || stage.noted("start").iter().any(|entry| entry.job == job).then_some(())).await;
        waits.push(sent.elapsed());
        tokio::time::sleep(Duration::from_millis(pause).saturating_sub(sent.elapsed())).await;
    }
    let low = stage.sql(
        "select round(100.0 * count(*) filter (where j.priority = 3) / count(*), 1) from tenure.attempt a join tenure.job j on j.id = a.job
         join tenure.tenant t on t.id = j.tenant where t.name = 'flood'",
    );
    drop(worker);
    waits.sort_unstable();
    let p99 = waits[waits.len() * 99 / 100];
    let mut report = Report::default();
    report.number(format!(
        "{flood} jobs of one tenant, {jobs} of another: those waited {} ms in the middle and {} ms at the 99th of 100; {low} % of \
         the flood's starts were of its lowest priority",
        waits[waits.len() / 2].as_millis(),
        p99.as_millis()
    ));
    report.must(p99 <= Duration::from_secs(2) * size.slack(), "a flood of one tenant does not keep another waiting");
    report.must(low.parse::<f64>().unwrap() >= 10.0, "and the lowest priority gets a tenth of the starts");
    // The flood is left where it is: it would take an hour.
    stage.sql("delete from tenure.ready; delete from tenure.lease");
    report.bite(stage.count("start"), jobs * 2, "starts beside the flood");
    report
}
