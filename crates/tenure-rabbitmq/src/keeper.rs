//! Connects, and connects again: after one second, then two, up to thirty, and a little later at random, so that
//! processes that lost a broker together do not return together.

use std::time::Duration;

use tenure_core::JobId;
use tenure_core::backoff::{Backoff, Count, Jitter, Roll};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::broker::Shared;
use crate::options::Target;
use crate::session::{Session, Why};

const WAIT_FIRST: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);
const WAIT_JITTER_PERCENT: u8 = 50;
/// A session that held this long was one: after it the first wait is short again.
const STEADY: Duration = Duration::from_secs(5);

/// Keeps a session until it is told to stop, or nobody is left to tell.
pub(crate) async fn keep(
    target: Target,
    shared: std::sync::Arc<Shared>,
    mut jobs: mpsc::Receiver<JobId>,
    mut stop: watch::Receiver<bool>,
) {
    let mut log = Log::new(&target.shown);
    let mut failures = 0;
    loop {
        let opened = tokio::select! {
            _ = stop.changed() => break,
            opened = Session::open(&target) => opened,
        };
        let lost = match opened {
            Err(why) => why,
            Ok(mut session) => {
                log.up();
                shared.come_up();
                let since = Instant::now();
                let lost = tokio::select! {
                    _ = stop.changed() => None,
                    why = session.run(&mut jobs, &shared) => Some(why),
                };
                shared.go_down();
                let Some(lost) = lost else {
                    session.close(&mut jobs, &shared).await;
                    break;
                };
                if since.elapsed() >= STEADY {
                    failures = 0;
                }
                lost
            }
        };
        log.down(&lost);
        failures += 1;
        tokio::select! {
            _ = stop.changed() => break,
            () = sleep(wait(failures, roll())) => {}
        }
    }
    jobs.close();
    while jobs.try_recv().is_ok() {
        // Counts it as dropped.
        drop(shared.take());
    }
}

/// The wait after so many failures in a row.
fn wait(failures: u32, roll: Roll) -> Duration {
    let jitter = Jitter::percent(WAIT_JITTER_PERCENT).unwrap_or_default();
    Backoff::Exponential { base: WAIT_FIRST, cap: WAIT_MAX, by: Count::Failures, jitter }.delay(failures, roll)
}

fn roll() -> Roll {
    // Without randomness they return together: no reason not to return.
    Roll(getrandom::u32().unwrap_or_default())
}

/// Tells an outage once, not at every try, and its end once. That the broker is away and that it refuses us are two
/// things to tell, whichever comes first.
struct Log<'a> {
    url: &'a str,
    told_away: bool,
    told_refused: bool,
}

impl<'a> Log<'a> {
    fn new(url: &'a str) -> Self {
        Self { url, told_away: false, told_refused: false }
    }

    fn up(&mut self) {
        *self = Self::new(self.url);
        tracing::info!(broker.url = self.url, "the broker is there: jobs are woken for as they come");
    }

    fn down(&mut self, why: &Why) {
        let (told, what) = match why {
            Why::Away(_) => (&mut self.told_away, "the broker is away: jobs are found by polling until it is back"),
            Why::Refused(_) => {
                (&mut self.told_refused, "the broker refuses us: jobs are found by polling until it does not")
            }
        };
        if std::mem::replace(told, true) {
            tracing::debug!(broker.url = self.url, error = %why, "the broker was tried again");
        } else {
            tracing::warn!(broker.url = self.url, error = %why, "{what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_from_one_second_to_thirty_and_spread_by_half() {
        let seconds: Vec<u64> = (1..=8).map(|failures| wait(failures, Roll(0)).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(wait(1, Roll(u32::MAX)), Duration::from_millis(1_500));
        assert_eq!(wait(u32::MAX, Roll(u32::MAX)), Duration::from_secs(45));
    }
}
