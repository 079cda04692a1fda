//! [`Settings`]: what can be set, by the names that the seed gave it.

use std::net::SocketAddr;
use std::time::Duration;

use kit::{BoxError, Env};
use tenure::preset::PASSPORT;
use tenure::webhooks::{Cidr, Guard, GuardOptions, MasterKeys};

use crate::sign::{KeyId, KeyRing};
use crate::version::BuildId;

/// How the product works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `BPC_JOBS_POLL_INTERVAL_MS`: how often the database is asked; 1000 unless set.
    pub poll_every: Duration,
    /// `BPC_JOBS_LEASE_SECONDS`: how long a lease lasts without renewal; 60 unless set.
    pub lease_ttl: Duration,
    /// `BPC_JOBS_LEASE_RENEW_SECONDS`: how often it is renewed; 30 unless set, half of the lease at most.
    pub renew_every: Duration,
    /// `BPC_JOBS_SLOTS`: jobs that one process runs at once; 4 unless set.
    pub slots: u32,
    /// `BPC_QUEUE_…`: the broker that wakes workers; none unless `BPC_QUEUE_ENABLED` is true.
    pub queue: Option<Queue>,
    /// `BPC_HEALTH_REQUIRE_QUEUE`: whether a process without its broker is not ready; false unless set.
    pub health_requires_queue: bool,
    /// `BPC_SIGNING_KEYS`: `id=seed,…`; none unless set.
    pub keys: KeyRing,
    /// `BPC_SIGNING_KEY_ID`: the one that signs; `dev-key-1` unless set.
    pub key_id: KeyId,
    /// `BPC_MASTER_KEYS`: `id:key,…`, which seal the secrets of webhooks; none unless set.
    pub seals: Option<MasterKeys>,
    /// `BPC_ENV`: `production` unless set. In `development` receivers may be of this machine, and http.
    pub is_production: bool,
    /// `BPC_WEBHOOK_TIMEOUT_SECONDS`: how long a receiver may take; 30 unless set, 300 at most.
    pub webhook_timeout: Duration,
    /// `BPC_BUILD_ID`: what the compiler calls itself; its version unless set.
    pub build_id: BuildId,
    /// `BPC_LISTEN`: where the server listens, an address of this machine; `127.0.0.1:7410` unless set.
    pub listen: SocketAddr,
}

/// Where a broker is and what is said there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// `BPC_QUEUE_URL`: `amqp://…`.
    pub url: String,
    /// `BPC_QUEUE_EXCHANGE`: `bpc` unless set.
    pub exchange: String,
    /// `BPC_QUEUE_ROUTING_KEY`: `jobs.trigger` unless set.
    pub routing_key: String,
}

impl Settings {
    /// Reads them; a wrong one is refused by its name.
    pub fn read(env: &Env) -> Result<Self, BoxError> {
        let day = 86_400;
        let text = |name, otherwise: &str| env.text(name).unwrap_or_else(|| otherwise.to_owned());
        let lease_ttl = env.seconds("BPC_JOBS_LEASE_SECONDS", 1, day)?.unwrap_or(PASSPORT.lease_ttl);
        let renew_every = env.seconds("BPC_JOBS_LEASE_RENEW_SECONDS", 1, day)?.unwrap_or(PASSPORT.renew_every);
        if renew_every * 2 > lease_ttl {
            let (ttl, renew) = (lease_ttl.as_secs(), renew_every.as_secs());
            return Err(format!(
                "BPC_JOBS_LEASE_RENEW_SECONDS=`{renew}` is refused: it is at most half of BPC_JOBS_LEASE_SECONDS, which \
                 is {ttl}, so that one renewal may fail"
            )
            .into());
        }
        let is_production = match text("BPC_ENV", "production").as_str() {
            "production" => true,
            "development" => false,
            other => return Err(format!("BPC_ENV=`{other}` is refused: it is production or development").into()),
        };
        let named = |name: &str, refused: &dyn std::fmt::Display| -> BoxError { format!("{name}: {refused}").into() };
        let listen = text("BPC_LISTEN", "127.0.0.1:7410");
        Ok(Self {
            poll_every: env.millis("BPC_JOBS_POLL_INTERVAL_MS", 1, day * 1_000)?.unwrap_or(PASSPORT.poll_every),
            lease_ttl,
            renew_every,
            slots: env.number("BPC_JOBS_SLOTS", 1, 1_000)?.and_then(|slots| u32::try_from(slots).ok()).unwrap_or(4),
            queue: Queue::read(env)?,
            health_requires_queue: env.switch("BPC_HEALTH_REQUIRE_QUEUE")?.unwrap_or(false),
            keys: KeyRing::parse(&text("BPC_SIGNING_KEYS", ""))
                .map_err(|why| named("BPC_SIGNING_KEYS", &why.message))?,
            key_id: KeyId::new(text("BPC_SIGNING_KEY_ID", "dev-key-1"))
                .map_err(|why| named("BPC_SIGNING_KEY_ID", &why))?,
            seals: env
                .text("BPC_MASTER_KEYS")
                .map(|keys| keys.parse().map_err(|why| named("BPC_MASTER_KEYS", &why)))
                .transpose()?,
            is_production,
            webhook_timeout: env.seconds("BPC_WEBHOOK_TIMEOUT_SECONDS", 1, 300)?.unwrap_or(Duration::from_secs(30)),
            build_id: BuildId::new(text("BPC_BUILD_ID", env!("CARGO_PKG_VERSION")))
                .map_err(|why| named("BPC_BUILD_ID", &why))?,
            listen: listen
                .parse()
                .map_err(|_| format!("BPC_LISTEN=`{listen}` is refused: it is an address such as 127.0.0.1:7410"))?,
        })
    }

    /// Whom webhooks may reach: in production public addresses, by https.
    pub fn guard(&self) -> Result<Guard, BoxError> {
        if self.is_production {
            return Ok(Guard::default());
        }
        let allow = ["127.0.0.0/8", "::1/128"].map(str::parse::<Cidr>).into_iter().collect::<Result<_, _>>()?;
        Ok(Guard::new(GuardOptions { https_only: false, ports: Vec::new(), allow }))
    }
}

impl Queue {
    fn read(env: &Env) -> Result<Option<Self>, BoxError> {
        if !env.switch("BPC_QUEUE_ENABLED")?.unwrap_or(false) {
            return Ok(None);
        }
        let url = env.text("BPC_QUEUE_URL");
        let url =
            url.ok_or("BPC_QUEUE_URL is missing: BPC_QUEUE_ENABLED asks for a broker, such as amqp://localhost")?;
        Ok(Some(Self {
            url,
            exchange: env.text("BPC_QUEUE_EXCHANGE").unwrap_or_else(|| "bpc".to_owned()),
            routing_key: env.text("BPC_QUEUE_ROUTING_KEY").unwrap_or_else(|| "jobs.trigger".to_owned()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pairs: &[(&str, &str)]) -> String {
        Settings::read(&Env::of(pairs)).unwrap_err().to_string()
    }

    /// Shows: S4.05 S4.06 S4.12 S4.13 S4.14 S4.48
    #[test]
    fn unless_set_they_are_the_numbers_of_the_seed() {
        let settings = Settings::read(&Env::of(&[])).unwrap();
        assert_eq!(settings.poll_every, Duration::from_millis(1_000));
        assert_eq!((settings.lease_ttl.as_secs(), settings.renew_every.as_secs()), (60, 30));
        assert_eq!((settings.queue, settings.health_requires_queue, settings.is_production), (None, false, true));
        assert_eq!(settings.webhook_timeout, Duration::from_secs(30));
    }

    /// Shows: S4.05 S4.06 S4.07 S4.12 S4.13 S4.14
    #[test]
    fn the_names_of_the_seed_are_heard() {
        let env = [
            ("BPC_JOBS_POLL_INTERVAL_MS", "250"),
            ("BPC_JOBS_LEASE_SECONDS", "10"),
            ("BPC_JOBS_LEASE_RENEW_SECONDS", "5"),
            ("BPC_QUEUE_ENABLED", "true"),
            ("BPC_QUEUE_URL", "amqp://localhost"),
            ("BPC_HEALTH_REQUIRE_QUEUE", "true"),
        ];
        let settings = Settings::read(&Env::of(&env)).unwrap();
        assert_eq!(settings.poll_every, Duration::from_millis(250));
        assert_eq!((settings.lease_ttl.as_secs(), settings.renew_every.as_secs()), (10, 5));
        assert!(settings.health_requires_queue);
        let queue = settings.queue.unwrap();
        assert_eq!((queue.exchange.as_str(), queue.routing_key.as_str()), ("bpc", "jobs.trigger"));
        let named = [("BPC_QUEUE_EXCHANGE", "mine"), ("BPC_QUEUE_ROUTING_KEY", "jobs.mine")];
        let settings = Settings::read(&Env::of(&[&env[..], &named].concat())).unwrap();
        let queue = settings.queue.unwrap();
        assert_eq!((queue.exchange.as_str(), queue.routing_key.as_str()), ("mine", "jobs.mine"));
    }

    /// Shows: S4.15
    #[test]
    fn a_lease_that_one_missed_renewal_would_lose_is_refused() {
        let lease = ("BPC_JOBS_LEASE_SECONDS", "59");
        let said = refused(&[lease]);
        assert!(
            said.contains("BPC_JOBS_LEASE_RENEW_SECONDS=`30` is refused") && said.contains("which is 59"),
            "{said}"
        );
        assert!(Settings::read(&Env::of(&[lease, ("BPC_JOBS_LEASE_RENEW_SECONDS", "29")])).is_ok());
    }

    #[test]
    fn a_wrong_setting_is_refused_by_its_name_and_a_secret_is_not_repeated() {
        for (name, value) in [
            ("BPC_JOBS_POLL_INTERVAL_MS", "0"),
            ("BPC_ENV", "staging"),
            ("BPC_LISTEN", "everywhere"),
            ("BPC_BUILD_ID", "a b"),
            ("BPC_SIGNING_KEY_ID", "a b"),
        ] {
            let said = refused(&[(name, value)]);
            assert!(said.contains(name) && said.contains(value), "{said}");
        }
        for name in ["BPC_SIGNING_KEYS", "BPC_MASTER_KEYS"] {
            let said = refused(&[(name, "k=:s3cret")]);
            assert!(said.contains(name) && !said.contains("s3cret"), "{said}");
        }
        assert!(refused(&[("BPC_QUEUE_ENABLED", "true")]).contains("BPC_QUEUE_URL"));
    }

    /// Shows: S4.51
    #[test]
    fn production_calls_public_receivers_by_https_and_development_this_machine() {
        let guard = |env: &str| Settings::read(&Env::of(&[("BPC_ENV", env)])).unwrap().guard().unwrap();
        let production = guard("production");
        assert!(production.check_url("https://example.com/hook").is_ok());
        for refused in ["http://example.com/hook", "http://127.0.0.1:9/", "https://127.0.0.1/", "https://10.0.0.1/"] {
            assert!(production.check_url(refused).is_err(), "{refused}");
        }
        let development = guard("development");
        assert!(development.check_url("http://127.0.0.1:7420/hook").is_ok());
        assert!(development.check_url("http://10.0.0.1/").is_err(), "the network's own machines are not ours");
    }
}
