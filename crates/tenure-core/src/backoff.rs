//! When a failed job is tried again.
//!
//! A policy is data that a job carries as one line of text, so that a person reading the row, a worker in another
//! language and this code agree: `never`, `none`, `fixed 5m`, `exponential 1m..24h by failures jitter 10%`,
//! `steps 1s 10s 5m`. Every delay is between zero and [`DELAY_MAX`] for any attempt number and any policy.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::duration;
use crate::invalid::Invalid;

/// No wait is longer than this, whatever a policy says: a year.
pub const DELAY_MAX: Duration = Duration::from_secs(365 * 86_400);
/// Most delays a `steps` policy lists.
pub const STEPS_MAX: usize = 50;

/// When to try again after a transient error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backoff {
    /// Never: the handler's error ends the job as `failed`; only a lost lease is tried again.
    Never,
    /// At once.
    None,
    /// Always the same wait.
    Fixed {
        /// The wait.
        delay: Duration,
        /// Spread, see [`Jitter`].
        jitter: Jitter,
    },
    /// `base × 2ⁿ`, at most `cap`.
    Exponential {
        /// The wait for n = 0.
        base: Duration,
        /// The longest wait, jitter apart.
        cap: Duration,
        /// What n counts.
        by: Count,
        /// Spread, see [`Jitter`].
        jitter: Jitter,
    },
    /// A wait for each failure; the last one repeats.
    Steps(Vec<Duration>),
}

/// What the exponent counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Failures before this one: the first wait is `base`.
    Failures,
    /// Attempts made: the first wait is `2 × base`.
    Attempts,
}

/// Up to this many percent are added at random, so that jobs that failed together do not return together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jitter(u8);

/// Random bits for one decision; the caller draws them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Roll(pub u32);

impl Jitter {
    /// No spread.
    pub const NONE: Self = Self(0);

    /// Checks that `percent` is 0..=100.
    pub fn percent(percent: u8) -> Result<Self, Invalid> {
        if percent <= 100 { Ok(Self(percent)) } else { Err(Invalid::new("jitter", percent, "it is 0 to 100 percent")) }
    }

    fn spread(self, delay: Duration, roll: Roll) -> Duration {
        let extra = delay.as_micros() * u128::from(self.0) * u128::from(roll.0) / (100 * u128::from(u32::MAX));
        delay.saturating_add(Duration::from_micros(u64::try_from(extra).unwrap_or(u64::MAX)))
    }
}

impl Backoff {
    /// The wait after attempt number `attempt` (1 is the first) failed. `Never` waits for nothing: it ends the job.
    pub fn delay(&self, attempt: u32, roll: Roll) -> Duration {
        let failures_before = attempt.saturating_sub(1);
        let delay = match self {
            Self::Never | Self::None => Duration::ZERO,
            Self::Fixed { delay, jitter } => jitter.spread(*delay, roll),
            Self::Exponential { base, cap, by, jitter } => {
                let n = match by {
                    Count::Failures => failures_before,
                    Count::Attempts => attempt,
                };
                // The exponent is bounded before anything is multiplied: 2^31 × 1 ms is 24 days.
                jitter.spread(base.saturating_mul(1 << n.min(31)).min(*cap), roll)
            }
            Self::Steps(steps) => {
                let at = usize::try_from(failures_before).unwrap_or(usize::MAX);
                steps.get(at).or(steps.last()).copied().unwrap_or(Duration::ZERO)
            }
        };
        delay.min(DELAY_MAX)
    }
}

/// First and longest wait of a job that a worker gave back because it has no handler for its kind.
const UNKNOWN_KIND_FIRST: Duration = Duration::from_secs(15);
const UNKNOWN_KIND_CAP: Duration = Duration::from_secs(300);
/// So many times in a row a job is given back for the first wait only: a worker that handles the kind usually takes it then.
const UNKNOWN_KIND_QUICK: u32 = 4;

/// How long a job waits after one worker process has given it back `times` times in a row because it has no handler for its
/// kind: four times 15 s, then twice as long each time, up to 5 minutes.
///
/// A job that no worker handles costs two journal rows for each claim, so the wait grows. A worker that handles the kind may
/// start at any moment, and its jobs must not wait long for it, so the wait ends at 5 minutes.
pub fn unknown_kind_delay(times: u32) -> Duration {
    let doublings = times.saturating_sub(UNKNOWN_KIND_QUICK).min(31);
    UNKNOWN_KIND_FIRST.saturating_mul(1 << doublings).min(UNKNOWN_KIND_CAP)
}

impl Default for Backoff {
    /// 10 s, 20 s, 40 s … up to an hour, 10 % spread.
    fn default() -> Self {
        let (base, cap) = (Duration::from_secs(10), Duration::from_secs(3_600));
        Self::Exponential { base, cap, by: Count::Failures, jitter: Jitter(10) }
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jitter = match self {
            Self::Never => return f.write_str("never"),
            Self::None => return f.write_str("none"),
            Self::Steps(steps) => {
                f.write_str("steps")?;
                return steps.iter().try_for_each(|step| write!(f, " {}", duration::format(*step)));
            }
            Self::Fixed { delay, jitter } => {
                write!(f, "fixed {}", duration::format(*delay))?;
                jitter
            }
            Self::Exponential { base, cap, by, jitter } => {
                let by = if *by == Count::Failures { "failures" } else { "attempts" };
                write!(f, "exponential {}..{} by {by}", duration::format(*base), duration::format(*cap))?;
                jitter
            }
        };
        if jitter.0 > 0 { write!(f, " jitter {}%", jitter.0) } else { Ok(()) }
    }
}

impl FromStr for Backoff {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || {
            let limit = "it is never, none, fixed 5m, exponential 1m..24h by failures (or attempts), \
                         each with jitter 10% if wanted, or steps 1s 10s 5m";
            Invalid::new("backoff", text, limit)
        };
        let wait = |word: &str| match duration::parse("backoff", word) {
            Ok(wait) if wait <= DELAY_MAX => Ok(wait),
            _ => Err(refuse()),
        };
        let words: Vec<&str> = text.split(' ').collect();
        let (words, jitter) = match words.as_slice() {
            [rest @ .., "jitter", percent] => {
                let percent = percent.strip_suffix('%').and_then(|p| p.parse().ok()).ok_or_else(refuse)?;
                (rest, Jitter::percent(percent).map_err(|_| refuse())?)
            }
            all => (all, Jitter::NONE),
        };
        match words {
            ["never"] if jitter == Jitter::NONE => Ok(Self::Never),
            ["none"] if jitter == Jitter::NONE => Ok(Self::None),
            ["fixed", delay] => Ok(Self::Fixed { delay: wait(delay)?, jitter }),
            ["exponential", range, "by", by] => {
                let (base, cap) = range.split_once("..").ok_or_else(refuse)?;
                let by = match *by {
                    "failures" => Count::Failures,
                    "attempts" => Count::Attempts,
                    _ => return Err(refuse()),
                };
                Ok(Self::Exponential { base: wait(base)?, cap: wait(cap)?, by, jitter })
            }
            ["steps", steps @ ..] if jitter == Jitter::NONE && (1..=STEPS_MAX).contains(&steps.len()) => {
                steps.iter().map(|step| wait(step)).collect::<Result<_, _>>().map(Self::Steps)
            }
            _ => Err(refuse()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn minutes(policy: &str, attempts: std::ops::RangeInclusive<u32>) -> Vec<u64> {
        let policy: Backoff = policy.parse().unwrap();
        attempts.map(|n| policy.delay(n, Roll(0)).as_secs() / 60).collect()
    }

    #[test]
    fn coins_wait_one_two_four_up_to_1440_minutes() {
        let coins = "exponential 1m..24h by failures";
        assert_eq!(minutes(coins, 1..=13), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440]);
    }

    #[test]
    fn passports_wait_two_four_eight_sixteen_seconds_and_never_more_than_1024() {
        let passport: Backoff = "exponential 1s..1024s by attempts".parse().unwrap();
        let seconds: Vec<u64> = (1..=11).map(|n| passport.delay(n, Roll(u32::MAX)).as_secs()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
    }

    #[test]
    fn links_wait_five_minutes_and_steps_repeat_their_last() {
        assert_eq!(minutes("fixed 5m", 1..=3), [5, 5, 5]);
        assert_eq!(minutes("steps 1m 10m 60m", 1..=5), [1, 10, 60, 60, 60]);
        assert_eq!(minutes("none", 1..=2), [0, 0]);
    }

    #[test]
    fn jitter_only_adds_and_at_most_its_share() {
        let policy: Backoff = "fixed 100s jitter 10%".parse().unwrap();
        assert_eq!(policy.delay(1, Roll(0)), Duration::from_secs(100));
        assert_eq!(policy.delay(1, Roll(u32::MAX)), Duration::from_secs(110));
    }

    #[test]
    fn a_job_of_an_unknown_kind_waits_longer_each_time_and_at_most_five_minutes() {
        let seconds: Vec<u64> = (1..=10).map(|times| unknown_kind_delay(times).as_secs()).collect();
        assert_eq!(seconds, [15, 15, 15, 15, 30, 60, 120, 240, 300, 300]);
        assert_eq!(unknown_kind_delay(0).as_secs(), 15);
        assert_eq!(unknown_kind_delay(u32::MAX).as_secs(), 300);
    }

    #[test]
    fn other_words_are_refused() {
        let many = format!("steps{}", " 1s".repeat(STEPS_MAX + 1));
        for bad in [
            "",
            "Never",
            "fixed",
            "fixed 5",
            "fixed 366d",
            "exponential 1m by failures",
            "exponential 1m..2m by losses",
            "fixed 1s jitter 101%",
            "fixed 1s jitter 10",
            "never jitter 5%",
            "steps",
            "steps 1s jitter 5%",
            " none",
            &many,
        ] {
            assert_eq!(bad.parse::<Backoff>().unwrap_err().field, "backoff", "{bad:?}");
        }
    }

    fn any_wait() -> impl Strategy<Value = Duration> {
        (0..=DELAY_MAX.as_millis() as u64).prop_map(Duration::from_millis)
    }

    fn any_backoff() -> impl Strategy<Value = Backoff> {
        let jitter = || (0..=100_u8).prop_map(|p| Jitter::percent(p).unwrap());
        let by = prop_oneof![Just(Count::Failures), Just(Count::Attempts)];
        prop_oneof![
            Just(Backoff::Never),
            Just(Backoff::None),
            (any_wait(), jitter()).prop_map(|(delay, jitter)| Backoff::Fixed { delay, jitter }),
            (any_wait(), any_wait(), by, jitter()).prop_map(|(base, cap, by, jitter)| Backoff::Exponential {
                base,
                cap,
                by,
                jitter
            }),
            prop::collection::vec(any_wait(), 1..5).prop_map(Backoff::Steps),
        ]
    }

    proptest! {
        #[test]
        fn no_delay_overflows_for_any_attempt_and_policy(policy in any_backoff(), attempt: u32, roll: u32) {
            let delay = policy.delay(attempt, Roll(roll));
            prop_assert!(delay <= DELAY_MAX);
            if let Backoff::Exponential { base, cap, .. } = policy {
                prop_assert!(delay >= base.min(cap).min(DELAY_MAX));
                prop_assert!(policy.delay(attempt.saturating_add(1), Roll(0)) >= policy.delay(attempt, Roll(0)));
            }
        }

        #[test]
        fn every_policy_survives_writing_and_reading(policy in any_backoff()) {
            prop_assert_eq!(policy.to_string().parse::<Backoff>().unwrap(), policy);
        }
    }
}
