//! Pages for sinks, and what a table holds after them: one script, the same counts and the same rows on every store.
//!
//! The model takes rows one by one and knows neither folding nor SQL. A store makes a table of [`COLUMNS`] with a unique
//! index on the first two, writes the pages of [`pages`] and compares each answer and the rows at the end.

use std::collections::BTreeMap;

use tenure_core::{Json, Timestamp};
use tenure_store::row;
use tenure_store::sink::{Keeps, Row, Sink, Type, Upserted, Value};

use crate::dice::Dice;

/// The columns of a table for the script, in order; the last one is the strength.
pub const COLUMNS: [(&str, Type); 8] = [
    ("source", Type::Int),
    ("dedupe_key", Type::Text),
    ("title", Type::Text),
    ("rate", Type::Float),
    ("is_open", Type::Bool),
    ("doc", Type::Json),
    ("seen_at", Type::Time),
    ("strength", Type::Int),
];

/// Texts that have broken others: quotes, escapes, SQL, characters beyond the first plane.
pub const HOSTILE: [&str; 8] = [
    "",
    "it's",
    "\"quoted\" \\ back",
    "'); drop table price; --",
    "🪙 東京",
    "a\nb\tc\u{1}",
    "null",
    "{\"a\":[1]} $1 ?1",
];

/// A sink into `table` in which this row of two stays.
pub fn sink(table: &str, keeps: Keeps) -> Sink {
    let [keys @ .., _strength] = COLUMNS;
    let begun = keys.into_iter().enumerate().fold(Sink::table(table), |sink, (place, (name, holds))| {
        if place < 2 { sink.key(name, holds) } else { sink.value(name, holds) }
    });
    let sink = match keeps {
        Keeps::Stronger => begun.keep_stronger("strength"),
        Keeps::Last => begun.value("strength", Type::Int).overwrite(),
    };
    sink.expect("good names")
}

/// A dozen pages of one seed: few keys and few strengths, so that everything meets.
pub fn pages(seed: u64) -> Vec<Vec<Row>> {
    let mut dice = Dice::new(seed);
    let mut pages: Vec<Vec<Row>> = Vec::new();
    for _ in 0..12 {
        let count = dice.below(12);
        let mut page: Vec<Row> = (0..count).map(|_| any_row(&mut dice)).collect();
        // Now and then a row comes again just as it was.
        let earlier: Vec<Row> = pages.concat();
        page.extend((0..dice.below(3)).filter_map(|_| dice.pick(&earlier)));
        pages.push(page);
    }
    pages
}

fn any_row(dice: &mut Dice) -> Row {
    let small = |n: u64| i64::try_from(n).expect("small");
    let mut row = row![
        small(dice.below(2)),
        HOSTILE[dice.index(HOSTILE.len())],
        HOSTILE[dice.index(HOSTILE.len())],
        [0.0, 0.1, -2.5, 1e300, 5e-324, 3.0][dice.index(6)],
        dice.below(2) == 0,
        Json::parse("doc", ["[1]", "null", "7", "\"x\"", "1.5"][dice.index(5)]).expect("JSON"),
        Timestamp::from_micros(1_700_000_000_000_001 + small(dice.below(2))),
        small(dice.below(4)) - 1,
    ];
    for value in &mut row[2..7] {
        if dice.below(4) == 0 {
            *value = Value::Null;
        }
    }
    row
}

/// A table as it must be.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: BTreeMap<(i64, String), Row>,
}

impl Table {
    /// Takes the rows of a page one by one; answers what a sink must answer.
    pub fn upsert(&mut self, keeps: Keeps, page: &[Row]) -> Upserted {
        let before = self.rows.clone();
        let mut met: Vec<(i64, String)> = Vec::new();
        for row in page {
            let key = key(row);
            if !met.contains(&key) {
                met.push(key.clone());
            }
            match self.rows.get(&key) {
                Some(there) if keeps == Keeps::Stronger && strength(row) <= strength(there) => {}
                _ => drop(self.rows.insert(key, row.clone())),
            }
        }
        let mut upserted = Upserted { folded: (page.len() - met.len()) as u64, ..Upserted::default() };
        for key in met {
            match before.get(&key) {
                None => upserted.inserted += 1,
                Some(old) if *old == self.rows[&key] => upserted.kept += 1,
                Some(_) => upserted.updated += 1,
            }
        }
        upserted
    }

    /// Every row, by its key in the order of bytes.
    pub fn rows(&self) -> Vec<Row> {
        self.rows.values().cloned().collect()
    }
}

fn key(row: &Row) -> (i64, String) {
    match (&row[0], &row[1]) {
        (Value::Int(source), Value::Text(key)) => (*source, key.clone()),
        other => panic!("a key is {other:?}"),
    }
}

fn strength(row: &Row) -> i64 {
    match row[7] {
        Value::Int(strength) => strength,
        ref other => panic!("a strength is {other:?}"),
    }
}
