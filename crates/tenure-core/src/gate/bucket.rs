//! A token bucket in one number: the moment it will be full again.
//!
//! Spending `k` tokens pushes that moment out by `k × period / count`; time passing brings it near. A bucket that will
//! be full in `d` holds `burst − d × count / period` tokens. Everything is whole microseconds and rounds against the
//! spender, so the same numbers come out in Rust and in SQL, and never one token too many.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::duration;
use crate::invalid::Invalid;
use crate::time::Timestamp;

/// So many per period, and what may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Tokens that come in one period.
    pub count: u32,
    /// How long that is.
    pub period: Duration,
    /// Most tokens the bucket holds: what may pass at once after a quiet time.
    pub burst: u32,
    /// Tokens a job takes.
    pub cost: u32,
}

/// Most tokens in a period, in a bucket, or for a job.
pub const TOKENS_MAX: u32 = 1_000_000;
/// Longest period.
pub const PERIOD_MAX: Duration = Duration::from_secs(86_400);
/// Shortest period.
pub const PERIOD_MIN: Duration = Duration::from_millis(1);

impl Rate {
    /// `count` per `period`, a tenth of a second's worth at once, one token a job.
    pub fn new(count: u32, period: Duration) -> Self {
        let burst = u64::from(count) * 100 / u64::try_from(period.as_millis()).unwrap_or(u64::MAX).max(1);
        Self { count, period, burst: u32::try_from(burst).unwrap_or(TOKENS_MAX).clamp(1, TOKENS_MAX), cost: 1 }
    }

    /// The same with another burst, another cost, or both; a burst that is not given is at least the cost.
    #[must_use]
    pub fn with(self, burst: Option<u32>, cost: Option<u32>) -> Self {
        let cost = cost.unwrap_or(self.cost);
        Self { burst: burst.unwrap_or(self.burst.max(cost)), cost, ..self }
    }

    /// What the bucket holds at `now`.
    pub fn tokens(&self, full_at: Timestamp, now: Timestamp) -> u32 {
        let missing = (full_at.as_micros() - now.as_micros()).max(0);
        let left = i64::from(self.burst) * self.period_us() - missing.saturating_mul(i64::from(self.count));
        u32::try_from(left.max(0) / self.period_us()).unwrap_or(u32::MAX)
    }

    /// The bucket after `tokens` were spent at `now`; it may hold less than nothing then.
    pub fn spend(&self, full_at: Timestamp, tokens: u32, now: Timestamp) -> Timestamp {
        let (spent, count) = (i64::from(tokens) * self.period_us(), i64::from(self.count));
        Timestamp::from_micros(full_at.max(now).as_micros().saturating_add((spent + count - 1) / count))
    }

    /// When a bucket that is empty at `now` will be full: the most that a bucket owes when it comes under this rate.
    pub fn refilled_at(&self, now: Timestamp) -> Timestamp {
        self.spend(now, self.burst, now)
    }

    /// What a bucket counts with. The cost of a job is not part of it.
    pub const fn bucket(&self) -> (u32, Duration, u32) {
        (self.count, self.period, self.burst)
    }

    /// Refuses a reservation that the bucket can never hold: its tokens would pass at once, more than G2 allows.
    pub fn check_reservation(&self, tokens: u32) -> Result<(), Invalid> {
        if tokens <= self.burst {
            return Ok(());
        }
        let limit =
            format!("the gate gives at most its burst of {} at once: ask for less, or raise its burst", self.burst);
        Err(Invalid::new("tokens", tokens, limit))
    }

    /// When it holds `tokens`, at most the burst.
    pub fn ready_at(&self, full_at: Timestamp, tokens: u32) -> Timestamp {
        let spare = (i64::from(self.burst) - i64::from(tokens)) * self.period_us();
        Timestamp::from_micros(full_at.as_micros().saturating_sub(spare.div_euclid(i64::from(self.count))))
    }

    /// Refuses what cannot be counted, and a job that costs more than the bucket holds.
    pub fn check(&self) -> Result<(), Invalid> {
        let tokens = |field: &'static str, value: u32| match (1..=TOKENS_MAX).contains(&value) {
            true => Ok(()),
            false => Err(Invalid::new(field, value, format!("it is 1 to {TOKENS_MAX}"))),
        };
        tokens("rate", self.count)?;
        tokens("burst", self.burst)?;
        tokens("cost", self.cost)?;
        let whole = self.period.subsec_nanos().is_multiple_of(1_000_000);
        if !(PERIOD_MIN..=PERIOD_MAX).contains(&self.period) || !whole {
            return Err(Invalid::new("period", duration::format(self.period), "a period is 1ms to 1d"));
        }
        if self.cost > self.burst {
            let limit = format!("a job can cost at most the burst of {}, or it would never pass", self.burst);
            return Err(Invalid::new("cost", self.cost, limit));
        }
        Ok(())
    }

    fn period_us(&self) -> i64 {
        i64::try_from(self.period.as_micros()).unwrap_or(i64::MAX)
    }
}

/// `50/s`, `30/m`, `5/10s`.
impl FromStr for Rate {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("rate", text, "a rate is a number per time, such as 50/s, 30/m or 5/10s");
        let (count, period) = text.split_once('/').ok_or_else(refuse)?;
        let bare = period.starts_with(|c: char| c.is_ascii_alphabetic());
        let period = if bare { format!("1{period}") } else { period.to_owned() };
        let rate =
            Self::new(count.parse().map_err(|_| refuse())?, duration::parse("rate", &period).map_err(|_| refuse())?);
        rate.check()?;
        Ok(rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = duration::format(self.period);
        let period = period.strip_prefix('1').filter(|unit| !unit.starts_with(|c: char| c.is_ascii_digit()));
        match period {
            Some(unit) => write!(f, "{}/{unit}", self.count),
            None => write!(f, "{}/{}", self.count, duration::format(self.period)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_763_197_200_000_000);

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn a_rate_is_written_as_it_is_read() {
        for text in ["50/s", "30/m", "5/10s", "1/d", "1000/h", "7/1500ms", "3/ms"] {
            assert_eq!(rate(text).to_string(), text);
        }
        for bad in ["", "50", "50/", "/s", "x/s", "50/w", "0/s", "1/2d", "1000001/s", "-1/s", "5/0s"] {
            assert!(matches!(bad.parse::<Rate>().unwrap_err().field, "rate" | "period"), "{bad}");
        }
    }

    #[test]
    fn a_tenth_of_a_second_may_come_at_once_unless_said_otherwise() {
        assert_eq!(
            [rate("50/s").burst, rate("30/m").burst, rate("1000/s").burst, rate("7/100ms").burst],
            [5, 1, 100, 7]
        );
    }

    #[test]
    fn a_full_bucket_gives_its_burst_and_refills_by_its_rate() {
        let rate = Rate { burst: 3, ..rate("50/s") };
        assert_eq!(rate.tokens(Timestamp::EPOCH, NOW), 3);
        let spent = rate.spend(Timestamp::EPOCH, 3, NOW);
        let tokens = |ms| rate.tokens(spent, NOW.plus(Duration::from_millis(ms)));
        assert_eq!([tokens(0), tokens(19), tokens(20), tokens(59), tokens(60), tokens(9_999)], [0, 0, 1, 2, 3, 3]);
        assert_eq!(rate.ready_at(spent, 1), NOW.plus(Duration::from_millis(20)));
    }

    #[test]
    fn what_does_not_divide_rounds_against_the_spender() {
        let rate = Rate { burst: 1, ..rate("7/s") };
        let spent = rate.spend(Timestamp::EPOCH, 1, NOW);
        let at = rate.ready_at(spent, 1);
        assert_eq!(at.since(NOW), Duration::from_micros(142_858));
        assert_eq!(rate.tokens(spent, at.minus(Duration::from_micros(1))), 0);
        assert_eq!(rate.tokens(spent, at), 1);
    }

    #[test]
    fn a_reservation_beyond_the_burst_is_refused_and_says_what_would_do() {
        let rate = Rate { burst: 3, ..rate("50/s") };
        assert_eq!(rate.check_reservation(3), Ok(()));
        let refused = rate.check_reservation(4).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "tokens `4` is refused: the gate gives at most its burst of 3 at once: ask for less, or raise its burst"
        );
    }

    #[test]
    fn a_job_that_could_never_pass_is_refused() {
        let refused = Rate { burst: 2, cost: 3, ..rate("50/s") }.check().unwrap_err();
        assert_eq!(refused.field, "cost");
    }
}
