//! Names that people choose: queues, kinds, tenants, gates, schedules, workers.
//!
//! They appear in URLs, metrics, logs and `NOTIFY` payloads, so the alphabet is small and there is nothing to escape. Every
//! claimed job carries three of them: a clone shares the text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::invalid::Invalid;

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 100;
/// Longest unique or idempotency key, scope, actor or reason, in bytes.
pub const TEXT_BYTES_MAX: usize = 500;

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks `name` and keeps it.
            pub fn new(name: impl Into<Arc<str>>) -> Result<Self, Invalid> {
                let name = name.into();
                check_name($field, &name)?;
                Ok(Self(name))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = Invalid;
            fn from_str(name: &str) -> Result<Self, Invalid> {
                Self::new(name)
            }
        }
    };
}

name!(
    /// A named line of jobs with a lease time of its own; can be paused.
    QueueName,
    "queue"
);
name!(
    /// What a job asks to be done; picks the handler.
    KindName,
    "kind"
);
name!(
    /// Owner of jobs, and the boundary of sight, fairness and quota.
    TenantName,
    "tenant"
);
name!(
    /// A shared resource that jobs pass: a source, a domain.
    GateName,
    "gate"
);
name!(
    /// Something that asks for a job again and again, by the clock.
    ScheduleName,
    "schedule"
);
name!(
    /// One stream of pages inside a run.
    PartitionName,
    "partition"
);
name!(
    /// One start of a worker process, as people read it.
    WorkerName,
    "worker"
);

impl Default for QueueName {
    fn default() -> Self {
        Self("default".into())
    }
}

impl Default for TenantName {
    fn default() -> Self {
        Self("default".into())
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), Invalid> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'/');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(allowed) {
        let limit = format!("a name is 1 to {NAME_BYTES_MAX} of a-z A-Z 0-9 . _ - : /");
        return Err(Invalid::new(field, name, limit));
    }
    Ok(())
}

/// Checks free text that people write or programs compose: keys, reasons, actors.
pub fn check_text(field: &'static str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
        let limit = format!("it is 1 to {TEXT_BYTES_MAX} bytes of text without control characters");
        return Err(Invalid::new(field, text, limit));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_small_alphabet_are_kept() {
        for good in ["default", "mail.out", "domain:example.org", "a/b-c_D9", &"x".repeat(NAME_BYTES_MAX)] {
            assert_eq!(QueueName::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn other_names_are_refused_with_their_field() {
        for bad in ["", "a b", "a\0", "naïve", "x'; drop table job", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(KindName::new(bad).unwrap_err().field, "kind", "{bad:?}");
        }
    }

    #[test]
    fn keys_may_hold_any_language_but_no_control_characters() {
        assert_eq!(check_text("unique key", "Straße 7 / 東京"), Ok(()));
        for bad in ["", "a\0b", "a\nb", &"x".repeat(TEXT_BYTES_MAX + 1)] {
            assert_eq!(check_text("unique key", bad).unwrap_err().field, "unique key", "{bad:?}");
        }
    }
}
