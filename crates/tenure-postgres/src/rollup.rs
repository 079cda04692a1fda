//! Rollups: summed by `tenure.fold_rollups` from the sealed journal, read from small tables.

use async_trait::async_trait;
use tenure_core::histogram::BOUNDS_MS;
use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::{Histogram, Invalid, Timestamp};
use tenure_store::record::Sight;
use tenure_store::rollup::{Figures, GateFailures, Rollup, RollupFilter, Step};
use tenure_store::{AdminStore, RollupStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::Param;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, named, time_maybe};

const FOLD_ROLLUPS: Statement =
    Statement { name: "fold_rollups", sql: "select tenure.fold_rollups($1, $2, $3) as folded" };

/// Jobs summed at once, about.
const FOLDED_MAX: i32 = 20_000;

#[async_trait]
impl RollupStore for PgStore {
    async fn fold_rollups(&self) -> Result<u64, StoreError> {
        let (bounds, now) = (BOUNDS_MS.map(|ms| ms.cast_signed() * 1_000).to_vec(), self.moment());
        let params: [Param<'_>; 3] =
            [(&FOLDED_MAX, Type::INT4), (&bounds, Type::INT8_ARRAY), (&now, Type::TIMESTAMPTZ)];
        let rows = self.call(Desk::Long, FOLD_ROLLUPS, &params).await?;
        let folded: i64 = rows.first().map_or(Ok(0), |row| get(row, "folded"))?;
        Ok(folded.cast_unsigned())
    }

    async fn list_rollups(&self, filter: &RollupFilter) -> Result<Vec<Rollup>, StoreError> {
        filter.check()?;
        let sight = filter.sight.tenant().map(TenantName::as_str);
        let (step, since, until) = (filter.step.code(), Moment(filter.start()), Moment(filter.until));
        let queue = filter.queue.as_ref().map(QueueName::as_str);
        let kind = filter.kind.as_ref().map(KindName::as_str);
        let (by, limit) = (filter.by, i64::from(filter.limit));
        let params: [Param<'_>; 11] = [
            (&sight, Type::TEXT),
            (&step, Type::INT2),
            (&since, Type::TIMESTAMPTZ),
            (&until, Type::TIMESTAMPTZ),
            (&queue, Type::TEXT),
            (&kind, Type::TEXT),
            (&by.has_time(), Type::BOOL),
            (&by.has_queue(), Type::BOOL),
            (&by.has_kind(), Type::BOOL),
            (&by.has_tenant(), Type::BOOL),
            (&limit, Type::INT8),
        ];
        let rows = self.call_within(sight, Desk::Short, statement::LIST_ROLLUPS, &params).await?;
        rows.iter().map(|row| rollup(row, filter.start())).collect()
    }

    async fn list_failing_gates(
        &self,
        sight: &Sight,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<GateFailures>, StoreError> {
        tenure_store::rollup::check_limit(limit)?;
        let step = Step::of_span(self.now().await?.since(since));
        let (tenant, code) = (sight.tenant().map(TenantName::as_str), step.code());
        let (since, limit) = (Moment(step.start_of(since)), i64::from(limit));
        let params: [Param<'_>; 4] =
            [(&tenant, Type::TEXT), (&code, Type::INT2), (&since, Type::TIMESTAMPTZ), (&limit, Type::INT8)];
        let rows = self.call_within(tenant, Desk::Short, statement::LIST_FAILING_GATES, &params).await?;
        let read = |row: &Row| {
            let count = |column| -> Result<u64, StoreError> { Ok(get::<i64>(row, column)?.cast_unsigned()) };
            Ok(GateFailures { gate: named(row, "gate")?, ended: count("ended")?, unhealthy: count("unhealthy")? })
        };
        rows.iter().map(read).collect()
    }
}

fn rollup(row: &Row, start: Timestamp) -> Result<Rollup, StoreError> {
    let counters: Vec<i64> = get(row, "counters")?;
    let counters = counters.try_into().map_err(|_| StoreError::Corrupt("a rollup lacks counters".into()))?;
    let histogram = |counts, sum| -> Result<Histogram, StoreError> {
        let counts: Vec<i64> = get(row, counts)?;
        Ok(Histogram::from_store(counts.into_iter().map(i64::cast_unsigned), get::<i64>(row, sum)?.cast_unsigned()))
    };
    Ok(Rollup {
        at: time_maybe(row, "at")?.unwrap_or(start),
        queue: name(row, "queue")?,
        kind: name(row, "kind")?,
        tenant: name(row, "tenant")?,
        figures: Figures::from_store(
            <[i64; 9]>::map(counters, i64::cast_unsigned),
            histogram("run", "run_micros")?,
            histogram("wait", "wait_micros")?,
        ),
    })
}

fn name<T: std::str::FromStr<Err = Invalid>>(row: &Row, column: &str) -> Result<Option<T>, StoreError> {
    let word: Option<&str> = get(row, column)?;
    word.map(str::parse).transpose().map_err(|invalid: Invalid| StoreError::Corrupt(invalid.to_string()))
}
