//! A run: two partitions, an item that joins late, and the consolidate that waits for all of them. Two workers, whoever
//! counts, and an operator who helps once.
//!
//! ```text
//!   page ──advance: rows, offset as read?, completion, next page ── one transaction ──► the partition's next page
//!     └────finish or death: … and its sentence ──► said, in order ──any prefix──► Run::hear, Run::settle ──► the act
//!        ▲ the fence: a stale lease changes nothing        └─ heard, counted, deleted and done: one transaction ─┘
//! ```
//!
//! What is counted and decided is `tenure_core::run` itself; what is modeled is what a store adds, the transactions. A lease
//! may expire at any moment and its worker comes back, a reply may be lost and its request repeated, a page dies by its
//! attempts or by lost leases, an operator requeues a page or starts a partition again.
//!
//! I7: what was counted, with what was said and not heard yet, is what the members are; a partition that has not ended has
//! its page; rows are committed once, in order; the consolidate opens once, never early, and not while a member is missing.

mod tables;

use tenure_core::run::{Act, Fan, Moved};
use tenure_core::{How, RunState};

use super::invariant::Invariant;
use super::search::Machine;
pub use tables::Fanned;
use tables::{Consolidate, Hand, Item, Page, Place, Said};

/// A page dies by so many lost leases.
const LOSSES_MAX: u8 = 2;
/// Pages of each partition.
const PAGES: [u8; 2] = [2, 1];

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// What is broken.
    pub mutant: Option<RunMutant>,
    /// Leases that are lost in all. One page runs out of attempts besides.
    pub losses_max: u8,
}

/// Ways to break it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMutant {
    /// A page with a live lease moves its partition, whichever page that waits for.
    NoCompareAndSet,
    /// The offset moves, and the next page is stored by another transaction: a crash between the two loses the partition.
    PageApart,
    /// A page ends, and its sentence is said by another transaction: a crash between the two loses it.
    SentenceApart,
    /// A sentence said by the report, whatever it did: rails/solid_queue#761's stale finisher, at a fan-in.
    StaleCounted,
    /// Whoever finishes looks whether it was the last, without a lock, and opens: two may see it.
    LastFinisherOpens,
    /// What was heard is not deleted.
    NotDeleted,
    /// The seal is seen before those who joined in front of it.
    SealOvertakes,
}

/// What happens in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStep(What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// The page at hand of a partition.
    Claim(u8, u8),
    /// A worker reports its page, done or given up, and hears the answer or not.
    Report(u8, bool, bool),
    OtherHalf(u8),
    Crash(u8),
    /// The lease of a page expires and is reclaimed.
    Lose(Page),
    /// The item joins the run, which is open.
    Join,
    Seal,
    EndItem,
    /// So many sentences are heard, and what follows is done.
    Fold(u8),
    EndConsolidate,
    Requeue(u8),
    /// The first partition starts again.
    Reset,
}

impl RunMutant {
    /// Every one; I7 must notice.
    pub const ALL: &[(Self, &str)] = &[
        (Self::NoCompareAndSet, "an offset moves without compare-and-set"),
        (Self::PageApart, "an offset and the next page in two transactions"),
        (Self::SentenceApart, "an ending and its sentence in two transactions"),
        (Self::StaleCounted, "a stale page is counted (solid_queue#761)"),
        (Self::LastFinisherOpens, "two last finishers open the consolidate"),
        (Self::NotDeleted, "a fold hears the same again"),
        (Self::SealOvertakes, "a seal overtakes those who joined"),
    ];
}

impl Machine for Run {
    type State = Fanned;
    type Step = RunStep;

    fn start(&self) -> Fanned {
        Fanned::new()
    }

    fn steps(&self, state: &Fanned, next: &mut Vec<RunStep>) {
        let mut push = |what| next.push(RunStep(what));
        for worker in 0..2_u8 {
            match state.hands[usize::from(worker)] {
                // Who has nothing is as good as any other.
                Hand::Idle if worker > 0 && state.hands[0] == Hand::Idle => continue,
                Hand::Idle => {
                    let ready = |of: &u8| state.job(state.partitions[usize::from(*of)].page).place == Place::Ready;
                    (0..2_u8).filter(ready).for_each(|of| push(What::Claim(worker, of)));
                    continue;
                }
                Hand::Holds { .. } => {
                    push(What::Report(worker, true, true));
                    push(What::Report(worker, true, false));
                    if !state.has_failed {
                        push(What::Report(worker, false, true));
                    }
                }
                Hand::Half { .. } => push(What::OtherHalf(worker)),
            }
            // One that stands still for ever is as good as a crash, but for what it has half done.
            if matches!(state.hands[usize::from(worker)], Hand::Half { .. }) {
                push(What::Crash(worker));
            }
        }
        if state.losses < self.losses_max {
            state.held().for_each(|page| push(What::Lose(page)));
        }
        match (state.item, state.run.sealed) {
            (Item::Absent, _) => push(What::Join),
            (_, false) => push(What::Seal),
            _ => {}
        }
        if state.item == Item::Ready && state.run.sealed {
            push(What::EndItem);
        }
        (1..=state.said.len()).for_each(|portion| push(What::Fold(portion)));
        if state.consolidate == Consolidate::Ready {
            push(What::EndConsolidate);
        }
        if !state.helped {
            let dead = |of: &u8| state.job(state.partitions[usize::from(*of)].page).place == Place::Dead;
            (0..2_u8).filter(dead).for_each(|of| push(What::Requeue(of)));
            // As `RunRecord::refuse_settled`.
            let has_begun = matches!(state.run.fan, Fan::Open | Fan::Ended(_));
            if !has_begun && state.run.state != RunState::Succeeded {
                push(What::Reset);
            }
        }
    }

    fn take(&self, state: &mut Fanned, step: RunStep) -> Result<(), Invariant> {
        match step.0 {
            What::Claim(worker, of) => {
                let page = state.partitions[usize::from(of)].page;
                let job = state.job_mut(page);
                (job.place, job.grants) = (Place::Held, job.grants + 1);
                state.hands[usize::from(worker)] = Hand::Holds { page, grant: job.grants };
            }
            What::Report(worker, well, heard) => self.report(state, worker, well, heard),
            What::OtherHalf(worker) => self.do_other_half(state, worker),
            What::Crash(worker) => state.hands[usize::from(worker)] = Hand::Idle,
            What::Lose(page) => self.lose(state, page),
            What::Join => {
                state.item = Item::Ready;
                state.said.push(Said::Added(1));
            }
            What::Seal => {
                state.run.sealed = true;
                state.said.push(Said::Added(0));
            }
            What::EndItem => {
                state.item = Item::Ended;
                state.said.push(Said::ItemEnded);
            }
            What::Fold(portion) => self.fold(state, portion)?,
            What::EndConsolidate => {
                state.consolidate = Consolidate::Ended;
                state.said.push(Said::FanEnded(How::Succeeded));
            }
            What::Requeue(of) => {
                let page = state.partitions[usize::from(of)].page;
                state.helped = true;
                let job = state.job_mut(page);
                (job.place, job.losses) = (Place::Ready, 0);
                state.said.push(Said::Requeued(page));
            }
            What::Reset => reset(state),
        }
        check(state)?;
        state.forget();
        Ok(())
    }

    fn is_healthy(&self, state: &Fanned, step: RunStep) -> bool {
        match step.0 {
            What::Crash(_) | What::Report(_, _, false) | What::Requeue(_) | What::Reset => false,
            // Whoever is alive renews.
            What::Lose(page) => {
                let grant = state.job(page).grants;
                state.hands.iter().all(|hand| *hand != Hand::Holds { page, grant })
            }
            _ => true,
        }
    }

    fn is_over(&self, state: &Fanned) -> bool {
        !state.run.state.is_open() && state.said.len() == 0 && state.hands == [Hand::Idle; 2]
    }

    fn tell(&self, state: &Fanned, step: RunStep) -> String {
        let of = |worker: u8| match state.hands[usize::from(worker)] {
            Hand::Holds { page, .. } | Hand::Half { page, .. } => format!("W{} {page}", worker + 1),
            Hand::Idle => format!("W{}", worker + 1),
        };
        match step.0 {
            What::Claim(worker, of) => format!("W{} claims {}", worker + 1, state.partitions[usize::from(of)].page),
            What::Report(worker, true, true) => format!("{}: done", of(worker)),
            What::Report(worker, true, false) => {
                format!("{}: done, and the answer is lost: it will ask again", of(worker))
            }
            What::Report(worker, false, _) => format!("{}: out of attempts", of(worker)),
            What::OtherHalf(worker) => format!("{}: the other half", of(worker)),
            What::Crash(worker) => format!("{}: crashes", of(worker)),
            What::Lose(page) => format!("the lease of {page} expires and is reclaimed"),
            What::Join => "an item joins the run".into(),
            What::Seal => "the run is sealed".into(),
            What::EndItem => "the item succeeds".into(),
            What::Fold(portion) => format!("a fold hears {portion} of {} sentences", state.said.len()),
            What::EndConsolidate => "the consolidate succeeds".into(),
            What::Requeue(of) => format!("an operator requeues {}", state.partitions[usize::from(of)].page),
            What::Reset => "an operator starts the first partition again".into(),
        }
    }
}

impl Run {
    fn is(&self, mutant: RunMutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// The store answers a report: all of it is one transaction.
    fn report(&self, state: &mut Fanned, worker: u8, well: bool, heard: bool) {
        let Hand::Holds { page, grant } = state.hands[usize::from(worker)] else { return };
        if heard {
            state.hands[usize::from(worker)] = Hand::Idle;
        }
        let job = *state.job(page);
        let is_current = job.place == Place::Held && job.grants == grant;
        if !is_current {
            // Repeated after a lost reply it is answered as before, and from a stale lease not at all.
            if self.is(RunMutant::StaleCounted) && job.grants != grant {
                self.say_end(state, page, if well { How::Succeeded } else { How::Dead });
            }
            return;
        }
        if !well {
            state.has_failed = true;
            return self.end(state, worker, page, Place::Dead, How::Dead);
        }
        let partition = state.partitions[usize::from(page.of)];
        let is_its_turn = partition.page == page && partition.offset == page.at && !partition.finished;
        if !is_its_turn && !self.is(RunMutant::NoCompareAndSet) {
            // Refused, and there is nothing to do any more: the partition was started again.
            state.job_mut(page).place = Place::Gone;
            return;
        }
        let partition = &mut state.partitions[usize::from(page.of)];
        (partition.offset, partition.rows) = (page.at + 1, partition.rows + 1);
        partition.state = partition.state.max(RunState::Running);
        if page.at + 1 == PAGES[usize::from(page.of)] {
            partition.finished = true;
            return self.end(state, worker, page, Place::Done, How::Succeeded);
        }
        state.job_mut(page).place = Place::Done;
        match self.is(RunMutant::PageApart) {
            true => state.hands[usize::from(worker)] = Hand::Half { page, how: How::Succeeded },
            false => state.go_on(page),
        }
    }

    fn lose(&self, state: &mut Fanned, page: Page) {
        let is_at_hand = state.partitions[usize::from(page.of)].page == page;
        let job = state.job_mut(page);
        job.losses += 1;
        let losses = job.losses;
        state.losses += 1;
        let job = state.job_mut(page);
        if !is_at_hand {
            // Its cancel was requested when the partition was started again.
            job.place = Place::Gone;
        } else if losses < LOSSES_MAX {
            job.place = Place::Ready;
        } else {
            job.place = Place::Dead;
            self.say_end(state, page, How::Dead);
        }
    }

    /// The job of a page ends for good, and says so.
    fn end(&self, state: &mut Fanned, worker: u8, page: Page, place: Place, how: How) {
        state.job_mut(page).place = place;
        let looks = self.is(RunMutant::LastFinisherOpens) && how == How::Succeeded;
        if looks || self.is(RunMutant::SentenceApart) {
            state.hands[usize::from(worker)] = Hand::Half { page, how };
        }
        if !self.is(RunMutant::SentenceApart) {
            self.say_end(state, page, how);
        }
    }

    /// A page that is not its partition's any more has nothing to say.
    fn say_end(&self, state: &mut Fanned, page: Page, how: How) {
        if state.partitions[usize::from(page.of)].page == page {
            state.said.push(Said::Ended(page, how));
        }
    }

    fn do_other_half(&self, state: &mut Fanned, worker: u8) {
        let hand = std::mem::replace(&mut state.hands[usize::from(worker)], Hand::Idle);
        let Hand::Half { page, how } = hand else { return };
        match self.mutant {
            Some(RunMutant::PageApart) => state.go_on(page),
            Some(RunMutant::LastFinisherOpens) if state.is_whole() => state.opened += 1,
            Some(RunMutant::SentenceApart) => self.say_end(state, page, how),
            _ => {}
        }
    }

    /// Hears a portion, settles, and does what follows, in one transaction.
    fn fold(&self, state: &mut Fanned, portion: u8) -> Result<(), Invariant> {
        let (mut run, mut partitions) = state.hearts();
        let heard = state.said.take(portion, self.is(RunMutant::NotDeleted));
        heard.iter().for_each(|said| said.tell(&mut run, &mut partitions));
        if run.sealed && !self.is(RunMutant::SealOvertakes) {
            let joined = state.said.take_added();
            joined.iter().for_each(|said| said.tell(&mut run, &mut partitions));
        }
        let act = run.settle(tables::NOW);
        state.save(&run, &partitions);
        match act {
            // The mutant's finishers do it.
            Some(Act::Open) if self.is(RunMutant::LastFinisherOpens) => state.consolidate = Consolidate::Ready,
            Some(Act::Open) => {
                if !state.is_whole() {
                    return Err(Invariant::I7);
                }
                state.opened += 1;
                if state.consolidate == Consolidate::Canceled {
                    state.said.push(Said::FanRequeued);
                }
                state.consolidate = Consolidate::Ready;
            }
            Some(Act::Skip) => {
                state.consolidate = Consolidate::Canceled;
                state.said.push(Said::FanEnded(How::Canceled));
            }
            Some(Act::CancelRest) | None => {}
        }
        Ok(())
    }
}

/// The first partition starts again with a new job; the page before is canceled, at once or when its worker hears of it.
fn reset(state: &mut Fanned) {
    state.helped = true;
    let (mut run, partitions) = state.hearts();
    let before = state.partitions[0];
    if state.job(before.page).place == Place::Ready {
        state.job_mut(before.page).place = Place::Gone;
    }
    let moved = Moved { from: before.state, to: RunState::Queued };
    run.resume(moved);
    state.save(&run, &partitions);
    let page = Page { of: 0, again: true, at: 0 };
    state.partitions[0] = tables::Row { page, ..tables::Row::new(0) };
    state.job_mut(page).place = Place::Ready;
}

fn check(state: &Fanned) -> Result<(), Invariant> {
    // Half of something is only there in a mutant.
    let half = state.hands.iter().any(|hand| matches!(hand, Hand::Half { .. }));
    let in_order = state.partitions.iter().all(|partition| {
        let ended = partition.finished == (partition.offset == PAGES[usize::from(partition.page.of)]);
        let has_page = matches!(state.job(partition.page).place, Place::Ready | Place::Held | Place::Dead);
        partition.rows == partition.offset && ended && (partition.finished || has_page)
    });
    let is_well = state.run.state != RunState::Succeeded || state.is_whole() && state.consolidate == Consolidate::Ended;
    if half || in_order && is_well && state.opened <= 1 && state.is_told() { Ok(()) } else { Err(Invariant::I7) }
}
