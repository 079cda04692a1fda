//! Cron expressions: when a schedule fires, by the wall clock of a time zone.
//!
//! ```text
//! ┌ second 0-59, may be left out: then it is 0
//! │ ┌ minute 0-59
//! │ │ ┌ hour 0-23
//! │ │ │  ┌ day of the month 1-31, L is the last
//! │ │ │  │ ┌ month 1-12 or JAN-DEC
//! │ │ │  │ │ ┌ weekday 0-7 or SUN-SAT; 0 and 7 are Sunday; MON#2 is the second Monday of the month
//! 0 30 2  * * MON-FRI
//! ```
//! A field is `*`, a value, a range `10-40`, each with a step if wanted (`*/5`, `10-40/10`, `5/15` = from 5 to the end),
//! or a list of these. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` stand for the usual five fields.
//! Everything else is refused, and so is what can never fire, such as 30 February.
//!
//! # Day and weekday
//! When both are restricted, either is enough, as in classic cron: `0 0 13 * FRI` fires on each 13th and on each Friday.
//! A field is restricted unless it names every value, however it is written: `*`, `*/1` and `1-31` are the same.
//!
//! # When the clock jumps
//! A schedule that names all 24 hours (`*`, `*/1`, `0-23`) is *hourly*: it fires whenever the clock on the wall matches,
//! so it goes on through every real hour. Every other one is *fixed*, `*/2` and `*/15 2` too: it fires once for each time
//! it names, so that a day has its fires whatever the clock does.
//!
//! ```text
//! forward, Berlin, 29 March 2026       01:00    01:30     ┊ 03:00    03:30    04:00
//!                                      ──┴────────┴───────┊──┴────────┴────────┴──▶
//!   fixed  30 2 * * *                                        ▲ 02:30 is made up when the gap ends
//!   fixed  0,30 2 * * *                                      ▲ once, not twice
//!   hourly 30 * * * *                             ▲                   ▲
//!
//! back, Berlin, 25 October 2026        02:00    02:30     ┊ 02:00    02:30    03:00
//!                                      ──┴────────┴───────┊──┴────────┴────────┴──▶
//!   fixed  30 2 * * *                             ▲          the second 02:30 is passed over
//!   hourly 30 * * * *                             ▲                   ▲
//! ```
//! - **A time that does not exist** fires at the first moment after the gap when the schedule is fixed. All times skipped
//!   by one gap, and one that falls on that moment anyway, are one fire. An hourly schedule skips it.
//! - **A time that exists twice** fires at its first occurrence when the schedule is fixed, at both when it is hourly.
//!
//! The same holds for every jump, not only for summer time: half an hour on Lord Howe Island, a whole day in Samoa.
//! Debian's cron has the same rule, but takes a `*` at the start of the hour *or minute* for hourly, and gives up after
//! three hours.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, Timestamp as Moment};

use crate::invalid::Invalid;
use crate::time::Timestamp;

mod field;
mod timing;
mod zone;

use field::{DAY, Days, HOUR, MINUTE, MONTH, SECOND, Set};
pub use timing::{Due, GRACE_DEFAULT, Missed, Timing};
pub use zone::Zone;

/// Longest expression accepted, in bytes.
pub const CRON_BYTES_MAX: usize = 500;

const ONE_SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The Gregorian calendar repeats after 400 years, weekdays included: what does not fire in that time never does.
const MONTHS_OF_CALENDAR: usize = 400 * 12;

const NICKNAMES: [(&str, &str); 5] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
];

/// A parsed expression. It is written as it was read, with single spaces.
///
/// ```
/// use tenure_core::{Cron, Timestamp, Zone};
///
/// let cron: Cron = "30 2 * * MON-FRI".parse()?;
/// let berlin: Zone = "Europe/Berlin".parse()?;
/// let friday: Timestamp = "2026-11-13T09:00:00Z".parse()?;
/// assert_eq!(cron.next_after(&berlin, friday), Some("2026-11-16T02:30:00+01:00".parse()?));
/// # Ok::<(), tenure_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    seconds: Set,
    minutes: Set,
    hours: Set,
    months: Set,
    days: Days,
}

impl Cron {
    /// The first fire strictly after `after`; `None` when there is none up to [`Timestamp::MAX`].
    pub fn next_after(&self, zone: &Zone, after: Timestamp) -> Option<Timestamp> {
        // Fires are on whole seconds, so the fraction of `after` never matters.
        let after = Moment::from_second(after.as_micros() / 1_000_000).ok()?;
        let fire = if self.is_hourly() { self.next_hourly(zone, after) } else { self.next_fixed(zone, after) }?;
        let micros = fire.as_microsecond();
        (micros <= Timestamp::MAX.as_micros()).then(|| Timestamp::from_micros(micros))
    }

    /// Whether it names all 24 hours, and so goes by real hours when the clock jumps; see the module.
    pub fn is_hourly(&self) -> bool {
        self.hours == Set::all(&HOUR)
    }

    /// Looks in one stretch of constant offset after the other.
    fn next_hourly(&self, zone: &Zone, after: Moment) -> Option<Moment> {
        let mut from = after.checked_add(ONE_SECOND).ok()?;
        loop {
            let offset = zone.tz().to_offset(from);
            let fire = offset.to_timestamp(self.next_local(offset.to_datetime(from))?).ok()?;
            match zone.tz().following(from).next() {
                Some(jump) if jump.timestamp() <= fire => from = jump.timestamp(),
                _ => return Some(fire),
            }
        }
    }

    /// Looks at one local time after the other. A later one never fires earlier, so the first that is late enough is it.
    fn next_fixed(&self, zone: &Zone, after: Moment) -> Option<Moment> {
        let mut local = zone.tz().to_datetime(after).checked_add(ONE_SECOND).ok()?;
        loop {
            local = self.next_local(local)?;
            let (fire, resume) = match zone.tz().to_ambiguous_timestamp(local).offset() {
                AmbiguousOffset::Unambiguous { offset } => (offset.to_timestamp(local).ok()?, None),
                AmbiguousOffset::Gap { after: offset, .. } => {
                    (zone.jump_after(offset.to_timestamp(local).ok()?)?, None)
                }
                AmbiguousOffset::Fold { before, .. } => {
                    let first = before.to_timestamp(local).ok()?;
                    (first, Some(before.to_datetime(zone.jump_after(first)?)))
                }
            };
            if fire > after {
                return Some(fire);
            }
            // `after` is in the second pass of a repeated hour: go on where that hour ends.
            local = resume.or_else(|| local.checked_add(ONE_SECOND).ok())?;
        }
    }

    /// The first matching local time at or after `from`, jumps of the clock apart.
    fn next_local(&self, from: DateTime) -> Option<DateTime> {
        let today = from.date();
        if self.next_date(today)? == today
            && let Some(time) = self.next_time(from.time())
        {
            return Some(today.to_datetime(time));
        }
        let date = self.next_date(today.tomorrow().ok()?)?;
        Some(date.to_datetime(self.next_time(Time::midnight())?))
    }

    fn next_date(&self, from: Date) -> Option<Date> {
        let (mut year, mut month, mut day) = (from.year(), from.month(), from.day());
        for _ in 0..=MONTHS_OF_CALENDAR {
            let first = Date::new(year, month, 1).ok()?;
            if self.months.has(month)
                && let Some(day) = self.days.of_month(first).at_or_after(day)
            {
                return Date::new(year, month, day).ok();
            }
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            day = 1;
        }
        None
    }

    fn next_time(&self, from: Time) -> Option<Time> {
        let first_second = self.seconds.at_or_after(0)?;
        let first_minute = self.minutes.at_or_after(0)?;
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        if self.hours.has(hour) {
            if self.minutes.has(minute)
                && let Some(second) = self.seconds.at_or_after(second)
            {
                return Time::new(hour, minute, second, 0).ok();
            }
            if let Some(minute) = self.minutes.at_or_after(minute + 1) {
                return Time::new(hour, minute, first_second, 0).ok();
            }
        }
        Time::new(self.hours.at_or_after(hour + 1)?, first_minute, first_second, 0).ok()
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Cron {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.len() > CRON_BYTES_MAX {
            return Err(Invalid::new("cron", text, format!("it has at most {CRON_BYTES_MAX} bytes")));
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let fields: Vec<&str> = match words.as_slice() {
            [word] if word.starts_with('@') => {
                let (_, fields) =
                    NICKNAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).ok_or_else(|| {
                        Invalid::new("cron", text, "it is @hourly, @daily, @weekly, @monthly, @yearly or five fields")
                    })?;
                fields.split(' ').collect()
            }
            words => words.to_vec(),
        };
        let (second, [minute, hour, day, month, weekday]) = match *fields.as_slice() {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
            [second, minute, hour, day, month, weekday] => (second, [minute, hour, day, month, weekday]),
            _ => {
                let limit = "it has five fields, minute hour day month weekday, such as 30 2 * * MON-FRI, \
                             or six with seconds first, or is @daily and the like";
                return Err(Invalid::new("cron", text, limit));
            }
        };
        let cron = Self {
            text: words.join(" "),
            seconds: Set::parse(&SECOND, second)?,
            minutes: Set::parse(&MINUTE, minute)?,
            hours: Set::parse(&HOUR, hour)?,
            months: Set::parse(&MONTH, month)?,
            days: Days::parse(day, weekday)?,
        };
        // Weekdays come in every month, so only a day can be one that no named month has.
        match cron.next_date(Date::constant(2000, 1, 1)) {
            Some(_) => Ok(cron),
            None => Err(Invalid::new(DAY.name, day, format!("no month of {month} has it, so it would never fire"))),
        }
    }
}

#[cfg(test)]
mod tests;
