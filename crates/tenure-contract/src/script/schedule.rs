//! Schedules: schedule, scheduled, look, fire, tick, clock.

use tenure_core::cron::{Missed, Timing, Zone};
use tenure_core::name::{ScheduleName, TenantName};
use tenure_core::{Cron, Timestamp};
use tenure_store::schedule::{
    Fired, PauseSchedule, RemoveSchedule, ScheduleFilter, ScheduleRecord, ScheduleSet, SetSchedule, Template,
};

use super::line::{Line, compared};
use super::look::from_now;
use super::operate::{sight, word, words};
use super::{Outcome, Run, enqueue, error_words};

/// More rounds than any story needs: a schedule that never comes to rest is a mistake.
const ROUNDS_MAX: usize = 100;

/// `schedule nightly cron="0 3 * * *" [zone=…] [missed=once] [grace=1m] [tenant=…] [what enqueue knows] -> created |
/// changed | same`, `schedule nightly pause|resume|remove [tenant=…] -> done | not_found`
pub(super) async fn schedule(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let name = name(&line.word("a schedule")?)?;
    let acts = line.words();
    let Some(act) = acts.first() else { return set(run, line, name).await };
    let tenant = line.parsed("tenant")?.unwrap_or_else(TenantName::default);
    let word = word(line);
    let done = match act.as_str() {
        "pause" | "resume" => {
            let paused = act == "pause";
            run.t.store.pause_schedule(PauseSchedule { tenant, name, paused, word }).await
        }
        "remove" => run.t.store.remove_schedule(RemoveSchedule { tenant, name, word }).await,
        other => return Err(format!("nobody can {other} a schedule")),
    };
    Ok(Outcome { expected: line.expected_or("done"), got: words(run, done.map(|()| "done")) })
}

async fn set(run: &mut Run<'_>, line: &mut Line, name: ScheduleName) -> Result<Outcome, String> {
    let said = line.required("cron")?;
    let cron: Cron = said.parse().map_err(|why| format!("{why}"))?;
    let mut timing = Timing::new(cron);
    if let Some(zone) = line.parsed::<Zone>("zone")? {
        timing.zone = zone;
    }
    if let Some(missed) = line.parsed::<Missed>("missed")? {
        timing.missed = missed;
    }
    if let Some(grace) = line.duration("grace")? {
        timing.grace = grace;
    }
    let word = word(line);
    let job = enqueue::read(run, line, false)?;
    let tenant = job.tenant.clone();
    let request = SetSchedule { tenant, name, timing, template: Template::of(job), word };
    let done = run.t.store.set_schedule(request).await.map(|set| match set {
        ScheduleSet::Created => "created",
        ScheduleSet::Changed => "changed",
        ScheduleSet::Same => "same",
    });
    Ok(Outcome { expected: line.expected_or("created"), got: words(run, done) })
}

/// `scheduled nightly [tenant=…] next=+3h last=+0s paused=false reason=… zone=… fires=J2@+0s,J1@-24h states=… [-> not_found]`,
/// `scheduled [sight=…] [after=tenant/name] [limit=…] -> default/a acme/b | nothing`
pub(super) async fn scheduled(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let Some(label) = line.words().pop() else { return list(run, line).await };
    let (name, tenant) = (name(&label)?, line.parsed("tenant")?.unwrap_or_else(TenantName::default));
    let (wanted, expected) = (line.options(), line.expectation());
    let (record, fires) = match run.t.store.show_schedule(&tenant, &name).await {
        Ok(found) => found,
        Err(error) => {
            let expected = expected.unwrap_or_else(|| vec!["found".into()]);
            return Ok(Outcome { expected, got: error_words(&run.names, &error) });
        }
    };
    let mut outcome = Outcome { expected: expected.unwrap_or_default(), got: Vec::new() };
    let listed = |of: Vec<String>| if of.is_empty() { "none".into() } else { of.join(",") };
    for (key, value) in wanted {
        let got = match key.as_str() {
            "fires" => {
                let fire = |(job, at)| format!("{}@{}", run.names.job_label(job), from_now(record.now, at));
                listed(fires.iter().map(|one| fire((one.job, one.fire_at))).collect())
            }
            "states" => listed(fires.iter().map(|one| one.state.map_or("pruned", |s| s.as_str()).into()).collect()),
            other => value_of(&record, other)?,
        };
        outcome.got.push(format!("{key}={got}"));
        outcome.expected.push(compared(&key, &value));
    }
    Ok(outcome)
}

fn value_of(record: &ScheduleRecord, key: &str) -> Result<String, String> {
    let none = || "none".to_string();
    let timing = record.timing.as_ref().map_err(ToString::to_string)?;
    Ok(match key {
        "next" => record.next().map_or_else(none, |at| from_now(record.now, at)),
        "last" => from_now(record.now, record.last),
        "paused" => record.paused.to_string(),
        "reason" => record.pause_reason.clone().unwrap_or_else(none),
        "cron" => timing.cron.to_string(),
        "zone" => timing.zone.to_string(),
        "missed" => timing.missed.to_string(),
        "kind" => record.template.kind.to_string(),
        "payload" => record.template.payload.as_str().split_whitespace().collect(),
        other => return Err(format!("scheduled has no option {other}")),
    })
}

async fn list(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let after = match line.option("after").as_deref().map(|text| text.split_once('/')) {
        None => None,
        Some(Some((tenant, after))) => Some((tenant.parse().map_err(|why| format!("{why}"))?, name(after)?)),
        Some(None) => return Err("after= is tenant/name".into()),
    };
    let limit = line.parsed("limit")?.unwrap_or(100);
    let filter = ScheduleFilter { sight: sight(line)?, after, limit };
    let got = match run.t.store.list_schedules(&filter).await {
        Ok(found) if found.is_empty() => vec!["nothing".into()],
        Ok(found) => found.iter().map(|one| format!("{}/{}", one.tenant, one.name)).collect(),
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected: line.expectation().ok_or("scheduled needs the schedules after ->")?, got })
}

/// `look P1 -> nightly | nothing`: a process reads what has to be looked at.
pub(super) async fn look(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let process = line.word("a process")?;
    let found = run.t.store.due_schedules(100).await.map_err(|why| why.to_string())?;
    let got = match found.due.as_slice() {
        [] => vec!["nothing".into()],
        due => due.iter().map(|one| one.name.to_string()).collect(),
    };
    run.names.looks.insert(process, found.due);
    Ok(Outcome { expected: line.expectation().ok_or("look needs the schedules after ->")?, got })
}

/// `fire P1 J1 [now] -> stored | passed | lost`: the process moves the first schedule on that it read, as it decides by
/// what it read then; with `now`, by the clock of now, as if it had read the row long ago.
pub(super) async fn fire(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let late = line.flag("now");
    let process = line.word("a process")?;
    let job = run.names.job(run.t, &line.word("a job")?)?;
    let read = run.names.looks.get(&process).and_then(|looks| looks.first()).cloned();
    let mut read = read.ok_or_else(|| format!("{process} has read nothing"))?;
    if late {
        read.now = run.t.clock.now();
    }
    let done = run.t.store.fire_schedule(read.decide(job)).await;
    Ok(Outcome { expected: line.expected_or("stored"), got: words(run, done.map(fired)) })
}

/// `tick J1 J2`: a worker's round, until nothing has to be looked at; the jobs are those that are stored, in order.
/// `tick` alone: none is.
pub(super) async fn tick(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let labels = line.words();
    let mut stored = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let found = run.t.store.due_schedules(100).await.map_err(|why| why.to_string())?;
        if found.due.is_empty() {
            return Ok(Outcome { expected: labels, got: stored });
        }
        for read in found.due {
            let label = labels.get(stored.len()).cloned().unwrap_or_else(|| format!("J9{}", stored.len()));
            let job = run.names.job(run.t, &label)?;
            match run.t.store.fire_schedule(read.decide(job)).await.map_err(|why| why.to_string())? {
                Fired::Stored(_) => stored.push(label),
                Fired::Passed => {}
                Fired::Lost => return Err(format!("{} is lost to nobody", read.name)),
            }
        }
    }
    Err("it never comes to rest".into())
}

/// `clock 2026-03-29T00:59:00Z`: sets the clock, forward or back.
pub(super) fn clock(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let text = line.word("a moment")?;
    run.t.clock.set(Timestamp::parse("clock", &text).map_err(|why| why.to_string())?);
    Ok(Outcome { expected: Vec::new(), got: Vec::new() })
}

fn fired(fired: Fired) -> &'static str {
    match fired {
        Fired::Stored(_) => "stored",
        Fired::Passed => "passed",
        Fired::Lost => "lost",
    }
}

fn name(text: &str) -> Result<ScheduleName, String> {
    text.parse().map_err(|why| format!("{why}"))
}
