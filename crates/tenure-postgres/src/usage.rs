//! What handlers said that they used: inserted by endings, added up by `tenure.fold_usage`, read from both.

use tenure_core::Timestamp;
use tenure_core::name::{KindName, TenantName};
use tenure_store::StoreError;
use tenure_store::usage::{UsageFilter, UsageTotal};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::Param;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, named};

const FOLD_USAGE: Statement = Statement { name: "fold_usage", sql: "select tenure.fold_usage($1) as folded" };

/// Records added up at once.
const FOLDED_MAX: i32 = 5_000;

impl PgStore {
    pub(crate) async fn sum(&self, filter: &UsageFilter) -> Result<Vec<UsageTotal>, StoreError> {
        filter.check()?;
        let sight = filter.sight.tenant().map(TenantName::as_str);
        let (kind, since, limit) =
            (filter.kind.as_ref().map(KindName::as_str), Moment(filter.since), i64::from(filter.limit));
        let after = filter.after.as_ref();
        let (day, tenant) = (after.map(|place| Moment(place.day)), after.map(|place| place.tenant.as_str()));
        let (after_kind, name) = (after.map(|place| place.kind.as_str()), after.map(|place| place.name.as_str()));
        let params: [Param<'_>; 8] = [
            (&sight, Type::TEXT),
            (&kind, Type::TEXT),
            (&since, Type::TIMESTAMPTZ),
            (&limit, Type::INT8),
            (&day, Type::TIMESTAMPTZ),
            (&tenant, Type::TEXT),
            (&after_kind, Type::TEXT),
            (&name, Type::TEXT),
        ];
        let rows = self.call_within(sight, Desk::Long, statement::SUM_USAGE, &params).await?;
        rows.iter().map(total).collect()
    }

    pub(crate) async fn fold_usages(&self) -> Result<u64, StoreError> {
        let rows = self.call(Desk::Long, FOLD_USAGE, &[(&FOLDED_MAX, Type::INT4)]).await?;
        let folded: i64 = rows.first().map_or(Ok(0), |row| get(row, "folded"))?;
        Ok(folded.cast_unsigned())
    }
}

fn total(row: &Row) -> Result<UsageTotal, StoreError> {
    Ok(UsageTotal {
        day: Timestamp::from_micros(get::<i64>(row, "day_seconds")? * 1_000_000),
        tenant: named(row, "tenant")?,
        kind: named(row, "kind")?,
        name: get(row, "name")?,
        amount: get(row, "amount")?,
        attempts: get::<i64>(row, "attempts")?.cast_unsigned(),
    })
}
