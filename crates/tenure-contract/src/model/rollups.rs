//! Rollups: sums of what was sealed.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::name::{GateName, KindName, QueueName, TenantName};
use tenure_core::new_job::Due;
use tenure_core::{JobId, Timestamp};
use tenure_store::record::Sight;
use tenure_store::rollup::{self, Figures, GateFailures, Rollup, RollupFilter, Step, is_unhealthy};
use tenure_store::{RollupStore, StoreError};

use super::ModelStore;
use super::tables::{Row, Tables};

/// Step, its first moment, tenant, queue and kind.
pub(super) type RollupKey = (Step, Timestamp, TenantName, QueueName, KindName);

/// Rows summed at once: few, so that there are several batches.
const ROWS_MAX: usize = 3;

#[async_trait]
impl RollupStore for ModelStore {
    async fn fold_rollups(&self) -> Result<u64, StoreError> {
        self.transact(|tables, now| {
            tables.rollups.retain(|(step, at, ..), _| step.keeps(*at, now));
            tables.gate_rollups.retain(|(step, at, ..), _| step.keeps(*at, now));
            let sealed = tables.seals.last().map_or(0, |(_, last)| *last);
            let new = |row: &&JournalRow| row.id > tables.rolled_up && row.id <= sealed;
            let rows: Vec<JournalRow> = tables.journal.iter().filter(new).take(ROWS_MAX).cloned().collect();
            for row in &rows {
                row.jobs.iter().for_each(|job| count(tables, row, *job, now));
                tables.rolled_up = row.id;
            }
            Ok(rows.len() as u64)
        })
    }

    async fn list_rollups(&self, filter: &RollupFilter) -> Result<Vec<Rollup>, StoreError> {
        filter.check()?;
        self.look(|tables, _| {
            let (start, by) = (filter.start(), filter.by);
            let mut lines: BTreeMap<_, Figures> = BTreeMap::new();
            for ((step, at, tenant, queue, kind), figures) in &tables.rollups {
                let is_wanted = *step == filter.step
                    && (start..filter.until).contains(at)
                    && filter.sight.tenant().is_none_or(|own| own == tenant)
                    && filter.queue.as_ref().is_none_or(|wanted| wanted == queue)
                    && filter.kind.as_ref().is_none_or(|wanted| wanted == kind);
                if is_wanted {
                    let at = if by.has_time() { *at } else { start };
                    let queue = by.has_queue().then(|| queue.clone());
                    let kind = by.has_kind().then(|| kind.clone());
                    let tenant = by.has_tenant().then(|| tenant.clone());
                    lines.entry((at, queue, kind, tenant)).or_default().merge(figures);
                }
            }
            let line = |((at, queue, kind, tenant), figures)| Rollup { at, queue, kind, tenant, figures };
            let mut lines: Vec<Rollup> = lines.into_iter().map(line).collect();
            rollup::sort(&mut lines);
            lines.truncate(filter.limit as usize);
            Ok(lines)
        })
    }

    async fn list_failing_gates(
        &self,
        sight: &Sight,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<GateFailures>, StoreError> {
        rollup::check_limit(limit)?;
        self.look(|tables, now| {
            let wanted = Step::of_span(now.since(since));
            let mut gates: BTreeMap<GateName, (u64, u64)> = BTreeMap::new();
            for ((step, at, tenant, gate), (ended, unhealthy)) in &tables.gate_rollups {
                let seen = sight.tenant().is_none_or(|own| own == tenant);
                if *step == wanted && *at >= step.start_of(since) && seen {
                    let sum = gates.entry(gate.clone()).or_default();
                    *sum = (sum.0 + ended, sum.1 + unhealthy);
                }
            }
            let of = |(gate, (ended, unhealthy))| GateFailures { gate, ended, unhealthy };
            let mut gates: Vec<GateFailures> = gates.into_iter().map(of).filter(|gate| gate.unhealthy > 0).collect();
            gates.sort_by_key(|gate| (std::cmp::Reverse(gate.unhealthy), gate.ended));
            gates.truncate(limit as usize);
            Ok(gates)
        })
    }
}

/// Adds what happened to one job to each sum that it belongs to.
fn count(tables: &mut Tables, said: &JournalRow, job: JobId, now: Timestamp) {
    if !matches!(said.event, JournalEvent::Claimed | JournalEvent::Ended(_)) {
        return;
    }
    let Some(row) = tables.jobs.get(&job) else { return };
    let (run, wait) = (ran(row, said), waited(row, said));
    let asked = row.asked.clone();
    for step in Step::ALL {
        let at = step.start_of(said.at);
        if !step.keeps(at, now) {
            continue;
        }
        let key = (step, at, asked.tenant.clone(), asked.queue.clone(), asked.kind.clone());
        tables.rollups.entry(key).or_default().count(said.event, run, wait);
        if let (Some(gate), Some(is_unhealthy)) = (&asked.gate, is_unhealthy(said.event)) {
            let sum = tables.gate_rollups.entry((step, at, asked.tenant.clone(), gate.clone())).or_default();
            *sum = (sum.0 + 1, sum.1 + u64::from(is_unhealthy));
        }
    }
}

/// How long an attempt ran, of those that tell.
fn ran(row: &Row, said: &JournalRow) -> Option<Duration> {
    is_unhealthy(said.event)?;
    let ended = row.attempts.iter().find(|attempt| Some(attempt.record.lease) == said.lease)?;
    Some(ended.record.ended_at.since(ended.record.started_at?))
}

/// How long a job waited for its first start: nothing of it has ended before, and it did not wait to be opened.
fn waited(row: &Row, said: &JournalRow) -> Option<Duration> {
    let is_first = row.attempts.iter().all(|attempt| Some(attempt.record.lease) >= said.lease);
    if said.event != JournalEvent::Claimed || !is_first || row.asked.due == Due::WhenOpened {
        return None;
    }
    Some(said.at.since(row.asked.run_at(row.created_at)))
}
