//! Gates: rule, patch, gate, acquire, repair.

use std::str::FromStr;
use std::time::Duration;

use tenure_core::duration;
use tenure_core::gate::{Admit, Breaker, GateRule, Part, Pattern, Rate, RulePatch};
use tenure_core::name::GateName;
use tenure_store::gate::{AcquireTokens, Acquired, GateAct, GateRecord, OperateGate, PatchRule, SetRule};

use super::line::{Line, compared};
use super::look::from_now;
use super::operate::{word, words};
use super::{Outcome, Run, error_words};

/// `rule domain:* [rate=50/s] [burst=5] [cost=1] [concurrency=2] [breaker=5:5m] [weight=3]`, `rule domain:* remove`
pub(super) async fn rule(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let remove = line.flag("remove");
    let pattern: Pattern = line.word("a pattern")?.parse().map_err(|why| format!("{why}"))?;
    let rule = if remove { None } else { Some(read(line)?) };
    let done = run.t.store.set_rule(SetRule { pattern, rule, word: word(line) }).await;
    Ok(Outcome { expected: line.expected_or("done"), got: words(run, done.map(|()| "done")) })
}

/// `patch domain:* [rate=50/s] [burst=5] [cost=1] [concurrency=2] [failures=5] [weight=3] -> concurrency=2 weight=1`, each
/// part also `none`; answers the whole rule.
pub(super) async fn patch(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let pattern: Pattern = line.word("a pattern")?.parse().map_err(|why| format!("{why}"))?;
    let patch = RulePatch {
        rate: part(line, "rate")?,
        burst: part(line, "burst")?,
        cost: part(line, "cost")?,
        concurrency: part(line, "concurrency")?,
        breaker_failures: part(line, "failures")?,
        breaker_cooldown: Part::Keep,
        weight: part(line, "weight")?,
    };
    let got = match run.t.store.patch_rule(PatchRule { pattern, patch, word: word(line) }).await {
        Ok(rule) => parts(&rule),
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected: line.expected_or("changed"), got })
}

fn part<T: FromStr + Copy>(line: &mut Line, key: &str) -> Result<Part<T>, String> {
    match line.option(key) {
        None => Ok(Part::Keep),
        Some(text) if text == "none" => Ok(Part::Clear),
        Some(text) => text.parse().map(Part::Set).map_err(|_| format!("{key}={text} cannot be read")),
    }
}

/// A rule as a line says it.
fn parts(rule: &GateRule) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(rate) = &rule.rate {
        parts.extend([format!("rate={rate}"), format!("burst={}", rate.burst), format!("cost={}", rate.cost)]);
    }
    parts.extend(rule.concurrency.map(|limit| format!("concurrency={limit}")));
    parts.extend(rule.breaker.map(|breaker| format!("breaker={breaker}")));
    parts.push(format!("weight={}", rule.weight));
    parts
}

fn read(line: &mut Line) -> Result<GateRule, String> {
    let (burst, cost) = (line.parsed("burst")?, line.parsed("cost")?);
    let rate = line.parsed::<Rate>("rate")?.map(|rate| rate.with(burst, cost));
    let breaker = line.parsed::<Breaker>("breaker")?;
    let weight = line.parsed("weight")?.unwrap_or(1);
    Ok(GateRule { rate, concurrency: line.parsed("concurrency")?, breaker, weight })
}

/// `gate source:a pause|trip [for=10m]`, `gate source:a resume|reset`,
/// `gate source:a admit=2 | admit=open:+5m in_use=1 streak=0 tokens=3 rule=source:* … [-> not_found]`
pub(super) async fn gate(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let gate: GateName = line.word("a gate")?.parse().map_err(|why| format!("{why}"))?;
    let time = line.duration("for")?;
    let act = match line.words().as_slice() {
        [] => return show(run, line, &gate).await,
        [one] => match one.as_str() {
            "pause" => GateAct::Pause(time),
            "trip" => GateAct::Trip(time),
            "resume" => GateAct::Resume,
            "reset" => GateAct::Reset,
            other => return Err(format!("nobody can {other} a gate")),
        },
        _ => return Err("one thing at a time".into()),
    };
    let done = run.t.store.operate_gate(OperateGate { gate, act, word: word(line) }).await;
    Ok(Outcome { expected: line.expected_or("done"), got: words(run, done.map(|()| "done")) })
}

async fn show(run: &mut Run<'_>, line: &mut Line, gate: &GateName) -> Result<Outcome, String> {
    let (wanted, expected) = (line.options(), line.expectation());
    let record = match run.t.store.show_gate(gate).await {
        Ok(record) => record,
        Err(error) => {
            let expected = expected.unwrap_or_else(|| vec!["found".into()]);
            return Ok(Outcome { expected, got: error_words(&run.names, &error) });
        }
    };
    let mut outcome = Outcome { expected: expected.unwrap_or_default(), got: Vec::new() };
    for (key, value) in wanted {
        outcome.got.push(format!("{key}={}", value_of(&record, &key)?));
        outcome.expected.push(compared(&key, &value));
    }
    Ok(outcome)
}

fn value_of(record: &GateRecord, key: &str) -> Result<String, String> {
    let none = || "none".to_string();
    let since = |at| from_now(record.now, at);
    let gate = &record.gate;
    Ok(match key {
        "admit" => match record.admit {
            Admit::Open(u32::MAX) => "all".into(),
            Admit::Open(jobs) => jobs.to_string(),
            Admit::Closed { why, until: None } => why.as_str().into(),
            Admit::Closed { why, until: Some(until) } => format!("{}:{}", why.as_str(), since(until)),
        },
        "in_use" => gate.in_use.to_string(),
        "streak" => gate.streak.to_string(),
        "tokens" => record.rule.rate.map_or_else(none, |rate| rate.tokens(gate.full_at, record.now).to_string()),
        "rule" => record.pattern.as_ref().map_or_else(none, ToString::to_string),
        "succeeded_at" => gate.succeeded_at.map_or_else(none, since),
        "failed_at" => gate.failed_at.map_or_else(none, since),
        "pause_reason" => record.pause_reason.clone().unwrap_or_else(none),
        "trip_reason" => record.trip_reason.clone().unwrap_or_else(none),
        other => return Err(format!("gate has no option {other}")),
    })
}

/// `acquire W1 J1 lease=L1 [tokens=3] -> after:60ms | closed:paused | lease_lost`
pub(super) async fn acquire(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let worker = run.names.worker(run.t, &line.word("a worker")?).await?;
    let job = run.names.job(run.t, &line.word("a job")?)?;
    let lease = run.names.lease(&line.required("lease")?)?;
    let tokens = line.parsed("tokens")?.unwrap_or(1);
    let got = match run.t.store.acquire_tokens(AcquireTokens { worker, lease, job, tokens }).await {
        Ok(Acquired::After(time)) => {
            format!("after:{}", duration::format(Duration::from_millis(time.as_millis() as u64)))
        }
        Ok(Acquired::Closed { why, .. }) => format!("closed:{}", why.as_str()),
        Ok(Acquired::LeaseLost) => "lease_lost".into(),
        Err(error) => error_words(&run.names, &error).join(" "),
    };
    Ok(Outcome { expected: line.expected_or("after:0s"), got: vec![got] })
}

/// `repair -> 0`: how many gates had permits that live leases do not explain.
pub(super) async fn repair(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let got = match run.t.store.repair_gates().await {
        Ok(count) => vec![count.to_string()],
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected: line.expected_or("0"), got })
}
