//! Gates and their rules as JSON.

use serde::Serialize;
use tenure_core::gate::{Admit, Breaker, GateRule, Pattern};
use tenure_store::gate::GateRecord;
use utoipa::ToSchema;

use super::date;

/// One gate.
#[derive(Debug, Serialize, ToSchema)]
pub struct GateLine {
    name: String,
    /// Null while it is open.
    closed: Option<WaitLine>,
    /// Jobs it lets through now; null when there is no limit.
    lets_through: Option<u32>,
    inside: u32,
    streak: u32,
    tokens: Option<u32>,
    last_success_at: Option<String>,
    last_failure_at: Option<String>,
    open_until: Option<String>,
    paused_until: Option<String>,
    held_until: Option<String>,
    pause_reason: Option<String>,
    trip_reason: Option<String>,
    rule: Option<RuleLine>,
}

/// Why a gate lets nothing through, and until when.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitLine {
    why: &'static str,
    until: Option<String>,
}

/// What a rule allows.
#[derive(Debug, Serialize, ToSchema)]
pub struct RuleLine {
    pattern: String,
    rate: Option<String>,
    burst: Option<u32>,
    cost: Option<u32>,
    concurrency: Option<u32>,
    breaker_failures: Option<u32>,
    breaker_cooldown_ms: Option<u64>,
    weight: u32,
}

impl WaitLine {
    /// Of a gate that lets nothing through.
    pub(crate) fn of(gate: &GateRecord) -> Option<Self> {
        match gate.admit {
            Admit::Closed { why, until } => Some(Self { why: why.as_str(), until: date(until) }),
            Admit::Open(_) => None,
        }
    }
}

impl From<&GateRecord> for GateLine {
    fn from(record: &GateRecord) -> Self {
        let gate = &record.gate;
        Self {
            name: record.name.to_string(),
            closed: WaitLine::of(record),
            lets_through: match record.admit {
                Admit::Open(u32::MAX) => None,
                Admit::Open(jobs) => Some(jobs),
                Admit::Closed { .. } => Some(0),
            },
            inside: gate.in_use,
            streak: gate.streak,
            tokens: record.rule.rate.map(|rate| rate.tokens(gate.full_at, record.now)),
            last_success_at: date(gate.succeeded_at),
            last_failure_at: date(gate.failed_at),
            open_until: date(gate.open_until),
            paused_until: date(gate.paused_until),
            held_until: date(gate.held_until),
            pause_reason: record.pause_reason.clone(),
            trip_reason: record.trip_reason.clone(),
            rule: record.pattern.clone().map(|pattern| RuleLine::from(&(pattern, record.rule.clone()))),
        }
    }
}

impl From<&(Pattern, GateRule)> for RuleLine {
    fn from((pattern, rule): &(Pattern, GateRule)) -> Self {
        let rate = rule.rate.as_ref();
        let cooldown = |breaker: Breaker| u64::try_from(breaker.cooldown.as_millis()).unwrap_or(u64::MAX);
        Self {
            pattern: pattern.to_string(),
            rate: rate.map(ToString::to_string),
            burst: rate.map(|rate| rate.burst),
            cost: rate.map(|rate| rate.cost),
            concurrency: rule.concurrency,
            breaker_failures: rule.breaker.map(|breaker| breaker.failures),
            breaker_cooldown_ms: rule.breaker.map(cooldown),
            weight: rule.weight,
        }
    }
}
