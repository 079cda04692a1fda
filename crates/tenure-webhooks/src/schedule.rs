//! What follows from an attempt: pure, with time and chance as arguments.
//!
//! At most five attempts, 5 s, 30 s, 2 min and 10 min apart, give or take a fifth, so that the deliveries of an hour that
//! a receiver was down do not return in one moment. Every answer but 2xx is tried again, a redirect too, which is never
//! followed. `410` says that the endpoint is gone: it is to be disabled. `429` and `503` may ask for more time and get it,
//! up to an hour.

use std::time::Duration;

use tenure_core::backoff::Roll;

use crate::guard::Refused;
use crate::send::SendError;
use crate::sent::{RETRY_AFTER_MAX, Sent};

/// Most attempts of one delivery.
pub const ATTEMPTS_MAX: u32 = 5;
/// The wait after the first attempt, the second, …
const WAITS: [Duration; 4] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120), Duration::from_secs(600)];
const _: () = assert!(WAITS.len() + 1 == ATTEMPTS_MAX as usize, "there is a wait between any two attempts");
/// Each wait is longer or shorter by up to this many percent.
const SPREAD_PERCENT: u128 = 20;

/// How an attempt ended, as far as the schedule cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Answered {
        /// With this status.
        status: u16,
        /// And asked for this much time.
        retry_after: Option<Duration>,
    },
    /// There was no answer.
    Unanswered,
    /// The URL itself is refused: no attempt will be another.
    Refused,
}

/// What happens to the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It has arrived.
    Delivered,
    /// Another attempt, after this long.
    Retry(Duration),
    /// The endpoint is gone: no delivery goes there until somebody enables it again.
    Disable,
    /// It was tried often enough; a person may requeue it.
    Dead,
}

/// Decides what follows attempt number `attempt` (1 is the first).
pub fn after(attempt: u32, outcome: Outcome, roll: Roll) -> Next {
    let asked = match outcome {
        Outcome::Answered { status: 200..=299, .. } => return Next::Delivered,
        Outcome::Answered { status: 410, .. } => return Next::Disable,
        Outcome::Answered { status: 429 | 503, retry_after } => retry_after.unwrap_or_default().min(RETRY_AFTER_MAX),
        Outcome::Answered { .. } | Outcome::Unanswered => Duration::ZERO,
        Outcome::Refused => return Next::Dead,
    };
    match retry_in(attempt, roll) {
        Some(wait) => Next::Retry(wait.max(asked)),
        None => Next::Dead,
    }
}

/// The wait after attempt number `attempt`, or none after the last.
fn retry_in(attempt: u32, roll: Roll) -> Option<Duration> {
    let before = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    let wait = WAITS.get(before)?.as_millis();
    // From 80 to 120 percent.
    let spread = 2 * SPREAD_PERCENT * wait * u128::from(roll.0) / (100 * u128::from(u32::MAX));
    let wait = wait * (100 - SPREAD_PERCENT) / 100 + spread;
    Some(Duration::from_millis(u64::try_from(wait).unwrap_or(u64::MAX)))
}

impl From<&Result<Sent, SendError>> for Outcome {
    /// An address that is refused may be another one when the name is looked up again, and nothing was sent: it counts as
    /// unanswered, while a URL or a name that is refused stays what it is.
    fn from(result: &Result<Sent, SendError>) -> Self {
        match result {
            Ok(sent) => Self::Answered { status: sent.status, retry_after: sent.retry_after },
            Err(SendError::Refused {
                why: Refused::Url(_) | Refused::Name { .. } | Refused::NotListed { .. }, ..
            }) => Self::Refused,
            Err(_) => Self::Unanswered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: Roll = Roll(u32::MAX / 2);

    fn answered(status: u16, seconds: Option<u64>) -> Outcome {
        Outcome::Answered { status, retry_after: seconds.map(Duration::from_secs) }
    }

    fn seconds(next: Next) -> u64 {
        match next {
            Next::Retry(wait) => wait.as_millis().div_ceil(1_000) as u64,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn five_attempts_lie_further_and_further_apart_and_then_it_is_dead() {
        for outcome in [answered(500, None), answered(301, None), answered(404, None), Outcome::Unanswered] {
            let waits: Vec<u64> = (1..=4).map(|attempt| seconds(after(attempt, outcome, MIDDLE))).collect();
            assert_eq!(waits, [5, 30, 120, 600], "{outcome:?}");
            for attempt in [5, 6, u32::MAX] {
                assert_eq!(after(attempt, outcome, MIDDLE), Next::Dead);
            }
        }
    }

    #[test]
    fn waits_are_spread_by_a_fifth_to_both_sides() {
        let wait = |roll| after(2, Outcome::Unanswered, Roll(roll));
        assert_eq!(wait(0), Next::Retry(Duration::from_secs(24)));
        assert_eq!(wait(u32::MAX), Next::Retry(Duration::from_secs(36)));
    }

    #[test]
    fn every_status_has_its_consequence() {
        for status in 100..=599 {
            let next = after(1, answered(status, None), MIDDLE);
            match status {
                200..=299 => assert_eq!(next, Next::Delivered),
                410 => assert_eq!(next, Next::Disable),
                _ => assert_eq!(seconds(next), 5, "{status}"),
            }
        }
        assert_eq!(after(9, answered(204, None), MIDDLE), Next::Delivered);
        assert_eq!(after(5, answered(410, None), MIDDLE), Next::Disable);
    }

    #[test]
    fn a_receiver_that_asks_for_more_time_gets_it_up_to_an_hour() {
        for status in [429, 503] {
            assert_eq!(seconds(after(1, answered(status, Some(90)), MIDDLE)), 90);
            assert_eq!(seconds(after(1, answered(status, Some(1)), MIDDLE)), 5, "the longer wait counts");
            assert_eq!(seconds(after(1, answered(status, Some(86_400)), MIDDLE)), 3_600);
            assert_eq!(after(5, answered(status, Some(90)), MIDDLE), Next::Dead);
        }
        assert_eq!(seconds(after(1, answered(500, Some(90)), MIDDLE)), 5, "others are not asked");
    }

    #[test]
    fn a_refused_url_is_dead_at_once_and_a_refused_address_is_looked_up_again() {
        let refused = |why| Outcome::from(&Err(SendError::Refused { host: "h".to_owned(), why }));
        assert_eq!(after(1, refused(Refused::Name { host: "nas".to_owned() }), MIDDLE), Next::Dead);
        let address = Refused::Address { address: [10, 0, 0, 1].into(), class: "private" };
        assert_eq!(seconds(after(1, refused(address), MIDDLE)), 5);
    }
}
