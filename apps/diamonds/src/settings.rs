//! [`Settings`]: what can be set, each with the seed's value unless it is.

use std::path::PathBuf;
use std::time::Duration;

use kit::Env;
use kit::env::Refused;
use tenure::preset::PAGES;

use crate::split::Limits;

/// Where the simulated supplier listens unless somebody says otherwise.
pub const SUPPLIER_URL_DEFAULT: &str = "http://127.0.0.1:7402";

/// How the product works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `DIAMONDS_SUPPLIER_URL`: who is asked for stones.
    pub supplier_url: String,
    /// `DIAMONDS_LEASE_SECONDS`: how long a page is locked without a sign of life; 120 unless set.
    pub lease: Duration,
    /// `DIAMONDS_PAGE_SECONDS`: a page that takes longer is stopped and tried again; 60 unless set.
    pub page_timeout: Duration,
    /// `DIAMONDS_DELIVERIES`: how often a page is tried before its partition has failed; 5 unless set.
    pub deliveries: u16,
    /// `DIAMONDS_WINDOW_SECONDS`: a message with the same id within this time is the same message; 600 unless set.
    pub window: Duration,
    /// `DIAMONDS_PAUSE_SECONDS`: how long a supplier that cannot be reached is left alone; 5 unless set. Ours.
    pub pause: Duration,
    /// `DIAMONDS_PARTITION_SIZE`: most stones of a partition; 5,000 unless set. `DIAMONDS_PARTITIONS_MAX`: most
    /// partitions, which is how many pages wait at once; 99 unless set, so that they stay below 100.
    pub limits: Limits,
    /// `DIAMONDS_SLOTS`: pages that one process does at once; 8 unless set.
    pub slots: u32,
    /// `DIAMONDS_GRACE_SECONDS`: how long a page may go on after SIGTERM; 30 unless set.
    pub grace: Duration,
    /// `DIAMONDS_MARKUP`: a file with rules of markup; the table that comes with the product unless set.
    pub markup: Option<PathBuf>,
}

impl Settings {
    /// Reads them; a wrong one is refused by its name.
    pub fn read(env: &Env) -> Result<Self, Refused> {
        let day = 86_400;
        let size_max = env.number("DIAMONDS_PARTITION_SIZE", 1, 1_000_000)?.unwrap_or(5_000);
        let partitions_max = env.number("DIAMONDS_PARTITIONS_MAX", 1, 1_000)?.unwrap_or(99);
        let deliveries = env.number("DIAMONDS_DELIVERIES", 1, 100)?.unwrap_or(5);
        let slots = env.number("DIAMONDS_SLOTS", 1, 1_000)?.unwrap_or(8);
        let supplier_url = env.text("DIAMONDS_SUPPLIER_URL").unwrap_or_else(|| SUPPLIER_URL_DEFAULT.to_owned());
        Ok(Self {
            supplier_url: supplier_url.trim_end_matches('/').to_owned(),
            lease: env.seconds("DIAMONDS_LEASE_SECONDS", 1, day)?.unwrap_or(PAGES.lease_ttl),
            page_timeout: env.seconds("DIAMONDS_PAGE_SECONDS", 1, day)?.unwrap_or(Duration::from_secs(60)),
            deliveries: u16::try_from(deliveries).unwrap_or(u16::MAX), // at most 100
            window: env.seconds("DIAMONDS_WINDOW_SECONDS", 1, day)?.unwrap_or(Duration::from_secs(600)),
            pause: env.seconds("DIAMONDS_PAUSE_SECONDS", 0, day)?.unwrap_or(Duration::from_secs(5)),
            limits: Limits { size_max, partitions_max },
            slots: u32::try_from(slots).unwrap_or(u32::MAX), // at most 1,000
            grace: env.seconds("DIAMONDS_GRACE_SECONDS", 0, day)?.unwrap_or(Duration::from_secs(30)),
            markup: env.text("DIAMONDS_MARKUP").map(PathBuf::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: S2.02 S2.32 S2.47 S2.48
    #[test]
    fn unless_set_they_are_the_numbers_of_the_seed() {
        let settings = Settings::read(&Env::of(&[])).unwrap();
        assert_eq!((settings.lease.as_secs(), settings.page_timeout.as_secs()), (120, 60));
        assert_eq!((settings.deliveries, settings.window.as_secs()), (5, 600));
        assert!(settings.limits.partitions_max < 100, "the queue stays below 100 messages");
    }

    #[test]
    fn each_is_heard_by_its_name_and_refused_by_it() {
        let env = Env::of(&[
            ("DIAMONDS_SUPPLIER_URL", "http://stones.example/api/"),
            ("DIAMONDS_LEASE_SECONDS", "2"),
            ("DIAMONDS_PARTITION_SIZE", "500"),
            ("DIAMONDS_PAUSE_SECONDS", "0"),
        ]);
        let settings = Settings::read(&env).unwrap();
        assert_eq!(settings.supplier_url, "http://stones.example/api");
        assert_eq!((settings.lease.as_secs(), settings.limits.size_max, settings.pause.as_secs()), (2, 500, 0));
        let refused = Settings::read(&Env::of(&[("DIAMONDS_SLOTS", "0")])).unwrap_err();
        assert_eq!(refused.to_string(), "DIAMONDS_SLOTS=`0` is refused: it is a whole number from 1 to 1000");
    }
}
