//! The tour itself, step by step.

use std::time::Duration;

use tenure_core::unique::{Policy, Unique};
use tenure_core::{Class, JobId, Priority, WorkerId};
use tenure_store::enqueue::Enqueued;
use tenure_store::lease::{ClaimedJob, Ended, Ending, RenewLeases};
use tenure_store::operate::{CancelJob, Canceled, RequeueJob, Word};
use tenure_store::record::Sight;
use tenure_store::{JobStore, JournalStore, LeaseStore};

use super::stage::{Stage, failure};
use crate::failure::{Failure, exit};
use crate::moment;

/// The jobs the operator and the dead letter need later.
struct Cast {
    fragile: JobId,
    unwanted: JobId,
}

pub(super) async fn play(stage: &mut Stage) -> Result<(), Failure> {
    let cast = twelve_jobs(stage).await?;
    let (w1, w2) = (stage.worker("w1").await?, stage.worker("w2").await?);
    four_answers(stage, w1).await?;
    a_crash(stage, w1, w2).await?;
    a_dead_letter(stage, w1, &cast).await?;
    stage.store.seal_journal().await?;
    two_cancels(stage, w1, &cast).await?;
    a_second_life(stage, w1, &cast).await
}

async fn twelve_jobs(stage: &mut Stage) -> Result<Cast, Failure> {
    let kinds = [
        ("alarm.page", Priority::CRITICAL, 1),
        ("mail.send", Priority::HIGH, 4),
        ("report.build", Priority::NORMAL, 4),
        ("cache.warm", Priority::LOW, 3),
    ];
    stage.say("Twelve jobs are stored");
    let mut ids = Vec::new();
    for (kind, priority, count) in kinds {
        for n in 1..=count {
            // The last report may be tried twice only.
            let max_attempts = if (kind, n) == ("report.build", 4) { 2 } else { 5 };
            let mut job = stage.draft(kind, priority, max_attempts)?;
            if kind == "alarm.page" {
                job.unique = Some(Unique::new("disk full", Policy::WhileActive));
            }
            ids.push(stage.enqueue(&format!("{kind} {n}"), job).await?);
        }
        let jobs = if count == 1 { "job" } else { "jobs" };
        stage.note(format!("{count} {jobs} {kind}, priority {}", priority.get()));
    }
    let mut again = stage.draft("alarm.page", Priority::CRITICAL, 5)?;
    again.unique = Some(Unique::new("disk full", Policy::WhileActive));
    if let Some(Enqueued::Found { job, .. }) = stage.store.enqueue_jobs(vec![again]).await?.first() {
        let note = format!("another alarm with the same unique key finds {} instead", stage.names([job]));
        stage.note(note);
    }
    Ok(Cast { fragile: ids[8], unwanted: ids[9] })
}

/// Done, try again, never again, later: what a handler can answer.
async fn four_answers(stage: &mut Stage, w1: WorkerId) -> Result<(), Failure> {
    let claimed = stage.claim(w1, 5).await?;
    let names = stage.names(claimed.jobs.iter().map(|job| &job.id));
    stage.say(format!(
        "Worker w1 claims {} jobs under lease {}, the most urgent first",
        claimed.jobs.len(),
        claimed.lease
    ));
    stage.note(names);
    let done = || Ending::Succeeded { result: None, usage: None };
    stage.say("It reports four kinds of answers");
    for (n, job) in claimed.jobs.iter().enumerate() {
        let ending = match n {
            2 => failure(job, &claimed, Class::Transient, "connection refused"),
            3 => failure(job, &claimed, Class::Permanent, "no such mailbox"),
            4 => Ending::Snoozed { delay: Duration::from_secs(30) },
            _ => done(),
        };
        let text = ending_text(stage, job, &ending);
        stage.end(w1, &claimed, job.id, ending).await?;
        stage.note(text);
    }
    Ok(())
}

/// A worker dies, its jobs go to another one, and what it says afterwards changes nothing.
async fn a_crash(stage: &mut Stage, w1: WorkerId, w2: WorkerId) -> Result<(), Failure> {
    let lost = stage.claim(w2, 2).await?;
    let names = stage.names(lost.jobs.iter().map(|job| &job.id));
    stage.say(format!("Worker w2 claims {} jobs under lease {} and falls silent", lost.jobs.len(), lost.lease));
    stage.note(names);
    let silence = lost.ttl + Duration::from_secs(1);
    stage.wait(silence);
    let reclaimed = stage.store.reclaim_jobs(Some(w1), 10).await?;
    stage.reclaimed += reclaimed.len() as u64;
    stage.say(format!("{} later the lease of w2 has expired, and w1 takes its jobs back", moment::span(silence)));
    for job in &reclaimed {
        let held = job.worker.as_ref().map_or("nobody", |worker| worker.as_str());
        let note = format!("{}: {}, held by {held} until now", stage.names([&job.job]), job.how.as_str());
        stage.note(note);
    }
    stage.say("w2 was only paused. It reports success under its old lease");
    for job in &lost.jobs {
        let answer = stage.end(w2, &lost, job.id, Ending::Succeeded { result: None, usage: None }).await?;
        let Ended::LeaseLost { .. } = answer else {
            return Err(Failure::new("demo", exit::REFUSED, "a stale worker's report was accepted"));
        };
        stage.stale_refused += 1;
        let note = format!("{}: refused, lease {} no longer holds it", stage.names([&job.id]), lost.lease);
        stage.note(note);
    }
    Ok(())
}

/// Attempts used up: the job is dead, and kept for a person to look at.
async fn a_dead_letter(stage: &mut Stage, w1: WorkerId, cast: &Cast) -> Result<(), Failure> {
    let claimed = stage.claim(w1, 6).await?;
    let (fragile, others): (Vec<_>, Vec<_>) = claimed.jobs.iter().partition(|job| job.id == cast.fragile);
    stage.say(format!("Worker w1 claims all of those that are due again, and more, under lease {}", claimed.lease));
    for job in &others {
        stage.end(w1, &claimed, job.id, Ending::Succeeded { result: None, usage: None }).await?;
    }
    let note = format!("{}: done", stage.names(others.iter().map(|job| &job.id)));
    stage.note(note);
    for job in fragile {
        let ending = failure(job, &claimed, Class::Transient, "out of memory");
        let text = ending_text(stage, job, &ending);
        stage.end(w1, &claimed, job.id, ending).await?;
        stage.note(text);
    }
    stage.wait(Duration::from_secs(11));
    let claimed = stage.claim(w1, 1).await?;
    stage.say("It is tried once more and may not be tried again: a dead letter");
    for job in &claimed.jobs {
        let ending = failure(job, &claimed, Class::Transient, "out of memory");
        let text = ending_text(stage, job, &ending);
        stage.end(w1, &claimed, job.id, ending).await?;
        stage.note(text);
    }
    Ok(())
}

/// A queued job ends at once; a running one is asked, and its worker hears of it with the next renewal.
async fn two_cancels(stage: &mut Stage, w1: WorkerId, cast: &Cast) -> Result<(), Failure> {
    stage.say("An operator cancels two jobs");
    cancel(stage, cast.unwanted).await?;
    let claimed = stage.claim(w1, 1).await?;
    for job in &claimed.jobs {
        cancel(stage, job.id).await?;
    }
    let renewed = stage.store.renew_leases(RenewLeases { worker: w1, leases: vec![claimed.lease] }).await?;
    for job in &renewed.cancel_requested {
        stage.end(w1, &claimed, *job, Ending::Canceled { error: None }).await?;
        let note = format!("{}: w1 hears of it when it renews lease {}, and stops", stage.names([job]), claimed.lease);
        stage.note(note);
    }
    Ok(())
}

/// The dead letter is revived and succeeds.
async fn a_second_life(stage: &mut Stage, w1: WorkerId, cast: &Cast) -> Result<(), Failure> {
    stage.say("The operator has found more memory and requeues the dead letter");
    let word = Word { actor: Some("operator".to_owned()), reason: Some("more memory".to_owned()) };
    stage.store.requeue_job(RequeueJob { sight: Sight::All, job: cast.fragile, word }).await?;
    let claimed = stage.claim(w1, 10).await?;
    stage.complete(w1, &claimed).await?;
    let note = format!("{}: done, under lease {}", stage.names(claimed.jobs.iter().map(|job| &job.id)), claimed.lease);
    stage.note(note);
    Ok(())
}

async fn cancel(stage: &mut Stage, job: JobId) -> Result<(), Failure> {
    let word = Word { actor: Some("operator".to_owned()), reason: Some("not needed any more".to_owned()) };
    let canceled = stage.store.cancel_job(CancelJob { sight: Sight::All, job, force: false, word }).await?;
    let text = match canceled {
        Canceled::Now => "was queued and is canceled at once",
        Canceled::Requested => "is running, its worker is asked to stop",
        Canceled::Before => "was canceled before",
    };
    let note = format!("{} {text}", stage.names([&job]));
    stage.note(note);
    Ok(())
}

fn ending_text(stage: &Stage, job: &ClaimedJob, ending: &Ending) -> String {
    let name = stage.names([&job.id]);
    let error = ending.details().0.map(|error| error.as_str()).unwrap_or_default();
    let error = error.trim_start_matches("{\"message\":\"").trim_end_matches("\"}");
    match ending {
        Ending::Retry { delay, .. } => {
            let (attempt, most) = (job.attempt, job.rules.max_attempts);
            format!("{name}: {error}, attempt {attempt} of {most}, again in {}", moment::span(*delay))
        }
        Ending::Failed { .. } => format!("{name}: {error}, a permanent error: failed"),
        Ending::Dead { .. } => format!("{name}: {error}, attempt {} of {}: dead", job.attempt, job.rules.max_attempts),
        Ending::Snoozed { delay } => format!("{name}: not yet, again in {}, not charged", moment::span(*delay)),
        Ending::Succeeded { .. } => format!("{name}: done"),
        Ending::Canceled { .. } => format!("{name}: canceled"),
        Ending::Released { .. } => format!("{name}: given back"),
    }
}
