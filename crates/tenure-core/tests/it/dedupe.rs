//! Every rule of a dedupe key, against hashes that this code did not make.

use std::collections::HashMap;

use proptest::prelude::*;
use tenure_core::dedupe::{Day, DedupeKey, Parts};
use tenure_core::{Timestamp, Unique};

/// `\uXXXX` in a vector.
fn unescape(text: &str) -> String {
    let mut pieces = text.split("\\u");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push(u32::from_str_radix(&piece[..4], 16).ok().and_then(char::from_u32).expect("a character"));
        plain.push_str(&piece[4..]);
    }
    plain
}

fn plain() -> Parts<'static> {
    let day = Day::parse("2026-11-15").expect("a day");
    Parts { url: "https://shop.example/42", title: "Coin", cents: 1, day, kind: "sold", currency: None }
}

#[test]
fn every_vector_has_the_lines_and_the_hash_that_python_gives_it() {
    let table = include_str!("dedupe_vectors.txt");
    let rows: Vec<Vec<String>> = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split('|').map(|cell| unescape(cell.trim_matches(' '))).collect())
        .collect();
    assert!(rows.len() >= 25);
    for row in rows {
        let [rule, url, title, cents, day, kind, currency, line_1, line_2, key] = row.as_slice() else {
            panic!("ten cells: {row:?}");
        };
        let currency = Some(currency.as_str()).filter(|currency| *currency != "-");
        let parts = Parts { url, title, cents: cents.parse().unwrap(), day: Day::parse(day).unwrap(), kind, currency };
        let mut lines = vec![line_1.clone(), line_2.clone(), cents.clone(), day.clone(), kind.clone()];
        lines.extend(currency.map(str::to_uppercase));
        assert_eq!(parts.normalised().unwrap(), lines.join("\n"), "{rule}");
        assert_eq!(DedupeKey::hashed(&parts).unwrap().as_str(), key, "{rule}");
    }
}

#[test]
fn an_external_id_is_taken_as_it_came() {
    assert_eq!(DedupeKey::external("v1|1234|0").unwrap().as_str(), "ext_v1|1234|0");
    assert_eq!(DedupeKey::external(" A b ").unwrap().to_string(), "ext_ A b ");
    for bad in ["", "a\nb", "a\0", &"x".repeat(501)] {
        assert_eq!(DedupeKey::external(bad).unwrap_err().field, "external id", "{bad:?}");
    }
}

#[test]
fn what_is_no_url_no_currency_or_no_type_is_refused_by_name() {
    for url in [
        "shop.example/42",
        "/42",
        "://shop.example",
        "https://",
        "https:///42",
        "https://:443/42",
        "4ttp://shop.example",
        "ht tp://shop.example",
        "https://shop.example/a b",
        "https://shop.example/a\nb",
        "https://shop.example/a\0b",
        "https://shop.example:port/",
        "https://shop.example:65536/",
        "?https://shop.example",
    ] {
        assert_eq!(DedupeKey::hashed(&Parts { url, ..plain() }).unwrap_err().field, "url", "{url:?}");
    }
    for currency in ["", "EU", "EURO", "€", "E R", "12€"] {
        let parts = Parts { currency: Some(currency), ..plain() };
        assert_eq!(DedupeKey::hashed(&parts).unwrap_err().field, "currency", "{currency:?}");
    }
    for kind in ["", "so\nld"] {
        assert_eq!(DedupeKey::hashed(&Parts { kind, ..plain() }).unwrap_err().field, "type", "{kind:?}");
    }
}

#[test]
fn a_day_is_that_of_utc() {
    let day = |text: &str| Day::of(Timestamp::parse("at", text).unwrap()).to_string();
    assert_eq!(day("2026-11-15T23:59:59.999999Z"), "2026-11-15");
    assert_eq!(day("2026-11-16T00:30:00+01:00"), "2026-11-15");
    assert_eq!(day("1970-01-01T00:00:00Z"), "1970-01-01");
    assert_eq!(Day::of(Timestamp::MAX).to_string(), "9999-12-30");
    assert_eq!(Day::of(Timestamp::EPOCH), Day::parse("1970-01-01").unwrap());
    for bad in ["", "2026-11-31", "2026-1-5", "20261115", "2026-11-15T00:00:00Z", "+26-11-15", "0000-01-01"] {
        assert_eq!(Day::parse(bad).unwrap_err().field, "day", "{bad:?}");
    }
}

#[test]
fn a_key_fits_where_a_unique_key_does() {
    let key = DedupeKey::hashed(&plain()).unwrap();
    let unique = Unique::new(key.clone(), tenure_core::unique::Policy::Forever);
    assert_eq!((unique.key.as_str(), unique.key.len()), (key.as_str(), 21));
}

/// Parts that often look alike: line feeds and rivals of the joint in every text.
fn any_parts() -> impl Strategy<Value = (String, String, i64, i64, String, Option<String>)> {
    let text = || "[a ]{0,2}[\n|\t]?[A1]{0,2}";
    let url = prop_oneof![Just(String::new()), "https?://[aA]{1,2}(:80|:443|:8)?(/{1,2}[a1]{0,2}/?)?([?#][a/]?)?"];
    let currency = prop::option::of(prop_oneof![Just("EUR".to_owned()), Just("eur".to_owned())]);
    (url, text(), -2..3_i64, 0..3_i64, "[a1]{1,2}", currency)
}

proptest! {
    #[test]
    fn normalising_again_changes_nothing(given in any_parts()) {
        let (url, title, cents, days, kind, currency) = &given;
        let day = Day::of(Timestamp::from_micros(days * 86_400_000_000));
        let parts = Parts { url, title, cents: *cents, day, kind, currency: currency.as_deref() };
        let text = parts.normalised().unwrap();
        let lines: Vec<&str> = text.split('\n').collect();
        prop_assert_eq!(lines.len(), 5 + usize::from(currency.is_some()));
        let again = Parts { url: lines[0], title: lines[1], currency: lines.get(5).copied(), ..parts };
        prop_assert_eq!(again.normalised().unwrap(), text);
    }

    #[test]
    fn different_lines_have_different_keys(given in prop::collection::vec(any_parts(), 20)) {
        let mut texts = HashMap::new();
        for (url, title, cents, days, kind, currency) in &given {
            let day = Day::of(Timestamp::from_micros(days * 86_400_000_000));
            let parts = Parts { url, title, cents: *cents, day, kind, currency: currency.as_deref() };
            let (key, text) = (DedupeKey::hashed(&parts).unwrap(), parts.normalised().unwrap());
            prop_assert_eq!(texts.entry(key).or_insert_with(|| text.clone()), &text);
        }
    }

    #[test]
    fn no_url_makes_it_panic(url in "\\PC{0,30}", tail in "[:/@?#\\[\\]a0]{0,12}") {
        for url in [url.clone(), format!("https://{url}"), format!("h://{tail}"), tail.clone()] {
            let _refused_or_not = DedupeKey::hashed(&Parts { url: &url, ..plain() });
        }
    }
}
