//! A gate: a named resource that jobs pass, such as `source:ebay` or `domain:example.org`.
//!
//! Four things can close it: its bucket is empty ([`bucket`]), as many jobs as it allows are inside, its breaker is open
//! ([`breaker`]), or somebody has paused or held it. A claim lets through as many jobs as all four allow, and takes a
//! permit for each; the ending of a job, whatever it is, sends one [`GateEvent`], which gives the permit back and tells
//! how the resource did. Events are folded by the next claim, under the gate's lock, so that endings lock nothing.
//!
//! ```text
//!   claim ── fold events ── admit n ── take n ──►  jobs run  ──►  each ending inserts an event
//!              ▲                                                            │
//!              └────────────────────────────────────────────────────────────┘
//! ```
//!
//! - G1: permits taken and not given back by an event = live leases on the gate's jobs.
//! - G2: in no stretch of time `t` do more tokens pass than `burst + t × count / period`. A reservation is at most a burst,
//!   so it waits its turn like a job. A rule that comes to hold for a gate finds a bucket that owes nothing: what was spent
//!   under the rule before counts as an empty bucket at most, and opens no more than the burst of the new rule.
//! - G3: an open breaker lets one probe through after its cooldown, and nothing else; only that probe's word counts.

use crate::id::LeaseNo;
use crate::invalid::Invalid;
use crate::time::Timestamp;

pub mod breaker;
pub mod bucket;
pub mod patch;
pub mod rule;

pub use breaker::Breaker;
pub use bucket::Rate;
pub use patch::{Part, RulePatch};
pub use rule::{GateRule, Pattern};

/// What a store keeps of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Jobs inside: permits taken and not yet given back.
    pub in_use: u32,
    /// The bucket: when it will be full again. In the past means full.
    pub full_at: Timestamp,
    /// Failures in a row.
    pub streak: u32,
    /// The breaker is open until then, and half open from then on. `None`: closed.
    pub open_until: Option<Timestamp>,
    /// The lease of the one job that tries a half-open gate.
    pub probe: Option<LeaseNo>,
    /// Results of leases up to this one are from before the breaker last moved: they say nothing about now.
    pub deaf_to: LeaseNo,
    /// The newest lease that passed.
    pub newest: LeaseNo,
    /// Nothing passes until then; `Timestamp::MAX` is until somebody resumes it.
    pub paused_until: Option<Timestamp>,
    /// The resource itself asked for silence until then.
    pub held_until: Option<Timestamp>,
    /// When the resource last did well.
    pub succeeded_at: Option<Timestamp>,
    /// When it last did badly.
    pub failed_at: Option<Timestamp>,
}

/// How the resource behind a gate did, which is not always how the job did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    /// It answered as it should.
    Healthy,
    /// It failed.
    Unhealthy,
}

/// One job has left a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateEvent {
    /// The lease it ran under.
    pub lease: LeaseNo,
    /// When.
    pub at: Timestamp,
    /// How the resource did; `None` where nobody knows, as when the worker died.
    pub health: Option<Health>,
    /// The resource asked for silence until then.
    pub hold_until: Option<Timestamp>,
}

/// What a gate lets through now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admit {
    /// At most so many jobs.
    Open(u32),
    /// Nothing.
    Closed {
        /// Why.
        why: Why,
        /// When it may be otherwise; `None` when that depends on jobs inside.
        until: Option<Timestamp>,
    },
}

/// Why a gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Somebody paused it.
    Paused,
    /// The resource asked for silence.
    Held,
    /// Its breaker is open.
    Open,
    /// Its breaker is half open, and the one probe is out.
    Probing,
    /// As many jobs as it allows are inside.
    Full,
    /// Its bucket is empty.
    Rate,
}

/// What folding an event did to the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// It opened: enough failures in a row, or a probe failed.
    Tripped,
    /// It closed: a probe succeeded.
    Healed,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            in_use: 0,
            full_at: Timestamp::EPOCH,
            streak: 0,
            open_until: None,
            probe: None,
            deaf_to: LeaseNo(0),
            newest: LeaseNo(0),
            paused_until: None,
            held_until: None,
            succeeded_at: None,
            failed_at: None,
        }
    }
}

impl Gate {
    /// Folds one event: the permit is back, the breaker hears of it, a hold begins.
    pub fn fold(&mut self, rule: &GateRule, event: &GateEvent) -> Option<Moved> {
        self.in_use = self.in_use.saturating_sub(1);
        self.held_until = self.held_until.max(event.hold_until);
        match event.health {
            Some(Health::Healthy) => self.succeeded_at = self.succeeded_at.max(Some(event.at)),
            Some(Health::Unhealthy) => self.failed_at = self.failed_at.max(Some(event.at)),
            None => {}
        }
        self.hear(rule.breaker.as_ref(), event)
    }

    /// How many jobs may pass now.
    pub fn admit(&self, rule: &GateRule, now: Timestamp) -> Admit {
        let closed = |why, until| Admit::Closed { why, until };
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            return closed(Why::Paused, (until < Timestamp::MAX).then_some(until));
        }
        if let Some(until) = self.held_until.filter(|until| *until > now) {
            return closed(Why::Held, Some(until));
        }
        let by_breaker = match self.phase(rule.breaker.as_ref(), now) {
            breaker::Phase::Closed => u32::MAX,
            breaker::Phase::HalfOpen { probe: None } => 1,
            breaker::Phase::HalfOpen { probe: Some(_) } => return closed(Why::Probing, None),
            breaker::Phase::Open { until } => return closed(Why::Open, (until < Timestamp::MAX).then_some(until)),
        };
        let by_room = rule.concurrency.map_or(u32::MAX, |limit| limit.saturating_sub(self.in_use));
        if by_room == 0 {
            return closed(Why::Full, None);
        }
        let by_rate = rule.rate.as_ref().map_or(u32::MAX, |rate| rate.tokens(self.full_at, now) / rate.cost);
        match rule.rate.as_ref().filter(|_| by_rate == 0) {
            Some(rate) => closed(Why::Rate, Some(rate.ready_at(self.full_at, rate.cost))),
            None => Admit::Open(by_breaker.min(by_room).min(by_rate)),
        }
    }

    /// Lets `jobs` pass under `lease`: permits and tokens are taken, and a half-open gate has its probe.
    pub fn take(&mut self, rule: &GateRule, jobs: u32, lease: LeaseNo, now: Timestamp) {
        self.in_use = self.in_use.saturating_add(jobs);
        if let Some(rate) = &rule.rate {
            self.full_at = rate.spend(self.full_at, jobs.saturating_mul(rate.cost), now);
        }
        if let breaker::Phase::HalfOpen { probe: None } = self.phase(rule.breaker.as_ref(), now) {
            self.probe = Some(lease);
        }
        self.newest = self.newest.max(lease);
    }

    /// Reserves `tokens` for a job that is inside already and calls its resource once more; answers when it may. More than
    /// a burst is refused.
    pub fn reserve(&mut self, rule: &GateRule, tokens: u32, now: Timestamp) -> Result<Timestamp, Invalid> {
        let Some(rate) = &rule.rate else { return Ok(now) };
        rate.check_reservation(tokens)?;
        let at = rate.ready_at(self.full_at, tokens).max(now);
        self.full_at = rate.spend(self.full_at, tokens, now);
        Ok(at)
    }

    /// Brings the bucket under a rule that begins to hold at `now`. What it owes is cut to an empty bucket of that rule;
    /// nothing is added to what it holds.
    pub fn come_under(&mut self, rule: &GateRule, now: Timestamp) {
        if let Some(rate) = &rule.rate {
            self.full_at = self.full_at.min(rate.refilled_at(now));
        }
    }
}

impl Why {
    /// For people: what a job waits for.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Held => "held",
            Self::Open => "open",
            Self::Probing => "probing",
            Self::Full => "full",
            Self::Rate => "rate",
        }
    }
}

impl Health {
    /// What `gate_event.health` stores.
    pub const fn code(self) -> i16 {
        match self {
            Self::Healthy => 1,
            Self::Unhealthy => 2,
        }
    }

    /// The health of this code, if it is one.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Healthy),
            2 => Some(Self::Unhealthy),
            _ => None,
        }
    }
}

/// Longest time a resource can hold its gate; a server that asks for a year is not believed.
pub const HOLD_MAX: std::time::Duration = std::time::Duration::from_secs(86_400);
