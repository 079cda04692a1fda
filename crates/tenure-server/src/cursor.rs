//! Cursors: where the next page of a list begins. Opaque to callers, and checked like everything else they send.

use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Rows of a page where nobody says otherwise.
pub(crate) const PAGE: u32 = 50;
/// Most rows of a page.
pub(crate) const PAGE_MAX: u32 = 200;

/// Longest cursor, in hex digits: that of usage holds three names.
const CURSOR_CHARS_MAX: usize = 4_000;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// The rows.
    items: Vec<T>,
    /// The cursor of the next page; null when this is the last one.
    next: Option<String>,
}

impl<T> Page<T> {
    /// A page of rows that were asked for with one more than the limit, to see whether there are more. `place` is where
    /// the next page begins: at the last row of this one.
    pub(crate) fn cut<R>(
        list: &str,
        mut rows: Vec<R>,
        limit: u32,
        place: impl Fn(&R) -> String,
        line: impl Fn(&R) -> T,
    ) -> Self {
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| more).map(|last| write(list, &place(last)));
        Self { items: rows.iter().map(line).collect(), next }
    }

    /// A page of a walk that may have stopped before the page was full, or with nothing on it; `next` is where it goes on.
    pub(crate) fn walked(list: &str, items: Vec<T>, next: Option<impl Display>) -> Self {
        Self { items, next: next.map(|place| write(list, &place.to_string())) }
    }

    /// A list that is short enough for one page.
    pub(crate) fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// How many rows a caller wants.
pub(crate) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(PAGE) {
        limit @ 1..=PAGE_MAX => Ok(limit),
        other => Err(Problem::invalid("limit", format!("limit `{other}` is refused: it is 1 to {PAGE_MAX}"))),
    }
}

/// The place that a cursor of this list names.
pub(crate) fn read<T: FromStr<Err: Display>>(list: &str, cursor: Option<&str>) -> Result<Option<T>, Problem> {
    let Some(cursor) = cursor else { return Ok(None) };
    let refused = || Problem::invalid("cursor", "cursor is refused: it is the `next` of the page before, unchanged");
    let text = unhex(cursor).ok_or_else(refused)?;
    let place = text.strip_prefix(list).and_then(|rest| rest.strip_prefix(' ')).ok_or_else(refused)?;
    place.parse().map(Some).map_err(|_| refused())
}

fn write(list: &str, place: &str) -> String {
    format!("{list} {place}").bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<String> {
    if text.len() > CURSOR_CHARS_MAX || !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_by_its_own_list() {
        let cursor = write("jobs", "7");
        assert_eq!(read::<i64>("jobs", Some(&cursor)).unwrap(), Some(7));
        assert!(read::<i64>("job", Some(&cursor)).is_err());
        assert!(read::<i64>("keys", Some(&cursor)).is_err());
        assert_eq!(read::<i64>("jobs", None).unwrap(), None);
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let long = "00".repeat(2_001);
        for bad in ["", "7", "zz", "ff", "+1", &long, &write("jobs", "x"), &write("jobs", ""), "é"] {
            assert_eq!(read::<i64>("jobs", Some(bad)).unwrap_err().code().word, "invalid", "{bad}");
        }
    }
}
