//! A page on its way to a store: checked, folded, in the order of its keys.

use tenure_core::{Invalid, Timestamp, fold_strongest};

use super::{Column, Keeps, Row, Sink, Value};

/// Most rows of one page.
pub const ROWS_MAX: usize = 100_000;

/// The rows that one statement writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'r> {
    /// Each key once, ordered by key: who writes two pages at a time takes their locks in one order.
    pub rows: Vec<&'r Row>,
    /// How many gave way to another row of the page.
    pub folded: u64,
}

/// One value of a key. Ordered as Rust does: any order will do, if it is everybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum KeyPart<'r> {
    Int(i64),
    Text(&'r str),
    Bool(bool),
    Time(Timestamp),
}

impl Sink {
    /// Checks every row, folds what has the same key, and orders the rest.
    pub fn page<'r>(&self, rows: &'r [Row]) -> Result<Page<'r>, Invalid> {
        if rows.len() > ROWS_MAX {
            return Err(Invalid::new("rows", rows.len(), format!("a page has at most {ROWS_MAX} rows")));
        }
        for (at, row) in rows.iter().enumerate() {
            self.check_row(at, row)?;
        }
        let keyed: Vec<(Vec<KeyPart<'r>>, i64, &'r Row)> =
            rows.iter().zip(0..).map(|(row, at)| (self.key_of(row), self.strength_of(row, at), row)).collect();
        let mut folded = fold_strongest(&keyed, |row| &row.0, |row| row.1);
        folded.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let kept: Vec<&Row> = folded.into_iter().map(|(_, _, row)| *row).collect();
        Ok(Page { folded: (rows.len() - kept.len()) as u64, rows: kept })
    }

    fn key_of<'r>(&self, row: &'r Row) -> Vec<KeyPart<'r>> {
        let keys = self.columns().iter().zip(row).filter(|(column, _)| column.is_key);
        keys.filter_map(|(_, value)| value.key_part()).collect()
    }

    /// What decides inside of a page; where the last row stays it is the row's place.
    fn strength_of(&self, row: &Row, at: i64) -> i64 {
        match (self.keeps(), row.last()) {
            (Keeps::Stronger, Some(Value::Int(strength))) => *strength,
            _ => at,
        }
    }

    fn check_row(&self, at: usize, row: &Row) -> Result<(), Invalid> {
        let columns = self.columns();
        if row.len() != columns.len() {
            let limit = format!("row {at} has one value for each of the {} columns", columns.len());
            return Err(Invalid::new("row", format!("of {} values", row.len()), limit));
        }
        let strength = (self.keeps() == Keeps::Stronger).then(|| columns.len() - 1);
        for (place, (column, value)) in columns.iter().zip(row).enumerate() {
            check_value(at, column, value, column.is_key || strength == Some(place))?;
        }
        Ok(())
    }
}

impl Value {
    fn key_part(&self) -> Option<KeyPart<'_>> {
        match self {
            Self::Int(value) => Some(KeyPart::Int(*value)),
            Self::Text(value) => Some(KeyPart::Text(value)),
            Self::Bool(value) => Some(KeyPart::Bool(*value)),
            Self::Time(value) => Some(KeyPart::Time(*value)),
            Self::Null | Self::Float(_) | Self::Json(_) | Self::Bytes(_) => None,
        }
    }
}

fn check_value(at: usize, column: &Column, value: &Value, needed: bool) -> Result<(), Invalid> {
    let refuse = |why: &str| {
        let limit = format!("column {} of row {at} {why}", column.name);
        Err(Invalid::new("value", value.shown(), limit))
    };
    match value {
        // A unique index lets any number of nulls in, so such a row would never be met again.
        Value::Null if needed => refuse("is never null"),
        Value::Null => Ok(()),
        _ if value.of() != Some(column.holds) => refuse(&format!("takes {}", column.holds.word())),
        Value::Text(text) if text.contains('\0') => refuse("takes text without NUL, which Postgres cannot hold"),
        Value::Float(number) if !number.is_finite() => refuse("takes a finite number"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;
    use crate::sink::{SinkBuilder, Type};

    fn builder() -> SinkBuilder {
        Sink::table("t").key("a", Type::Int).value("v", Type::Text).key("b", Type::Text)
    }

    fn values(page: &Page<'_>) -> Vec<String> {
        page.rows.iter().map(|row| row[1].shown()).collect()
    }

    #[test]
    fn a_page_is_folded_and_in_the_order_of_its_keys() {
        let sink = builder().keep_stronger("s").unwrap();
        let rows = [row![2, "v1", "x", 5], row![1, "v2", "y", 1], row![2, "v3", "x", 6], row![1, "v4", "x", 1]];
        let page = sink.page(&rows).unwrap();
        assert_eq!((values(&page), page.folded), (vec!["v4".into(), "v2".into(), "v3".into()], 1));
        let tie = [row![1, "first", "x", 5], row![1, "second", "x", 5]];
        assert_eq!(values(&sink.page(&tie).unwrap()), ["first"]);
    }

    #[test]
    fn where_nothing_has_a_strength_the_last_row_of_a_page_stays() {
        let rows = [row![1, "first", "x"], row![1, "second", "x"]];
        assert_eq!(values(&builder().overwrite().unwrap().page(&rows).unwrap()), ["second"]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_column_and_row() {
        let sink = builder().value("n", Type::Float).keep_stronger("s").unwrap();
        let good = row![1, "v", "x", 0.5, 9];
        for (bad, words) in [
            (row![1, "v"], "row `of 2 values` is refused: row 1 has one value for each of the 5 columns"),
            (row![None::<i64>, "v", "x", 0.5, 9], "value `null` is refused: column a of row 1 is never null"),
            (row![1, "v", None::<&str>, 0.5, 9], "column b of row 1 is never null"),
            (row![1, "v", "x", 0.5, None::<i64>], "column s of row 1 is never null"),
            (row!["1", "v", "x", 0.5, 9], "value `1` is refused: column a of row 1 takes an integer"),
            (row![1, "a\0b", "x", 0.5, 9], "value `a\\u{0}b` is refused: column v of row 1 takes text without NUL"),
            (row![1, "v", "x", f64::NAN, 9], "value `NaN` is refused: column n of row 1 takes a finite number"),
            (row![1, "v", "x", f64::INFINITY, 9], "takes a finite number"),
            (row![1, "v", "x", 1, 9], "column n of row 1 takes a float"),
        ] {
            let refused = sink.page(&[good.clone(), bad]).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
        assert!(sink.page(&[row![1, None::<&str>, "x", None::<f64>, 9]]).is_ok());
        let many = vec![good; ROWS_MAX + 1];
        assert_eq!(sink.page(&many).unwrap_err().field, "rows");
    }
}
