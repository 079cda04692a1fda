//! What cron keeps for any expression, zone and moment.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;
use tenure_core::cron::{Missed, Timing};
use tenure_core::{Cron, Timestamp, Zone};

/// Zones, each with days on which its clock jumps.
const JUMPS: [(&str, &[&str]); 9] = [
    ("Europe/Berlin", &["2026-03-29", "2026-10-25"]),
    ("America/New_York", &["2026-03-08", "2026-11-01"]),
    ("Australia/Lord_Howe", &["2026-04-05", "2026-10-04"]),
    ("America/Sao_Paulo", &["2018-02-18", "2018-11-04"]),
    ("America/St_Johns", &["2010-03-14", "2010-11-07"]),
    ("Africa/Casablanca", &["2024-03-10", "2024-04-14"]),
    ("Antarctica/Troll", &["2026-03-29", "2026-10-25"]),
    ("Pacific/Apia", &["2011-12-30", "2012-04-01"]),
    ("UTC", &["2024-02-29", "2026-12-31"]),
];

/// One field as a list of items, written and read by the test's own means.
#[derive(Debug, Clone)]
enum Item {
    All,
    One(i8),
    Range(i8, i8),
    Every(i8),
    RangeStep(i8, i8, i8),
    Open(i8, i8),
    /// The last day of the month, or the nth of this weekday.
    Last,
    Nth(i8, i8),
}

impl Item {
    fn text(&self) -> String {
        match self {
            Self::All => "*".into(),
            Self::One(value) => value.to_string(),
            Self::Range(first, last) => format!("{first}-{last}"),
            Self::Every(step) => format!("*/{step}"),
            Self::RangeStep(first, last, step) => format!("{first}-{last}/{step}"),
            Self::Open(first, step) => format!("{first}/{step}"),
            Self::Last => "L".into(),
            Self::Nth(weekday, nth) => format!("{weekday}#{nth}"),
        }
    }

    /// Whether it names `value` of a field that starts at `min`.
    fn names(&self, value: i8, min: i8, date: Date) -> bool {
        match *self {
            Self::All => true,
            Self::One(one) => one == value,
            Self::Range(first, last) => first <= value && value <= last,
            Self::Every(step) => (value - min) % step == 0,
            Self::RangeStep(first, last, step) => first <= value && value <= last && (value - first) % step == 0,
            Self::Open(first, step) => first <= value && (value - first) % step == 0,
            Self::Last => date == date.last_of_month(),
            Self::Nth(weekday, nth) => weekday == value && (date.day() + 6) / 7 == nth,
        }
    }
}

/// Minute, hour, day, month, weekday.
#[derive(Debug, Clone)]
struct Expression([Vec<Item>; 5]);

impl Expression {
    fn text(&self) -> String {
        let field = |items: &Vec<Item>| items.iter().map(Item::text).collect::<Vec<_>>().join(",");
        self.0.iter().map(field).collect::<Vec<_>>().join(" ")
    }

    fn matches(&self, at: DateTime) -> bool {
        let [minute, hour, day, month, weekday] = &self.0;
        let named = |items: &[Item], value, min| items.iter().any(|item| item.names(value, min, at.date()));
        let by_day = named(day, at.day(), 1);
        let by_weekday = named(weekday, at.weekday().to_sunday_zero_offset(), 0);
        let all_days = (1..=31).all(|value| named(day, value, 1) && !matches!(day[..], [Item::Last]));
        let all_weekdays =
            !weekday.iter().any(|item| matches!(item, Item::Nth(..))) && (0..=6).all(|value| named(weekday, value, 0));
        let on_day = match (all_days, all_weekdays) {
            (true, true) => true,
            (true, false) => by_weekday,
            (false, true) => by_day,
            (false, false) => by_day || by_weekday,
        };
        on_day && named(month, at.month(), 1) && named(hour, at.hour(), 0) && named(minute, at.minute(), 0)
    }

    fn is_hourly(&self) -> bool {
        (0..24).all(|hour| self.0[1].iter().any(|item| item.names(hour, 0, Date::constant(2000, 1, 1))))
    }
}

fn any_item(min: i8, max: i8) -> impl Strategy<Value = Item> {
    let range = move || (min..=max, min..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        2 => Just(Item::All),
        4 => (min..=max).prop_map(Item::One),
        2 => range().prop_map(|(first, last)| Item::Range(first, last)),
        2 => (1..=max).prop_map(Item::Every),
        1 => (range(), 1..=max).prop_map(|((first, last), step)| Item::RangeStep(first, last, step)),
        1 => (min..=max, 1..=max).prop_map(|(first, step)| Item::Open(first, step)),
    ]
}

fn any_field(min: i8, max: i8) -> impl Strategy<Value = Vec<Item>> {
    prop::collection::vec(any_item(min, max), 1..3)
}

fn any_expression() -> impl Strategy<Value = Expression> {
    // Small hours, where clocks jump, and open days, so that most expressions have something to say.
    let hour = prop_oneof![
        2 => Just(vec![Item::All]),
        3 => prop::collection::vec((0..4_i8).prop_map(Item::One), 1..3),
        2 => any_field(0, 23)
    ];
    let day = prop_oneof![4 => Just(vec![Item::All]), 2 => any_field(1, 31), 1 => Just(vec![Item::Last])];
    let month = prop_oneof![4 => Just(vec![Item::All]), 1 => any_field(1, 12)];
    let nth = (0..=6_i8, 1..=5_i8).prop_map(|(weekday, nth)| vec![Item::Nth(weekday, nth)]);
    let weekday = prop_oneof![4 => Just(vec![Item::All]), 2 => any_field(0, 6), 1 => nth];
    (any_field(0, 59), hour, day, month, weekday).prop_map(|(a, b, c, d, e)| Expression([a, b, c, d, e]))
}

/// A zone and a whole minute at most two days before a jump of its clock.
fn any_start() -> impl Strategy<Value = (String, Timestamp)> {
    let known = (0..JUMPS.len(), 0..2_usize).prop_map(|(zone, jump)| {
        let (zone, days) = JUMPS[zone];
        let noon: jiff::Timestamp = format!("{}T12:00:00Z", days[jump]).parse().unwrap();
        (zone.to_owned(), noon.as_second())
    });
    // Any zone from 1973 to 2100. Before, Liberia's clock was not on whole minutes.
    let all: Vec<String> = TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
    let any = (prop::sample::select(all), 94_694_400..4_102_444_800_i64).prop_map(|(zone, second)| {
        let moment = jiff::Timestamp::from_second(second / 60 * 60).unwrap();
        let tz = TimeZoneDatabase::bundled().get(&zone).unwrap();
        let jump = tz.following(moment).next().map_or(moment, |jump| jump.timestamp());
        (zone, jump.as_second() + 43_200)
    });
    // Often within an hour or two of the jump, so that some start in an hour that is there twice.
    (prop_oneof![known, any], prop_oneof![0..2_880_i64, 600..780_i64])
        .prop_map(|((zone, second), minutes)| (zone, Timestamp::from_micros((second - minutes * 60) * 1_000_000)))
}

/// Walks each real minute up to `minutes` after `from` and looks at the clock on the wall.
fn fires_by_walking(expression: &Expression, zone: &str, from: Timestamp, minutes: i64) -> Vec<Timestamp> {
    let tz = TimeZoneDatabase::bundled().get(zone).unwrap();
    let start = from.as_micros() / 60_000_000;
    let wall = |minute: i64| tz.to_datetime(jiff::Timestamp::from_second(minute * 60).unwrap());
    let one_minute = jiff::SignedDuration::from_mins(1);
    // The latest time the wall has shown: what is not later was there before, what is between was skipped.
    let mut shown = (start - 300..=start).map(wall).max().unwrap();
    let mut fires = Vec::new();
    for minute in start + 1..=start + minutes {
        let now = wall(minute);
        let mut fire = expression.is_hourly() && expression.matches(now);
        while shown < now {
            shown = shown.checked_add(one_minute).unwrap();
            fire |= !expression.is_hourly() && expression.matches(shown);
        }
        if fire {
            fires.push(Timestamp::from_micros(minute * 60_000_000));
        }
    }
    fires
}

fn fires(cron: &Cron, zone: &Zone, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
    let next = |at: &Timestamp| cron.next_after(zone, *at).filter(|fire| *fire <= until);
    std::iter::successors(next(&from), next).collect()
}

proptest! {
    #[test]
    fn fires_are_those_found_by_walking_each_minute(expression in any_expression(), (zone, from) in any_start()) {
        // Some expressions can never fire and are refused; that is another test.
        if let Ok(cron) = expression.text().parse::<Cron>() {
            let walked = fires_by_walking(&expression, &zone, from, 4_320);
            let until = from.plus(Duration::from_secs(4_320 * 60));
            prop_assert_eq!(fires(&cron, &zone.parse().unwrap(), from, until), walked, "{} {}", cron, zone);
        }
    }

    #[test]
    fn a_fire_is_later_and_on_time_by_the_wall(expression in any_expression(), zone in 0..JUMPS.len(), micros: i64) {
        let after = Timestamp::from_micros(micros.rem_euclid(Timestamp::MAX.as_micros()));
        if let Ok(cron) = expression.text().parse::<Cron>() {
            let (name, _) = JUMPS[zone];
            let tz = TimeZoneDatabase::bundled().get(name).unwrap();
            if let Some(fire) = cron.next_after(&name.parse().unwrap(), after) {
                prop_assert!(fire > after);
                let moment = jiff::Timestamp::from_microsecond(fire.as_micros()).unwrap();
                let at_jump = tz.preceding(moment.checked_add(jiff::SignedDuration::from_secs(1)).unwrap()).next();
                let after_gap = at_jump.is_some_and(|jump| jump.timestamp() == moment);
                prop_assert!(expression.matches(tz.to_datetime(moment)) || after_gap, "{cron} {name} {after} {fire}");
                // Nothing lies between: from just before the fire, it is still the next.
                let just_before = fire.minus(Duration::from_micros(1)).max(after);
                prop_assert_eq!(cron.next_after(&name.parse().unwrap(), just_before), Some(fire));
            }
        }
    }

    #[test]
    fn expressions_survive_writing_and_reading(expression in any_expression()) {
        if let Ok(cron) = expression.text().parse::<Cron>() {
            prop_assert_eq!(cron.to_string(), expression.text());
            prop_assert_eq!(cron.to_string().parse::<Cron>().unwrap(), cron);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}", noise in "[0-9*/,#@L \\-A-Za-z]{0,30}", zone in "\\PC{0,20}") {
        let _ = text.parse::<Cron>();
        let _ = zone.parse::<Zone>();
        let fields = format!("{noise} * * * *");
        for text in [&noise, &fields] {
            if let Ok(cron) = text.parse::<Cron>() {
                prop_assert_eq!(cron.to_string().parse::<Cron>().unwrap(), cron.clone());
                prop_assert!(cron.next_after(&Zone::UTC, Timestamp::EPOCH).is_some(), "{cron} never fires");
            }
        }
    }

    #[test]
    fn what_is_due_is_what_a_list_of_all_fires_says(
        expression in any_expression(),
        (zone, last) in any_start(),
        (asleep, grace) in (0..300_000_u64, 0..7_200_u64),
        once: bool,
    ) {
        if let Ok(cron) = expression.text().parse::<Cron>() {
            let zone: Zone = zone.parse().unwrap();
            let now = last.plus(Duration::from_secs(asleep));
            let on_time = now.minus(Duration::from_secs(grace));
            let all = fires(&cron, &zone, last, now);
            let (missed, fresh): (Vec<_>, Vec<_>) = all.into_iter().partition(|fire| *fire < on_time);
            let made_up = missed.last().copied().filter(|_| once);
            let expected: Vec<_> = made_up.into_iter().chain(fresh).collect();

            let missed = if once { Missed::Once } else { Missed::Skip };
            let timing = Timing { zone, missed, grace: Duration::from_secs(grace), ..Timing::new(cron) };
            let mut due = timing.due(last, now);
            let mut enqueued = Vec::new();
            while let Some(fire) = due.fire {
                enqueued.push(fire);
                prop_assert_eq!(due.next, timing.next_after(fire));
                due = timing.due(fire, now);
            }
            prop_assert_eq!(enqueued, expected, "{}", timing.cron);
            prop_assert_eq!(due.next, timing.next_after(now));
        }
    }
}
