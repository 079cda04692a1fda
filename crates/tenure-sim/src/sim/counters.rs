//! How often each kind of trouble really happened. A set of seeds in which one of them never did proves nothing about it.

use std::collections::BTreeMap;
use std::fmt;

/// What must happen at least once in any larger set of seeds, and what it means.
pub const SOMETIMES: &[(&str, &str)] = &[
    ("canceled_while_running", "an operator's cancel reached a handler that ran"),
    ("claims_unheard", "a claim was applied and its worker never heard of it"),
    ("clock_set_back", "the store's clock was set back"),
    ("clock_set_forward", "the store's clock was set forward"),
    ("completed_in_transaction", "a handler completed its job together with its own rows"),
    ("crashes", "a machine was gone in mid-flight"),
    ("cuts", "a machine, or only its renewals, did not reach the store"),
    ("dead_by_loss", "a job was buried because its leases were lost too often"),
    ("duplicated", "a call was applied twice"),
    ("enqueue_repeated", "an enqueue without an answer was sent again and found its job"),
    ("fire_lost", "a worker was too late for a fire that another one had"),
    ("fired", "a schedule asked for a job"),
    ("forced_cancels", "an operator fenced a holder"),
    ("freezes", "a machine stood still for longer than a lease"),
    ("gate_full", "a gate let nobody else through"),
    ("gate_open", "a gate's breaker was open"),
    ("gate_probing", "a probe was on its way through a gate"),
    ("given_up_and_applied", "a call was applied after its caller had given up"),
    ("lost_before", "a call was lost on its way to the store"),
    ("outages", "the store answered nobody"),
    ("poison", "a handler took its machine down"),
    ("pruned", "an ended job was deleted"),
    ("reclaimed", "an expired lease was taken back"),
    ("reply_lost", "a call was applied and its reply lost"),
    ("requeued", "an operator revived a job"),
    ("restarts", "a worker was told to stop and did"),
    ("self_fenced", "a worker stopped a handler at its own deadline"),
    ("stale_refused", "a report came from a lease that no longer held the job"),
    ("swept_late_commit", "a claim was applied after its worker had given it up, and its sweeper gave it back"),
    ("swept_unheard", "a worker's sweeper gave back a claim whose reply was lost"),
    ("thawed_and_stale", "a machine woke up and reported what was no longer its own"),
    ("timed_out", "a handler ran longer than its kind may"),
    ("transaction_repeated", "a handler repeated its transaction because the reply was lost"),
];

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<&'static str, u64>);

impl Counters {
    /// One more.
    pub(crate) fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    /// So many more.
    pub(crate) fn add(&mut self, what: &'static str, many: u64) {
        debug_assert!(SOMETIMES.iter().any(|(name, _)| *name == what), "{what} is not in the list");
        *self.0.entry(what).or_default() += many;
    }

    /// How often it happened.
    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Takes another run's counts in.
    pub fn merge(&mut self, other: &Self) {
        for (what, many) in &other.0 {
            *self.0.entry(what).or_default() += many;
        }
    }

    /// What never happened though it should have.
    pub fn missing(&self) -> Vec<&'static str> {
        SOMETIMES.iter().map(|(name, _)| *name).filter(|name| self.get(name) == 0).collect()
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, _)) in SOMETIMES.iter().enumerate() {
            write!(f, "{}{name} {}", if i == 0 { "" } else { ", " }, self.get(name))?;
        }
        Ok(())
    }
}
