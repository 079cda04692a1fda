//! Gates: rules and operators. What a claim does with them is in `lines.rs` and `migrations/0009_gates.sql`.

use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::gate::{Breaker, Gate, GateEvent, GateRule, Health, Pattern, Rate, Why};
use tenure_core::name::{GateName, QueueName};
use tenure_core::{Invalid, LeaseNo, Timestamp};
use tenure_store::gate::{AcquireTokens, Acquired, GateAct, GateFilter, GateRecord, OperateGate, SetRule};
use tenure_store::{GateStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::Param;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, millis, named, time, time_maybe};

const SET_GATE: Statement = Statement {
    name: "set_gate",
    sql: "select tenure.set_gate($1, $2, $3 * interval '1 ms', $4, $5, $6, $7, $8 * interval '1 ms', $9, $10, $11, $12)",
};
const REMOVE_RULE: Statement =
    Statement { name: "remove_gate_rule", sql: "select tenure.remove_gate_rule($1, $2, $3, $4)" };
const OPERATE_GATE: Statement =
    Statement { name: "operate_gate", sql: "select tenure.operate_gate($1, $2, $3 * interval '1 ms', $4, $5, $6)" };
const ACQUIRE: Statement =
    Statement { name: "acquire_tokens", sql: "select after_us, why, until from tenure.acquire($1, $2, $3, $4, $5)" };
const REPAIR_GATES: Statement =
    Statement { name: "repair_gates", sql: "select tenure.repair_gates()::bigint as repaired" };

/// No name sorts behind what begins with its text and this.
const END: char = '\u{7f}';

#[async_trait]
impl GateStore for PgStore {
    async fn set_rule(&self, request: SetRule) -> Result<(), StoreError> {
        request.check()?;
        let (pattern, word, now) = (request.pattern.as_str(), &request.word, self.moment());
        let said: [Param<'_>; 3] = [(&word.actor, Type::TEXT), (&word.reason, Type::TEXT), (&now, Type::TIMESTAMPTZ)];
        let name: [Param<'_>; 1] = [(&pattern, Type::TEXT)];
        let Some(rule) = request.rule else {
            self.call(Desk::Short, REMOVE_RULE, &[name.as_slice(), &said].concat()).await?;
            return Ok(());
        };
        let int = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let (rate, breaker) = (rule.rate.as_ref(), rule.breaker.as_ref());
        let (count, burst) = (rate.map(|rate| int(rate.count)), rate.map(|rate| int(rate.burst)));
        let (period, cost) = (rate.map_or(1_000, |rate| millis(rate.period)), rate.map_or(1, |rate| int(rate.cost)));
        let (concurrency, failures) = (rule.concurrency.map(int), breaker.map(|breaker| int(breaker.failures)));
        let (cooldown, weight) = (breaker.map_or(1_000, |breaker| millis(breaker.cooldown)), int(rule.weight));
        let limits: [Param<'_>; 8] = [
            (&count, Type::INT4),
            (&period, Type::INT8),
            (&burst, Type::INT4),
            (&cost, Type::INT4),
            (&concurrency, Type::INT4),
            (&failures, Type::INT4),
            (&cooldown, Type::INT8),
            (&weight, Type::INT4),
        ];
        self.call(Desk::Short, SET_GATE, &[name.as_slice(), &limits, &said].concat()).await?;
        Ok(())
    }

    async fn list_rules(&self, limit: u32) -> Result<Vec<(Pattern, GateRule)>, StoreError> {
        let rows = self.rules(None, limit).await?;
        rows.iter().map(|row| Ok((pattern(row)?, rule(row)?))).collect()
    }

    async fn list_gates(&self, filter: &GateFilter) -> Result<Vec<GateRecord>, StoreError> {
        filter.check()?;
        let (first, end) = match filter.pattern.as_ref().map(Pattern::as_str) {
            None => (String::new(), END.to_string()),
            Some(pattern) => match pattern.strip_suffix('*') {
                Some(beginning) => (beginning.to_owned(), format!("{beginning}{END}")),
                None => (pattern.to_owned(), format!("{pattern}\u{1}")),
            },
        };
        let after = filter.after.as_ref().map_or("", GateName::as_str);
        let rows = self.gates(None, (&first, &end, after), filter.limit).await?;
        rows.iter().map(record).collect()
    }

    async fn show_gate(&self, gate: &GateName) -> Result<GateRecord, StoreError> {
        let end = END.to_string();
        let rows = self.gates(Some(vec![gate.to_string()]), ("", &end, ""), 1).await?;
        if let Some(row) = rows.first() {
            return record(row);
        }
        let rows = self.rules(Some(gate.as_str()), 1).await?;
        let row = rows.first().ok_or_else(|| StoreError::NotFound(format!("gate {gate}")))?;
        let (rule, now) = (rule(row)?, time(row, "now")?);
        let untouched = Gate::default();
        Ok(GateRecord {
            name: gate.clone(),
            pattern: Some(pattern(row)?),
            admit: untouched.admit(&rule, now),
            rule,
            gate: untouched,
            now,
            pause_reason: None,
            trip_reason: None,
        })
    }

    async fn operate_gate(&self, request: OperateGate) -> Result<(), StoreError> {
        request.check()?;
        let (act, lasts) = match request.act {
            GateAct::Pause(time) => ("pause", time),
            GateAct::Resume => ("resume", None),
            GateAct::Trip(time) => ("trip", time),
            GateAct::Reset => ("reset", None),
        };
        let (name, lasts, now) = (request.gate.as_str(), lasts.map(millis), self.moment());
        let params: [Param<'_>; 6] = [
            (&name, Type::TEXT),
            (&act, Type::TEXT),
            (&lasts, Type::INT8),
            (&request.word.actor, Type::TEXT),
            (&request.word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        self.call(Desk::Short, OPERATE_GATE, &params).await?;
        Ok(())
    }

    async fn acquire_tokens(&self, request: AcquireTokens) -> Result<Acquired, StoreError> {
        request.check()?;
        let (tokens, now) = (i32::try_from(request.tokens).unwrap_or(i32::MAX), self.moment());
        let params: [Param<'_>; 5] = [
            (&request.worker.0, Type::INT4),
            (&request.lease.0, Type::INT8),
            (request.job.as_uuid(), Type::UUID),
            (&tokens, Type::INT4),
            (&now, Type::TIMESTAMPTZ),
        ];
        let rows = self.call(Desk::Short, ACQUIRE, &params).await?;
        let Some(row) = rows.first() else { return Ok(Acquired::LeaseLost) };
        if let Some(after) = get::<Option<i64>>(row, "after_us")? {
            return Ok(Acquired::After(Duration::from_micros(u64::try_from(after).unwrap_or(0))));
        }
        let why = match get::<Option<&str>>(row, "why")? {
            Some("paused") => Why::Paused,
            Some("held") => Why::Held,
            Some("open") => Why::Open,
            other => return Err(StoreError::Corrupt(format!("a gate is closed because of {other:?}"))),
        };
        Ok(Acquired::Closed { why, until: time_maybe(row, "until")? })
    }

    async fn repair_gates(&self) -> Result<u64, StoreError> {
        let rows = self.call(Desk::Long, REPAIR_GATES, &[]).await?;
        let repaired: i64 = rows.first().map_or(Ok(0), |row| get(row, "repaired"))?;
        Ok(u64::try_from(repaired).unwrap_or(0))
    }

    fn opens_in(&self, queue: &QueueName) -> Option<Duration> {
        self.lines().opens_in(queue)
    }
}

impl PgStore {
    async fn rules(&self, gate: Option<&str>, limit: u32) -> Result<Vec<Row>, StoreError> {
        let (limit, now) = (i64::from(limit), self.moment());
        let params: [Param<'_>; 3] = [(&gate, Type::TEXT), (&limit, Type::INT8), (&now, Type::TIMESTAMPTZ)];
        self.call(Desk::Short, statement::LIST_RULES, &params).await
    }

    async fn gates(
        &self,
        names: Option<Vec<String>>,
        (first, end, after): (&str, &str, &str),
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        let (limit, now) = (i64::from(limit), self.moment());
        let params: [Param<'_>; 6] = [
            (&names, Type::TEXT_ARRAY),
            (&first, Type::TEXT),
            (&end, Type::TEXT),
            (&after, Type::TEXT),
            (&limit, Type::INT8),
            (&now, Type::TIMESTAMPTZ),
        ];
        self.call(Desk::Short, statement::LIST_GATES, &params).await
    }
}

/// A gate with what was reported since it was last folded.
fn record(row: &Row) -> Result<GateRecord, StoreError> {
    let (rule, now) = (rule(row)?, time(row, "now")?);
    let mut gate = Gate {
        in_use: count(get(row, "in_use")?),
        full_at: time(row, "full_at")?,
        streak: count(get(row, "streak")?),
        open_until: time_maybe(row, "open_until")?,
        probe: get::<Option<i64>>(row, "probe")?.map(LeaseNo),
        deaf_to: LeaseNo(get(row, "deaf_to")?),
        newest: LeaseNo(get(row, "newest")?),
        paused_until: time_maybe(row, "paused_until")?,
        held_until: time_maybe(row, "held_until")?,
        succeeded_at: time_maybe(row, "succeeded_at")?,
        failed_at: time_maybe(row, "failed_at")?,
    };
    for event in events(row)? {
        gate.fold(&rule, &event);
    }
    let pattern = get::<Option<&str>>(row, "pattern")?.map(parsed).transpose()?;
    Ok(GateRecord {
        name: named(row, "name")?,
        pattern,
        admit: gate.admit(&rule, now),
        rule,
        gate,
        now,
        pause_reason: get(row, "pause_reason")?,
        trip_reason: get(row, "trip_reason")?,
    })
}

fn events(row: &Row) -> Result<Vec<GateEvent>, StoreError> {
    let leases = get::<Option<Vec<i64>>>(row, "leases")?.unwrap_or_default();
    let ats = get::<Option<Vec<Moment>>>(row, "ats")?.unwrap_or_default();
    let healths = get::<Option<Vec<Option<i16>>>>(row, "healths")?.unwrap_or_default();
    let holds = get::<Option<Vec<Option<Moment>>>>(row, "holds")?.unwrap_or_default();
    let told = leases.into_iter().zip(ats).zip(healths).zip(holds);
    Ok(told
        .map(|(((lease, at), health), hold)| GateEvent {
            lease: LeaseNo(lease),
            at: at.0,
            health: health.and_then(Health::from_code),
            hold_until: hold.map(|moment: Moment| -> Timestamp { moment.0 }),
        })
        .collect())
}

fn pattern(row: &Row) -> Result<Pattern, StoreError> {
    parsed(get(row, "pattern")?)
}

/// What a rule allows; everything where there is none.
fn rule(row: &Row) -> Result<GateRule, StoreError> {
    let number = |column: &str| {
        Ok::<_, StoreError>(get::<Option<i64>>(row, column)?.map(|n| u32::try_from(n).unwrap_or(u32::MAX)))
    };
    let small = |column: &str| Ok::<_, StoreError>(get::<Option<i32>>(row, column)?.map(count));
    let time = |column: &str| Ok::<_, StoreError>(number(column)?.map(|ms| Duration::from_millis(ms.into())));
    let rate = match (number("rate_count")?, time("rate_period_ms")?, number("rate_burst")?, number("rate_cost")?) {
        (Some(count), Some(period), Some(burst), Some(cost)) => Some(Rate { count, period, burst, cost }),
        _ => None,
    };
    let breaker = match (small("breaker_failures")?, time("breaker_cooldown_ms")?) {
        (Some(failures), Some(cooldown)) => Some(Breaker { failures, cooldown }),
        _ => None,
    };
    Ok(GateRule { rate, concurrency: small("concurrency")?, breaker, weight: count(get(row, "weight")?) })
}

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn parsed<T: FromStr<Err = Invalid>>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|refused: Invalid| StoreError::Corrupt(refused.to_string()))
}
