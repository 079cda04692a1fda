//! Random walks: the model takes steps nobody wrote down, the store takes them too, and after each of them every job
//! is where the model says.
//!
//! `TENURE_WALK_SEED=7 cargo nextest run -p tenure-sim walk` repeats a walk; `TENURE_WALK_STEPS` makes it longer.

use std::collections::BTreeMap;

use tenure_contract::dice::Dice;
use tenure_core::How;
use tenure_postgres::mutant::Mutant as Cut;
use tenure_sim::model::lease::state::World;
use tenure_sim::model::lease::{Heard, Rules, Step};
use tenure_sqlite::{FENCES, Mutation};
use tenure_store::lease::Ended;

use crate::beside::{Beside, Told};
use crate::stage::Stage;

/// Three jobs, three workers, six leases that somebody knows.
type Walk = Beside<JOBS, 3, 6>;
const JOBS: usize = 3;

const SEED: u64 = 20_261_115;
const STEPS: usize = 10_000;
/// Steps between two looks at the store's own invariants and its journal.
const AUDIT_EVERY: usize = 1_000;
/// Steps between two tries of something forbidden.
const PROBE_EVERY: usize = 10;
/// Steps told when a walk fails.
const TOLD: usize = 25;

/// How often each kind of step was taken.
type Counts = BTreeMap<&'static str, usize>;

async fn walk(stage: Stage, seed: u64, steps: usize) -> Told<Counts> {
    let rules = Rules::walked(stage.store);
    let mut beside = Walk::open(stage, rules).await;
    let (mut dice, mut counts, mut log) = (Dice::new(seed), Counts::new(), Vec::new());
    for at in 1..=steps {
        let step = choose(&beside.steps(), &mut dice);
        let failed = |why: String, log: &[String]| {
            let last = log[log.len().saturating_sub(TOLD)..].join("\n");
            format!("TENURE_WALK_SEED={seed}, step {at}\n{last}\n{step}\n=> {why}")
        };
        let heard = beside.take(step).await.map_err(|why| failed(why, &log))?;
        log.push(format!("{step}{heard}"));
        for what in [step.kind()].into_iter().chain(outcomes(step, &heard, &beside.world)) {
            *counts.entry(what).or_default() += 1;
        }
        if let Some(probe) = forbidden(&beside, &mut dice).filter(|_| at % PROBE_EVERY == 0) {
            beside.refuse(probe).await.map_err(|why| failed(format!("{probe}, which must be refused: {why}"), &log))?;
            *counts.entry("refused by the rules").or_default() += 1;
        }
        if at % AUDIT_EVERY == 0 || at == steps {
            beside.check_store().await.map_err(|why| failed(why, &log))?;
        }
    }
    Ok(counts)
}

/// What came of it, as far as a walk without it would prove little.
fn outcomes(step: Step, heard: &Heard, world: &World<JOBS, 3, 6>) -> Vec<&'static str> {
    let is_dead = |job: usize| world.jobs[job].ended == Some(How::Dead);
    match *heard {
        Heard::Ended(answers) => {
            let retried = matches!(step, Step::Report { ending: How::Retry, .. });
            let name = |answer: Ended| match answer {
                Ended::Now(How::Dead) if retried => "dead by attempts",
                Ended::Now(_) => "accepted",
                Ended::Before(_) => "answered again",
                Ended::LeaseLost { how: None } => "refused, unknown",
                Ended::LeaseLost { how: Some(_) } => "refused",
                Ended::Busy => "busy",
            };
            answers.into_iter().flatten().map(name).collect()
        }
        Heard::Claimed { canceled, .. } if !canceled.is_empty() => vec!["ended by a claim"],
        Heard::Claimed { granted, .. } if granted.len() > 1 => vec!["claimed together"],
        Heard::LeaseLost => vec!["refused in a transaction"],
        Heard::Back(jobs) if step == Step::Reclaim && jobs.each().any(is_dead) => vec!["dead by losses"],
        _ => Vec::new(),
    }
}

/// Something that must not happen now: a held lease dropped, a live one reclaimed, a job pruned that is still needed.
fn forbidden(beside: &Walk, dice: &mut Dice) -> Option<Step> {
    let holding = |worker: &u8| {
        let no = beside.world.hands[usize::from(*worker)].lease;
        beside.world.find(no).is_some_and(|at| (0..JOBS).any(|job| beside.world.leases[at].holds(job)))
    };
    let drops = (0..3).filter(holding).map(|worker| Step::Drop { worker });
    let mut all: Vec<Step> = drops.chain([Step::Reclaim, Step::Prune]).collect();
    all.retain(|step| !beside.allows(*step));
    dice.pick(&all)
}

/// First the kind of step, then which: there are many ways to claim and only one to prune.
fn choose(steps: &[Step], dice: &mut Dice) -> Step {
    let mut kinds: BTreeMap<&str, Vec<Step>> = BTreeMap::new();
    steps.iter().for_each(|step| kinds.entry(step.kind()).or_default().push(*step));
    let mut roll = dice.below(kinds.keys().map(|kind| often(kind)).sum());
    for (kind, steps) in &kinds {
        match roll.checked_sub(often(kind)) {
            Some(left) => roll = left,
            None => return steps[dice.index(steps.len())],
        }
    }
    unreachable!("the roll is below the sum")
}

/// Workers do most of it; operators come by now and then, or no job would ever get old.
fn often(kind: &str) -> u64 {
    match kind {
        "claim" | "report" | "enqueue" => 12,
        "expire" | "reclaim" | "repeat" | "begin" | "commit" | "rollback" => 6,
        kind if kind.starts_with("complete") => 3,
        "force cancel" | "requeue" | "prune" => 1,
        _ => 3,
    }
}

fn number<T: std::str::FromStr>(variable: &str, default: T) -> T {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Walks, and sees that everything happened that can happen there.
async fn walk_far(stage: Stage, kinds: &[&str]) {
    let (seed, steps) = (number("TENURE_WALK_SEED", SEED), number("TENURE_WALK_STEPS", STEPS));
    let counts = walk(stage, seed, steps).await.unwrap_or_else(|why| panic!("{why}"));
    println!("{counts:#?}");
    let missed: Vec<&&str> = kinds.iter().filter(|kind| !counts.contains_key(**kind)).collect();
    assert!(missed.is_empty(), "a walk without {missed:?} proves little: {counts:#?}");
}

#[rustfmt::skip] // what both can do, then what only one can
const ALWAYS: &[&str] = &[
    "enqueue", "claim", "claim, reply lost", "report", "report, reply lost", "repeat", "look", "renew", "drop", "release unknown",
    "crash", "expire", "reclaim", "cancel", "force cancel", "requeue", "prune",
    "accepted", "answered again", "refused", "refused, unknown", "refused in a transaction", "dead by attempts", "dead by losses", "claimed together",
    "refused by the rules",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_goes_every_way_the_model_goes() {
    let own = ["complete in a transaction", "complete in a transaction, rolled back"];
    walk_far(Stage::sqlite(None).await, &[ALWAYS, &own].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_goes_every_way_the_model_goes() {
    let own = ["begin", "commit", "rollback", "abort", "ask", "commit the request", "ended by a claim"];
    walk_far(Stage::postgres(None).await, &[ALWAYS, &own].concat()).await;
}

/// A walk must be able to fail: every fence in its reach is missed when it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_on_sqlite_misses_every_dropped_fence() {
    // Not in the alphabet: nobody asks with another's number, nothing waits, no queue is paused, no sweep comes late, all
    // is one tenant's, nothing is scheduled; and requests pass no retry where there is one writer.
    const OUT_OF_REACH: &[&str] = &[
        "a lease is its worker's",
        "an ended attempt is its worker's",
        "a future job is not claimed",
        "a paused queue hands out nothing",
        "a late sweep leaves newer leases alone",
        "a requested cancel is met",
        "a tenant sees its own",
        "a page moves its own partition, from where it is",
        "a page of an ended partition moves nothing",
        "what a run may revive is kept",
        "what a gate has counted is gone",
        "a quota is its tenant's",
        "a schedule moves on from where it was read",
        "a fire time has one job",
        "a paused schedule fires nothing",
        "a fire is not before its time",
    ];
    for (name, find, replace) in FENCES.iter().filter(|(name, ..)| !OUT_OF_REACH.contains(name)) {
        let stage = Stage::sqlite(Some(Mutation { find, replace })).await;
        assert!(walk(stage, SEED, 2_000).await.is_err(), "the walk goes on without `{name}`");
    }
}

/// The same on Postgres, where a statement loses one predicate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_on_postgres_misses_every_dropped_fence() {
    const CUTS: &[(&str, &str, &str)] = &[
        ("claim_jobs", "where c.job = any (array(select job from taken))", "where false"),
        ("end_jobs", "when i.how = 2 and h.attempt >= j.max_attempts then 4", "when false then 4"),
        ("end_jobs", "exists (select from tenure.cancel_request c where c.job = h.job)", "false"),
        (
            "end_jobs",
            "from ended e join decided d on d.job = e.job\n  where e.how in (2, 6, 7)",
            "from decided d cross join lateral (select d.how) e\n  where e.how in (2, 6, 7)",
        ),
        ("renew_leases", "set renewed_at = at, expires_at = at +", "set renewed_at = at, expires_at = l.renewed_at +"),
        ("drop_leases", "cardinality(l.jobs) = (", "-1 < ("),
        ("refuse_endings", "a.how = i.said or", "false or"),
    ];
    for (statement, find, replace) in CUTS {
        let stage = Stage::postgres(Some(Cut { statement, find, replace })).await;
        assert!(walk(stage, SEED, 2_000).await.is_err(), "the walk goes on with {statement} without `{find}`");
    }
}
