//! The stories of the mutants, told to the real SQL: the step that breaks a promise there is refused here.
//!
//! The search finds a mutant's shortest story. It is replayed on both stores beside the model as it should be, with every
//! answer and every row compared on the way. A step that only the mutant allows is tried all the same and must change
//! nothing. Where a worker is left with a stale lease, a successor takes the job, and then the stale one reports, in every
//! way there is, *while the successor runs*: an earlier or a later report would prove nothing about the fence.

use tenure_core::How;
use tenure_postgres::mutant::Mutant as Cut;
use tenure_sim::model::lease::state::{Grip, World};
use tenure_sim::model::lease::{Jobs, Mutant, Rules, Step, Store};
use tenure_sim::model::search::{Machine, search};
use tenure_sim::model::table::Searched;
use tenure_sqlite::{FENCES, Mutation};
use tenure_store::lease::Ended;

use crate::beside::{Beside, Told};
use crate::stage::Stage;

type Replay = Beside<2, 2, 3>;

/// How each story ends where nothing is broken. The last line, as our stores tell it.
#[rustfmt::skip] // one line each
const ENDS: &[(Mutant, &str)] = &[
    (Mutant::CompleteById,        "W1 reports J1 succeeded (J1: lease lost)"),
    (Mutant::CompleteIfRunning,   "W1 reports J1 succeeded (J1: lease lost)"),
    (Mutant::CompleteIfOpen,      "W1 reports J1 succeeded (J1: lease lost)"),
    (Mutant::FenceIsAttempt,      "W2 claims J1 (lease 2)"),
    (Mutant::FenceRestarts,       "W2 claims J2 (lease 2)"),
    (Mutant::ReaperInTwoSteps,    "the reaper puts back what it read: refused"),
    (Mutant::LossNotCounted,      "W2 claims J1: refused"),
    (Mutant::PruneBesideSibling,  "W1 reports J1 again (J1 was succeeded before)"),
    (Mutant::NoLookUp,            "W1 reports J1 again (J1 was succeeded before)"),
    (Mutant::ClaimIgnoresRequest, "W1 claims J1 (lease 0: nothing; ended: J1)"),
    (Mutant::RetryIgnoresRequest, "W1 reports J1 retry (J1 is canceled)"),
    (Mutant::RollbackUnreported,  "W1 reports J1 again (J1 is retry)"),
    (Mutant::ReclaimOverOpenTx,   "W1 commits the completion of J1"),
    (Mutant::FollowUpFromInput,   "W1 reports J1 again (J1 was retry before)"),
    (Mutant::RenewByWorker,       "W1 gives back leases it never heard of (J1)"),
    (Mutant::DropHeldLease,       "W1 drops its lease: refused"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_refuses_what_every_mutant_does() {
    for (mutant, end) in ENDS {
        let told = replay(*mutant, Stage::postgres(None).await).await;
        let story = told.unwrap_or_else(|why| panic!("{mutant:?}: {why}"));
        assert_eq!(story.last().map(String::as_str), Some(*end), "{mutant:?}: {story:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_refuses_what_every_mutant_does() {
    // One writer: no transaction stays open while others act.
    const NOT_THERE: &[Mutant] = &[Mutant::ClaimIgnoresRequest, Mutant::ReclaimOverOpenTx];
    for (mutant, end) in ENDS.iter().filter(|(mutant, _)| !NOT_THERE.contains(mutant)) {
        let told = replay(*mutant, Stage::sqlite(None).await).await;
        let story = told.unwrap_or_else(|why| panic!("{mutant:?}: {why}"));
        assert_eq!(story.last().map(String::as_str), Some(*end), "{mutant:?}: {story:#?}");
    }
}

#[test]
fn every_mutant_has_a_story_to_replay() {
    let told: Vec<Mutant> = ENDS.iter().map(|(mutant, _)| *mutant).collect();
    let all: Vec<Mutant> = Mutant::ALL.iter().map(|(mutant, _)| *mutant).collect();
    assert_eq!(told, all);
}

/// A replay must be able to fail: where the SQL has the mutant's mistake, the story goes as the mutant's. (No single cut
/// lets a stale report through: without the lease's row it has nothing to stand on, and beside it the key is taken.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_notices_the_mistake_in_the_sql() {
    const IN_SQLITE: &[(Mutant, &str)] = &[
        (Mutant::RetryIgnoresRequest, "a requested cancel wins over putting back"),
        (Mutant::DropHeldLease, "a lease in use is kept"),
        (Mutant::PruneBesideSibling, "a job is pruned after its leases"),
    ];
    const IN_POSTGRES: &[(Mutant, &str, &str, &str)] = &[
        (Mutant::ClaimIgnoresRequest, "claim_jobs", "where c.job = any (array(select job from taken))", "where false"),
        (Mutant::NoLookUp, "refuse_endings", "a.how = i.said or", "false or"),
        (
            Mutant::FollowUpFromInput,
            "end_jobs",
            "from ended e join decided d on d.job = e.job\n  where e.how in (2, 6, 7)",
            "from decided d cross join lateral (select d.how) e\n  where e.how in (2, 6, 7)",
        ),
    ];
    for (mutant, fence) in IN_SQLITE {
        let (_, find, replace) = FENCES.iter().find(|(name, ..)| name == fence).expect("a fence of that name");
        assert!(is_noticed(*mutant, Stage::sqlite(Some(Mutation { find, replace })).await).await, "{mutant:?}");
    }
    for (mutant, statement, find, replace) in IN_POSTGRES {
        let stage = Stage::postgres(Some(Cut { statement, find, replace })).await;
        assert!(is_noticed(*mutant, stage).await, "{mutant:?}");
    }
}

async fn is_noticed(mutant: Mutant, stage: Stage) -> bool {
    let told = replay(mutant, stage).await;
    let end = ENDS.iter().find(|(known, _)| *known == mutant).map(|(_, end)| *end);
    told.map_or(true, |story| story.last().map(String::as_str) != end)
}

/// Replays a mutant's story; answers it as the store told it.
async fn replay(mutant: Mutant, stage: Stage) -> Told<Vec<String>> {
    let broken = Searched { rules: Rules::broken(mutant) };
    let found = search(&broken).broken.ok_or("the mutant breaks nothing")?;
    let (max_attempts, max_losses) = (broken.rules.max_attempts, broken.rules.max_losses);
    let rules = Rules { max_attempts, max_losses, ..Rules::walked(stage.store) };
    let steps = translate(stage.store, [found.trace, coda(mutant)].concat());
    let (mut beside, mut there, mut story) = (Replay::open(stage, rules).await, broken.start(), Vec::new());
    for step in steps {
        // Not before the story names it: a claim takes what is ready.
        for job in named(step).each().map(|job| job as u8) {
            if !beside.world.jobs[usize::from(job)].there && beside.allows(Step::Enqueue { job }) {
                beside.take(Step::Enqueue { job }).await?;
            }
        }
        let here = renumber(step, &there, &beside);
        story.push(match beside.allows(here) {
            true => format!("{here}{}", beside.take(here).await?),
            false => {
                beside.refuse(here).await?;
                format!("{here}: refused")
            }
        });
        // The mutant breaks its promise at the end; there is nothing after it.
        let _ = broken.take(&mut there, step);
    }
    stale_reports(&mut beside).await?;
    beside.check_store().await?;
    Ok(story)
}

/// What comes after a story that only leads into a state without a way out: the way out.
fn coda(mutant: Mutant) -> Vec<Step> {
    match mutant {
        Mutant::RollbackUnreported => {
            vec![Step::Look { worker: 0, job: 0 }, Step::Repeat { worker: 0, job: 0, lost: false }]
        }
        Mutant::RenewByWorker => vec![Step::ReleaseUnknown { worker: 0 }],
        _ => Vec::new(),
    }
}

/// The jobs that a claim takes.
fn named(step: Step) -> Jobs {
    match step {
        Step::Claim { jobs, .. } => jobs,
        _ => Jobs(0),
    }
}

/// Where there is one writer, a transaction is one step.
fn translate(store: Store, mut steps: Vec<Step>) -> Vec<Step> {
    while let (Store::Sqlite, Some(at)) = (store, steps.iter().position(|step| matches!(step, Step::Begin { .. }))) {
        let Step::Begin { worker, job } = steps.remove(at) else { unreachable!("it was one") };
        steps[at] = Step::CompleteIn { worker, job, kept: matches!(steps[at], Step::Commit { .. }) };
    }
    steps
}

/// A search gives leases small numbers: the lease at the same place here.
fn renumber(step: Step, there: &World<2, 2, 3>, here: &Replay) -> Step {
    let same = |no: u16| there.find(no).map_or(no, |at| here.world.leases[at].no);
    match step {
        Step::Expire { lease } => Step::Expire { lease: same(lease) },
        Step::Abort { lease, job } => Step::Abort { lease: same(lease), job },
        step => step,
    }
}

/// Every worker that believes in a lease it has lost says so while a successor runs the job, in every way there is.
async fn stale_reports(beside: &mut Replay) -> Told<()> {
    for worker in 0..2_u8 {
        let hand = beside.world.hands[usize::from(worker)];
        for job in (0..2).filter(|job| hand.grips[*job] == Grip::Runs) {
            let successor = 1 - worker;
            let claim = Step::Claim { worker: successor, jobs: Jobs::one(job), lost: false };
            if beside.world.jobs[job].ready.is_some() && beside.allows(claim) {
                beside.take(claim).await?;
            }
            let holder = beside.world.holder(job).map(|at| beside.world.leases[at].no);
            if holder.is_none() || holder == Some(hand.lease) {
                continue;
            }
            for ending in beside.model.rules.endings.iter().copied() {
                let answer = beside.say(worker, job, ending).await?;
                if !matches!(answer, Ended::LeaseLost { how: Some(_) }) {
                    return Err(format!("a stale report of {ending:?} was answered {answer:?}"));
                }
                beside.compare().await?;
            }
            let report = Step::Report { worker: successor, jobs: Jobs::one(job), ending: How::Succeeded, lost: false };
            beside.take(report).await?;
        }
    }
    Ok(())
}
