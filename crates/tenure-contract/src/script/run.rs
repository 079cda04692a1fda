//! Runs: run, add, seal_run, cancel_run, partition, begin, page, fold, told, runs, partitions.

use tenure_core::name::PartitionName;
use tenure_core::{JobId, NewJob, RunId, RunState};
use tenure_store::run::{
    AddToRun, AdvancePage, CancelRun, Members, NewPartition, NewRun, OperatePartition, PageFound, PartitionAct,
    PartitionFilter, PartitionRecord, RunCreated, RunFilter, RunRecord, SealRun,
};
use tenure_store::user_tx::CompleteJob;

use super::enqueue::read;
use super::line::{Line, compared};
use super::look::{from_now, message};
use super::operate::{sight, word, words};
use super::{Outcome, Run, error_words};

/// `run R1 [partitions=p1:J1,p2:J2 limit=30 offset=0] [items=J3,J4] [consolidate=J9] [open] [fail_fast] [tolerated=1]
/// [deadline=1h] [options of its jobs] -> created | before | invalid:field`, and `run R1 state=… total=… …` to look.
pub(super) async fn run(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (open, fail_fast, new) = (line.flag("open"), line.flag("fail_fast"), line.flag("new"));
    let id = target(run, line)?;
    if !new {
        return show(run, line, id).await;
    }
    let consolidate = line.option("consolidate");
    let mut request = NewRun::new(id);
    (request.sealed, request.fail_fast) = (!open, fail_fast);
    request.tolerated = line.parsed("tolerated")?.unwrap_or(0);
    request.deadline = line.duration("deadline")?;
    (request.owner, request.source) = (line.option("owner"), line.option("source"));
    let (job, members) = members(run, line)?;
    (request.tenant, request.members) = (job.tenant.clone(), members);
    request.consolidate = consolidate.map(|label| made(run, &job, &label)).transpose()?;
    let created = run.t.store.create_run(request).await.map(|created| match created {
        RunCreated::Now => "created",
        RunCreated::Before => "before",
    });
    Ok(Outcome { expected: line.expected_or("created"), got: words(run, created) })
}

/// `add R1 partitions=… items=… -> added:2 | added:1:found:1 | conflict`
pub(super) async fn add(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (id, sight) = (target(run, line)?, sight(line)?);
    let (_, members) = members(run, line)?;
    let added = run.t.store.add_to_run(AddToRun { sight, run: id, members }).await;
    let got = match added {
        Ok(added) if added.found > 0 => format!("added:{}:found:{}", added.members, added.found),
        Ok(added) => format!("added:{}", added.members),
        Err(error) => error_words(&run.names, &error).join(" "),
    };
    let got = got.split(' ').map(str::to_owned).collect();
    Ok(Outcome { expected: line.expected_or("added"), got })
}

/// `seal_run R1 [consolidate=J9] -> sealed | conflict`
pub(super) async fn seal(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (id, sight, said) = (target(run, line)?, sight(line)?, word(line));
    let consolidate = line.option("consolidate");
    let job = read(run, line, false)?;
    let consolidate = consolidate.map(|label| made(run, &job, &label)).transpose()?;
    let done = run.t.store.seal_run(SealRun { sight, run: id, consolidate, word: said }).await;
    Ok(Outcome { expected: line.expected_or("sealed"), got: words(run, done.map(|()| "sealed")) })
}

/// `cancel_run R1 -> canceled | before | conflict`
pub(super) async fn cancel(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (id, sight, said) = (target(run, line)?, sight(line)?, word(line));
    let done = run.t.store.cancel_run(CancelRun { sight, run: id, word: said }).await;
    let done = done.map(|now| if now { "canceled" } else { "before" });
    Ok(Outcome { expected: line.expected_or("canceled"), got: words(run, done) })
}

/// `partition R1 p1 resume`, `partition R1 p1 reset offset=0 job=J7`, `partition R1 p1 state=… offset=… rows=… …`
pub(super) async fn partition(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let id = target(run, line)?;
    let partition: PartitionName = line.word("a partition")?.parse().map_err(|why| format!("{why}"))?;
    let act = match line.words().first().map(String::as_str) {
        None => return show_partition(run, line, id, &partition).await,
        Some("resume") => PartitionAct::Resume,
        Some("reset") => {
            let job = line.required("job")?;
            PartitionAct::Reset { offset: line.parsed("offset")?.unwrap_or(0), job: run.names.job(run.t, &job)? }
        }
        Some(other) => return Err(format!("nobody can {other} a partition")),
    };
    let (sight, said) = (sight(line)?, word(line));
    let done = run.t.store.operate_partition(OperatePartition { sight, run: id, partition, act, word: said }).await;
    Ok(Outcome { expected: line.expected_or("done"), got: words(run, done.map(|()| "done")) })
}

/// `begin J1 -> next:30 | elsewhere:60 | ended`
pub(super) async fn begin(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let label = line.word("a job")?;
    let job = run.names.job(run.t, &label)?;
    let got = match run.t.store.begin_page(job).await {
        Ok(PageFound::Next { limit }) => vec![format!("next:{limit}")],
        Ok(PageFound::Elsewhere { expected }) => vec![format!("elsewhere:{expected}")],
        Ok(PageFound::Ended) => vec!["ended".into()],
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected: line.expected_or("next"), got })
}

/// `page W1 J1 lease=L1 rows=30 [next=J2] -> done | offset_mismatch:60:30 | lease_lost | conflict`
pub(super) async fn page(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (worker, label) = (line.word("a worker")?, line.word("a job")?);
    let worker = run.names.worker(run.t, &worker).await?;
    let next = line.option("next").map(|label| run.names.job(run.t, &label)).transpose()?;
    let (lease, job) = (run.names.lease(&line.required("lease")?)?, run.names.job(run.t, &label)?);
    let page = CompleteJob::new(worker, lease, job);
    let request = AdvancePage { page, rows: line.parsed("rows")?.unwrap_or(0), next };
    let done = run.t.store.advance_page(request).await;
    Ok(Outcome { expected: line.expected_or("done"), got: words(run, done.map(|()| "done")) })
}

/// `fold`: until nothing is left to do. `fold -> R1 | nothing`: whose consolidates were opened.
pub(super) async fn fold(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let mut got = Vec::new();
    loop {
        match run.t.store.fold_runs().await {
            Ok(folded) => {
                got.extend(folded.opened.iter().map(|id| run.names.run_label(*id)));
                if !folded.more {
                    break;
                }
            }
            Err(error) => return Ok(Outcome { expected: Vec::new(), got: error_words(&run.names, &error) }),
        }
    }
    if got.is_empty() {
        got.push("nothing".into());
    }
    Ok(Outcome { expected: line.expected_or("nothing"), got })
}

/// `runs [open] [state=…] [sight=…] [limit=…] -> R2 R1 | nothing`
pub(super) async fn list(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let filter = RunFilter {
        open: line.flag("open"),
        sight: sight(line)?,
        state: state(line)?,
        before: line.option("before").map(|label| run.names.run(run.t, &label)).transpose()?,
        limit: line.parsed("limit")?.unwrap_or(100),
    };
    let got = match run.t.store.list_runs(&filter).await {
        Ok(runs) if runs.is_empty() => vec!["nothing".into()],
        Ok(runs) => runs.iter().map(|record| run.names.run_label(record.id)).collect(),
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected: line.expectation().ok_or("runs needs the runs after ->")?, got })
}

/// `partitions [R1] [active] [stuck=10m] [state=…] [sight=…] -> R1/p1 R1/p2 | nothing`
pub(super) async fn partitions(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (active, of) = (line.flag("active"), line.words());
    let filter = PartitionFilter {
        active,
        sight: sight(line)?,
        run: of.first().map(|label| run.names.run(run.t, label)).transpose()?,
        stuck_for: line.duration("stuck")?,
        state: state(line)?,
        after: None,
        limit: line.parsed("limit")?.unwrap_or(100),
    };
    let got = match run.t.store.list_partitions(&filter).await {
        Ok(found) if found.is_empty() => vec!["nothing".into()],
        Ok(found) => found.iter().map(|p| format!("{}/{}", run.names.run_label(p.run), p.name)).collect(),
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected: line.expectation().ok_or("partitions needs them after ->")?, got })
}

/// `told run_created run_ended …`: everything the record says about runs and partitions, in order.
pub(super) async fn told(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let rows = run.t.journal().await;
    let words = rows.iter().map(|row| row.event.as_str());
    let got = words.filter(|word| word.starts_with("run_") || word.starts_with("partition_"));
    Ok(Outcome { got: got.map(str::to_owned).collect(), expected: line.words() })
}

fn target(run: &mut Run<'_>, line: &mut Line) -> Result<RunId, String> {
    let label = line.word("a run")?;
    run.names.run(run.t, &label)
}

fn state(line: &mut Line) -> Result<Option<RunState>, String> {
    let read = |word: String| RunState::parse(&word).ok_or_else(|| format!("{word} is no state of a run"));
    line.option("state").map(read).transpose()
}

fn made(run: &mut Run<'_>, job: &NewJob, label: &str) -> Result<NewJob, String> {
    Ok(NewJob { id: run.names.job(run.t, label)?, ..job.clone() })
}

/// Members by their labels; all their jobs have the same options.
fn members(run: &mut Run<'_>, line: &mut Line) -> Result<(NewJob, Members), String> {
    let (partitions, items) = (line.option("partitions"), line.option("items"));
    let (limit, offset) = (line.parsed("limit")?.unwrap_or(30), line.parsed("offset")?.unwrap_or(0));
    let (expected, job) = (line.parsed("expected")?, read(run, line, false)?);
    let mut members = Members::default();
    for text in partitions.iter().flat_map(|text| text.split(',')) {
        let (name, label) = text.split_once(':').ok_or_else(|| format!("{text} is not name:job"))?;
        let name = name.parse().map_err(|why| format!("{why}"))?;
        members.partitions.push(NewPartition { name, job: made(run, &job, label)?, offset, limit, expected });
    }
    for label in items.iter().flat_map(|text| text.split(',')) {
        members.items.push(made(run, &job, label)?);
    }
    Ok((job, members))
}

async fn show(run: &mut Run<'_>, line: &mut Line, id: RunId) -> Result<Outcome, String> {
    let (sight, wanted, expected) = (sight(line)?, line.options(), line.expectation());
    let record = match run.t.store.show_run(&sight, id).await {
        Ok(record) => record,
        Err(error) => {
            let expected = expected.unwrap_or_else(|| vec!["found".into()]);
            return Ok(Outcome { expected, got: error_words(&run.names, &error) });
        }
    };
    let mut outcome = Outcome { expected: Vec::new(), got: Vec::new() };
    for (key, value) in wanted {
        outcome.got.push(format!("{key}={}", value_of(run, &record, &key)?));
        outcome.expected.push(compared(&key, &value));
    }
    Ok(outcome)
}

fn value_of(run: &Run<'_>, record: &RunRecord, key: &str) -> Result<String, String> {
    let none = || "none".to_owned();
    let since = |at| from_now(run.t.clock.now(), at);
    let of = &record.run;
    Ok(match key {
        "state" => of.state.as_str().into(),
        "sealed" => of.sealed.to_string(),
        "total" => of.total.to_string(),
        "done" => of.done.to_string(),
        "failed" => of.failed.to_string(),
        "canceled" => of.canceled.to_string(),
        "fan" => of.fan.as_str().into(),
        "rows" => record.rows.to_string(),
        "owner" => record.owner.clone().unwrap_or_else(none),
        "source" => record.source.clone().unwrap_or_else(none),
        "error" => of.last_error.as_deref().map_or_else(none, message),
        "consolidate" => record.consolidate.map_or_else(none, |job| run.names.job_label(job)),
        "started_at" => of.started_at.map_or_else(none, since),
        "finished_at" => of.finished_at.map_or_else(none, since),
        "deadline" => record.deadline.map_or_else(none, since),
        other => return Err(format!("run has no option {other}")),
    })
}

async fn show_partition(
    run: &mut Run<'_>,
    line: &mut Line,
    id: RunId,
    name: &PartitionName,
) -> Result<Outcome, String> {
    let filter = PartitionFilter { run: Some(id), limit: 1_000, ..PartitionFilter::default() };
    let found = run.t.store.list_partitions(&filter).await.map_err(|why| why.to_string())?;
    let record = found.iter().find(|partition| partition.name == *name).ok_or("there is no such partition")?;
    let mut outcome = Outcome { expected: Vec::new(), got: Vec::new() };
    for (key, value) in line.options() {
        outcome.got.push(format!("{key}={}", partition_value(run, record, &key)?));
        outcome.expected.push(compared(&key, &value));
    }
    Ok(outcome)
}

fn partition_value(run: &Run<'_>, record: &PartitionRecord, key: &str) -> Result<String, String> {
    let none = || "none".to_owned();
    let label = |job: JobId| run.names.job_label(job);
    Ok(match key {
        "state" => record.state.as_str().into(),
        "offset" => record.next_offset.to_string(),
        "limit" => record.limit.to_string(),
        "rows" => record.rows.to_string(),
        "expected" => record.expected.map_or_else(none, |expected| expected.to_string()),
        "job" => label(record.job),
        "error" => record.last_error.as_ref().map_or_else(none, |error| message(error.as_str())),
        "moved_at" => from_now(run.t.clock.now(), record.moved_at),
        other => return Err(format!("partition has no option {other}")),
    })
}
