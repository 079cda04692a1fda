//! What is told once, and not as often as it happens: a store that is away, a kind that nobody here knows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::backoff::unknown_kind_delay;
use tenure_core::{JobId, KindName};
use tokio::time::Instant;

/// How often a kind that nobody knows is told of, and how many are remembered.
const KIND_AGAIN: Duration = Duration::from_secs(60);
const KINDS_MAX: usize = 1_000;
/// Jobs of unknown kinds that are counted, and how long one that does not come back is remembered: longer than the longest
/// wait between two claims of it.
const JOBS_MAX: usize = 100_000;
const JOB_REMEMBERED: Duration = Duration::from_secs(1_800);
/// How often an ongoing trouble is told again.
const AGAIN: Duration = Duration::from_secs(10);
/// A store that comes and goes is told of once in so long: its going, and its coming back.
const QUIET: Duration = Duration::from_secs(1);

/// Tells when the store went away, reminds now and then, and tells when it is back. Every part of a worker shares one,
/// so that a process writes a line every few seconds however many calls fail, and two a second at most when every other
/// one does.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<News>);

#[derive(Default)]
struct News {
    since: Option<Since>,
    /// The last line about a store that is away.
    told: Option<Instant>,
}

struct Since {
    began: Instant,
    /// Whether anybody was told of it; if not, nobody is told of its end.
    is_told: bool,
    failures: u64,
}

impl Trouble {
    /// A call failed.
    pub(crate) fn failed(&self, what: &str, error: &dyn std::error::Error) {
        let now = Instant::now();
        let mut news = self.lock();
        let News { since, told } = &mut *news;
        let since = since.get_or_insert(Since { began: now, is_told: false, failures: 0 });
        since.failures += 1;
        if told.is_some_and(|told| now - told < if since.is_told { AGAIN } else { QUIET }) {
            return;
        }
        *told = Some(now);
        if since.is_told {
            let for_s = (now - since.began).as_secs();
            tracing::warn!(error = %error, failures = since.failures, "the store is still not available after {for_s} s: {what} failed");
        } else {
            since.is_told = true;
            tracing::warn!(error = %error, "the store is not available: {what} failed; trying again");
        }
    }

    /// A call was answered.
    pub(crate) fn over(&self) {
        // Looked at on every answer: no line, no work, where there was no trouble.
        if let Some(since) = self.lock().since.take().filter(|since| since.is_told) {
            let for_s = since.began.elapsed().as_secs();
            tracing::info!(failures = since.failures, "the store answers again after {for_s} s");
        }
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kinds that nobody here knows, each told of once a minute however many jobs there are.
#[derive(Default)]
pub(crate) struct Unknown(Mutex<HashMap<KindName, Instant>>);

impl Unknown {
    /// Whether this kind was not told of lately.
    pub(crate) fn is_news(&self, kind: &KindName) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Kinds are other people's words: no list of them grows without end.
        if told.len() >= KINDS_MAX {
            told.clear();
        }
        let last = told.insert(kind.clone(), Instant::now());
        match last {
            Some(at) if at.elapsed() < KIND_AGAIN => {
                told.insert(kind.clone(), at);
                false
            }
            _ => true,
        }
    }
}

/// How often this process gave back each job whose kind it does not handle.
#[derive(Default)]
pub(crate) struct GivenBack(Mutex<HashMap<JobId, (u32, Instant)>>);

impl GivenBack {
    /// Counts one more time, and answers how long the job waits now. A job that finds no room among the counted ones waits
    /// as long as one that was given back often.
    pub(crate) fn delay(&self, job: JobId) -> Duration {
        let now = Instant::now();
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.len() >= JOBS_MAX && !jobs.contains_key(&job) {
            jobs.retain(|_, (_, last)| now - *last < JOB_REMEMBERED);
            if jobs.len() >= JOBS_MAX {
                return unknown_kind_delay(u32::MAX);
            }
        }
        let before = jobs.get(&job).filter(|(_, last)| now - *last < JOB_REMEMBERED).map_or(0, |(times, _)| *times);
        let times = before.saturating_add(1);
        jobs.insert(job, (times, now));
        unknown_kind_delay(times)
    }
}
