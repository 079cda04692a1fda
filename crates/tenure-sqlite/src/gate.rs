//! Gates: where each stands and what was reported of it. Every decision is tenure-core's.

use rusqlite::{Row, named_params};
use tenure_core::gate::{Gate, GateEvent, GateRule, Health, Moved, Pattern};
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::name::GateName;
use tenure_core::{LeaseNo, Timestamp, WorkerId};
use tenure_store::StoreError;
use tenure_store::gate::{AcquireTokens, Acquired, GateAct, GateFilter, GateRecord, OperateGate};

use crate::fault::{Result, corrupt};
use crate::gate_rule::find_rule;
use crate::journal::{self, Entry};
use crate::row::{number, optional_time, time, word};
use crate::show;
use crate::tx::Tx;

const FIND_GATE: &str = include_str!("sql/find_gate.sql");
const LIST_GATES: &str = include_str!("sql/list_gates.sql");
const ADD_GATE: &str = include_str!("sql/add_gate.sql");
const SAVE_GATE: &str = include_str!("sql/save_gate.sql");
const ADD_GATE_EVENT: &str = include_str!("sql/add_gate_event.sql");
const LIST_GATE_EVENTS: &str = include_str!("sql/list_gate_events.sql");
const DROP_GATE_EVENTS: &str = include_str!("sql/drop_gate_events.sql");
const GATE_NAME: &str = include_str!("sql/gate_name.sql");
const COUNT_PERMITS: &str = include_str!("sql/count_permits.sql");

/// A gate as it stands in its row, and the rule it obeys.
pub(crate) struct OpenGate {
    pub(crate) id: i64,
    name: GateName,
    pub(crate) gate: Gate,
    pub(crate) rule: GateRule,
    pub(crate) pattern: Option<Pattern>,
    pause_reason: Option<String>,
    trip_reason: Option<String>,
}

/// A gate with everything folded that was reported, for a claim or an operator. It is entered when it is new.
pub(crate) fn open(tx: &Tx<'_>, name: &GateName, worker: Option<WorkerId>) -> Result<OpenGate> {
    tx.execute(ADD_GATE, named_params! { ":name": name.as_str() })?;
    let mut open = find(tx, name)?.ok_or_else(|| corrupt(format!("gate {name} was added and is not there")))?;
    let moves = open.fold(tx)?;
    let params = named_params! { ":gate": open.id };
    if tx.execute(DROP_GATE_EVENTS, params)? > 0 {
        open.save(tx)?;
    }
    for moved in moves {
        let event = match moved {
            Moved::Tripped => JournalEvent::GateTripped,
            Moved::Healed => JournalEvent::GateHealed,
        };
        let details = Some(format!("{{\"gate\":{},\"streak\":{}}}", quote(name.as_str()), open.gate.streak));
        journal::add_json(tx, &Entry { worker, details, ..Entry::new(event) }, "[]")?;
    }
    Ok(open)
}

/// A gate with everything folded, and nothing written.
pub(crate) fn look(tx: &Tx<'_>, name: &GateName) -> Result<Option<OpenGate>> {
    let Some(mut open) = find(tx, name)? else { return Ok(None) };
    open.fold(tx)?;
    Ok(Some(open))
}

/// A job has left its gate.
pub(crate) fn leave(
    tx: &Tx<'_>,
    gate: i64,
    lease: LeaseNo,
    health: Option<Health>,
    hold: Option<Timestamp>,
) -> Result<()> {
    tx.execute(
        ADD_GATE_EVENT,
        named_params! {
            ":gate": gate, ":lease": lease.0, ":now": tx.now.as_micros(), ":health": health.map(Health::code),
            ":hold_until": hold.map(Timestamp::as_micros),
        },
    )?;
    // There may be room for another now.
    tx.wake();
    Ok(())
}

pub(crate) fn list_gates(tx: &Tx<'_>, filter: &GateFilter) -> Result<Vec<GateRecord>> {
    let (first, end) = bounds(filter.pattern.as_ref());
    let after = filter.after.as_ref().map_or("", GateName::as_str);
    let params = named_params! { ":after": after, ":first": first, ":end": end, ":limit": filter.limit };
    let mut records = Vec::new();
    for mut open in tx.all(LIST_GATES, params, |row| read(tx, row))? {
        open.fold(tx)?;
        records.push(open.record(tx.now));
    }
    Ok(records)
}

pub(crate) fn show_gate(tx: &Tx<'_>, name: &GateName) -> Result<GateRecord> {
    if let Some(open) = look(tx, name)? {
        return Ok(open.record(tx.now));
    }
    let Some((pattern, rule)) = find_rule(tx, name)? else {
        return Err(StoreError::NotFound(format!("gate {name}")).into());
    };
    let untouched = OpenGate {
        id: 0,
        name: name.clone(),
        gate: Gate::default(),
        rule,
        pattern: Some(pattern),
        pause_reason: None,
        trip_reason: None,
    };
    Ok(untouched.record(tx.now))
}

pub(crate) fn operate_gate(tx: &Tx<'_>, request: &OperateGate) -> Result<()> {
    let mut open = open(tx, &request.gate, None)?;
    let before = open.gate.clone();
    request.act.apply(&mut open.gate, tx.now);
    if open.gate == before {
        return Ok(());
    }
    let reason = request.word.reason.clone();
    let event = match request.act {
        GateAct::Pause(_) => {
            open.pause_reason = reason;
            JournalEvent::GatePaused
        }
        GateAct::Resume => {
            open.pause_reason = None;
            JournalEvent::GateResumed
        }
        GateAct::Trip(_) => {
            open.trip_reason = reason;
            JournalEvent::GateTripped
        }
        GateAct::Reset => {
            open.trip_reason = None;
            JournalEvent::GateReset
        }
    };
    open.save(tx)?;
    let details = format!("{{\"gate\":{}}}", quote(request.gate.as_str()));
    journal::add_json(tx, &Entry { details: Some(details), ..Entry::said(event, &request.word) }, "[]")?;
    tx.wake();
    Ok(())
}

pub(crate) fn acquire_tokens(tx: &Tx<'_>, request: &AcquireTokens) -> Result<Acquired> {
    let holder = show::find_holder(tx, request.job)?;
    let holder = holder.filter(|holder| holder.lease.no == request.lease && holder.lease.worker == request.worker);
    let Some(gate) = holder.and_then(|holder| holder.grant.gate) else { return Ok(Acquired::LeaseLost) };
    let name = tx.one(GATE_NAME, named_params! { ":gate": gate }, |row| word(row, 0))?;
    let name = name.ok_or_else(|| corrupt(format!("a lease names gate {gate}, which is not there")))?;
    let mut open = open(tx, &name, Some(request.worker))?;
    let acquired = Acquired::of(&mut open.gate, &open.rule, request.tokens, tx.now)?;
    open.save(tx)?;
    Ok(acquired)
}

/// Counts permits anew from live leases; answers how many gates were wrong.
pub(crate) fn repair_gates(tx: &Tx<'_>) -> Result<u64> {
    let wrong =
        tx.all(COUNT_PERMITS, &[], |row| Ok((word::<GateName>(row, 0)?, number::<i64, u32>(row, 1, "held")?)))?;
    for (name, held) in &wrong {
        let mut open = open(tx, name, None)?;
        open.gate.in_use = *held;
        open.save(tx)?;
    }
    Ok(wrong.len() as u64)
}

/// The first name that a pattern can mean, and the name before which its names end.
pub(crate) fn bounds(pattern: Option<&Pattern>) -> (String, String) {
    match pattern.map(Pattern::as_str) {
        None => (String::new(), "\u{7f}".to_owned()),
        // No name holds what sorts behind the beginning and this.
        Some(pattern) => match pattern.strip_suffix('*') {
            Some(beginning) => (beginning.to_owned(), format!("{beginning}\u{7f}")),
            None => (pattern.to_owned(), format!("{pattern}\u{0}")),
        },
    }
}

pub(crate) fn find(tx: &Tx<'_>, name: &GateName) -> Result<Option<OpenGate>> {
    tx.one(FIND_GATE, named_params! { ":name": name.as_str() }, |row| read(tx, row))
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<OpenGate> {
    let name: GateName = word(row, 1)?;
    let (pattern, rule) = find_rule(tx, &name)?.map_or((None, GateRule::default()), |(p, rule)| (Some(p), rule));
    let gate = Gate {
        in_use: number::<i64, u32>(row, 2, "gate.in_use")?,
        full_at: time(row, 3)?,
        streak: number::<i64, u32>(row, 4, "gate.streak")?,
        open_until: optional_time(row, 5)?,
        probe: row.get::<_, Option<i64>>(6)?.map(LeaseNo),
        deaf_to: LeaseNo(row.get(7)?),
        newest: LeaseNo(row.get(8)?),
        paused_until: optional_time(row, 9)?,
        held_until: optional_time(row, 10)?,
        succeeded_at: optional_time(row, 11)?,
        failed_at: optional_time(row, 12)?,
    };
    Ok(OpenGate { id: row.get(0)?, name, gate, rule, pattern, pause_reason: row.get(13)?, trip_reason: row.get(14)? })
}

impl OpenGate {
    /// Folds what was reported, in order; answers how the breaker moved.
    fn fold(&mut self, tx: &Tx<'_>) -> Result<Vec<Moved>> {
        let events = tx.all(LIST_GATE_EVENTS, named_params! { ":gate": self.id }, |row| {
            Ok(GateEvent {
                lease: LeaseNo(row.get(0)?),
                at: time(row, 1)?,
                health: row.get::<_, Option<i16>>(2)?.and_then(Health::from_code),
                hold_until: optional_time(row, 3)?,
            })
        })?;
        Ok(events.iter().filter_map(|event| self.gate.fold(&self.rule, event)).collect())
    }

    /// Writes where it stands.
    pub(crate) fn save(&self, tx: &Tx<'_>) -> Result<()> {
        let Gate { in_use, streak, .. } = self.gate;
        let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
        tx.execute(
            SAVE_GATE,
            named_params! {
                ":gate": self.id,
                ":in_use": in_use,
                ":full_at": self.gate.full_at.as_micros(),
                ":streak": streak,
                ":open_until": micros(self.gate.open_until),
                ":probe": self.gate.probe.map(|lease| lease.0),
                ":deaf_to": self.gate.deaf_to.0,
                ":newest": self.gate.newest.0,
                ":paused_until": micros(self.gate.paused_until),
                ":held_until": micros(self.gate.held_until),
                ":succeeded_at": micros(self.gate.succeeded_at),
                ":failed_at": micros(self.gate.failed_at),
                ":pause_reason": self.pause_reason,
                ":trip_reason": self.trip_reason,
            },
        )?;
        Ok(())
    }

    fn record(self, now: Timestamp) -> GateRecord {
        let admit = self.gate.admit(&self.rule, now);
        let Self { name, pattern, rule, gate, pause_reason, trip_reason, .. } = self;
        GateRecord { name, pattern, rule, gate, admit, now, pause_reason, trip_reason }
    }
}
