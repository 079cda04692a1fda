use std::time::{Duration, Instant};

use super::*;

fn cron(text: &str) -> Cron {
    text.parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The next fires in UTC, as text.
fn fires(text: &str, from: &str, count: usize) -> String {
    let cron = cron(text);
    let next = |at: &Timestamp| cron.next_after(&Zone::UTC, *at);
    let fires: Vec<_> = std::iter::successors(next(&at(from)), next).take(count).map(|fire| fire.to_string()).collect();
    fires.join(" ").replace(":00Z", "").replace("T00:00", "")
}

#[test]
#[rustfmt::skip] // the columns are the point
fn fields_mean_what_crontab_says() {
    // 15 November 2026 is a Sunday.
    for (text, expected) in [
        ("* * * * *",          "2026-11-15T09:31 2026-11-15T09:32 2026-11-15T09:33"),
        ("*/20 * * * *",       "2026-11-15T09:40 2026-11-15T10:00 2026-11-15T10:20"),
        ("10-40/10 * * * *",   "2026-11-15T09:40 2026-11-15T10:10 2026-11-15T10:20"),
        ("5/25 * * * *",       "2026-11-15T09:55 2026-11-15T10:05 2026-11-15T10:30"),
        ("0 9,12 * * *",       "2026-11-15T12:00 2026-11-16T09:00 2026-11-16T12:00"),
        ("0 0 L * *",          "2026-11-30 2026-12-31 2027-01-31"),
        ("0 0 l FEB *",        "2027-02-28 2028-02-29 2029-02-28"),
        ("0 0 1,L * *",        "2026-11-30 2026-12-01 2026-12-31"),
        ("0 0 1 jan,Jul *",    "2027-01-01 2027-07-01 2028-01-01"),
        ("0 0 * * 0",          "2026-11-22 2026-11-29 2026-12-06"),
        ("0 0 * * 7",          "2026-11-22 2026-11-29 2026-12-06"),
        ("0 0 * * sun",        "2026-11-22 2026-11-29 2026-12-06"),
        ("0 0 * * FRI-SUN",    "2026-11-20 2026-11-21 2026-11-22"),
        ("0 0 * * 6-7",        "2026-11-21 2026-11-22 2026-11-28"),
        ("0 0 * * MON/2",      "2026-11-16 2026-11-18 2026-11-20"),
        ("0 0 * * SUN-SUN",    "2026-11-22 2026-11-29 2026-12-06"),
        ("0 0 * * 0-7",        "2026-11-16 2026-11-17 2026-11-18"),
        ("0 0 * * MON#1",      "2026-12-07 2027-01-04 2027-02-01"),
        ("0 0 * * MON#5",      "2026-11-30 2027-03-29 2027-05-31"),
        ("0 0 * 2 MON#5",      "2044-02-29 2072-02-29 2112-02-29"),
        ("0 0 * * TUE,MON#5",  "2026-11-17 2026-11-24 2026-11-30"),
        ("0 0 13 * FRI",       "2026-11-20 2026-11-27 2026-12-04"),
        ("0 0 16 * FRI",       "2026-11-16 2026-11-20 2026-11-27"),
        ("0 0 1-31 * FRI",     "2026-11-20 2026-11-27 2026-12-04"),
        ("0 0 31 * *",         "2026-12-31 2027-01-31 2027-03-31"),
        ("0 0 29 2 *",         "2028-02-29 2032-02-29 2036-02-29"),
        ("15 30 9 * * *",      "2026-11-15T09:30:15Z 2026-11-16T09:30:15Z 2026-11-17T09:30:15Z"),
        ("*/30 * * * * *",     "2026-11-15T09:30:30Z 2026-11-15T09:31 2026-11-15T09:31:30Z"),
        ("@hourly",            "2026-11-15T10:00 2026-11-15T11:00 2026-11-15T12:00"),
        ("@daily",             "2026-11-16 2026-11-17 2026-11-18"),
        ("@weekly",            "2026-11-22 2026-11-29 2026-12-06"),
        ("@monthly",           "2026-12-01 2027-01-01 2027-02-01"),
        ("@Yearly",            "2027-01-01 2028-01-01 2029-01-01"),
    ] {
        assert_eq!(fires(text, "2026-11-15T09:30:00Z", 3), expected, "{text}");
    }
}

#[test]
fn a_fire_is_strictly_after_any_fraction_of_a_second() {
    for (from, next) in [
        ("2026-11-15T09:29:59.999999Z", "2026-11-15T09:30"),
        ("2026-11-15T09:30:00Z", "2026-11-16T09:30"),
        ("2026-11-15T09:30:00.000001Z", "2026-11-16T09:30"),
    ] {
        assert_eq!(fires("30 9 * * *", from, 1), next, "{from}");
    }
}

#[test]
#[rustfmt::skip] // the columns are the point
fn a_refusal_names_the_field_and_what_would_do() {
    let long = format!("{}0 * * * *", "0,".repeat(300));
    for (bad, field, limit) in [
        ("",                  "cron",         "five fields"),
        ("* * * *",           "cron",         "five fields"),
        ("* * * * * * *",     "cron",         "six with seconds first"),
        ("@reboot",           "cron",         "@daily"),
        ("@daily *",          "cron",         "five fields"),
        (&long,               "cron",         "500 bytes"),
        ("60 * * * * *",      "cron second",  "0 to 59"),
        ("60 * * * *",        "cron minute",  "0 to 59"),
        ("-1 * * * *",        "cron minute",  "0 to 59"),
        ("+1 * * * *",        "cron minute",  "0 to 59"),
        ("001 * * * *",       "cron minute",  "0 to 59"),
        ("1, * * * *",        "cron minute",  "a list"),
        ("5-1 * * * *",       "cron minute",  "a range"),
        ("1-2-3 * * * *",     "cron minute",  "a range"),
        ("*/0 * * * *",       "cron minute",  "a step"),
        ("*/60 * * * *",      "cron minute",  "a step"),
        ("*/5/5 * * * *",     "cron minute",  "a step"),
        ("/5 * * * *",        "cron minute",  "a step"),
        ("** * * * *",        "cron minute",  "*"),
        ("? * * * *",         "cron minute",  "*"),
        ("L * * * *",         "cron minute",  "*"),
        ("* 24 * * *",        "cron hour",    "0 to 23"),
        ("* 22-2 * * *",      "cron hour",    "8-18"),
        ("* * 0 * *",         "cron day",     "1 to 31"),
        ("* * 32 * *",        "cron day",     "1 to 31"),
        ("* * ? * *",         "cron day",     "1 to 31"),
        ("* * L-3 * *",       "cron day",     "L for the last"),
        ("* * 15W * *",       "cron day",     "1 to 31"),
        ("* * * 13 *",        "cron month",   "JAN to DEC"),
        ("* * * JANUARY *",   "cron month",   "JAN to DEC"),
        ("* * * MON *",       "cron month",   "JAN to DEC"),
        ("* * * * 8",         "cron weekday", "SUN to SAT"),
        ("* * * * FRI-MON",   "cron weekday", "MON-FRI"),
        ("* * * * MON#6",     "cron weekday", "MON#1"),
        ("* * * * MON#0",     "cron weekday", "MON#1"),
        ("* * * * MON-TUE#1", "cron weekday", "MON#1"),
        ("* * * * #1",        "cron weekday", "MON#1"),
        ("* * * * 5L",        "cron weekday", "SUN to SAT"),
        ("0 0 30 2 *",        "cron day",     "never fire"),
        ("0 0 31 4,JUN,9,11 *", "cron day",   "never fire"),
    ] {
        let refused = bad.parse::<Cron>().unwrap_err();
        assert_eq!(refused.field, field, "{bad}");
        assert!(refused.limit.contains(limit), "{bad}: {refused}");
    }
    let refused = "*/60 * * * *".parse::<Cron>().unwrap_err().to_string();
    let said = "cron minute `*/60` is refused: it is 0 to 59, *, a range 10-40, a step */5 or a list 0,15,30";
    assert_eq!(refused, said);
}

#[test]
fn an_expression_is_written_as_it_was_read() {
    assert_eq!(cron("  30  2 * *\tmon-Fri ").to_string(), "30 2 * * mon-Fri");
    assert_eq!(cron("@daily").to_string(), "@daily");
}

#[test]
fn there_is_an_end_of_time() {
    assert_eq!(cron("* * * * * *").next_after(&Zone::UTC, Timestamp::MAX), None);
    assert_eq!(cron("@yearly").next_after(&Zone::UTC, at("9999-01-01T00:00:00Z")), None);
    for zone in ["Pacific/Kiritimati", "Pacific/Niue", "Europe/Berlin"] {
        let zone: Zone = zone.parse().unwrap();
        for text in ["* * * * * *", "0 3 L 12 *", "0 * L 12 *"] {
            assert_eq!(cron(text).next_after(&zone, Timestamp::MAX), None, "{text} {zone}");
        }
    }
}

#[test]
fn the_rarest_expressions_are_answered_at_once() {
    let zone: Zone = "Europe/Berlin".parse().unwrap();
    let rare = cron("59 59 * * 2 MON#5");
    let start = Instant::now();
    for _ in 0..100 {
        assert_eq!(rare.next_after(&zone, at("2072-03-01T00:00:00Z")), Some(at("2112-02-28T23:59:59Z")));
    }
    // Forty years in some hundred microseconds; walking each minute would take seconds.
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

fn timing(text: &str, missed: Missed) -> Timing {
    Timing { missed, ..Timing::new(cron(text)) }
}

/// All fires enqueued at `now`, and the next to come.
fn all_due(timing: &Timing, last: &str, now: &str) -> (Vec<String>, String) {
    let (mut last, now) = (at(last), at(now));
    let mut fires = Vec::new();
    loop {
        let due = timing.due(last, now);
        match due.fire {
            Some(fire) => last = fire,
            None => return (fires, due.next.unwrap().to_string()),
        }
        fires.push(last.to_string());
    }
}

#[test]
#[rustfmt::skip] // the columns are the point
fn missed_fires_are_dropped_or_made_up_once() {
    use Missed::{Once, Skip};
    for (text, missed, last, now, fires, next) in [
        // Not yet, and on time.
        ("0 2 * * *", Skip, "14T02:00:00", "15T01:59:59", "",                        "15T02:00:00"),
        ("0 2 * * *", Once, "14T02:00:00", "15T01:59:59", "",                        "15T02:00:00"),
        ("0 2 * * *", Skip, "14T02:00:00", "15T02:00:00", "15T02:00:00",             "16T02:00:00"),
        ("0 2 * * *", Once, "14T02:00:00", "15T02:00:00", "15T02:00:00",             "16T02:00:00"),
        // Within the grace, and just after it.
        ("0 2 * * *", Skip, "14T02:00:00", "15T02:01:00", "15T02:00:00",             "16T02:00:00"),
        ("0 2 * * *", Skip, "14T02:00:00", "15T02:01:01", "",                        "16T02:00:00"),
        ("0 2 * * *", Once, "14T02:00:00", "15T02:01:01", "15T02:00:00",             "16T02:00:00"),
        // Nobody was there for days.
        ("0 2 * * *", Skip, "10T02:00:00", "15T09:00:00", "",                        "16T02:00:00"),
        ("0 2 * * *", Once, "10T02:00:00", "15T09:00:00", "15T02:00:00",             "16T02:00:00"),
        ("0 * * * *", Once, "15T00:00:00", "15T04:01:00", "15T03:00:00 15T04:00:00", "15T05:00:00"),
        // A fire on time comes beside the one made up.
        ("0 * * * *", Skip, "10T02:00:00", "15T09:00:30", "15T09:00:00",             "15T10:00:00"),
        ("0 * * * *", Once, "10T02:00:00", "15T09:00:30", "15T08:00:00 15T09:00:00", "15T10:00:00"),
        // More often than the grace: none of those on time is lost.
        ("*/20 * * * * *", Skip, "15T09:00:00", "15T09:00:45", "15T09:00:20 15T09:00:40", "15T09:01:00"),
        // It already fired, or the clock went back.
        ("0 2 * * *", Once, "15T02:00:00", "15T02:00:00", "",                        "16T02:00:00"),
        ("0 2 * * *", Once, "15T02:00:00", "14T23:00:00", "",                        "16T02:00:00"),
    ] {
        let date = |text: &str| format!("2026-11-{text}Z");
        let fires: Vec<String> = fires.split_whitespace().map(date).collect();
        let actual = all_due(&timing(text, missed), &date(last), &date(now));
        assert_eq!(actual, (fires, date(next)), "{text} {missed} {last} {now}");
    }
}

#[test]
fn a_schedule_of_each_second_that_slept_for_ten_years_wakes_at_once() {
    let timing = Timing { grace: Duration::ZERO, ..timing("* * * * * *", Missed::Once) };
    let start = Instant::now();
    let due = timing.due(at("2016-11-15T09:00:00Z"), at("2026-11-15T09:00:00.5Z"));
    assert_eq!(due.fire, Some(at("2026-11-15T09:00:00Z")));
    assert_eq!(due.next, Some(at("2026-11-15T09:00:01Z")));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn policies_are_written_as_one_word() {
    for missed in [Missed::Skip, Missed::Once] {
        assert_eq!(missed.to_string().parse::<Missed>().unwrap(), missed);
    }
    assert_eq!("Once".parse::<Missed>().unwrap_err().to_string(), "missed `Once` is refused: it is skip or once");
}
