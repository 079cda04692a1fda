//! What is asked of gates and told about them.

use std::time::Duration;

use tenure_core::gate::{Admit, Gate, GateRule, Pattern, RulePatch, Why};
use tenure_core::json::quote;
use tenure_core::name::GateName;
use tenure_core::{Invalid, JobId, LeaseNo, Timestamp, WorkerId};

use crate::operate::Word;

/// Set or remove a rule.
#[derive(Debug, Clone)]
pub struct SetRule {
    /// For which gates.
    pub pattern: Pattern,
    /// What they allow; `None` removes the rule.
    pub rule: Option<GateRule>,
    /// Who and why.
    pub word: Word,
}

/// Change some parts of a rule. A pattern without a rule begins with one that limits nothing.
#[derive(Debug, Clone)]
pub struct PatchRule {
    /// For which gates.
    pub pattern: Pattern,
    /// The parts.
    pub patch: RulePatch,
    /// Who and why.
    pub word: Word,
}

/// Pause, resume, trip or reset one gate.
#[derive(Debug, Clone)]
pub struct OperateGate {
    /// Which; one that no job has passed yet is entered now.
    pub gate: GateName,
    /// What.
    pub act: GateAct,
    /// Who and why.
    pub word: Word,
}

/// What an operator does with a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateAct {
    /// Nothing passes, for this long or until it is resumed.
    Pause(Option<Duration>),
    /// It is as if it had never been paused or held.
    Resume,
    /// Its breaker opens, for this long or until it is reset. Then it is half open, if its rule has a breaker.
    Trip(Option<Duration>),
    /// Its breaker closes and forgets, and its bucket is full.
    Reset,
}

/// A job that is inside wants to call its resource again.
#[derive(Debug, Clone)]
pub struct AcquireTokens {
    /// The holder.
    pub worker: WorkerId,
    /// Its lease.
    pub lease: LeaseNo,
    /// The job.
    pub job: JobId,
    /// How many calls.
    pub tokens: u32,
}

/// The answer to [`AcquireTokens`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquired {
    /// They are reserved: after this long.
    After(Duration),
    /// The gate is paused or held, or its breaker is open.
    Closed {
        /// Which of them.
        why: Why,
        /// Until then; `None` when somebody has to take it back.
        until: Option<Timestamp>,
    },
    /// The lease no longer holds the job, or the job has no gate.
    LeaseLost,
}

/// One gate as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRecord {
    /// Its name.
    pub name: GateName,
    /// The rule it obeys, by the pattern it was set for.
    pub pattern: Option<Pattern>,
    /// What that allows.
    pub rule: GateRule,
    /// Where it stands, with everything that was reported folded in.
    pub gate: Gate,
    /// What it lets through now.
    pub admit: Admit,
    /// The store's clock.
    pub now: Timestamp,
    /// Why somebody paused it.
    pub pause_reason: Option<String>,
    /// Why somebody tripped it.
    pub trip_reason: Option<String>,
}

/// Which gates to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateFilter {
    /// Only names that match.
    pub pattern: Option<Pattern>,
    /// Only names after this one: the last of the page before.
    pub after: Option<GateName>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// Most tokens that can be asked for at once.
const TOKENS_MAX: u32 = 1_000;

impl Default for GateFilter {
    fn default() -> Self {
        Self { pattern: None, after: None, limit: 100 }
    }
}

impl GateFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }
}

impl SetRule {
    /// Refuses limits that nothing could obey.
    pub fn check(&self) -> Result<(), Invalid> {
        self.rule.iter().try_for_each(GateRule::check)?;
        self.word.check()
    }
}

impl PatchRule {
    /// Refuses a reason that is no text, and values that no rule can have. The store checks the rest, which depends on the
    /// rule before.
    pub fn check(&self) -> Result<(), Invalid> {
        self.patch.check()?;
        self.word.check()
    }
}

/// The details of the journal row of a changed rule: the rule before and the rule now, `null` where there is none.
pub fn ruled_details(pattern: &Pattern, before: Option<&GateRule>, after: Option<&GateRule>) -> String {
    let json = |rule: Option<&GateRule>| rule.map_or_else(|| "null".to_owned(), GateRule::to_json);
    let (gate, removed) = (quote(pattern.as_str()), after.is_none());
    format!("{{\"gate\":{gate},\"removed\":{removed},\"old\":{},\"new\":{}}}", json(before), json(after))
}

impl OperateGate {
    /// Refuses a reason that is no text.
    pub fn check(&self) -> Result<(), Invalid> {
        self.word.check()
    }
}

impl GateAct {
    /// Until when a pause or a trip lasts; the end of time when nothing was said.
    pub fn until(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Pause(Some(time)) | Self::Trip(Some(time)) => now.plus(time),
            Self::Pause(None) | Self::Trip(None) | Self::Resume | Self::Reset => Timestamp::MAX,
        }
    }

    /// Does it.
    pub fn apply(self, gate: &mut Gate, now: Timestamp) {
        match self {
            Self::Pause(_) => gate.paused_until = Some(self.until(now)),
            Self::Resume => (gate.paused_until, gate.held_until) = (None, None),
            Self::Trip(_) => gate.trip(self.until(now)),
            Self::Reset => gate.reset(now),
        }
    }
}

impl AcquireTokens {
    /// Refuses to reserve nothing, or more than anybody calls in one go.
    pub fn check(&self) -> Result<(), Invalid> {
        if (1..=TOKENS_MAX).contains(&self.tokens) {
            return Ok(());
        }
        Err(Invalid::new("tokens", self.tokens, format!("it is 1 to {TOKENS_MAX}")))
    }
}

impl Acquired {
    /// What a gate answers a job that is inside. Fullness does not matter to it, and a half-open breaker is its own trial.
    /// More tokens than the burst are refused, also while the gate is closed.
    pub fn of(gate: &mut Gate, rule: &GateRule, tokens: u32, now: Timestamp) -> Result<Self, Invalid> {
        rule.rate.as_ref().map_or(Ok(()), |rate| rate.check_reservation(tokens))?;
        Ok(match gate.admit(rule, now) {
            Admit::Closed { why: why @ (Why::Paused | Why::Held | Why::Open), until } => Self::Closed { why, until },
            _ => Self::After(gate.reserve(rule, tokens, now)?.since(now)),
        })
    }
}
