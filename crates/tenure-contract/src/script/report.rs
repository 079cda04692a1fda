//! What a holder says: complete, fail, retry, snooze, release, acknowledge.

use std::time::Duration;

use tenure_core::apply::{Job, decide_failure};
use tenure_core::backoff::Roll;
use tenure_core::{Class, Health, How, JobId, Json, LeaseNo, Rules, State};
use tenure_store::lease::{EndJob, EndJobs, Ended, Ending, GateWord};

use super::line::Line;
use super::{Outcome, Run, error_words};

/// `complete W1 J1 J2 lease=L1 [result=…] [usage=…] [health=…] [hold=30s] -> completed | before | lease_lost`
///
/// One expected word stands for all jobs. `fail` takes class= and lets core decide as a worker would; `retry` sends a
/// retry with delay= as it stands, whatever core would say.
pub(super) async fn report(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let worker = run.names.worker(run.t, &line.word("a worker")?).await?;
    let labels = line.words();
    let lease = run.names.lease(&line.required("lease")?)?;
    let jobs = run.names.jobs(run.t, &labels)?;
    let said = Said::read(line)?;
    let health = match line.option("health").as_deref() {
        None => None,
        Some("healthy") => Some(Health::Healthy),
        Some("unhealthy") => Some(Health::Unhealthy),
        Some(other) => return Err(format!("{other} is no health")),
    };
    let gate = GateWord { health, hold: line.duration("hold")?, ..GateWord::default() };
    let ends = jobs.into_iter().map(|job| EndJob { gate, ..EndJob::new(job, said.ending(run, job, lease)) });
    let jobs: Vec<EndJob> = ends.collect();
    let usual = jobs.first().map_or("nothing", |end| end.ending.how().as_str());
    let expected = match line.expected_or(usual) {
        one if one.len() == 1 => vec![one[0].clone(); jobs.len().max(1)],
        each => each,
    };
    let got = match run.t.store.end_jobs(EndJobs { worker, lease, jobs }).await {
        Ok(answers) => answers.into_iter().map(word).collect(),
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected, got })
}

fn word(answer: Ended) -> String {
    match answer {
        Ended::Now(how) => how.as_str().into(),
        Ended::Before(how) => format!("before:{}", how.as_str()),
        Ended::LeaseLost { how } => format!("lease_lost:{}", how.map_or("gone", How::as_str)),
        Ended::Busy => "busy".into(),
    }
}

/// A report before core decided what it means for a job.
enum Said {
    Complete { result: Option<Json>, usage: Option<Json> },
    Fail { class: Class, error: Json, retry_in: Option<Duration> },
    Plain(Ending),
}

impl Said {
    fn read(line: &mut Line) -> Result<Self, String> {
        let json = |line: &mut Line, key: &'static str| {
            line.option(key).map(|text| Json::parse(key, text).map_err(|why| why.to_string())).transpose()
        };
        let error = |line: &mut Line| {
            let text = line.option("error").unwrap_or_else(|| "it broke".into());
            Json::from_store(format!("{{\"message\":{}}}", tenure_core::json::quote(&text)))
        };
        Ok(match line.verb.as_str() {
            "complete" => Self::Complete { result: json(line, "result")?, usage: json(line, "usage")? },
            "fail" => {
                let class = match line.option("class").as_deref() {
                    Some("transient") | None => Class::Transient,
                    Some("permanent") => Class::Permanent,
                    Some("dead") => Class::Dead,
                    Some(other) => return Err(format!("{other} is no class of errors")),
                };
                Self::Fail { class, error: error(line), retry_in: line.duration("in")? }
            }
            "retry" => {
                let delay = line.duration("delay")?.unwrap_or_default();
                Self::Plain(Ending::Retry { delay, error: error(line) })
            }
            "snooze" => Self::Plain(Ending::Snoozed { delay: line.duration("delay")?.unwrap_or_default() }),
            "release" => Self::Plain(Ending::Released { delay: line.duration("delay")?.unwrap_or_default() }),
            "acknowledge" => Self::Plain(Ending::Canceled { error: None }),
            other => return Err(format!("{other} is no report")),
        })
    }

    /// What a worker sends: core decides from the rules that came with the claim.
    fn ending(&self, run: &Run<'_>, job: JobId, lease: LeaseNo) -> Ending {
        match self {
            Self::Complete { result, usage } => Ending::Succeeded { result: result.clone(), usage: usage.clone() },
            Self::Plain(ending) => ending.clone(),
            Self::Fail { class, error, retry_in } => {
                let grant = run.names.grants.get(&(job, lease));
                let held = Job {
                    state: State::Running,
                    attempt: grant.map_or(1, |grant| grant.attempt),
                    losses: grant.map_or(0, |grant| grant.losses),
                    run_at: run.t.clock.now(),
                    lease: Some(lease),
                    cancel_requested: false,
                    rules: grant.map_or_else(Rules::default, |grant| grant.rules.clone()),
                };
                let error = error.clone();
                match decide_failure(&held, *class, *retry_in, Roll(0)) {
                    (How::Retry, _, delay) => Ending::Retry { delay, error },
                    (How::Failed, ..) => Ending::Failed { error },
                    _ => Ending::Dead { error },
                }
            }
        }
    }
}
