//! [`Settings`]: what can be set about the task runner, checked at its start.
//!
//! The seed names no variables. `WORKER_ID` and `TENURE_WEBHOOK_KEYS` are the library's own names; the rest begins with
//! `TASKS_`.

use std::time::Duration;

use kit::{BoxError, Env};
use tenure::Invalid;
use tenure::core::worker_loop::ERROR_WAIT;
use tenure::preset::TASKS;
use tenure::webhooks::{Cidr, Guard, GuardOptions, MasterKeys, Secret};

use crate::task::TIMEOUT;

/// A day: the longest lease.
const DAY_SECONDS: u64 = 86_400;
/// The longest that a document may take: what came has to be kept as well before its handler is stopped.
const FETCH_SECONDS_MAX: u64 = TIMEOUT.as_secs() - 10;

/// How the task runner runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `WORKER_ID`: how people read this worker; the machine and the process unless set.
    pub name: Option<String>,
    /// `TASKS_SLOTS`: tasks that run at once in one process. One, as in the seed.
    pub slots: u32,
    /// `TASKS_LEASE_SECONDS`: how long a lease lasts without renewal. It is the queue's: who starts last says it for all.
    pub lease: Duration,
    /// `TASKS_RENEW_SECONDS`: how often it is renewed.
    pub renew: Duration,
    /// `TASKS_POLL_MS`: the longest rest between two looks.
    pub poll: Duration,
    /// `TASKS_RECOVERY_MS`: how often expired leases are looked for.
    pub recovery: Duration,
    /// `TASKS_ERROR_WAIT_MS`: how long the loop stands still after something unexpected. Five seconds, as in the seed.
    pub error_wait: Duration,
    /// `TASKS_GRACE_SECONDS`: how long running tasks may go on after SIGTERM.
    pub grace: Duration,
    /// `TASKS_FETCH_SECONDS`: how long a document may take.
    pub fetch_timeout: Duration,
    /// `TASKS_LOCAL`: what tasks and callbacks may reach beside the public internet, by http and any port:
    /// [`this_machine`], for development. Empty: nothing.
    pub allow: Vec<Cidr>,
    /// Who is told how tasks end; nobody where it is not set.
    pub callbacks: Option<Callbacks>,
}

/// What it takes to tell an API how tasks ended.
#[derive(Debug, Clone)]
pub struct Callbacks {
    /// `TASKS_API_SECRET`: what the API checks signatures with.
    pub secret: Secret,
    /// `TENURE_WEBHOOK_KEYS`: what the secret is sealed with in the database. Every process that delivers has the same.
    pub keys: MasterKeys,
    /// `TASKS_CALLBACK_SECONDS`: how long the API may take.
    pub timeout: Duration,
}

impl Default for Settings {
    /// The preset `tasks`.
    fn default() -> Self {
        Self {
            name: None,
            slots: 1,
            lease: TASKS.lease_ttl,
            renew: TASKS.renew_every,
            poll: TASKS.poll_every,
            recovery: TASKS.reclaim_every,
            error_wait: ERROR_WAIT,
            grace: Duration::from_secs(30),
            fetch_timeout: Duration::from_secs(FETCH_SECONDS_MAX),
            allow: Vec::new(),
            callbacks: None,
        }
    }
}

impl Settings {
    /// From the environment. What is wrong is refused by its name.
    pub fn read(env: &Env) -> Result<Self, BoxError> {
        let default = Self::default();
        let lease = env.seconds("TASKS_LEASE_SECONDS", 1, DAY_SECONDS)?.unwrap_or(default.lease);
        // Half of a shorter lease, as the library renews it at the latest.
        let renew = env.seconds("TASKS_RENEW_SECONDS", 1, DAY_SECONDS)?.unwrap_or(default.renew.min(lease / 2));
        if renew * 2 > lease {
            let (renew, lease) = (renew.as_secs(), lease.as_secs());
            return Err(format!("TASKS_RENEW_SECONDS=`{renew}` is refused: one renewal may fail, so it is at most half of TASKS_LEASE_SECONDS, {lease}").into());
        }
        let slots = env.number("TASKS_SLOTS", 1, 100)?;
        Ok(Self {
            name: env.text("WORKER_ID"),
            slots: slots.and_then(|slots| u32::try_from(slots).ok()).unwrap_or(default.slots),
            lease,
            renew,
            poll: env.millis("TASKS_POLL_MS", 10, 3_600_000)?.unwrap_or(default.poll),
            recovery: env.millis("TASKS_RECOVERY_MS", 10, 3_600_000)?.unwrap_or(default.recovery),
            error_wait: env.millis("TASKS_ERROR_WAIT_MS", 10, 3_600_000)?.unwrap_or(default.error_wait),
            grace: env.seconds("TASKS_GRACE_SECONDS", 0, 3_600)?.unwrap_or(default.grace),
            fetch_timeout: env.seconds("TASKS_FETCH_SECONDS", 1, FETCH_SECONDS_MAX)?.unwrap_or(default.fetch_timeout),
            allow: match env.switch("TASKS_LOCAL")? {
                Some(true) => this_machine()?,
                Some(false) | None => default.allow,
            },
            callbacks: Callbacks::read(env)?,
        })
    }

    /// Whom tasks and callbacks may call: the public internet by https, and what is allowed beside it.
    pub fn guard(&self) -> Guard {
        match self.allow.is_empty() {
            true => Guard::default(),
            false => Guard::new(GuardOptions { https_only: false, ports: Vec::new(), allow: self.allow.clone() }),
        }
    }
}

/// The addresses of this machine that nobody else can call.
pub fn this_machine() -> Result<Vec<Cidr>, Invalid> {
    Ok(vec!["127.0.0.0/8".parse()?, "::1/128".parse()?])
}

impl Callbacks {
    fn read(env: &Env) -> Result<Option<Self>, BoxError> {
        let timeout = env.seconds("TASKS_CALLBACK_SECONDS", 1, 30)?.unwrap_or(Duration::from_secs(30));
        let (secret, keys) = (env.text("TASKS_API_SECRET"), env.text("TENURE_WEBHOOK_KEYS"));
        let Some(secret) = secret else { return Ok(None) };
        // Neither refusal repeats what was given.
        let secret: Secret = secret.parse().map_err(|refused| format!("TASKS_API_SECRET: {refused}"))?;
        let keys = keys.ok_or("TENURE_WEBHOOK_KEYS is not set, and TASKS_API_SECRET is kept sealed with it: `tenure webhooks key` makes one")?;
        let keys = keys.parse().map_err(|refused| format!("TENURE_WEBHOOK_KEYS: {refused}"))?;
        Ok(Some(Self { secret, keys, timeout }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::read(&Env::of(pairs)).map_err(|refused| refused.to_string())
    }

    /// Shows: S3.48
    #[test]
    fn nothing_said_is_the_preset() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.lease, settings.renew), (Duration::from_secs(60), Duration::from_secs(30)));
        assert_eq!(
            (settings.poll, settings.recovery, settings.error_wait, settings.slots),
            (Duration::from_secs(1), Duration::from_secs(1), Duration::from_secs(5), 1)
        );
        assert!(settings.callbacks.is_none() && settings.allow.is_empty() && settings.name.is_none());
    }

    #[test]
    fn a_short_lease_is_renewed_in_half_of_its_time() {
        let settings = read(&[("TASKS_LEASE_SECONDS", "3"), ("WORKER_ID", "a"), ("TASKS_SLOTS", "4")]).unwrap();
        assert_eq!((settings.renew, settings.slots), (Duration::from_millis(1_500), 4));
        assert_eq!(settings.name.as_deref(), Some("a"));
    }

    #[test]
    fn this_machine_is_what_is_allowed_and_nothing_beside_it() {
        let guard = read(&[("TASKS_LOCAL", "true")]).unwrap().guard();
        for url in ["http://127.0.0.1:7600/", "http://127.8.8.8/", "http://[::1]:7600/"] {
            assert!(guard.check_url(url).is_ok(), "{url}");
        }
        for url in ["http://10.0.0.1/", "http://169.254.169.254/", "http://[fe80::1]/", "http://0.0.0.0/"] {
            assert!(guard.check_url(url).is_err(), "{url}");
        }
        let guard = read(&[]).unwrap().guard();
        assert!(guard.check_url("https://127.0.0.1/").is_err() && guard.check_url("http://example.com/").is_err());
    }

    #[test]
    fn what_is_wrong_is_refused_by_its_name_and_no_secret_is_repeated() {
        let key = format!("k:{}", "ab".repeat(32));
        let whsec = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";
        for (pairs, name) in [
            (vec![("TASKS_LEASE_SECONDS", "0")], "TASKS_LEASE_SECONDS"),
            (vec![("TASKS_RENEW_SECONDS", "31")], "TASKS_RENEW_SECONDS"),
            (vec![("TASKS_LEASE_SECONDS", "1"), ("TASKS_RENEW_SECONDS", "1")], "TASKS_RENEW_SECONDS"),
            (vec![("TASKS_FETCH_SECONDS", "600")], "TASKS_FETCH_SECONDS"),
            (vec![("TASKS_ERROR_WAIT_MS", "0")], "TASKS_ERROR_WAIT_MS"),
            (vec![("TASKS_SLOTS", "101")], "TASKS_SLOTS"),
            (vec![("TASKS_POLL_MS", "fast")], "TASKS_POLL_MS"),
            (vec![("TASKS_LOCAL", "maybe")], "TASKS_LOCAL"),
            (vec![("TASKS_API_SECRET", whsec)], "TENURE_WEBHOOK_KEYS"),
            (vec![("TASKS_API_SECRET", "c2VjcmV0"), ("TENURE_WEBHOOK_KEYS", key.as_str())], "TASKS_API_SECRET"),
            (vec![("TASKS_API_SECRET", whsec), ("TENURE_WEBHOOK_KEYS", "k:abab")], "TENURE_WEBHOOK_KEYS"),
        ] {
            let refused = read(&pairs).unwrap_err();
            assert!(refused.starts_with(name), "{refused}");
            assert!(!refused.contains("c2Vj") && !refused.contains("abab"), "{refused}");
        }
        assert!(
            read(&[("TASKS_API_SECRET", whsec), ("TENURE_WEBHOOK_KEYS", key.as_str())]).unwrap().callbacks.is_some()
        );
    }
}
