//! Time and leases: advance, expire, claim, renew, reclaim, drop, release_unknown.

use std::time::Duration;

use tenure_core::name::QueueName;
use tenure_core::{How, JobId, LeaseNo};
use tenure_store::lease::{ClaimJobs, Claimed, RenewLeases};
use tenure_store::record::Sight;

use super::line::{Line, compared, parse_duration};
use super::{Outcome, Run, error_words};

/// `advance 31s`
pub(super) fn advance(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    run.t.advance(parse_duration(&line.word("a duration")?)?);
    Ok(Outcome { expected: Vec::new(), got: Vec::new() })
}

/// `expire J1`: moves the clock just past the deadline of the lease that holds it.
pub(super) async fn expire(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let job = run.names.job(run.t, &line.word("a job")?)?;
    let record = run.t.store.show_job(&Sight::All, job).await.map_err(|why| why.to_string())?;
    let deadline = record.lease_expires_at.ok_or("no lease holds the job")?;
    run.t.clock.set(deadline.plus(Duration::from_millis(1)));
    Ok(Outcome { expected: Vec::new(), got: Vec::new() })
}

/// `claim W1 J1 J2 queue=… limit=… [order=lowest_first] lease=L1 [attempt=…] [losses=…] [ttl=…] [-> nothing | canceled J3]`
///
/// The jobs are the answer, in order. The limit is their number unless given.
pub(super) async fn claim(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let worker = run.names.worker(run.t, &line.word("a worker")?).await?;
    let mut expected = line.words();
    let limit = line.parsed("limit")?.unwrap_or(expected.len().max(1) as u32);
    expected.extend(line.expectation().unwrap_or_default());
    if expected.is_empty() {
        return Err("a claim names the jobs it gets, or -> nothing".into());
    }
    let queue = line.parsed("queue")?.unwrap_or_else(QueueName::default);
    let lowest_first = line.option("order").is_some_and(|order| order == "lowest_first");
    let (label, checks) = (line.option("lease"), line.options());
    let request = ClaimJobs { lowest_first, ..ClaimJobs::new(worker, queue, limit) };
    let claimed = match run.t.store.claim_jobs(request).await {
        Ok(Some(claimed)) => claimed,
        Ok(None) => return Ok(Outcome { expected, got: vec!["nothing".into()] }),
        Err(error) => return Ok(Outcome { expected, got: error_words(&run.names, &error) }),
    };
    let mut got: Vec<String> = claimed.jobs.iter().map(|job| run.names.job_label(job.id)).collect();
    if !claimed.canceled.is_empty() {
        got.push("canceled".into());
        got.extend(claimed.canceled.iter().map(|job| run.names.job_label(*job)));
    }
    if !claimed.jobs.is_empty()
        && let Some(last) = run.names.bind(label, claimed.lease)?
    {
        expected.push(format!("fence>{last}"));
        got.push(format!("fence={}", claimed.lease));
    }
    for (key, value) in checks {
        expected.push(compared(&key, &value));
        got.push(format!("{key}={}", claimed_value(&claimed, &key)?));
    }
    for job in claimed.jobs {
        run.names.grants.insert((job.id, claimed.lease), job);
    }
    Ok(Outcome { expected, got })
}

/// What all claimed jobs have in common under a name.
fn claimed_value(claimed: &Claimed, key: &str) -> Result<String, String> {
    let mut values: Vec<String> = match key {
        "ttl" => return Ok(tenure_core::duration::format(claimed.ttl)),
        "attempt" => claimed.jobs.iter().map(|job| job.attempt.to_string()).collect(),
        "losses" => claimed.jobs.iter().map(|job| job.losses.to_string()).collect(),
        other => return Err(format!("claim has no option {other}")),
    };
    values.dedup();
    Ok(values.join(","))
}

/// `renew W1 lease=L1,L2 -> renewed | cancel_requested J1 | unknown | L1` (only these came back)
pub(super) async fn renew(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let worker = run.names.worker(run.t, &line.word("a worker")?).await?;
    let leases = run.names.leases(&line.required("lease")?)?;
    let expected = line.expected_or("renewed");
    let got = match run.t.store.renew_leases(RenewLeases { worker, leases: leases.clone() }).await {
        Ok(renewed) => {
            let mut words = match renewed.leases.len() {
                0 => vec!["unknown".into()],
                all if all == leases.len() => vec!["renewed".into()],
                _ => renewed.leases.iter().map(|lease| run.names.lease_label(*lease)).collect(),
            };
            if !renewed.cancel_requested.is_empty() {
                words = vec!["cancel_requested".into()];
                words.extend(labels(run, renewed.cancel_requested));
            }
            words
        }
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected, got })
}

/// `reclaim [by=W2] [max=…] J1 J2:dead [-> nothing]`; a bare job was lost and is queued again.
pub(super) async fn reclaim(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let by = match line.option("by") {
        Some(label) => Some(run.names.worker(run.t, &label).await?),
        None => None,
    };
    let max = line.parsed("max")?.unwrap_or(100);
    let mut expected: Vec<String> = line.words();
    expected.iter_mut().filter(|word| !word.contains(':')).for_each(|word| word.push_str(":lost"));
    expected.extend(line.expectation().unwrap_or_default());
    if expected.is_empty() {
        return Err("a reclaim names the jobs it takes back, or -> nothing".into());
    }
    let got = match run.t.store.reclaim_jobs(by, max).await {
        Ok(reclaimed) => {
            let word = |job: JobId, how: How| format!("{}:{}", run.names.job_label(job), how.as_str());
            let mut words: Vec<String> = reclaimed.iter().map(|lost| word(lost.job, lost.how)).collect();
            words.sort();
            or_nothing(words)
        }
        Err(error) => error_words(&run.names, &error),
    };
    expected.sort();
    Ok(Outcome { expected, got })
}

/// `drop W1 lease=L1,L2 -> L1 | nothing`: those that are gone now; without an expectation all of them.
pub(super) async fn drop_leases(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let worker = run.names.worker(run.t, &line.word("a worker")?).await?;
    let asked = line.required("lease")?;
    let leases = run.names.leases(&asked)?;
    let all = || asked.split(',').map(String::from).collect();
    let expected = line.expectation().unwrap_or_else(all);
    let got = match run.t.store.drop_leases(worker, leases).await {
        Ok(dropped) => {
            let mut words: Vec<String> = dropped.iter().map(|lease| run.names.lease_label(*lease)).collect();
            words.sort();
            or_nothing(words)
        }
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected, got })
}

/// `release_unknown W1 [known=L1,L2] [newest=L3] -> J1 J2 | nothing`
pub(super) async fn release_unknown(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let worker = run.names.worker(run.t, &line.word("a worker")?).await?;
    let known = line.option("known").map(|labels| run.names.leases(&labels)).transpose()?.unwrap_or_default();
    let newest = line.option("newest").map(|label| run.names.leases(&label)).transpose()?.unwrap_or_default();
    let newest = newest.first().copied().unwrap_or(LeaseNo::MAX);
    let expected = line.expected_or("nothing");
    let got = match run.t.store.release_unknown(worker, known, newest).await {
        Ok(released) => or_nothing(labels(run, released)),
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected, got })
}

fn labels(run: &Run<'_>, jobs: Vec<JobId>) -> Vec<String> {
    let mut labels: Vec<String> = jobs.into_iter().map(|job| run.names.job_label(job)).collect();
    labels.sort();
    labels
}

fn or_nothing(words: Vec<String>) -> Vec<String> {
    if words.is_empty() { vec!["nothing".into()] } else { words }
}
