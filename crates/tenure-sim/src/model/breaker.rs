//! A gate's breaker and its probe, with jobs that were inside when it moved. Small and by itself.
//!
//! ```text
//!   closed ──a failure of this era──► open ──cooldown──► half open ──one probe──► its word: closed, or open again
//!                                                                      └─ no word: room for another
//! ```
//!
//! An era ends when the breaker opens. I11: in a half-open era one probe at most is out, and the breaker moves by its word
//! only; a closed one moves by the word of a job that came in after it last opened.

use super::invariant::Invariant;
use super::search::Machine;

/// Leases that are given out; more show nothing new.
const LEASES: usize = 4;

/// One breaker that a single failure opens.
#[derive(Debug, Clone, Copy)]
pub struct Breaker {
    /// What is broken.
    pub mutant: Option<BreakerMutant>,
}

/// Ways to break it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerMutant {
    /// dsx-ai-factory/nv-redfish#211: an old completion frees the probe's place.
    FreedByAnother,
    /// Whoever succeeds closes it.
    HealedByAnother,
    /// safe-global/safe-client-gateway#3442: when the cooldown is over everybody tries.
    Stampede,
    /// A failure from before it opened opens it once more.
    NotDeaf,
}

/// The gate's row, and who is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Broken {
    phase: Phase,
    probe: Option<u8>,
    /// Results of leases up to this one are not heard.
    deaf_to: u8,
    /// The newest lease, which is how many there were.
    newest: u8,
    /// Each lease that is out: the era it came in, and whether as a probe. Only asked by the invariant.
    out: [Option<(u8, bool)>; LEASES],
    era: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Closed,
    Open,
    HalfOpen,
}

/// What happens at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerStep(What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Pass,
    CoolDown,
    /// A job leaves; nobody knows how its resource did when its lease was lost.
    Leave(u8, Option<bool>),
}

impl BreakerMutant {
    /// Every one; I11 must notice.
    pub const ALL: &[(Self, &str)] = &[
        (Self::FreedByAnother, "an old result frees the probe (nv-redfish#211)"),
        (Self::HealedByAnother, "an old success closes the breaker"),
        (Self::Stampede, "everybody probes (safe-client-gateway#3442)"),
        (Self::NotDeaf, "an old failure opens the breaker again"),
    ];
}

impl Machine for Breaker {
    type State = Broken;
    type Step = BreakerStep;

    fn start(&self) -> Broken {
        Broken { phase: Phase::Closed, probe: None, deaf_to: 0, newest: 0, out: [None; LEASES], era: 0 }
    }

    fn steps(&self, state: &Broken, next: &mut Vec<BreakerStep>) {
        let lets_through = match state.phase {
            Phase::Closed => true,
            Phase::Open => false,
            Phase::HalfOpen => state.probe.is_none() || self.mutant == Some(BreakerMutant::Stampede),
        };
        if lets_through && usize::from(state.newest) < LEASES {
            next.push(BreakerStep(What::Pass));
        }
        if state.phase == Phase::Open {
            next.push(BreakerStep(What::CoolDown));
        }
        for lease in (1..=state.newest).filter(|lease| state.out[usize::from(*lease) - 1].is_some()) {
            next.extend([Some(true), Some(false), None].map(|well| BreakerStep(What::Leave(lease, well))));
        }
    }

    fn take(&self, state: &mut Broken, step: BreakerStep) -> Result<(), Invariant> {
        match step.0 {
            What::CoolDown => state.phase = Phase::HalfOpen,
            What::Pass => {
                state.newest += 1;
                let probes = state.phase == Phase::HalfOpen;
                if probes {
                    state.probe = Some(state.newest);
                }
                state.out[usize::from(state.newest) - 1] = Some((state.era, probes));
                let out = state.out.iter().flatten().filter(|(era, probe)| *probe && *era == state.era);
                if out.count() > 1 {
                    return Err(Invariant::I11);
                }
            }
            What::Leave(lease, well) => {
                let Some((era, probe)) = state.out[usize::from(lease) - 1].take() else { return Ok(()) };
                let (before, in_time) = (state.phase, era == state.era);
                self.hear(state, lease, well);
                let may_move = match before {
                    Phase::Closed => in_time,
                    Phase::HalfOpen => in_time && probe,
                    Phase::Open => false,
                };
                if state.phase != before && !may_move {
                    return Err(Invariant::I11);
                }
            }
        }
        Ok(())
    }

    fn is_healthy(&self, _: &Broken, _: BreakerStep) -> bool {
        true
    }

    fn is_over(&self, state: &Broken) -> bool {
        usize::from(state.newest) == LEASES && state.out.iter().all(Option::is_none)
    }

    fn tell(&self, state: &Broken, step: BreakerStep) -> String {
        let word = |well| match well {
            Some(true) => "the source did well",
            Some(false) => "the source did badly",
            None => "and nobody knows how the source did",
        };
        match step.0 {
            What::Pass if state.phase == Phase::HalfOpen => format!("lease {} passes as a probe", state.newest + 1),
            What::Pass => format!("lease {} passes", state.newest + 1),
            What::CoolDown => "the cooldown is over".into(),
            What::Leave(lease, well) => format!("lease {lease} ends: {}", word(well)),
        }
    }
}

impl Breaker {
    /// The rule of `tenure_core::gate::breaker`, with a threshold of one.
    fn hear(&self, state: &mut Broken, lease: u8, well: Option<bool>) {
        let mutant = |mutant| self.mutant == Some(mutant);
        if state.probe == Some(lease) || state.probe.is_some() && mutant(BreakerMutant::FreedByAnother) {
            state.probe = None;
            match well {
                Some(true) => state.phase = Phase::Closed,
                Some(false) => open(state),
                None => {}
            }
            return;
        }
        if state.phase == Phase::HalfOpen && well == Some(true) && mutant(BreakerMutant::HealedByAnother) {
            (state.phase, state.probe) = (Phase::Closed, None);
            return;
        }
        let heard = lease > state.deaf_to || mutant(BreakerMutant::NotDeaf);
        if state.phase == Phase::Closed && heard && well == Some(false) {
            open(state);
        }
    }
}

fn open(state: &mut Broken) {
    (state.phase, state.probe, state.deaf_to) = (Phase::Open, None, state.newest);
    state.era += 1;
}
