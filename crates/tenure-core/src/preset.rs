//! The policies of the five seeds, shipped under their names: coins, links, pages, tasks, passport.
//!
//! A preset is data and nothing else: pick one, change what differs. Where a seed is silent the choice is ours and is
//! marked so.

use std::time::Duration;

use crate::apply::{Rules, SPARE_LOSSES};
use crate::backoff::{Backoff, Count, Jitter};
use crate::classify::{Class, Pattern, Rule, RuleTable};

/// A product's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// What it is called in settings and commands.
    pub name: &'static str,
    /// How long a lease lasts without renewal.
    pub lease_ttl: Duration,
    /// How often a lease is renewed while its jobs run.
    pub renew_every: Duration,
    /// How often a worker looks for expired leases.
    pub reclaim_every: Duration,
    /// How often a worker looks for jobs when nobody wakes it.
    pub poll_every: Duration,
    /// Most jobs one claim takes.
    pub claim_max: u16,
    /// Limits and retry policy of its jobs.
    pub rules: Rules,
    /// What its handlers' errors mean.
    pub classification: RuleTable,
}

/// Polling of a worker that says nothing.
pub const POLL_EVERY_DEFAULT: Duration = Duration::from_secs(1);
/// Reclaiming of a worker that says nothing: a crashed worker's job runs again within its lease time and a second.
pub const RECLAIM_EVERY_DEFAULT: Duration = Duration::from_secs(1);

const MINUTE: Duration = Duration::from_secs(60);

/// S0, the coin-price collector. Ours: five attempts, a base of one minute.
pub static COINS: Preset = Preset {
    name: "coins",
    lease_ttl: Duration::from_secs(300),
    renew_every: Duration::from_secs(20),
    reclaim_every: MINUTE,
    poll_every: POLL_EVERY_DEFAULT,
    claim_max: 1,
    rules: Rules {
        max_attempts: 5,
        max_losses: 5 + SPARE_LOSSES,
        backoff: Backoff::Exponential {
            base: MINUTE,
            cap: Duration::from_secs(86_400),
            by: Count::Failures,
            jitter: Jitter::NONE,
        },
    },
    // Its list (timeout, connection, rate limit) is part of what everybody gets.
    classification: RuleTable::standard(),
};

/// S1, link import and enrichment. Ours: renewal each minute.
pub static LINKS: Preset = Preset {
    name: "links",
    lease_ttl: Duration::from_secs(600),
    renew_every: MINUTE,
    reclaim_every: RECLAIM_EVERY_DEFAULT,
    poll_every: POLL_EVERY_DEFAULT,
    claim_max: 10,
    rules: Rules {
        max_attempts: 2,
        max_losses: 2 + SPARE_LOSSES,
        backoff: Backoff::Fixed { delay: Duration::from_secs(300), jitter: Jitter::NONE },
    },
    classification: RuleTable::new(LINKS_RULES, Class::Transient),
};

/// S2, paged partition ingest. Ours: renewal each 30 s; a page is tried again at once, as its broker redelivers.
pub static PAGES: Preset = Preset {
    name: "pages",
    lease_ttl: Duration::from_secs(120),
    renew_every: Duration::from_secs(30),
    reclaim_every: RECLAIM_EVERY_DEFAULT,
    poll_every: POLL_EVERY_DEFAULT,
    claim_max: 1,
    rules: Rules { max_attempts: 5, max_losses: 5 + SPARE_LOSSES, backoff: Backoff::None },
    classification: RuleTable::standard(),
};

/// S3, the task runner: an error is final, only a lost lease is tried again. Ours: lease times and three tries.
pub static TASKS: Preset = Preset {
    name: "tasks",
    lease_ttl: MINUTE,
    renew_every: Duration::from_secs(30),
    reclaim_every: RECLAIM_EVERY_DEFAULT,
    poll_every: POLL_EVERY_DEFAULT,
    claim_max: 1,
    // Its tries are counted by claims, so there is no loss to spare: the third one is the last.
    rules: Rules { max_attempts: 3, max_losses: 3, backoff: Backoff::Never },
    classification: RuleTable::new(&[], Class::Permanent),
};

/// S4, the battery-passport worker.
pub static PASSPORT: Preset = Preset {
    name: "passport",
    lease_ttl: MINUTE,
    renew_every: Duration::from_secs(30),
    reclaim_every: RECLAIM_EVERY_DEFAULT,
    poll_every: POLL_EVERY_DEFAULT,
    claim_max: 1,
    rules: Rules {
        max_attempts: 5,
        max_losses: 5 + SPARE_LOSSES,
        backoff: Backoff::Exponential {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(1_024),
            by: Count::Attempts,
            jitter: Jitter::NONE,
        },
    },
    // What is not on its list of retryable errors is permanent.
    classification: RuleTable::new(PASSPORT_RULES, Class::Permanent),
};

/// The code for a page that robots.txt keeps us from.
pub const ROBOTS_REFUSED: &str = "ROBOTS_REFUSED";
/// The code for a page that asks for a person.
pub const CAPTCHA: &str = "CAPTCHA";

/// Who does not want us is left alone and put forward for blocking; one 403 alone may be bad luck.
const LINKS_RULES: &[Rule] = &[
    Rule::code(ROBOTS_REFUSED, Class::Dead).blocking(),
    Rule::code(CAPTCHA, Class::Dead).blocking(),
    Rule::http_status(403, Class::Dead).from_streak(2).blocking(),
];

const PASSPORT_RULES: &[Rule] = &[
    Rule::code("DB_UNAVAILABLE", Class::Transient),
    Rule::code("QUEUE_UNAVAILABLE", Class::Transient),
    Rule::code("HttpException", Class::Transient),
    Rule::code("WebhookTimeout", Class::Transient),
    Rule::code("WebhookNon2xx", Class::Transient),
    Rule::code("SNAPSHOT_NOT_READY", Class::Permanent),
    Rule::code("RULE_PKG_NOT_PUBLISHED", Class::Permanent),
    Rule::code("VALIDATION_ERROR", Class::Permanent),
    Rule::code("RULE_TYPE_ERROR", Class::Permanent),
    Rule::code("PAYLOAD_TOO_LARGE", Class::Permanent),
    Rule::code("SIGNING_KEY_MISSING", Class::Permanent),
    // The same errors, met without a code. Every answer of a webhook's receiver that is no 2xx is tried again.
    Rule::new(Pattern::Timeout, Class::Transient),
    Rule::new(Pattern::Connection, Class::Transient),
    Rule::new(Pattern::RateLimit, Class::Transient),
    Rule::http_statuses(300, 599, Class::Transient),
];

impl Preset {
    /// All five, in the order of the seeds.
    pub fn all() -> [&'static Self; 5] {
        [&COINS, &LINKS, &PAGES, &TASKS, &PASSPORT]
    }

    /// The preset of this name, if there is one.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().into_iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Class::{Dead, Permanent, Transient};
    use super::*;
    use crate::classify::{Fault, Verdict};

    #[test]
    #[rustfmt::skip] // the columns are the point
    fn the_presets_are_the_table_of_the_mission() {
        let expected = [
            // name      ttl renew reclaim poll claim attempts losses  retry delay
            ("coins",    300, 20,  60,     1,   1,    5,       8,      "exponential 1m..1d by failures"),
            ("links",    600, 60,  1,      1,   10,   2,       5,      "fixed 5m"),
            ("pages",    120, 30,  1,      1,   1,    5,       8,      "none"),
            ("tasks",    60,  30,  1,      1,   1,    3,       3,      "never"),
            ("passport", 60,  30,  1,      1,   1,    5,       8,      "exponential 1s..1024s by attempts"),
        ];
        for (preset, row) in Preset::all().into_iter().zip(expected) {
            let Preset { name, lease_ttl, renew_every, reclaim_every, poll_every, claim_max, rules, .. } = preset;
            let Rules { max_attempts, max_losses, backoff } = rules;
            let times = [lease_ttl, renew_every, reclaim_every, poll_every];
            let [ttl, renew, reclaim, poll] = times.map(Duration::as_secs);
            let backoff = backoff.to_string();
            let actual = (*name, ttl, renew, reclaim, poll, *claim_max, *max_attempts, *max_losses, backoff.as_str());
            assert_eq!(actual, row);
        }
    }

    #[test]
    fn every_preset_is_found_by_its_name_and_is_sound() {
        for preset in Preset::all() {
            assert_eq!(Preset::named(preset.name), Some(preset));
            assert!(preset.renew_every * 2 <= preset.lease_ttl, "{}: one renewal may fail", preset.name);
            assert!(preset.rules.max_losses >= preset.rules.max_attempts, "{}", preset.name);
        }
        assert_eq!(Preset::named("Coins"), None);
    }

    #[test]
    fn coins_try_timeouts_connections_and_rate_limits_again() {
        for fault in [Fault::Timeout, Fault::Connection, Fault::RateLimit, Fault::HttpStatus(429)] {
            assert_eq!(class(&COINS, fault), Transient, "{fault:?}");
        }
        assert_eq!(class(&COINS, Fault::HttpStatus(404)), Permanent);
    }

    #[test]
    fn links_bury_who_refuses_them_and_record_a_block_candidate() {
        let bury = Verdict { class: Dead, block_candidate: true };
        let again = Verdict { class: Transient, block_candidate: false };
        for (fault, streak, verdict) in [
            (Fault::Code(ROBOTS_REFUSED), 1, bury),
            (Fault::Code(CAPTCHA), 1, bury),
            (Fault::HttpStatus(403), 1, again),
            (Fault::HttpStatus(403), 2, bury),
            (Fault::HttpStatus(403), 3, bury),
            (Fault::HttpStatus(401), 2, again),
            (Fault::HttpStatus(404), 2, again),
            (Fault::HttpStatus(500), 2, again),
            (Fault::Timeout, 2, again),
            (Fault::Code("PARSE_ERROR"), 2, again),
        ] {
            assert_eq!(LINKS.classification.classify(&fault, streak), verdict, "{fault:?} {streak}");
        }
    }

    #[test]
    fn pages_tell_transient_from_permanent() {
        assert_eq!(class(&PAGES, Fault::HttpStatus(503)), Transient);
        assert_eq!(class(&PAGES, Fault::HttpStatus(400)), Permanent);
    }

    #[test]
    fn tasks_fail_by_any_error() {
        for fault in [Fault::Timeout, Fault::Connection, Fault::Panic, Fault::HttpStatus(500), Fault::Code("X")] {
            assert_eq!(class(&TASKS, fault), Permanent, "{fault:?}");
        }
    }

    #[test]
    fn passports_retry_what_their_list_says() {
        for code in ["DB_UNAVAILABLE", "QUEUE_UNAVAILABLE", "HttpException", "WebhookTimeout", "WebhookNon2xx"] {
            assert_eq!(class(&PASSPORT, Fault::Code(code)), Transient, "{code}");
        }
        for code in [
            "SNAPSHOT_NOT_READY",
            "RULE_PKG_NOT_PUBLISHED",
            "VALIDATION_ERROR",
            "RULE_TYPE_ERROR",
            "PAYLOAD_TOO_LARGE",
            "SIGNING_KEY_MISSING",
            "NOT_ON_ANY_LIST",
        ] {
            assert_eq!(class(&PASSPORT, Fault::Code(code)), Permanent, "{code}");
        }
        let met = [300, 302, 400, 404, 410, 429, 500, 503, 599].map(Fault::HttpStatus);
        for fault in met.into_iter().chain([Fault::Timeout, Fault::Connection, Fault::RateLimit]) {
            assert_eq!(class(&PASSPORT, fault), Transient, "{fault:?}");
        }
        assert_eq!(class(&PASSPORT, Fault::Panic), Permanent);
    }

    #[test]
    fn every_row_of_every_preset_can_speak() {
        // A row behind a wider one would never be reached.
        for preset in Preset::all() {
            for rule in preset.classification.rules.iter() {
                let fault = match &rule.matches {
                    Pattern::Code(code) => Fault::Code(code),
                    Pattern::HttpStatus(first, _) => Fault::HttpStatus(*first),
                    Pattern::Timeout => Fault::Timeout,
                    Pattern::Connection => Fault::Connection,
                    Pattern::RateLimit => Fault::RateLimit,
                    Pattern::Panic => Fault::Panic,
                };
                let verdict = preset.classification.classify(&fault, rule.from_streak);
                assert_eq!(verdict, Verdict { class: rule.class, block_candidate: rule.blocks }, "{rule:?}");
            }
        }
    }

    fn class(preset: &Preset, fault: Fault<'_>) -> Class {
        preset.classification.classify(&fault, 1).class
    }
}
