//! Rollups: what was sealed is summed in small batches, since whoever sums keeps every other writer waiting.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::{Histogram, Line, Timestamp};
use tenure_store::record::Sight;
use tenure_store::rollup::{self, Figures, GateFailures, Rollup, RollupFilter, Step, is_unhealthy};
use tenure_store::{RollupStore, StoreError};

use crate::fault::{Result, corrupt};
use crate::lane::Urgency;
use crate::row::{number, text, time, word};
use crate::show::sight_param;
use crate::store::SqliteStore;
use crate::tx::Tx;

const PAGE_TO_FOLD: &str = include_str!("sql/page_to_fold.sql");
const LIST_TO_FOLD: &str = include_str!("sql/list_to_fold.sql");
const FIND_ROLLUP: &str = include_str!("sql/find_rollup.sql");
const SAVE_ROLLUP: &str = include_str!("sql/save_rollup.sql");
const ADD_GATE_ROLLUP: &str = include_str!("sql/add_gate_rollup.sql");
const MOVE_ROLLUP_CURSOR: &str = include_str!("sql/move_rollup_cursor.sql");
const DROP_ROLLUPS: &str = include_str!("sql/drop_rollups.sql");
const DROP_GATE_ROLLUPS: &str = include_str!("sql/drop_gate_rollups.sql");
const LIST_ROLLUPS: &str = include_str!("sql/list_rollups.sql");
const LIST_ROLLUPS_OF_TENANT: &str = include_str!("sql/list_rollups_of_tenant.sql");
const LIST_FAILING_GATES: &str = include_str!("sql/list_failing_gates.sql");

/// Journal rows summed at once.
const ROWS_MAX: u32 = 500;
/// Jobs summed at once, unless one row alone names more: some 10 ms.
const JOBS_MAX: usize = 2_000;
/// Sums of one step that are dropped at once.
const DROPPED_MAX: u32 = 500;

type Answer<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl RollupStore for SqliteStore {
    async fn fold_rollups(&self) -> Answer<u64> {
        self.write(Urgency::Bulk, fold).await
    }

    async fn list_rollups(&self, filter: &RollupFilter) -> Answer<Vec<Rollup>> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| list(tx, &filter)).await
    }

    async fn list_failing_gates(&self, sight: &Sight, since: Timestamp, limit: u32) -> Answer<Vec<GateFailures>> {
        rollup::check_limit(limit)?;
        let sight = sight.clone();
        self.read(move |tx| {
            let step = Step::of_span(tx.now.since(since));
            let params = named_params! {
                ":sight": sight_param(&sight),
                ":step": step.code(),
                ":since": step.start_of(since).as_micros(),
                ":limit": limit,
            };
            tx.all(LIST_FAILING_GATES, params, |row| {
                let count = |column| number::<i64, u64>(row, column, "gate_rollup");
                Ok(GateFailures { gate: word(row, 0)?, ended: count(1)?, unhealthy: count(2)? })
            })
        })
        .await
    }
}

/// Every sum is kept for its tenant and for all of them, so that a chart of everything does not read a line for each.
const ALL_TENANTS: i64 = 0;

/// Tenant, queue and kind of a sum.
type Owner = (i64, i64, String);

/// A batch of sums, before they are added to those that are kept.
#[derive(Default)]
struct Batch {
    lines: BTreeMap<(Step, Timestamp, Owner), Figures>,
    /// How many ended, and how many of them badly, by tenant and gate.
    gates: BTreeMap<(Step, Timestamp, i64, String), (u64, u64)>,
}

fn fold(tx: &Tx<'_>) -> Result<u64> {
    drop_old(tx)?;
    let page = tx.all(PAGE_TO_FOLD, named_params! { ":limit": ROWS_MAX }, |row| {
        Ok((row.get::<_, i64>(0)?, number::<i64, usize>(row, 1, "journal.jobs")?))
    })?;
    let (mut jobs, mut folded, mut last) = (0, 0, None);
    for (id, size) in page {
        if last.is_some() && jobs + size > JOBS_MAX {
            break;
        }
        (jobs, folded, last) = (jobs + size, folded + 1, Some(id));
    }
    let Some(last) = last else { return Ok(0) };
    let mut batch = Batch::default();
    tx.all(LIST_TO_FOLD, named_params! { ":last": last }, |row| batch.count(row, tx.now))?;
    batch.save(tx)?;
    tx.execute(MOVE_ROLLUP_CURSOR, named_params! { ":after": last })?;
    Ok(folded)
}

fn drop_old(tx: &Tx<'_>) -> Result<()> {
    for step in Step::ALL {
        let Some(keep) = step.keep() else { continue };
        let before = tx.now.minus(keep).as_micros();
        for sql in [DROP_ROLLUPS, DROP_GATE_ROLLUPS] {
            tx.execute(sql, named_params! { ":step": step.code(), ":before": before, ":limit": DROPPED_MAX })?;
        }
    }
    Ok(())
}

impl Batch {
    /// Counts what happened to one job.
    fn count(&mut self, row: &Row<'_>, now: Timestamp) -> Result<()> {
        let (at, code): (Timestamp, i16) = (time(row, 0)?, row.get(1)?);
        let event = JournalEvent::from_code(code).ok_or_else(|| corrupt(format!("journal.event is {code}")))?;
        let owner: Owner = (row.get(2)?, row.get(3)?, row.get(4)?);
        let line = Line::from_store(text(row, 5)?);
        let took = |column| -> Result<Option<Duration>> {
            let micros = row.get::<_, Option<i64>>(column)?;
            Ok(micros.map(|micros| Duration::from_micros(micros.cast_unsigned())))
        };
        let (run, wait) = (took(6)?, took(7)?);
        for step in Step::ALL {
            let at = step.start_of(at);
            if !step.keeps(at, now) {
                continue;
            }
            for tenant in [owner.0, ALL_TENANTS] {
                let owner = (tenant, owner.1, owner.2.clone());
                self.lines.entry((step, at, owner)).or_default().count(event, run, wait);
                if let (Some(gate), Some(is_unhealthy)) = (line.gate(), is_unhealthy(event)) {
                    let sum = self.gates.entry((step, at, tenant, gate.to_owned())).or_default();
                    *sum = (sum.0 + 1, sum.1 + u64::from(is_unhealthy));
                }
            }
        }
        Ok(())
    }

    /// Adds everything to the sums that are kept.
    fn save(self, tx: &Tx<'_>) -> Result<()> {
        for ((step, at, (tenant, queue, kind)), figures) in self.lines {
            let (step, at) = (step.code(), at.as_micros());
            let key = named_params! { ":step": step, ":at": at, ":tenant": tenant, ":queue": queue, ":kind": kind };
            let mut sum = tx.one(FIND_ROLLUP, key, |row| read_figures(row, 0))?.unwrap_or_default();
            sum.merge(&figures);
            let params = named_params! {
                ":step": step,
                ":at": at,
                ":tenant": tenant,
                ":queue": queue,
                ":kind": kind,
                ":counters": write_counts(&sum.counters()),
                ":run": write_counts(sum.run.counts()),
                ":run_micros": sum.run.sum_micros().cast_signed(),
                ":wait": write_counts(sum.wait.counts()),
                ":wait_micros": sum.wait.sum_micros().cast_signed(),
            };
            tx.execute(SAVE_ROLLUP, params)?;
        }
        for ((step, at, tenant, gate), (ended, unhealthy)) in self.gates {
            let params = named_params! {
                ":step": step.code(),
                ":at": at.as_micros(),
                ":tenant": tenant,
                ":gate": gate,
                ":ended": ended.cast_signed(),
                ":unhealthy": unhealthy.cast_signed(),
            };
            tx.execute(ADD_GATE_ROLLUP, params)?;
        }
        Ok(())
    }
}

fn list(tx: &Tx<'_>, filter: &RollupFilter) -> Result<Vec<Rollup>> {
    let (start, by) = (filter.start(), filter.by);
    let sight = filter.sight.tenant().map(|tenant| tenant.as_str());
    let (step, since, until) = (filter.step.code(), start.as_micros(), filter.until.as_micros());
    let queue = filter.queue.as_ref().map(|queue| queue.as_str());
    let kind = filter.kind.as_ref().map(|kind| kind.as_str());
    let mut sums: HashMap<_, Figures> = HashMap::new();
    let add = |row: &Row<'_>| -> Result<()> {
        let at = if by.has_time() { time(row, 0)? } else { start };
        let tenant = by.has_tenant().then(|| word(row, 1)).transpose()?;
        let queue = by.has_queue().then(|| word(row, 2)).transpose()?;
        let kind = by.has_kind().then(|| word(row, 3)).transpose()?;
        sums.entry((at, queue, kind, tenant)).or_default().merge(&read_figures(row, 4)?);
        Ok(())
    };
    match sight {
        None if by.has_tenant() => tx.all(
            LIST_ROLLUPS,
            named_params! { ":step": step, ":since": since, ":until": until, ":queue": queue, ":kind": kind },
            add,
        )?,
        _ => tx.all(
            LIST_ROLLUPS_OF_TENANT,
            named_params! {
                ":sight": sight, ":step": step, ":since": since, ":until": until, ":queue": queue, ":kind": kind,
            },
            add,
        )?,
    };
    let line = |((at, queue, kind, tenant), figures)| Rollup { at, queue, kind, tenant, figures };
    let mut lines: Vec<Rollup> = sums.into_iter().map(line).collect();
    rollup::sort(&mut lines);
    lines.truncate(filter.limit as usize);
    Ok(lines)
}

/// Counters and histograms from five columns.
fn read_figures(row: &Row<'_>, first: usize) -> Result<Figures> {
    let mut counters = [0; 9];
    counters.iter_mut().zip(read_counts(text(row, first)?)?).for_each(|(counter, count)| *counter = count);
    let histogram = |column| -> Result<Histogram> {
        let sum = number::<i64, u64>(row, column + 1, "rollup.micros")?;
        Ok(Histogram::from_store(read_counts(text(row, column)?)?, sum))
    };
    Ok(Figures::from_store(counters, histogram(first + 1)?, histogram(first + 3)?))
}

fn read_counts(text: &str) -> Result<Vec<u64>> {
    let counts = text.split(',').filter(|count| !count.is_empty()).map(str::parse);
    counts.collect::<std::result::Result<_, _>>().map_err(|_| corrupt(format!("counts are `{text}`")))
}

fn write_counts(counts: &[u64]) -> String {
    let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    counts[..used].iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}
