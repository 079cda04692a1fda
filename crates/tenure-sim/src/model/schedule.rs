//! A schedule that two processes fire. Small and by itself.
//!
//! ```text
//!   read (version, last, now) ──► decide: the latest fire that is due ──► version as read? ──yes──► last, fire row, job
//!        a process may crash here, or sleep for long                       └─no──► nothing      ── one transaction ──
//!   reply lost ──► ask the same again: its own fire row answers
//! ```
//!
//! Time is three fires long, and what was missed is made up once: a process that slept decides for another fire than one
//! that did not. I12: a fire has one job at most, and what was decided to be dropped is not made up later; at the end the
//! last fire has its job.

use super::invariant::Invariant;
use super::search::Machine;

/// Fires there are.
const FIRES: u8 = 3;

/// One schedule, two processes.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// What is broken.
    pub mutant: Option<ScheduleMutant>,
}

/// Ways to break it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleMutant {
    /// Whoever comes writes, whatever became of the row since it was read; the fire row alone is left.
    NoCompareAndSet,
    /// The row moves, and the job is stored by another transaction: a crash between the two loses it.
    JobApart,
    /// The same the other way round, without a fire row: a crash stores it twice.
    JobFirst,
    /// A process goes by its own clock, which is ahead: the fire is stored before its time, and the rest is dropped.
    OwnClock,
}

/// The schedule's row, its fires, and the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fired {
    /// The store's clock: so many fires are due.
    now: u8,
    version: u8,
    last: u8,
    /// Jobs of each fire.
    jobs: [u8; FIRES as usize],
    /// Fire rows.
    rows: [bool; FIRES as usize],
    hands: [Hand; 2],
}

/// What a process is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Hand {
    Idle,
    Read {
        version: u8,
        last: u8,
    },
    /// It has decided for a fire; `sent` when the store did it and the reply was lost.
    Decided {
        version: u8,
        fire: u8,
        sent: bool,
    },
    /// One half is done (a mutant's).
    Half {
        fire: u8,
    },
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleStep(What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Time,
    Read(u8),
    Decide(u8),
    /// The store does it, and the process hears so, or not.
    Fire(u8, bool),
    OtherHalf(u8),
    Crash(u8),
}

impl ScheduleMutant {
    /// Every one; I12 must notice.
    pub const ALL: &[(Self, &str)] = &[
        (Self::NoCompareAndSet, "a schedule moves without compare-and-set"),
        (Self::JobApart, "a fire and its job in two transactions"),
        (Self::JobFirst, "a job first, and then its fire"),
        (Self::OwnClock, "a fire by the clock of a process"),
    ];
}

impl Machine for Schedule {
    type State = Fired;
    type Step = ScheduleStep;

    fn start(&self) -> Fired {
        let none = [0; FIRES as usize];
        Fired { now: 0, version: 0, last: 0, jobs: none, rows: [false; FIRES as usize], hands: [Hand::Idle; 2] }
    }

    fn steps(&self, state: &Fired, next: &mut Vec<ScheduleStep>) {
        let mut push = |what| next.push(ScheduleStep(what));
        if state.now < FIRES {
            push(What::Time);
        }
        for process in 0..2_u8 {
            match state.hands[usize::from(process)] {
                Hand::Idle if self.clock(state) > state.last => push(What::Read(process)),
                Hand::Idle => {}
                Hand::Read { .. } => push(What::Decide(process)),
                Hand::Decided { .. } => {
                    push(What::Fire(process, true));
                    push(What::Fire(process, false));
                }
                Hand::Half { .. } => push(What::OtherHalf(process)),
            }
            if state.hands[usize::from(process)] != Hand::Idle {
                push(What::Crash(process));
            }
        }
    }

    fn take(&self, state: &mut Fired, step: ScheduleStep) -> Result<(), Invariant> {
        match step.0 {
            What::Time => state.now += 1,
            What::Crash(process) => *hand(state, process) = Hand::Idle,
            What::Read(process) => {
                *hand(state, process) = Hand::Read { version: state.version, last: state.last };
            }
            What::Decide(process) => {
                let fire = self.clock(state);
                if let Hand::Read { version, last } = *hand(state, process) {
                    // Nothing may be due any more by the time it looks: it read the clock together with the row.
                    let decided = Hand::Decided { version, fire, sent: false };
                    *hand(state, process) = if fire > last { decided } else { Hand::Idle };
                }
            }
            What::Fire(process, heard) => self.fire(state, process, heard)?,
            What::OtherHalf(process) => {
                if let Hand::Half { fire } = std::mem::replace(hand(state, process), Hand::Idle) {
                    match self.mutant {
                        Some(ScheduleMutant::JobApart) => state.jobs[usize::from(fire) - 1] += 1,
                        _ => state.last = state.last.max(fire),
                    }
                }
            }
        }
        Self::check(state)
    }

    fn is_healthy(&self, _: &Fired, step: ScheduleStep) -> bool {
        !matches!(step.0, What::Crash(_) | What::Fire(_, false))
    }

    fn is_over(&self, state: &Fired) -> bool {
        state.now == FIRES && state.last == FIRES && state.hands == [Hand::Idle; 2]
    }

    fn tell(&self, state: &Fired, step: ScheduleStep) -> String {
        let of = |process: u8| format!("P{}", process + 1);
        match step.0 {
            What::Time => format!("fire {} is due", state.now + 1),
            What::Read(process) => format!("{} reads version {}", of(process), state.version),
            What::Decide(process) => format!("{} decides for fire {}", of(process), self.clock(state)),
            What::Fire(process, true) => format!("{} fires and hears the answer", of(process)),
            What::Fire(process, false) => format!("{} fires and the answer is lost: it will ask again", of(process)),
            What::OtherHalf(process) => format!("{} does the other half", of(process)),
            What::Crash(process) => format!("{} crashes", of(process)),
        }
    }
}

impl Schedule {
    /// The fires that are due, by the clock a process goes by.
    fn clock(&self, state: &Fired) -> u8 {
        let ahead = u8::from(self.mutant == Some(ScheduleMutant::OwnClock));
        (state.now + ahead).min(FIRES)
    }

    fn fire(&self, state: &mut Fired, process: u8, heard: bool) -> Result<(), Invariant> {
        let Hand::Decided { version, fire, sent } = *hand(state, process) else { return Ok(()) };
        let at = usize::from(fire) - 1;
        let as_read = state.version == version || self.mutant == Some(ScheduleMutant::NoCompareAndSet);
        match self.mutant {
            Some(ScheduleMutant::JobApart) if as_read => {
                (state.version, state.last) = (state.version + 1, fire);
                *hand(state, process) = Hand::Half { fire };
                return Ok(());
            }
            Some(ScheduleMutant::JobFirst) => {
                state.jobs[at] += 1;
                *hand(state, process) = Hand::Half { fire };
                return Ok(());
            }
            _ => {}
        }
        if as_read && !sent {
            // What was passed over is dropped for good.
            if fire < state.last && !state.rows[at] {
                return Err(Invariant::I12);
            }
            (state.version, state.last) = (state.version + 1, state.last.max(fire));
            state.jobs[at] += u8::from(!state.rows[at]);
            state.rows[at] = true;
        }
        // Who did not hear asks the same again, and is answered by its own row or by another version.
        let again = Hand::Decided { version, fire, sent: sent || as_read };
        *hand(state, process) = if heard { Hand::Idle } else { again };
        Ok(())
    }

    fn check(state: &Fired) -> Result<(), Invariant> {
        let once = state.jobs.iter().all(|jobs| *jobs <= 1);
        let in_time = (0..FIRES).all(|fire| fire < state.now || state.jobs[usize::from(fire)] == 0);
        let half = state.hands.iter().any(|hand| matches!(hand, Hand::Half { .. }));
        let kept = half || state.last == 0 || state.jobs[usize::from(state.last) - 1] == 1;
        if once && in_time && kept { Ok(()) } else { Err(Invariant::I12) }
    }
}

fn hand(state: &mut Fired, process: u8) -> &mut Hand {
    &mut state.hands[usize::from(process)]
}
