//! One field of an expression, as the set of values it names.

use jiff::civil::Date;

use crate::invalid::Invalid;

/// What a field may hold.
pub(super) struct Field {
    pub(super) name: &'static str,
    min: i8,
    /// The largest value of `*` and of an open step.
    max: i8,
    /// The names of the values from `min` on, if they have names.
    names: &'static [&'static str],
    /// Whether the value after `max` stands for `min` again: Sunday is 0 and 7.
    wraps: bool,
    /// What is accepted, for the refusal.
    limit: &'static str,
}

pub(super) const SECOND: Field = Field {
    name: "cron second",
    min: 0,
    max: 59,
    names: &[],
    wraps: false,
    limit: "it is 0 to 59, *, a range 10-40, a step */5 or a list 0,15,30",
};
pub(super) const MINUTE: Field = Field { name: "cron minute", ..SECOND };
pub(super) const HOUR: Field = Field {
    name: "cron hour",
    max: 23,
    limit: "it is 0 to 23, *, a range 8-18, a step */2 or a list 0,6,12",
    ..SECOND
};
pub(super) const DAY: Field = Field {
    name: "cron day",
    min: 1,
    max: 31,
    names: &[],
    wraps: false,
    limit: "it is 1 to 31, L for the last, *, a range 1-7, a step */2 or a list 1,15,L",
};
pub(super) const MONTH: Field = Field {
    name: "cron month",
    min: 1,
    max: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    wraps: false,
    limit: "it is 1 to 12 or JAN to DEC, *, a range 3-10, a step */3 or a list JAN,JUL",
};
pub(super) const WEEKDAY: Field = Field {
    name: "cron weekday",
    min: 0,
    max: 6,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    wraps: true,
    limit: "it is 0 to 7 or SUN to SAT, *, a range MON-FRI, MON#1 for the first one of a month or a list TUE,THU",
};

/// Small numbers, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set(u64);

impl Set {
    /// Every value of a field.
    pub(super) fn all(field: &Field) -> Self {
        (field.min..=field.max).collect()
    }

    pub(super) fn has(self, value: i8) -> bool {
        (self.0 >> value) & 1 == 1
    }

    /// The smallest member that is not below `value`, which is at most 60.
    pub(super) fn at_or_after(self, value: i8) -> Option<i8> {
        let rest = self.0 >> value;
        if rest == 0 { None } else { i8::try_from(rest.trailing_zeros()).ok().map(|more| value + more) }
    }

    pub(super) fn parse(field: &Field, text: &str) -> Result<Self, Invalid> {
        let mut set = Self::default();
        for item in text.split(',') {
            set.0 |= field.item(item).ok_or_else(|| field.refuse(text))?.0;
        }
        Ok(set)
    }
}

impl FromIterator<i8> for Set {
    fn from_iter<I: IntoIterator<Item = i8>>(values: I) -> Self {
        Self(values.into_iter().fold(0, |bits, value| bits | 1 << value))
    }
}

impl Field {
    fn refuse(&self, text: &str) -> Invalid {
        Invalid::new(self.name, text, self.limit)
    }

    /// One item of a list: `*`, `5`, `5-10`, each with `/step` if wanted.
    fn item(&self, item: &str) -> Option<Set> {
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, Some(number(step).filter(|step| (1..=self.max).contains(step))?)),
            None => (item, None),
        };
        let (first, last) = if base == "*" {
            (self.min, self.max)
        } else if let Some((first, last)) = base.split_once('-') {
            let (first, last) = (self.value(first)?, self.value(last)?);
            // FRI-SUN ends with the Sunday after.
            (first, if self.wraps && last == self.min && first > last { self.max + 1 } else { last })
        } else {
            let value = self.value(base)?;
            (value, if step.is_some() { self.max.max(value) } else { value })
        };
        let fold = |value: i8| if value > self.max { self.min } else { value };
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        (first <= last).then(|| (first..=last).step_by(step).map(fold).collect())
    }

    /// A number in range, or a name.
    fn value(&self, text: &str) -> Option<i8> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        match named.and_then(|at| i8::try_from(at).ok()) {
            Some(at) => Some(self.min + at),
            None => number(text).filter(|value| (self.min..=self.max + i8::from(self.wraps)).contains(value)),
        }
    }
}

/// One or two digits; no sign, no spaces.
fn number(text: &str) -> Option<i8> {
    let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// The fields day and weekday, which answer together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Days {
    days: Set,
    last: bool,
    /// The weekdays that count in the first seven days of a month, in the second seven, …
    weekdays: [Set; 5],
}

impl Days {
    pub(super) fn parse(day: &str, weekday: &str) -> Result<Self, Invalid> {
        let mut parsed = Self { days: Set::default(), last: false, weekdays: [Set::default(); 5] };
        for item in day.split(',') {
            if item.eq_ignore_ascii_case("L") {
                parsed.last = true;
            } else {
                parsed.days.0 |= DAY.item(item).ok_or_else(|| DAY.refuse(day))?.0;
            }
        }
        for item in weekday.split(',') {
            parsed.add_weekday(item).ok_or_else(|| WEEKDAY.refuse(weekday))?;
        }
        Ok(parsed)
    }

    fn add_weekday(&mut self, item: &str) -> Option<()> {
        let (named, weeks) = match item.split_once('#') {
            Some((value, nth)) => {
                let nth = usize::try_from(number(nth)?).ok()?;
                let named = [WEEKDAY.value(value)? % 7].into_iter().collect();
                (named, self.weekdays.get_mut(nth.checked_sub(1)?..nth)?)
            }
            None => (WEEKDAY.item(item)?, &mut self.weekdays[..]),
        };
        weeks.iter_mut().for_each(|week| week.0 |= named.0);
        Some(())
    }

    /// The days of the month that begins with `first`.
    pub(super) fn of_month(&self, first: Date) -> Set {
        let (length, weekday) = (first.days_in_month(), first.weekday().to_sunday_zero_offset());
        let any_day = self.days == Set::all(&DAY);
        let any_weekday = self.weekdays == [Set::all(&WEEKDAY); 5];
        let matches = |day: &i8| {
            let by_day = self.days.has(*day) || self.last && *day == length;
            let by_weekday = self.weekdays.get(usize::from((*day - 1).unsigned_abs() / 7));
            let by_weekday = by_weekday.is_some_and(|week| week.has((weekday + *day - 1) % 7));
            match (any_day, any_weekday) {
                (true, _) => by_weekday,
                (false, true) => by_day,
                (false, false) => by_day || by_weekday,
            }
        };
        (1..=length).filter(matches).collect()
    }
}
