//! Rollups: what was sealed is counted once, in every step of time.

use std::time::Duration;

use tenure_core::histogram::BOUNDS_MS;
use tenure_core::{Histogram, Timestamp};
use tenure_store::StoreError;
use tenure_store::record::Sight;
use tenure_store::rollup::{By, Figures, Rollup, RollupFilter, Step};

use super::situation::{ROUNDS, both, story};
use crate::fixture::{Fixture, START, success};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// Every way to end, in two queues, of three kinds and two tenants: the second minute has one of each.
const EVERY_WAY: &str = "
    enqueue  J1 J2  kind=b  tenant=acme
    claim    W1  J1 J2  limit=2  lease=L1
    complete W1  J1 J2  lease=L1
    advance  1m
    enqueue  J3 J4 J5 J6 J7 J8 J9  kind=a  queue=mail  max_attempts=2
    claim    W1  J3 J4 J5 J6 J7 J8  queue=mail  limit=6  lease=L2
    complete W1  J3  lease=L2
    fail     W1  J4  lease=L2  -> retry
    fail     W1  J5  lease=L2  class=permanent  -> failed
    fail     W1  J6  lease=L2  class=dead  -> dead
    snooze   W1  J7  lease=L2  delay=1d
    release  W1  J8  lease=L2
    cancel   J9
    cancel   J8
    enqueue  J10  kind=c  tenant=acme
    claim    W1  J10  limit=1  lease=L3
    expire   J10
    reclaim  J10
";

fn filter(step: Step, by: By) -> RollupFilter {
    let (since, until) = (START, Timestamp::MAX);
    RollupFilter { sight: Sight::All, step, since, until, queue: None, kind: None, by, limit: 1_000 }
}

fn acme() -> Sight {
    Sight::Tenant("acme".parse().expect("a name"))
}

/// Seals, and sums until nothing is left; answers how many rows that were.
async fn fold(t: &Fixture) -> u64 {
    t.store.seal_journal().await.expect("seal");
    let mut folded = 0;
    loop {
        match t.store.fold_rollups().await.expect("fold") {
            0 => return folded,
            more => folded += more,
        }
    }
}

async fn list(t: &Fixture, filter: RollupFilter) -> Vec<Rollup> {
    t.store.list_rollups(&filter).await.expect("list")
}

/// Lines as queue, kind, tenant and counters.
async fn counted(t: &Fixture, filter: RollupFilter) -> Vec<(String, [u64; 9])> {
    let word = |name: Option<String>| name.unwrap_or_else(|| "-".into());
    let line = |line: Rollup| {
        let names = [
            line.queue.map(|name| name.to_string()),
            line.kind.map(|name| name.to_string()),
            line.tenant.map(|name| name.to_string()),
        ];
        (names.map(word).join(" "), line.figures.counters())
    };
    list(t, filter).await.into_iter().map(line).collect()
}

async fn total(t: &Fixture, step: Step) -> Figures {
    let mut sum = Figures::default();
    list(t, filter(step, By::QueueAndKind)).await.iter().for_each(|line| sum.merge(&line.figures));
    sum
}

/// Under its queue, kind and tenant, in all four steps; and a fold that is sent again finds nothing.
pub async fn every_ending_is_counted_once_in_every_step(t: Fixture) {
    assert_eq!(fold(&t).await, 0, "nothing has happened");
    story(&t, &[EVERY_WAY]).await;
    assert_eq!(list(&t, filter(Step::All, By::Time)).await, [], "nothing is sealed");
    assert!(fold(&t).await > 0);
    assert_eq!(fold(&t).await, 0, "nothing is left");
    let line = |names: &str, counters| (names.to_owned(), counters);
    for step in Step::ALL {
        let (b, c) = ([2, 2, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 1]);
        let a = [6, 1, 1, 1, 1, 2, 1, 1, 0];
        let each = [line("mail a -", a), line("default b -", b), line("default c -", c)];
        assert_eq!(counted(&t, filter(step, By::QueueAndKind)).await, each, "{step:?}");
        let queues = [line("mail - -", a), line("default - -", [3, 2, 0, 0, 0, 0, 0, 0, 1])];
        assert_eq!(counted(&t, filter(step, By::Queue)).await, queues, "{step:?}");
        let kinds = [line("- a -", a), line("- b -", b), line("- c -", c)];
        assert_eq!(counted(&t, filter(step, By::Kind)).await, kinds, "{step:?}");
        let tenants = [line("- - default", a), line("- - acme", [3, 2, 0, 0, 0, 0, 0, 0, 1])];
        assert_eq!(counted(&t, filter(step, By::Tenant)).await, tenants, "{step:?}");
        let one = RollupFilter { limit: 1, ..filter(step, By::Kind) };
        assert_eq!(counted(&t, one).await, kinds[..1], "{step:?}");
    }
    let refused = t.store.list_rollups(&RollupFilter { limit: 0, ..filter(Step::All, By::Time) }).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}

/// A line for each step in which something happened, the oldest first; the first is the one that holds `since`.
pub async fn rollups_by_time_begin_at_their_step(t: Fixture) {
    story(&t, &[EVERY_WAY]).await;
    fold(&t).await;
    let times = |lines: Vec<Rollup>| -> Vec<(u64, u64)> {
        lines.iter().map(|line| (line.at.since(START).as_secs(), line.figures.claimed)).collect()
    };
    let minutes = filter(Step::Minute, By::Time);
    assert_eq!(times(list(&t, minutes.clone()).await), [(0, 2), (60, 7), (120, 0)]);
    let later =
        RollupFilter { since: START.plus(MINUTE + MINUTE / 2), until: START.plus(2 * MINUTE), ..minutes.clone() };
    assert_eq!(times(list(&t, later).await), [(60, 7)]);
    let mail = RollupFilter { queue: Some("mail".parse().expect("a name")), ..minutes.clone() };
    assert_eq!(times(list(&t, mail).await), [(60, 6)]);
    let kind = RollupFilter { kind: Some("c".parse().expect("a name")), ..minutes };
    assert_eq!(times(list(&t, kind).await), [(60, 1), (120, 0)]);
    for step in [Step::Quarter, Step::TwoHours] {
        assert_eq!(times(list(&t, filter(step, By::Time)).await), [(0, 9)], "{step:?}");
    }
    let all = list(&t, filter(Step::All, By::Time)).await;
    assert_eq!(all.iter().map(|line| (line.at, line.figures.claimed)).collect::<Vec<_>>(), [(Timestamp::EPOCH, 9)]);
    t.advance(MINUTE);
    t.enqueue().await;
    let (lease, job) = t.claim_one(t.worker("late").await).await;
    t.end(t.worker("late").await, lease, job, success()).await;
    fold(&t).await;
    let minutes = times(list(&t, filter(Step::Minute, By::Time)).await);
    assert_eq!(minutes[..3], [(0, 2), (60, 7), (120, 0)], "a sum that was there grows no more");
    assert_eq!(times(list(&t, filter(Step::Quarter, By::Time)).await), [(0, 10)]);
}

/// Neither another's lines nor its share of a line.
pub async fn a_tenant_sees_only_its_own_rollups(t: Fixture) {
    story(&t, &[EVERY_WAY]).await;
    story(&t, &["enqueue J20 kind=z queue=o gate=g\n claim W1 J20 queue=o lease=L9\n fail W1 J20 lease=L9 -> retry"])
        .await;
    fold(&t).await;
    for step in Step::ALL {
        let own = RollupFilter { sight: acme(), ..filter(step, By::Kind) };
        let seen =
            [("- b -".to_owned(), [2, 2, 0, 0, 0, 0, 0, 0, 0]), ("- c -".to_owned(), [1, 0, 0, 0, 0, 0, 0, 0, 1])];
        assert_eq!(counted(&t, own.clone()).await, seen, "{step:?}");
        let tenants = counted(&t, RollupFilter { by: By::Tenant, ..own.clone() }).await;
        assert_eq!(tenants, [("- - acme".to_owned(), [3, 2, 0, 0, 0, 0, 0, 0, 1])], "{step:?}");
        let nobody = Sight::Tenant("nobody".parse().expect("a name"));
        assert_eq!(counted(&t, RollupFilter { sight: nobody, ..own }).await, [], "{step:?}");
    }
    assert_eq!(t.store.list_failing_gates(&acme(), START, 10).await.expect("list"), []);
    assert_eq!(t.store.list_failing_gates(&Sight::All, START, 10).await.expect("list").len(), 1);
}

/// Together they count everything once, however often.
pub async fn of_two_folds_at_once_one_counts(t: Fixture) {
    let worker = t.worker("one").await;
    for round in 1..=ROUNDS as u64 {
        t.enqueue().await;
        let (lease, job) = t.claim_one(worker).await;
        t.end(worker, lease, job, success()).await;
        t.store.seal_journal().await.expect("seal");
        let (first, second) = (t.store.clone(), t.store.clone());
        let (a, b) = both(async move { first.fold_rollups().await }, async move { second.fold_rollups().await }).await;
        assert!(a.expect("fold") + b.expect("fold") >= 1);
        fold(&t).await;
        for step in Step::ALL {
            let sum = total(&t, step).await;
            assert_eq!((sum.claimed, sum.succeeded), (round, round), "{step:?}");
        }
    }
}

/// A run is from claim to end; a wait is from when the job was due to its first start, and to no other.
pub async fn rollups_tell_how_long_jobs_ran_and_waited(t: Fixture) {
    let script = "
        # Waits 3 s, runs 40 s; the second time it waited for its retry, which is no wait for a start.
        enqueue  J1  kind=a  backoff=none
        advance  3s
        claim    W1  J1  lease=L1
        advance  40s
        fail     W1  J1  lease=L1  -> retry
        claim    W1  J1  lease=L2
        advance  700ms
        complete W1  J1  lease=L2
        # Due in a minute, claimed 150 ms after that; neither a snooze nor its end is a run.
        enqueue  J2  kind=b  at=+60s
        advance  60150ms
        claim    W1  J2  lease=L3
        advance  5s
        snooze   W1  J2  lease=L3  delay=0s
        claim    W1  J2  lease=L4
        advance  5s
        cancel   J2  force
        # Its wait to be opened is nobody's.
        enqueue  J3  kind=c  waiting
        advance  1h
        open     J3
        advance  1m
        claim    W1  J3  lease=L5
        complete W1  J3  lease=L5
    ";
    story(&t, &[script]).await;
    fold(&t).await;
    let of = |took: &[u64]| {
        let mut histogram = Histogram::default();
        took.iter().for_each(|ms| histogram.add(Duration::from_millis(*ms)));
        histogram
    };
    for step in [Step::TwoHours, Step::All] {
        let mut lines = list(&t, filter(step, By::Kind)).await;
        lines.sort_by_key(|line| line.kind.clone());
        let told: Vec<_> = lines.iter().map(|line| (line.figures.run, line.figures.wait)).collect();
        assert_eq!(told, [(of(&[40_000, 700]), of(&[3_000])), (of(&[]), of(&[150])), (of(&[0]), of(&[]))], "{step:?}");
    }
}

/// The bounds are the same wherever they are looked up, from the first bucket to the last.
pub async fn every_bound_of_a_rollup_belongs_to_the_bucket_below(t: Fixture) {
    let worker = t.worker("one").await;
    let mut expected = Histogram::default();
    let bounds = BOUNDS_MS.map(Duration::from_millis);
    for took in bounds.into_iter().flat_map(|bound| [bound, bound + Duration::from_micros(1)]) {
        t.enqueue().await;
        let (lease, job) = t.claim_one(worker).await;
        t.advance(took);
        t.end(worker, lease, job, success()).await;
        expected.add(took);
    }
    fold(&t).await;
    assert_eq!(total(&t, Step::All).await.run, expected);
}

/// The worst first. What was canceled or lost says nothing of a gate, nor does a job that has none.
pub async fn failing_gates_are_told_the_worst_first(t: Fixture) {
    let script = "
        enqueue  J1 J2 J3  gate=a  backoff=none
        enqueue  J4 J5     gate=b  tenant=acme
        enqueue  J6        gate=c
        enqueue  J7  backoff=none
        claim    W1  J1 J2 J3 J4 J5 J6 J7  limit=10  lease=L1
        fail     W1  J1 J7  lease=L1  -> retry
        complete W1  J2 J3 J6  lease=L1
        fail     W1  J4  lease=L1  class=permanent  -> failed
        fail     W1  J5  lease=L1  class=dead  -> dead
        claim    W1  J1 J7  limit=10  lease=L2
        cancel   J7  force
        expire   J1
        reclaim  J1
    ";
    story(&t, &[script]).await;
    fold(&t).await;
    let told = async |sight: Sight, since: Timestamp, limit: u32| -> Vec<(String, u64, u64)> {
        let gates = t.store.list_failing_gates(&sight, since, limit).await.expect("list");
        gates.into_iter().map(|gate| (gate.gate.to_string(), gate.ended, gate.unhealthy)).collect()
    };
    let (a, b) = (("a".to_owned(), 3, 1), ("b".to_owned(), 2, 2));
    for back in [Duration::ZERO, DAY, 7 * DAY] {
        assert_eq!(told(Sight::All, START.minus(back), 10).await, [b.clone(), a.clone()], "{back:?}");
    }
    assert_eq!(told(Sight::All, START, 1).await, std::slice::from_ref(&b));
    assert_eq!(told(acme(), START, 10).await, [b]);
    assert_eq!(told(Sight::All, t.clock.now().plus(MINUTE), 10).await, []);
    let refused = t.store.list_failing_gates(&Sight::All, START, 0).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}

/// Two days of minutes, two weeks of quarters, 400 days of two hours, and the sum of all for ever.
pub async fn rollups_past_their_retention_are_dropped(t: Fixture) {
    story(&t, &["enqueue J1 gate=g\n claim W1 J1 lease=L1\n fail W1 J1 lease=L1 -> retry"]).await;
    fold(&t).await;
    let kept = async |t: &Fixture| -> Vec<usize> {
        let mut lines = Vec::new();
        for step in Step::ALL {
            lines.push(list(t, filter(step, By::Time)).await.len());
        }
        lines
    };
    for (days, left) in [(2, [1, 1, 1, 1]), (14, [0, 1, 1, 1]), (400, [0, 0, 1, 1]), (500, [0, 0, 0, 1])] {
        t.advance(START.plus(days * DAY).since(t.clock.now()));
        t.store.fold_rollups().await.expect("fold");
        assert_eq!(kept(&t).await, left, "after {days} days");
        let gates = t.store.list_failing_gates(&Sight::All, START, 10).await.expect("list");
        assert_eq!(gates.len(), left[2], "after {days} days");
    }
    // What is older than that is not even begun.
    story(&t, &["enqueue J2\n claim W1 J2 lease=L2\n complete W1 J2 lease=L2\n advance 3d"]).await;
    t.store.seal_journal().await.expect("seal");
    while t.store.fold_rollups().await.expect("fold") > 0 {}
    assert_eq!(kept(&t).await, [0, 1, 1, 1]);
}

/// Those that were summed stay, those that were not are left out, and what comes after them is counted.
pub async fn rollups_leave_out_what_was_pruned_before(t: Fixture) {
    let done = "
        enqueue  J1
        claim    W1  J1  lease=L1
        complete W1  J1  lease=L1
    ";
    story(&t, &[done]).await;
    fold(&t).await;
    let gone = "
        enqueue  J2
        claim    W1  J2  lease=L2
        complete W1  J2  lease=L2
        advance  1h
        prune    older_than=1m  -> 2
        enqueue  J3
        claim    W1  J3  lease=L3
        complete W1  J3  lease=L3
    ";
    story(&t, &[gone]).await;
    assert!(fold(&t).await > 0);
    let sum = total(&t, Step::All).await;
    assert_eq!((sum.claimed, sum.succeeded), (2, 2));
}
