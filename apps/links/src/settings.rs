//! [`Settings`]: what can be set. Its numbers are those of the seed unless set; the seed gave them no names.

use std::net::SocketAddr;
use std::time::Duration;

use kit::{BoxError, Env};
use tenure::Backoff;
use tenure::core::backoff::Jitter;
use tenure::preset::LINKS;

/// Links of one domain that are fetched at once, by all processes together, unless set.
pub const PER_DOMAIN: u32 = 2;
/// What a first failure waits for.
pub const RETRY: Duration = Duration::from_secs(300);
const DAY_S: u64 = 86_400;

/// How links are enriched.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `LINKS_CONCURRENCY`: links that one process fetches at once; 10 unless set.
    pub concurrency: u32,
    /// `LINKS_PER_DOMAIN`: of these and those of all other processes, links of one domain; 2 unless set.
    pub per_domain: u32,
    /// `LINKS_RETRY_SECONDS`: how long a first failure waits, said when a link is first imported; 300 unless set.
    pub retry: Duration,
    /// `LINKS_LEASE_SECONDS`: a link whose worker was not heard of for this long is another's; 600 unless set.
    pub lease: Duration,
    /// `LINKS_FETCH_TIMEOUT_MS`: how long one call may take; 10,000 unless set.
    pub fetch_timeout: Duration,
    /// `LINKS_ROBOTS_SECONDS`: how long a robots.txt is good; 3,600 unless set.
    pub robots_ttl: Duration,
    /// `LINKS_SETTLE_MS`: how often an import looks which of its links have ended; 1,000 unless set.
    pub settle_every: Duration,
    /// `LINKS_PROXY`: all calls go through it, and it decides whom they may reach; none unless set.
    pub proxy: Option<SocketAddr>,
    /// `SENTRY_DSN`: who is told of links that are dead; nobody unless set.
    pub sentry_dsn: Option<String>,
}

impl Settings {
    /// Reads them; a wrong one is refused by its name.
    pub fn read(env: &Env) -> Result<Self, BoxError> {
        let number = |name, most, usual: u32| -> Result<u32, BoxError> {
            let set = env.number(name, 1, most)?;
            Ok(set.and_then(|set| u32::try_from(set).ok()).unwrap_or(usual))
        };
        let millis = |name, most, usual| -> Result<Duration, BoxError> {
            Ok(env.millis(name, 10, most)?.unwrap_or(Duration::from_millis(usual)))
        };
        Ok(Self {
            concurrency: number("LINKS_CONCURRENCY", 256, LINKS.claim_max.into())?,
            per_domain: number("LINKS_PER_DOMAIN", 100, PER_DOMAIN)?,
            retry: env.seconds("LINKS_RETRY_SECONDS", 1, DAY_S)?.unwrap_or(RETRY),
            lease: env.seconds("LINKS_LEASE_SECONDS", 2, DAY_S)?.unwrap_or(LINKS.lease_ttl),
            fetch_timeout: millis("LINKS_FETCH_TIMEOUT_MS", 60_000, 10_000)?,
            robots_ttl: env.seconds("LINKS_ROBOTS_SECONDS", 1, DAY_S)?.unwrap_or(Duration::from_secs(3_600)),
            settle_every: millis("LINKS_SETTLE_MS", 60_000, 1_000)?,
            proxy: env.text("LINKS_PROXY").map(|text| proxy(&text)).transpose()?,
            sentry_dsn: env.text("SENTRY_DSN"),
        })
    }

    /// When a link is tried again: after always the same time.
    pub fn backoff(&self) -> Backoff {
        Backoff::Fixed { delay: self.retry, jitter: Jitter::NONE }
    }
}

fn proxy(text: &str) -> Result<SocketAddr, BoxError> {
    let refused =
        |_| format!("LINKS_PROXY=`{}` is refused: it is an address and a port, 127.0.0.1:7403", text.escape_debug());
    Ok(text.parse().map_err(refused)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: S1.16 S1.33 S1.40 S1.43 S1.45 S1.46
    #[test]
    fn unless_set_they_are_the_numbers_of_the_seed() {
        let settings = Settings::read(&Env::of(&[])).unwrap();
        assert_eq!((settings.concurrency, settings.per_domain), (10, 2));
        assert_eq!((settings.retry.as_secs(), settings.lease.as_secs()), (300, 600));
        assert_eq!(settings.backoff(), LINKS.rules.backoff, "the same as the preset's, without jitter");
        assert_eq!((settings.proxy, settings.sentry_dsn), (None, None));
        assert_eq!(LINKS.rules.max_attempts, 2);
    }

    /// Shows: S1.41
    #[test]
    fn what_is_set_is_heard_and_what_is_wrong_is_refused_by_its_name() {
        let env = Env::of(&[("LINKS_CONCURRENCY", "25"), ("LINKS_PROXY", "127.0.0.1:7403")]);
        let settings = Settings::read(&env).unwrap();
        assert_eq!((settings.concurrency, settings.proxy.unwrap().port()), (25, 7_403));
        for (name, value) in [("LINKS_CONCURRENCY", "0"), ("LINKS_PER_DOMAIN", "two"), ("LINKS_PROXY", "proxy.example")]
        {
            let refused = Settings::read(&Env::of(&[(name, value)])).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("{name}=`{value}` is refused: it is a")), "{refused}");
        }
    }
}
