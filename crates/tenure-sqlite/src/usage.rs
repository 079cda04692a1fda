//! What handlers said that they used, summed as it comes: there is one writer, so nobody waits for a sum.

use rusqlite::named_params;
use tenure_core::{JobId, Json, TenantName, Timestamp};
use tenure_store::usage::{USAGE_NAME_CHARS_MAX, UsageFilter, UsageTotal};

use crate::fault::Result;
use crate::row::{blob, number, word};
use crate::tx::Tx;

const ADD_USAGE: &str = include_str!("sql/add_usage.sql");
const SUM_USAGE: &str = include_str!("sql/sum_usage.sql");

const DAY_MICROS: i64 = 86_400_000_000;

/// Adds what one attempt used.
pub(crate) fn add_usage(tx: &Tx<'_>, job: JobId, usage: &Json) -> Result<()> {
    let params = named_params! {
        ":job": blob(&job),
        ":usage": usage.as_str(),
        ":day": tx.now.as_micros().div_euclid(DAY_MICROS),
        ":chars": USAGE_NAME_CHARS_MAX as i64,
    };
    tx.execute(ADD_USAGE, params).map(|_| ())
}

/// The sums.
pub(crate) fn sum_usage(tx: &Tx<'_>, filter: &UsageFilter) -> Result<Vec<UsageTotal>> {
    let (sight, after) = (filter.sight.tenant().map(TenantName::as_str), filter.after.as_ref());
    let params = named_params! {
        ":sight": sight,
        ":kind": filter.kind.as_ref().map(|kind| kind.as_str()),
        ":since": filter.since.as_micros().div_euclid(DAY_MICROS),
        ":limit": filter.limit,
        ":after_day": after.map(|place| place.day.as_micros().div_euclid(DAY_MICROS)),
        ":after_tenant": after.map(|place| place.tenant.as_str()),
        ":after_kind": after.map(|place| place.kind.as_str()),
        ":after_name": after.map(|place| place.name.as_str()),
    };
    tx.all(SUM_USAGE, params, |row| {
        Ok(UsageTotal {
            day: Timestamp::from_micros(row.get::<_, i64>(0)? * DAY_MICROS),
            tenant: word(row, 1)?,
            kind: word(row, 2)?,
            name: row.get(3)?,
            amount: row.get(4)?,
            attempts: number::<i64, u64>(row, 5, "usage_total.attempts")?,
        })
    })
}
