//! What a run keeps over any history, heard in any portions: its counts are its members, and the job that waits for all
//! of them is opened once, after all.
//!
//! Beside the run goes a reference that is written the naive way: it keeps how every job stands and what was heard of it,
//! and counts from the beginning each time it is asked. Between the two stands what a store does: an ending says its
//! sentence, sentences are heard in order and some at a time, and an operator does not wait for that.

use proptest::prelude::*;
use tenure_core::run::{Partition, RunEvent};
use tenure_core::{How, RunState, Timestamp};

use crate::run_world::World;

pub(crate) const START: Timestamp = Timestamp::from_micros(1_763_197_200_000_000);

/// Numbers stand for the n-th of whatever there is of that.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// A job ends, but for a page that advances or finishes.
    End(usize, How),
    /// A page has another one behind it, or was the last.
    Page(usize, bool),
    Requeue(usize),
    Resume(usize),
    Reset(usize),
    Add(bool),
    Seal,
    Cancel,
    Expire,
    /// So many sentences are heard, and then it is settled.
    Hear(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) partitions: usize,
    pub(crate) items: usize,
    pub(crate) tolerated: u32,
    pub(crate) fail_fast: bool,
    pub(crate) sealed: bool,
    pub(crate) consolidate: bool,
}

pub(crate) fn any_setting() -> impl Strategy<Value = Setting> {
    (0..6_usize, 0..6_usize, 0..3_u32, any::<bool>(), any::<bool>(), prop::bool::weighted(0.8)).prop_map(
        |(partitions, items, tolerated, fail_fast, sealed, consolidate)| Setting {
            partitions,
            items,
            tolerated,
            fail_fast,
            sealed,
            consolidate,
        },
    )
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        6 => Just(How::Succeeded), 1 => Just(How::Failed), 1 => Just(How::Dead), 1 => Just(How::Canceled),
    ];
    let n = any::<usize>;
    prop_oneof![
        16 => (n(), how).prop_map(|(n, how)| Step::End(n, how)),
        8 => (n(), prop::bool::weighted(0.7)).prop_map(|(n, last)| Step::Page(n, last)),
        8 => n().prop_map(Step::Requeue),
        3 => n().prop_map(Step::Resume),
        1 => n().prop_map(Step::Reset),
        1 => any::<bool>().prop_map(Step::Add),
        3 => Just(Step::Seal),
        12 => (0..9_usize).prop_map(Step::Hear),
    ]
}

/// Few histories end by an operator or by a deadline, or nothing else is seen.
pub(crate) fn any_history() -> impl Strategy<Value = Vec<Step>> {
    let end = prop_oneof![4 => Just(None), 1 => Just(Some(Step::Cancel)), 1 => Just(Some(Step::Expire))];
    let steps = || prop::collection::vec(any_step(), 1..50);
    (steps(), end, steps()).prop_map(|(mut steps, end, more)| {
        steps.extend(end);
        steps.extend(more);
        steps
    })
}

/// A member: how its job stands, and what was heard of it.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) job: Option<How>,
    pub(crate) heard: Option<RunState>,
    pub(crate) page: Option<Partition>,
}

/// A sentence, and which member it is about.
pub(crate) struct Said(pub(crate) Option<usize>, pub(crate) RunEvent);

/// What a member is whose job ended so.
pub(crate) fn is(how: How, finished: bool) -> RunState {
    match how {
        How::Succeeded if finished => RunState::Succeeded,
        How::Canceled => RunState::Canceled,
        _ => RunState::Failed,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_run_does_what_its_naive_reference_does(setting in any_setting(), steps in any_history()) {
        let mut world = World::new(setting);
        for step in steps {
            world.take(step)?;
            prop_assert!(!world.canceled || world.run.state == RunState::Canceled, "what is canceled stays so");
        }
        // Whoever counts catches up; what it does may be said again.
        while !world.said.is_empty() {
            world.take(Step::Hear(3))?;
        }
        world.take(Step::Hear(0))?;
        world.check_truth()?;
    }

    /// Nobody needs to help: when all jobs have ended well, so has the run.
    #[test]
    fn a_run_whose_jobs_end_well_ends_well(setting in any_setting(), steps in prop::collection::vec(any_step(), 0..60)) {
        let mut world = World::new(setting);
        for step in steps {
            world.take(step)?;
        }
        // An operator seals it and revives whatever is missing, and every page finishes.
        for _ in 0..20 {
            world.take(Step::Hear(usize::MAX))?;
            world.take(Step::Seal)?;
            for n in 0..world.members.len() {
                world.take(Step::Requeue(n))?;
            }
            world.take(Step::Requeue(0))?;
            for n in 0..world.members.len() {
                world.take(Step::Page(n, true))?;
            }
            let items = world.members.iter().filter(|member| member.page.is_none()).count();
            for n in 0..=items {
                world.take(Step::End(n, How::Succeeded))?;
            }
        }
        let silent = world.members.iter().any(|member| {
            member.job == Some(How::Succeeded) && member.page.as_ref().is_some_and(|page| !page.finished)
        });
        if !silent {
            prop_assert_eq!(world.run.state, RunState::Succeeded, "{:?} {:?}", world.run, world.members);
        }
    }
}
