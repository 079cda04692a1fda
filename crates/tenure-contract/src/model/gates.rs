//! Gates and lines: bookkeeping around `tenure_core::gate` and the turns of `tenure_store::lines`.

use std::time::Duration;

use async_trait::async_trait;
use tenure_core::gate::{Admit, Gate, GateEvent, GateRule, Moved, Pattern};
use tenure_core::journal::JournalEvent;
use tenure_core::name::{GateName, QueueName};
use tenure_core::{JobId, Json, LeaseNo, Line, Timestamp, WorkerId};
use tenure_store::gate::{
    AcquireTokens, Acquired, GateAct, GateFilter, GateRecord, OperateGate, PatchRule, SetRule, ruled_details,
};
use tenure_store::lines::{Lines, Served};
use tenure_store::operate::Word;
use tenure_store::{GateStore, StoreError};

use super::ModelStore;
use super::tables::Tables;

/// A gate and what was reported of it since it was last folded.
#[derive(Clone, Default)]
pub(super) struct GateRow {
    pub(super) gate: Gate,
    pub(super) events: Vec<GateEvent>,
    pause_reason: Option<String>,
    trip_reason: Option<String>,
}

#[async_trait]
impl GateStore for ModelStore {
    async fn set_rule(&self, request: SetRule) -> Result<(), StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            if request.rule.is_none() && !tables.rules.contains_key(&request.pattern) {
                return Err(StoreError::NotFound(format!("a rule for {}", request.pattern)));
            }
            change_rule(tables, now, &request.pattern, request.rule.as_ref(), &request.word);
            Ok(())
        })
    }

    async fn patch_rule(&self, request: PatchRule) -> Result<GateRule, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let before = tables.rules.get(&request.pattern).cloned().unwrap_or_default();
            let after = request.patch.apply(&before)?;
            change_rule(tables, now, &request.pattern, Some(&after), &request.word);
            Ok(after)
        })
    }

    async fn list_rules(&self, limit: u32) -> Result<Vec<(Pattern, GateRule)>, StoreError> {
        self.look(|tables, _| {
            let rules = tables.rules.iter().take(limit as usize);
            Ok(rules.map(|(pattern, rule)| (pattern.clone(), rule.clone())).collect())
        })
    }

    async fn list_gates(&self, filter: &GateFilter) -> Result<Vec<GateRecord>, StoreError> {
        filter.check()?;
        self.look(|tables, now| {
            let wanted = |name: &&GateName| {
                filter.pattern.as_ref().is_none_or(|pattern| pattern.matches(name))
                    && filter.after.as_ref().is_none_or(|after| *name > after)
            };
            let names = tables.gates.keys().filter(wanted).take(filter.limit as usize);
            Ok(names.map(|name| record(tables, name, now)).collect())
        })
    }

    async fn show_gate(&self, gate: &GateName) -> Result<GateRecord, StoreError> {
        self.look(|tables, now| {
            if !tables.gates.contains_key(gate) && rule_of(tables, gate).0.is_none() {
                return Err(StoreError::NotFound(format!("gate {gate}")));
            }
            Ok(record(tables, gate, now))
        })
    }

    async fn operate_gate(&self, request: OperateGate) -> Result<(), StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            fold(tables, &request.gate, None, now);
            let row = tables.gates.entry(request.gate.clone()).or_default();
            let before = row.gate.clone();
            request.act.apply(&mut row.gate, now);
            if row.gate == before {
                return Ok(());
            }
            let reason = request.word.reason.clone();
            let event = match request.act {
                GateAct::Pause(_) | GateAct::Resume => {
                    row.pause_reason = reason.filter(|_| request.act != GateAct::Resume);
                    if request.act == GateAct::Resume { JournalEvent::GateResumed } else { JournalEvent::GatePaused }
                }
                GateAct::Trip(_) | GateAct::Reset => {
                    row.trip_reason = reason.filter(|_| request.act != GateAct::Reset);
                    if request.act == GateAct::Reset { JournalEvent::GateReset } else { JournalEvent::GateTripped }
                }
            };
            tables.write(now, None, event, None, Vec::new(), &request.word);
            tables.naming(&[("gate", request.gate.as_str())]);
            Ok(())
        })
    }

    async fn acquire_tokens(&self, request: AcquireTokens) -> Result<Acquired, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let mine = tables.leases.get(&request.lease).is_some_and(|lease| lease.worker == request.worker);
            let held = mine && tables.held(request.lease).contains(&request.job);
            let gate = tables.jobs.get(&request.job).and_then(|row| row.asked.gate.clone());
            let Some(gate) = gate.filter(|_| held) else { return Ok(Acquired::LeaseLost) };
            fold(tables, &gate, Some(request.worker), now);
            let rule = rule_of(tables, &gate).1;
            let row = tables.gates.entry(gate).or_default();
            Ok(Acquired::of(&mut row.gate, &rule, request.tokens, now)?)
        })
    }

    async fn repair_gates(&self) -> Result<u64, StoreError> {
        self.look(|tables, _| Ok(wrong_permits(tables).count() as u64))
    }

    fn opens_in(&self, _queue: &QueueName) -> Option<Duration> {
        None
    }
}

/// What each line may give to a claim: the due jobs of its share, as far as its gate allows.
pub(super) fn divide(
    tables: &mut Tables,
    lines: &Lines,
    queue: &QueueName,
    due: &[JobId],
    (limit, by, now): (u32, WorkerId, Timestamp),
) -> Vec<(Served, Vec<JobId>)> {
    let mut found: Vec<(Line, u32)> = Vec::new();
    for id in due {
        let line = &tables.jobs[id].line;
        if !found.iter().any(|(known, _)| known == line) {
            found.push((line.clone(), weight(tables, line)));
        }
    }
    found.sort();
    lines.learn(queue, None, found, None, Duration::ZERO);
    let mut parts = Vec::new();
    for share in lines.share(queue, limit, lines.now()) {
        let mut most = share.jobs;
        let mut closed = None;
        if let Some(gate) = gate_of(&share.line) {
            fold(tables, &gate, Some(by), now);
            let rule = rule_of(tables, &gate).1;
            match tables.gates.entry(gate).or_default().gate.admit(&rule, now) {
                Admit::Open(allowed) => most = most.min(allowed),
                Admit::Closed { until, .. } => (most, closed) = (0, Some(until.map(|until| until.since(now)))),
            }
        }
        let jobs: Vec<JobId> =
            due.iter().filter(|id| tables.jobs[id].line == share.line).take(most as usize).copied().collect();
        let took = jobs.len() as u32;
        parts.push((Served { share, took, closed }, jobs));
    }
    parts
}

/// So many jobs have passed the gate of a line.
pub(super) fn take(tables: &mut Tables, line: &Line, jobs: u32, lease: LeaseNo, now: Timestamp) {
    let Some(gate) = gate_of(line).filter(|_| jobs > 0) else { return };
    let rule = rule_of(tables, &gate).1;
    tables.gates.entry(gate).or_default().gate.take(&rule, jobs, lease, now);
}

/// Gates whose permits are not what live leases say.
pub(super) fn wrong_permits(tables: &Tables) -> impl Iterator<Item = (&GateName, u32, usize)> {
    tables.gates.iter().filter_map(|(name, row)| {
        let held = tables.leases.keys().flat_map(|no| tables.held(*no));
        let live = held.filter(|id| tables.jobs[id].asked.gate.as_ref() == Some(name)).count();
        (row.gate.in_use as usize != live + row.events.len()).then_some((name, row.gate.in_use, live))
    })
}

/// Writes a rule and brings the buckets of the gates that now obey another one under it.
fn change_rule(tables: &mut Tables, now: Timestamp, pattern: &Pattern, after: Option<&GateRule>, word: &Word) {
    let owes = |(name, row): &(&GateName, &GateRow)| pattern.matches(name) && row.gate.full_at > now;
    let owing: Vec<GateName> = tables.gates.iter().filter(owes).map(|(name, _)| name.clone()).collect();
    let owing: Vec<_> = owing.into_iter().map(|name| (rule_of(tables, &name).0, name)).collect();
    let before = match after {
        Some(rule) => tables.rules.insert(pattern.clone(), rule.clone()),
        None => tables.rules.remove(pattern),
    };
    let moves = GateRule::moves_buckets(before.as_ref(), after);
    for (obeyed, name) in owing {
        let (obeys, rule) = rule_of(tables, &name);
        if obeys != obeyed || moves && obeys.as_ref() == Some(pattern) {
            tables.gates.entry(name).or_default().gate.come_under(&rule, now);
        }
    }
    tables.write(now, None, JournalEvent::GateRuled, None, Vec::new(), word);
    if let Some(row) = tables.journal.last_mut() {
        row.details = Some(Json::from_store(ruled_details(pattern, before.as_ref(), after)));
    }
}

fn gate_of(line: &Line) -> Option<GateName> {
    line.gate().and_then(|gate| gate.parse().ok())
}

fn rule_of(tables: &Tables, gate: &GateName) -> (Option<Pattern>, GateRule) {
    let candidates = Pattern::candidates(gate).filter_map(|text| text.parse::<Pattern>().ok());
    let found =
        candidates.into_iter().find_map(|pattern| tables.rules.get(&pattern).map(|rule| (pattern, rule.clone())));
    found.map_or((None, GateRule::default()), |(pattern, rule)| (Some(pattern), rule))
}

/// The share of a line: its gate's, or what a rule for `tenant:<name>` says of a tenant's own.
fn weight(tables: &Tables, line: &Line) -> u32 {
    let tenant = || {
        let number: usize = line.as_str().parse().ok()?;
        format!("tenant:{}", tables.tenants.get(number - 1)?).parse().ok()
    };
    gate_of(line).or_else(tenant).map_or(1, |gate| rule_of(tables, &gate).1.weight)
}

fn fold(tables: &mut Tables, gate: &GateName, worker: Option<WorkerId>, now: Timestamp) {
    let rule = rule_of(tables, gate).1;
    let Some(row) = tables.gates.get_mut(gate) else { return };
    let events = std::mem::take(&mut row.events);
    let moves: Vec<Moved> = events.iter().filter_map(|event| row.gate.fold(&rule, event)).collect();
    for moved in moves {
        let event = match moved {
            Moved::Tripped => JournalEvent::GateTripped,
            Moved::Healed => JournalEvent::GateHealed,
        };
        tables.write(now, worker, event, None, Vec::new(), &Word::default());
        tables.naming(&[("gate", gate.as_str())]);
    }
}

fn record(tables: &Tables, name: &GateName, now: Timestamp) -> GateRecord {
    let (pattern, rule) = rule_of(tables, name);
    let GateRow { mut gate, events, pause_reason, trip_reason } = tables.gates.get(name).cloned().unwrap_or_default();
    for event in &events {
        gate.fold(&rule, event);
    }
    let admit = gate.admit(&rule, now);
    GateRecord { name: name.clone(), pattern, rule, gate, admit, now, pause_reason, trip_reason }
}
