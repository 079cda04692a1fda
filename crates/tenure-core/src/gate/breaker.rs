//! A circuit breaker that all processes share.
//!
//! ```text
//!             failures in a row reach the threshold
//!   closed ─────────────────────────────────────────► open ──── cooldown over ───► half open
//!     ▲                                                ▲                          one probe passes,
//!     │                                                └── the probe failed ──────┤ under its own lease
//!     └──────────────────────────── the probe succeeded ──────────────────────────┘
//! ```
//! A probe that ends without a word about the resource (lost, released, snoozed, canceled) makes room for another.
//! Jobs that were inside when the breaker moved finish as they like: their results are from before, and heard no more.
//! The lease number tells them apart: it only ever grows.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Gate, GateEvent, Health, Moved};
use crate::duration;
use crate::id::LeaseNo;
use crate::invalid::Invalid;
use crate::time::Timestamp;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long nothing passes then.
    pub cooldown: Duration,
}

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Everything passes.
    Closed,
    /// Nothing passes.
    Open {
        /// Until then.
        until: Timestamp,
    },
    /// One job may try.
    HalfOpen {
        /// The lease of the one that does.
        probe: Option<LeaseNo>,
    },
}

/// Longest cooldown.
const COOLDOWN_MAX: Duration = Duration::from_secs(86_400);
/// Most failures in a row to wait for.
const FAILURES_MAX: u32 = 1_000;

impl Breaker {
    /// Refuses a breaker that would never open or never try again.
    pub fn check(&self) -> Result<(), Invalid> {
        if !(1..=FAILURES_MAX).contains(&self.failures) {
            return Err(Invalid::new("failures", self.failures, format!("it is 1 to {FAILURES_MAX}")));
        }
        if !(Duration::from_millis(1)..=COOLDOWN_MAX).contains(&self.cooldown) {
            return Err(Invalid::new("cooldown", duration::format(self.cooldown), "a cooldown is 1ms to 1d"));
        }
        Ok(())
    }
}

/// Failures in a row and a cooldown: `5:5m`.
impl FromStr for Breaker {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("breaker", text, "a breaker is failures in a row and a time, such as 5:5m");
        let (failures, cooldown) = text.split_once(':').ok_or_else(refuse)?;
        let cooldown = duration::parse("breaker", cooldown).map_err(|_| refuse())?;
        let breaker = Self { failures: failures.parse().map_err(|_| refuse())?, cooldown };
        breaker.check()?;
        Ok(breaker)
    }
}

impl fmt::Display for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.failures, duration::format(self.cooldown))
    }
}

impl Gate {
    /// Where the breaker stands. One that was opened by hand on a gate without a rule for it closes by itself.
    pub fn phase(&self, breaker: Option<&Breaker>, now: Timestamp) -> Phase {
        match self.open_until {
            Some(until) if until > now => Phase::Open { until },
            Some(_) if breaker.is_some() => Phase::HalfOpen { probe: self.probe },
            _ => Phase::Closed,
        }
    }

    /// Opens the breaker by hand, until then at least.
    pub fn trip(&mut self, until: Timestamp) {
        self.open(until);
    }

    /// Forgets the past, by hand: the breaker closes and the bucket is full, whatever it owed.
    pub fn reset(&mut self, now: Timestamp) {
        self.close();
        self.deaf_to = self.newest;
        self.full_at = self.full_at.min(now);
    }

    /// What one result says to the breaker.
    pub(super) fn hear(&mut self, breaker: Option<&Breaker>, event: &GateEvent) -> Option<Moved> {
        if self.probe == Some(event.lease) {
            self.probe = None;
            return match event.health? {
                Health::Healthy => {
                    self.close();
                    Some(Moved::Healed)
                }
                Health::Unhealthy => {
                    self.streak = self.streak.saturating_add(1);
                    self.open(event.at.plus(breaker?.cooldown));
                    Some(Moved::Tripped)
                }
            };
        }
        if self.open_until.is_some() && breaker.is_some() || event.lease <= self.deaf_to {
            return None;
        }
        match event.health? {
            Health::Healthy => {
                self.streak = 0;
                None
            }
            Health::Unhealthy => {
                self.streak = self.streak.saturating_add(1);
                let breaker = breaker.filter(|breaker| self.streak >= breaker.failures)?;
                self.open(event.at.plus(breaker.cooldown));
                Some(Moved::Tripped)
            }
        }
    }

    fn open(&mut self, until: Timestamp) {
        self.open_until = Some(until);
        self.probe = None;
        self.deaf_to = self.newest;
    }

    fn close(&mut self) {
        self.open_until = None;
        self.probe = None;
        self.streak = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_is_written_as_it_is_read() {
        for text in ["5:5m", "1:1ms", "1000:1d"] {
            assert_eq!(text.parse::<Breaker>().unwrap().to_string(), text);
        }
        for bad in ["", "5", "5:", ":5m", "x:5m", "5:soon", "0:5m", "5:0s", "5:2d", "1001:5m"] {
            assert!(matches!(bad.parse::<Breaker>().unwrap_err().field, "breaker" | "failures" | "cooldown"), "{bad}");
        }
    }
}
