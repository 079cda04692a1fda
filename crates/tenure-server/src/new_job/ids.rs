//! New job ids that sort in the order they were made.
//!
//! Jobs of equal priority and time are handed out by id, so the lines of a file must get growing ids even within one
//! millisecond, or they would run in a random order.

use std::time::SystemTime;

use tenure_core::{JobId, Timestamp};

/// Makes ids. Random bits come with each new millisecond; within one the last bits count up.
#[derive(Debug)]
pub struct Ids {
    at: Timestamp,
    random: [u8; 10],
}

/// The part of the random bits that counts: what follows the version and the variant of a uuid.
const COUNTER: std::ops::Range<usize> = 3..10;

impl Ids {
    /// Nothing made yet.
    pub fn new() -> Self {
        Self { at: Timestamp::EPOCH, random: [0; 10] }
    }

    /// The next id, by this machine's clock.
    pub fn make(&mut self) -> Result<JobId, getrandom::Error> {
        self.make_at(now())
    }

    fn make_at(&mut self, now: Timestamp) -> Result<JobId, getrandom::Error> {
        if now.as_millis() > self.at.as_millis() {
            getrandom::fill(&mut self.random)?;
            // Room to count: 2^55 steps before it could overflow.
            self.random[COUNTER.start] &= 0x7f;
            self.at = now;
        } else {
            // The same millisecond, or a clock set back: stay and count.
            for byte in self.random[COUNTER].iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
        Ok(JobId::from_parts(self.at, self.random))
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}

/// This machine's clock.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH.plus(since)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ids_grow_within_a_millisecond_and_when_the_clock_is_set_back() {
        let now = now();
        let mut ids = Ids::new();
        let mut last = ids.make_at(now).unwrap();
        for n in 0..10_000_u64 {
            let at = if n % 2 == 0 { now } else { now.minus(Duration::from_secs(n)) };
            let next = ids.make_at(at).unwrap();
            assert!(next > last && next.check(now).is_ok(), "{last} {next}");
            last = next;
        }
        assert!(ids.make_at(now.plus(Duration::from_millis(1))).unwrap() > last);
    }

    #[test]
    fn two_makers_do_not_meet() {
        let now = now();
        assert_ne!(Ids::new().make_at(now).unwrap(), Ids::new().make_at(now).unwrap());
    }
}
