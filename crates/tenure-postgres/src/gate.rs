//! Gates: rules and operators. What a claim does with them is in `lines.rs` and `migrations/0009_gates.sql`.

use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use tenure_core::gate::{Breaker, Gate, GateEvent, GateRule, Health, Pattern, Rate, Why};
use tenure_core::name::{GateName, QueueName};
use tenure_core::{Invalid, LeaseNo, Timestamp};
use tenure_store::gate::{AcquireTokens, Acquired, GateAct, GateFilter, GateRecord, OperateGate, PatchRule, SetRule};
use tenure_store::operate::Word;
use tenure_store::{GateStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::{Failed, Param, transact};
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
/// Held until the transaction ends.
const LOCK_RULES: &str = "select version from tenure.gate_rules for update";
const RULE_OF_PATTERN: &str = "select rate_count, rate_period_ms, rate_burst, rate_cost, concurrency, breaker_failures, \
     breaker_cooldown_ms, weight from tenure.gate_rule where pattern = $1";
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
        let Some(rule) = &request.rule else {
            let (pattern, word, now) = (request.pattern.as_str(), &request.word, self.moment());
            let params: [Param<'_>; 4] = [
                (&pattern, Type::TEXT),
                (&word.actor, Type::TEXT),
                (&word.reason, Type::TEXT),
                (&now, Type::TIMESTAMPTZ),
            ];
            self.call(Desk::Short, REMOVE_RULE, &params).await?;
            return Ok(());
        };
        let limits = Limits::of(rule);
        self.call(Desk::Short, SET_GATE, &limits.params(&request.pattern.as_str(), &request.word, &self.moment()))
            .await?;
        Ok(())
    }

    async fn patch_rule(&self, request: PatchRule) -> Result<GateRule, StoreError> {
        request.check()?;
        transact!(self, |tx| self.patch(&tx, &request).await)
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

/// The parameters of `tenure.set_gate` between the gate and the word.
struct Limits {
    rate: (Option<i32>, i64, Option<i32>, i32),
    concurrency: Option<i32>,
    breaker: (Option<i32>, i64),
    weight: i32,
}

impl Limits {
    fn of(rule: &GateRule) -> Self {
        let int = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let count = rule.rate.map(|rate| int(rate.count));
        let rate = rule.rate.map(|rate| (count, millis(rate.period), Some(int(rate.burst)), int(rate.cost)));
        let breaker = rule.breaker.map(|breaker| (Some(int(breaker.failures)), millis(breaker.cooldown)));
        Self {
            rate: rate.unwrap_or((None, 1_000, None, 1)),
            concurrency: rule.concurrency.map(int),
            breaker: breaker.unwrap_or((None, 1_000)),
            weight: int(rule.weight),
        }
    }

    fn params<'p>(&'p self, pattern: &'p &'p str, word: &'p Word, now: &'p Option<Moment>) -> [Param<'p>; 12] {
        [
            (pattern, Type::TEXT),
            (&self.rate.0, Type::INT4),
            (&self.rate.1, Type::INT8),
            (&self.rate.2, Type::INT4),
            (&self.rate.3, Type::INT4),
            (&self.concurrency, Type::INT4),
            (&self.breaker.0, Type::INT4),
            (&self.breaker.1, Type::INT8),
            (&self.weight, Type::INT4),
            (&word.actor, Type::TEXT),
            (&word.reason, Type::TEXT),
            (now, Type::TIMESTAMPTZ),
        ]
    }
}

impl PgStore {
    /// Reads the rule under the lock that every change of rules takes, so that the change is made of what holds.
    async fn patch(&self, tx: &Transaction<'_>, request: &PatchRule) -> Result<GateRule, Failed> {
        let pattern = request.pattern.as_str();
        tx.query_typed(LOCK_RULES, &[]).await?;
        let rows = tx.query_typed(RULE_OF_PATTERN, &[(&pattern, Type::TEXT)]).await?;
        let before = rows.first().map(rule).transpose()?.unwrap_or_default();
        let after = request.patch.apply(&before).map_err(StoreError::from)?;
        let limits = Limits::of(&after);
        tx.query_typed(SET_GATE.sql, &limits.params(&pattern, &request.word, &self.moment())).await?;
        Ok(after)
    }

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
