//! Ids: a job's uuid, a lease's number, a worker's number.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use uuid::Uuid;

use crate::invalid::Invalid;
use crate::time::Timestamp;

/// How far a job id's own time may be from the store's clock.
pub const ID_CLOCK_SKEW_MAX: Duration = Duration::from_secs(86_400);

/// A job's id for life: a uuid v7 made by the client, so that an enqueue sent twice is one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(Uuid);

impl JobId {
    /// A new id from the time and ten random bytes.
    pub fn from_parts(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Takes a uuid as it came from a store, unchecked: it was checked on its way in.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The uuid.
    pub const fn as_uuid(&self) -> &Uuid {
        &self.0
    }

    /// The time inside a v7 id.
    pub fn made_at(&self) -> Timestamp {
        let millis = self.0.as_bytes()[..6].iter().fold(0_i64, |ms, byte| (ms << 8) | i64::from(*byte));
        Timestamp::from_micros(millis.saturating_mul(1_000))
    }

    /// The first id that begins like this text, and the first one after all of them (`None`: there is none). The text is
    /// the beginning of an id as people copy it, with or without hyphens, of 8 hexadecimal digits or more: fewer would mean
    /// the jobs of hours. Anything else is the beginning of no id.
    pub fn beginning(text: &str) -> Option<(Self, Option<Self>)> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        if !(8..=32).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let first = u128::from_str_radix(&format!("{digits:0<32}"), 16).ok()?;
        // All ids that begin alike differ in so many bits.
        let bits = 128 - 4 * u32::try_from(digits.len()).ok()?;
        let after = 1_u128.checked_shl(bits).and_then(|step| first.checked_add(step));
        Some((Self(Uuid::from_u128(first)), after.map(|after| Self(Uuid::from_u128(after)))))
    }

    /// The refusal of an id that another tenant's job has: nothing is told about that job.
    pub fn in_use(&self) -> Invalid {
        Invalid::new("id", self, "it is in use, make a new one")
    }

    /// Refuses an id that is no uuid v7 or whose time is more than a day off `now`: jobs are listed and pruned by id.
    pub fn check(&self, now: Timestamp) -> Result<(), Invalid> {
        if self.0.get_version_num() != 7 {
            return Err(Invalid::new("id", self, "a job id is a uuid of version 7"));
        }
        let made = self.made_at();
        if made.since(now).max(now.since(made)) > ID_CLOCK_SKEW_MAX {
            let limit = format!("its time {made} must be within a day of the store's clock {now}");
            return Err(Invalid::new("id", self, limit));
        }
        Ok(())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl FromStr for JobId {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = |_| Invalid::new("id", text, "a job id is a uuid such as 01933c5e-7b5a-7000-8000-000000000001");
        Uuid::try_parse(text).map(Self).map_err(refuse)
    }
}

/// An id of something else that is listed by id as jobs are: a uuid v7 made by the client, so that a request sent twice is
/// one. `$field` is what it is called when it is refused.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(uuid::Uuid);

        impl $name {
            /// A new id from the time and ten random bytes.
            pub fn from_parts(now: $crate::time::Timestamp, random: [u8; 10]) -> Self {
                Self(*$crate::id::JobId::from_parts(now, random).as_uuid())
            }

            /// Takes a uuid as it came from a store.
            pub const fn from_uuid(uuid: uuid::Uuid) -> Self {
                Self(uuid)
            }

            /// The uuid.
            pub const fn as_uuid(&self) -> &uuid::Uuid {
                &self.0
            }

            /// Refuses what no job id could be either.
            pub fn check(&self, now: $crate::time::Timestamp) -> Result<(), $crate::invalid::Invalid> {
                let refused = $crate::id::JobId::from_uuid(self.0).check(now);
                refused.map_err(|refused| $crate::invalid::Invalid { field: $field, ..refused })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::invalid::Invalid;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let limit = concat!("the id of a ", $field, " is a uuid such as 01933c5e-7b5a-7000-8000-000000000001");
                uuid::Uuid::try_parse(text).map(Self).map_err(|_| $crate::invalid::Invalid::new($field, text, limit))
            }
        }
    };
}
pub(crate) use uuid_id;

/// The number of a lease: the fence. It only ever grows and is never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseNo(pub i64);

impl LeaseNo {
    /// Above every number that is ever drawn.
    pub const MAX: Self = Self(i64::MAX);
}

impl fmt::Display for LeaseNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of one worker process start, given by the store's registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub i32);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_763_197_200_000_000);

    #[test]
    fn an_id_carries_its_time_and_version() {
        let id = JobId::from_parts(NOW, [7; 10]);
        assert_eq!(id.made_at(), NOW);
        assert_eq!(id.check(NOW), Ok(()));
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn ids_off_the_clock_or_of_another_version_are_refused() {
        let day = ID_CLOCK_SKEW_MAX;
        assert_eq!(JobId::from_parts(NOW.plus(day), [0; 10]).check(NOW), Ok(()));
        for off in [NOW.plus(day + Duration::from_millis(1)), NOW.minus(day + Duration::from_millis(1))] {
            assert!(JobId::from_parts(off, [0; 10]).check(NOW).unwrap_err().limit.contains("within a day"));
        }
        let v4: JobId = "7f1d3c1e-55c5-4ac5-a5ac-8d3f4e5b6c7d".parse().unwrap();
        assert!(v4.check(NOW).unwrap_err().limit.contains("version 7"));
        assert!("not-a-uuid".parse::<JobId>().is_err());
    }

    #[test]
    fn the_ids_that_begin_alike_are_one_range() {
        let id = |text: &str| text.parse::<JobId>().unwrap();
        for (text, first, after) in [
            ("01933c5e", "01933c5e-0000-0000-0000-000000000000", "01933c5f-0000-0000-0000-000000000000"),
            ("01933C5E-7b5", "01933c5e-7b50-0000-0000-000000000000", "01933c5e-7b60-0000-0000-000000000000"),
            ("01933c5e7b5a7", "01933c5e-7b5a-7000-0000-000000000000", "01933c5e-7b5a-8000-0000-000000000000"),
            (
                "01933c5e-7b5a-7000-8000-000000000001",
                "01933c5e-7b5a-7000-8000-000000000001",
                "01933c5e-7b5a-7000-8000-000000000002",
            ),
        ] {
            assert_eq!(JobId::beginning(text), Some((id(first), Some(id(after)))), "{text}");
        }
        assert_eq!(JobId::beginning("ffffffff").unwrap().1, None, "no id is after the last ones");
        for bad in ["", "01933c5", "01933c5g", "mailmail", "01933c5e-7b5a-7000-8000-0000000000010", "é1933c5e"] {
            assert_eq!(JobId::beginning(bad), None, "{bad}");
        }
    }
}
