//! Words of the core as columns, and back. What cannot be read back is [`corrupt`].

use std::fmt::Write;
use std::str::FromStr;

use rusqlite::Row;
use rusqlite::types::{FromSql, ValueRef};
use tenure_core::apply::Rules;
use tenure_core::{Backoff, How, Invalid, JobId, Json, Priority, State, Timestamp};
use uuid::Uuid;

use crate::fault::{Fault, Result, corrupt};

/// The 16 bytes of a job's id.
pub(crate) fn blob(job: &JobId) -> &[u8] {
    job.as_uuid().as_bytes()
}

/// A job's id from its 16 bytes.
pub(crate) fn job_id(row: &Row<'_>, column: usize) -> Result<JobId> {
    Ok(JobId::from_uuid(Uuid::from_bytes(row.get(column)?)))
}

/// A moment.
pub(crate) fn time(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    Ok(Timestamp::from_micros(row.get(column)?))
}

/// A moment that may be missing.
pub(crate) fn optional_time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

/// A checked word such as a name.
pub(crate) fn word<T: FromStr<Err = Invalid>>(row: &Row<'_>, column: usize) -> Result<T> {
    text(row, column)?.parse().map_err(|refused: Invalid| corrupt(refused.to_string()))
}

/// A checked word that may be missing.
pub(crate) fn optional_word<T: FromStr<Err = Invalid>>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    optional_text(row, column)?.map(|_| word(row, column)).transpose()
}

/// Borrowed text that may be missing.
pub(crate) fn optional_text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>> {
    row.get_ref(column)?.as_str_or_null().map_err(|error| corrupt(format!("column {column}: {error}")))
}

/// A document that may be missing.
pub(crate) fn optional_json(row: &Row<'_>, column: usize) -> Result<Option<Json>> {
    Ok(row.get::<_, Option<Box<str>>>(column)?.map(Json::from_store))
}

/// Borrowed text: nothing is copied before it is parsed.
pub(crate) fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str> {
    row.get_ref(column)?.as_str().map_err(|error| corrupt(format!("column {column}: {error}")))
}

/// A value that left its range.
pub(crate) fn number<T: FromSql + TryInto<U>, U>(row: &Row<'_>, column: usize, what: &str) -> Result<U> {
    row.get::<_, T>(column)?.try_into().map_err(|_| corrupt(format!("{what} is out of range")))
}

/// A priority.
pub(crate) fn priority(row: &Row<'_>, column: usize) -> Result<Priority> {
    Priority::new(row.get(column)?).map_err(|refused| corrupt(refused.to_string()))
}

/// An ending.
pub(crate) fn how(row: &Row<'_>, column: usize) -> Result<How> {
    let code: i16 = row.get(column)?;
    How::from_code(code).ok_or_else(|| corrupt(format!("attempt.how is {code}")))
}

/// Where a job stands by its ready row (`state`) and its final attempt (`how`); neither means that it runs.
pub(crate) fn state(row: &Row<'_>, ready: usize, ended: usize) -> Result<State> {
    if let Some(code) = row.get::<_, Option<i64>>(ready)? {
        let known =
            [State::Waiting, State::Queued, State::Retryable].into_iter().find(|s| ready_code(*s) == Some(code));
        return known.ok_or_else(|| corrupt(format!("ready.state is {code}")));
    }
    match row.get_ref(ended)? {
        ValueRef::Null => Ok(State::Running),
        _ => Ok(how(row, ended)?.leads_to()),
    }
}

/// What `ready.state` stores; `None` for a state without a ready row.
pub(crate) const fn ready_code(state: State) -> Option<i64> {
    match state {
        State::Waiting => Some(0),
        State::Queued => Some(1),
        State::Retryable => Some(2),
        State::Running | State::Succeeded | State::Failed | State::Dead | State::Canceled => None,
    }
}

/// Reads the rules of many jobs; neighbours usually carry the same backoff, so it is parsed once.
#[derive(Default)]
pub(crate) struct RulesReader {
    last: Option<(Box<str>, Backoff)>,
}

impl RulesReader {
    /// The rules in three columns.
    pub(crate) fn read(&mut self, row: &Row<'_>, attempts: usize, losses: usize, backoff: usize) -> Result<Rules> {
        let line = text(row, backoff)?;
        let backoff = match &self.last {
            Some((known, parsed)) if &**known == line => parsed.clone(),
            _ => {
                let parsed: Backoff = line.parse().map_err(|refused: Invalid| corrupt(refused.to_string()))?;
                self.last.insert((line.into(), parsed)).1.clone()
            }
        };
        let max_attempts = number::<i64, u16>(row, attempts, "job.max_attempts")?;
        let max_losses = number::<i64, u16>(row, losses, "job.max_losses")?;
        Ok(Rules { max_attempts, max_losses, backoff })
    }
}

/// Ids as a JSON array of text.
pub(crate) fn ids_to_json<'j>(jobs: impl IntoIterator<Item = &'j JobId>) -> String {
    let mut json = String::from("[");
    let mut buffer = Uuid::encode_buffer();
    for job in jobs {
        json.push_str(if json.len() > 1 { ",\"" } else { "\"" });
        json.push_str(job.as_uuid().as_hyphenated().encode_lower(&mut buffer));
        json.push('"');
    }
    json.push(']');
    json
}

/// Numbers as a JSON array.
pub(crate) fn numbers_to_json<T: std::fmt::Display>(numbers: impl IntoIterator<Item = T>) -> String {
    let mut json = String::from("[");
    for number in numbers {
        // Writing into a string cannot fail.
        let _ = write!(json, "{}{number}", if json.len() > 1 { "," } else { "" });
    }
    json.push(']');
    json
}

/// Reads [`ids_to_json`].
pub(crate) fn ids_from_json(json: &str) -> Result<Vec<JobId>> {
    elements(json, |element| Uuid::try_parse(element.trim_matches('"')).ok().map(JobId::from_uuid))
}

/// Reads [`numbers_to_json`].
pub(crate) fn numbers_from_json<T: std::str::FromStr>(json: &str) -> Result<Vec<T>> {
    elements(json, |element| element.parse().ok())
}

fn elements<T>(json: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    let unreadable = || -> Fault { corrupt(format!("an array reads {json:.60}")) };
    let inner = json.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(unreadable)?;
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    inner.split(',').map(|element| read(element.trim()).ok_or_else(unreadable)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_survive_writing_and_reading() {
        let ids: Vec<JobId> = (0..3).map(|i| JobId::from_parts(Timestamp::EPOCH, [i; 10])).collect();
        assert_eq!(ids_from_json(&ids_to_json(&ids)).unwrap(), ids);
        assert_eq!(ids_from_json("[]").unwrap(), []);
        assert_eq!(numbers_from_json::<u16>(&numbers_to_json([1, 0, 65_535])).unwrap(), [1, 0, 65_535]);
    }

    #[test]
    fn what_is_no_array_is_corrupt() {
        for bad in ["", "[", "[1", "[x]", "[1,,2]"] {
            assert!(numbers_from_json::<u16>(bad).is_err(), "{bad}");
        }
        assert!(ids_from_json("[\"no-uuid\"]").is_err());
    }
}
