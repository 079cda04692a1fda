//! [`Settings`]: what can be set, by the names that the seed gave it.

use std::path::PathBuf;
use std::time::Duration;

use kit::Env;
use kit::env::Refused;
use tenure::preset::COINS;

/// What can be set. Each says whose it is: a worker reads all of them, and acts by its own.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `JOB_LOCK_TIMEOUT_SECONDS`: a job whose worker was not heard of for this long is another's; 300 unless set. The
    /// queue's: the worker that starts last sets it for all.
    pub lock_timeout: Duration,
    /// `JOB_RECLAIM_SECONDS`: how often a worker looks for such jobs; 60 unless set.
    pub reclaim_every: Duration,
    /// `RETRY_BASE_SECONDS`: how long a first failure waits; each further one waits twice as long, a day at most; 60 unless
    /// set. The job's: set where it is asked for.
    pub retry_base: Duration,
    /// `SOURCE_PAUSE_SECONDS`: how long a source is left alone after five failures in a row; 300 unless set. The source's:
    /// set where it is entered.
    pub source_pause: Duration,
    /// `HTTP_TIMEOUT_MS`: how long a worker waits for one answer of a source; 10000 unless set.
    pub http_timeout: Duration,
    /// `CACHE_TTL_SECONDS`: how long an answer is good; 3600 unless set.
    pub cache_ttl: Duration,
    /// `CACHE_ENABLED`: whether answers are kept at all; true unless set.
    pub cache_enabled: bool,
    /// `CACHE_PATH`: the file they are kept in; `coins-cache.db` unless set.
    pub cache_path: PathBuf,
}

impl Settings {
    /// Reads them; a wrong one is refused by its name.
    pub fn read(env: &Env) -> Result<Self, Refused> {
        let day = 86_400;
        Ok(Self {
            lock_timeout: env.seconds("JOB_LOCK_TIMEOUT_SECONDS", 2, day)?.unwrap_or(COINS.lease_ttl),
            reclaim_every: env.seconds("JOB_RECLAIM_SECONDS", 1, day)?.unwrap_or(COINS.reclaim_every),
            retry_base: env.seconds("RETRY_BASE_SECONDS", 1, day)?.unwrap_or(Duration::from_secs(60)),
            source_pause: env.seconds("SOURCE_PAUSE_SECONDS", 1, day)?.unwrap_or(Duration::from_secs(300)),
            http_timeout: env.millis("HTTP_TIMEOUT_MS", 1, 600_000)?.unwrap_or(Duration::from_secs(10)),
            cache_ttl: env.seconds("CACHE_TTL_SECONDS", 1, 365 * day)?.unwrap_or(Duration::from_secs(3_600)),
            cache_enabled: env.switch("CACHE_ENABLED")?.unwrap_or(true),
            cache_path: env.text("CACHE_PATH").unwrap_or_else(|| "coins-cache.db".to_owned()).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: S0.10 S0.29 S0.30
    #[test]
    fn unless_set_they_are_the_numbers_of_the_seed() {
        let settings = Settings::read(&Env::of(&[])).unwrap();
        assert_eq!((settings.lock_timeout.as_secs(), settings.reclaim_every.as_secs()), (300, 60));
        assert_eq!((settings.retry_base.as_secs(), settings.source_pause.as_secs()), (60, 300));
        assert_eq!((settings.cache_ttl.as_secs(), settings.cache_enabled), (3_600, true));
        assert_eq!(settings.http_timeout.as_secs(), 10);
    }

    #[test]
    fn the_names_of_the_seed_are_heard() {
        let env =
            Env::of(&[("JOB_LOCK_TIMEOUT_SECONDS", "90"), ("CACHE_TTL_SECONDS", "60"), ("CACHE_ENABLED", "false")]);
        let settings = Settings::read(&env).unwrap();
        assert_eq!((settings.lock_timeout.as_secs(), settings.cache_ttl.as_secs()), (90, 60));
        assert!(!settings.cache_enabled);
        let refused = Settings::read(&Env::of(&[("CACHE_ENABLED", "never")])).unwrap_err();
        assert_eq!(refused.to_string(), "CACHE_ENABLED=`never` is refused: it is true or false");
    }
}
