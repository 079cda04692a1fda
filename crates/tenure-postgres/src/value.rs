//! Values between our types and the wire.

use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

use tenure_core::{How, JobId, Priority, State, Timestamp};
use tenure_store::StoreError;
use tokio_postgres::Row;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use uuid::Uuid;

/// Microseconds from 1970 to 2000, where Postgres begins to count.
const EPOCH_2000_MICROS: i64 = 946_684_800_000_000;

/// A moment as `timestamptz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl ToSql for Moment {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&(self.0.as_micros() - EPOCH_2000_MICROS).to_be_bytes());
        Ok(IsNull::No)
    }
    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Moment {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        // `infinity` is the largest number and becomes the latest date.
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(Timestamp::from_micros(micros.saturating_add(EPOCH_2000_MICROS))))
    }
    accepts!(TIMESTAMPTZ);
}

/// Reads a column; what cannot be read is named.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: impl Column) -> Result<T, StoreError> {
    row.try_get(column).map_err(|e| StoreError::Corrupt(format!("column {column}: {e}")))
}

/// A column by its name, or by its place where there are many rows: a name is looked for in every one of them.
pub(crate) trait Column: RowIndex + Display + Copy {}

impl Column for &str {}
impl Column for usize {}

pub(crate) fn time(row: &Row, column: impl Column) -> Result<Timestamp, StoreError> {
    get::<Moment>(row, column).map(|moment| moment.0)
}

pub(crate) fn time_maybe(row: &Row, column: impl Column) -> Result<Option<Timestamp>, StoreError> {
    Ok(get::<Option<Moment>>(row, column)?.map(|moment| moment.0))
}

pub(crate) fn job_id(row: &Row, column: impl Column) -> Result<JobId, StoreError> {
    get::<Uuid>(row, column).map(JobId::from_uuid)
}

pub(crate) fn job_ids(row: &Row, column: impl Column) -> Result<Vec<JobId>, StoreError> {
    Ok(get::<Vec<Uuid>>(row, column)?.into_iter().map(JobId::from_uuid).collect())
}

pub(crate) fn how(row: &Row) -> Result<How, StoreError> {
    let code: i16 = get(row, "how")?;
    How::from_code(code).ok_or_else(|| StoreError::Corrupt(format!("ending {code} is not one of ours")))
}

pub(crate) fn state(word: &str) -> Result<State, StoreError> {
    State::parse(word).ok_or_else(|| StoreError::Corrupt(format!("state `{word}` is not one of ours")))
}

pub(crate) fn count(row: &Row, column: impl Column) -> Result<u16, StoreError> {
    let value: i16 = get(row, column)?;
    u16::try_from(value).map_err(|_| StoreError::Corrupt(format!("column {column} is {value}")))
}

pub(crate) fn priority(row: &Row, column: impl Column) -> Result<Priority, StoreError> {
    let value: i16 = get(row, column)?;
    Priority::new(value.into()).map_err(|e| StoreError::Corrupt(e.to_string()))
}

/// A name that was checked on its way in.
pub(crate) fn named<T: std::str::FromStr<Err = tenure_core::Invalid>>(
    row: &Row,
    column: &str,
) -> Result<T, StoreError> {
    get::<&str>(row, column)?.parse().map_err(|e: tenure_core::Invalid| StoreError::Corrupt(e.to_string()))
}

/// The same where there may be none.
pub(crate) fn named_maybe<T: std::str::FromStr<Err = tenure_core::Invalid>>(
    row: &Row,
    column: &str,
) -> Result<Option<T>, StoreError> {
    let text: Option<&str> = get(row, column)?;
    text.map(str::parse).transpose().map_err(|error: tenure_core::Invalid| StoreError::Corrupt(error.to_string()))
}

pub(crate) fn uuids(jobs: impl IntoIterator<Item = JobId>) -> Vec<Uuid> {
    jobs.into_iter().map(|job| *job.as_uuid()).collect()
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
