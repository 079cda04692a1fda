//! `enqueue J1 J2 queue=… -> created | found J1 [state] | conflict | invalid:field`

use tenure_core::apply::SPARE_LOSSES;
use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::new_job::Due;
use tenure_core::preset::Preset;
use tenure_core::unique::{Policy, Unique};
use tenure_core::{Json, NewJob, Priority, Timestamp};
use tenure_store::enqueue::Enqueued;

use super::line::{Line, parse_duration};
use super::{Outcome, Run, error_words};

/// Stores jobs in one call, all with the same options.
pub(super) async fn enqueue(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let waiting = line.flag("waiting");
    let labels = line.words();
    if labels.is_empty() {
        return Err("enqueue needs a job".into());
    }
    let mut jobs = Vec::new();
    let options = read(run, line, waiting)?;
    for label in &labels {
        jobs.push(NewJob { id: run.names.job(run.t, label)?, ..options.clone() });
    }
    let got = match run.t.store.enqueue_jobs(jobs).await {
        Ok(answers) => answers.iter().map(|answer| word(run, answer)).collect(),
        Err(error) => error_words(&run.names, &error),
    };
    let expected = match line.expectation() {
        None => vec!["created".into(); labels.len()],
        Some(words) if words[0] == "found" => vec![words.join(":"); labels.len()],
        Some(words) => words,
    };
    Ok(Outcome { expected, got })
}

fn word(run: &Run<'_>, answer: &Enqueued) -> String {
    match answer {
        Enqueued::Created(_) => "created".into(),
        Enqueued::Found { job, state } => {
            format!("found:{}:{}", run.names.job_label(*job), state.map_or("pruned", |state| state.as_str()))
        }
    }
}

pub(super) fn read(run: &Run<'_>, line: &mut Line, waiting: bool) -> Result<NewJob, String> {
    let mut job = run.t.new_job();
    if let Some(queue) = line.parsed::<QueueName>("queue")? {
        job.queue = queue;
    }
    if let Some(kind) = line.parsed::<KindName>("kind")? {
        job.kind = kind;
    }
    if let Some(tenant) = line.parsed::<TenantName>("tenant")? {
        job.tenant = tenant;
    }
    if let Some(priority) = line.parsed("priority")? {
        job.priority = Priority::new(priority).map_err(|why| why.to_string())?;
    }
    if let Some(payload) = line.option("payload") {
        job.payload = Json::parse("payload", payload).map_err(|why| why.to_string())?;
    }
    if let Some(name) = line.option("preset") {
        job.rules = Preset::named(&name).ok_or_else(|| format!("there is no preset {name}"))?.rules.clone();
    }
    if let Some(max_attempts) = line.parsed("max_attempts")? {
        job.rules.max_attempts = max_attempts;
        job.rules.max_losses = max_attempts.saturating_add(SPARE_LOSSES);
    }
    if let Some(max_losses) = line.parsed("max_losses")? {
        job.rules.max_losses = max_losses;
    }
    if let Some(backoff) = line.parsed("backoff")? {
        job.rules.backoff = backoff;
    }
    job.gate = line.parsed("gate")?;
    job.idempotency_key = line.option("idempotency");
    job.trace = line.option("trace");
    job.unique = line.option("unique").map(|text| unique(&text)).transpose()?;
    if let (Some(scope), Some(unique)) = (line.option("scope"), &mut job.unique) {
        unique.scope = Some(scope);
    }
    job.due = match (waiting, line.duration("delay")?, line.option("at")) {
        (true, None, None) => Due::WhenOpened,
        (false, Some(delay), None) => Due::After(delay),
        (false, None, Some(at)) => Due::At(moment(run.t.clock.now(), &at)?),
        (false, None, None) => Due::Now,
        _ => return Err("a job is due by one of waiting, delay= and at=".into()),
    };
    Ok(job)
}

/// `key:policy`, and `key:window:10m`.
fn unique(text: &str) -> Result<Unique, String> {
    let refuse = || format!("unique={text} is not key:while_active, :unless_failed, :forever or :window:10m");
    let (key, policy) = text.split_once(':').ok_or_else(refuse)?;
    let policy = match policy {
        "while_active" => Policy::WhileActive,
        "unless_failed" => Policy::UnlessFailed,
        "forever" => Policy::Forever,
        other => Policy::Window(parse_duration(other.strip_prefix("window:").ok_or_else(refuse)?)?),
    };
    Ok(Unique::new(key, policy))
}

/// `+10s` and `-10s`, from now.
pub(super) fn moment(now: Timestamp, text: &str) -> Result<Timestamp, String> {
    match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(later), _) => Ok(now.plus(parse_duration(later)?)),
        (_, Some(earlier)) => Ok(now.minus(parse_duration(earlier)?)),
        _ => Err(format!("{text} is not a moment such as +10s or -10s")),
    }
}
