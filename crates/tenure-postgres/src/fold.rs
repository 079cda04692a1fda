//! Folding: what jobs said of their runs is counted, and what follows is done.
//!
//! One folds at a time, by a row that the others skip. Runs and partitions that somebody else holds are left for the next
//! time with everything that was said of them; then the floor below which nobody looks again stays where it is, and a run
//! with such a partition decides nothing. Each run is folded behind a savepoint: what goes wrong with one, such as a row
//! that a user's open transaction keeps, stops no other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;

use deadpool_postgres::Transaction;
use tenure_core::journal::JournalEvent;
use tenure_core::run::{Act, Part, Partition, Run, RunEvent, Told};
use tenure_core::{JobId, RunId, RunState};
use tenure_store::StoreError;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::run::{FOLD_MAX, FoldedRuns, RunRecord};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::{Failed, Param};
use crate::error::{is_disconnect, is_locked_out, is_retryable};
use crate::pool::Desk;
use crate::run::record;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, named, time};

/// A sentence and its number.
type Said = (i64, RunEvent);

/// Runs that are folded in one transaction, so that it is short.
const RUNS_MAX: i64 = 50;
/// After so many locks that were not had a fold does no more: others wait for what it holds.
const LOCKED_OUT_MAX: u32 = 5;

/// What a fold could not do.
#[derive(Default)]
struct Undone {
    /// Something that was said of these is not counted.
    unheard: HashSet<RunId>,
    /// Whether there is more than was looked at.
    cut: bool,
    /// Locks that were not had.
    locked_out: u32,
    /// The first other trouble.
    trouble: Option<Failed>,
}

const LOOK: Statement = Statement {
    name: "look_at_runs",
    sql: "select exists (select from tenure.run_event e where e.xid >= (select f.folded_to from tenure.run_fold f))
        or exists (select from tenure.run r where r.sweeping)
        or exists (select from tenure.run r where r.state in (0, 1) and r.deadline is not null
            and r.deadline <= coalesce($1::timestamptz, statement_timestamp())) as any",
};

impl PgStore {
    /// Asked by everybody all the time: one look, and no lock.
    pub(crate) async fn has_something_to_fold(&self) -> Result<bool, StoreError> {
        let now = self.moment();
        let rows = self.call(Desk::Short, LOOK, &[(&now, Type::TIMESTAMPTZ)]).await?;
        rows.first().map_or(Ok(false), |row| get(row, "any"))
    }

    pub(crate) async fn fold_all(&self, tx: &Transaction<'_>) -> Result<FoldedRuns, Failed> {
        let mut folded = FoldedRuns::default();
        if tx.query_typed_opt("select from tenure.run_fold for update skip locked", &[]).await?.is_none() {
            return Ok(folded);
        }
        tx.batch_execute("set local lock_timeout = '200ms'").await?;
        let now = self.time(tx).await?;
        let mut undone = Undone::default();
        let mut heard = self.fold_said(tx, &mut folded, &mut undone).await?;
        // A whole batch of runs that somebody holds: those behind them must not wait.
        while heard == 0 && undone.cut && undone.locked_out < LOCKED_OUT_MAX {
            heard = self.fold_said(tx, &mut folded, &mut undone).await?;
        }
        let at = Moment(now);
        let sql = "select id from tenure.run where state in (0, 1) and deadline is not null and deadline <= $1 and id <> all ($3)
            order by deadline limit $2 for update skip locked";
        // Not before everything that was said is heard.
        let limit = if undone.cut { 0 } else { RUNS_MAX };
        let unheard: Vec<uuid::Uuid> = undone.unheard.iter().map(|run| *run.as_uuid()).collect();
        let params: [Param<'_>; 3] = [(&at, Type::TIMESTAMPTZ), (&limit, Type::INT8), (&unheard, Type::UUID_ARRAY)];
        let mut expired = 0;
        for id in ids(&tx.query_typed(sql, &params).await?)? {
            expired += u64::from(undone.apart(tx, self.expire(tx, id, now)).await?.is_some());
        }
        let sql = "select id from tenure.run where sweeping order by id limit 100 for no key update skip locked";
        let mut swept = 0;
        for id in ids(&tx.query_typed(sql, &[]).await?)? {
            let left = FOLD_MAX.saturating_sub(swept);
            if left > 0 {
                swept += undone.apart(tx, self.sweep(tx, id, left)).await?.unwrap_or(0);
            }
        }
        folded.changes = u64::from(heard) + expired + u64::from(swept);
        // With trouble there is a next time at once: it is told when there is nothing else to do.
        folded.more = (undone.cut && heard > 0) || swept > 0 || undone.trouble.is_some();
        match undone.trouble {
            Some(failed) if folded.changes == 0 => Err(failed),
            _ => Ok(folded),
        }
    }

    /// The deadline of a run is over.
    async fn expire(&self, tx: &Transaction<'_>, id: RunId, now: tenure_core::Timestamp) -> Result<(), Failed> {
        let RunRecord { mut run, .. } = self.one_run(tx, statement::HOLD_RUN, &Sight::All, id).await?;
        let was = run.state;
        run.expire(now);
        self.stop(tx, id, &mut run).await?;
        self.told_of(tx, id, was, &run).await
    }

    /// Folds a batch of sentences; answers how many there were.
    async fn fold_said(
        &self,
        tx: &Transaction<'_>,
        folded: &mut FoldedRuns,
        undone: &mut Undone,
    ) -> Result<u32, Failed> {
        let limit = i64::from(FOLD_MAX);
        let unheard: Vec<String> = undone.unheard.iter().map(ToString::to_string).collect();
        let params: [Param<'_>; 2] = [(&limit, Type::INT8), (&unheard, Type::TEXT_ARRAY)];
        let rows = tx.query_typed(&self.text(statement::READ_RUN_EVENTS), &params).await?;
        undone.cut = rows.len() >= FOLD_MAX as usize;
        let Some(first) = rows.first() else { return Ok(0) };
        let floor: String = get(first, "floor")?;
        let mut by_run: BTreeMap<RunId, Vec<Said>> = BTreeMap::new();
        for row in &rows {
            let (run, said) = said(row)?;
            by_run.entry(run).or_default().push(said);
        }
        let mut heard = 0;
        let locked = self.lock_runs(tx, by_run.keys()).await?;
        undone.cut |= locked.len() >= RUNS_MAX as usize;
        for found in locked {
            let Some(events) = by_run.remove(&found.id) else { continue };
            let (id, asked) = (found.id, events.len());
            let counted = undone.apart(tx, self.fold_run(tx, found, events)).await?;
            let (count, opened) = counted.unwrap_or_default();
            folded.opened.extend(opened.then_some(id));
            heard += count;
            undone.unheard.extend((asked > count as usize).then_some(id));
        }
        undone.unheard.extend(by_run.into_keys());
        // Everything older than the floor was seen by the statement above and is counted now.
        if !undone.cut && undone.unheard.is_empty() {
            let sql = "update tenure.run_fold set folded_to = $1::text::xid8";
            tx.execute_typed(sql, &[(&floor, Type::TEXT)]).await?;
        }
        Ok(heard)
    }

    /// Deletes sentences of a run that is held, and answers which were there: a seal may have taken what was added.
    async fn take(&self, tx: &Transaction<'_>, events: &[Said]) -> Result<HashSet<i64>, Failed> {
        let ids: Vec<i64> = events.iter().map(|(id, _)| *id).collect();
        let sql = "delete from tenure.run_event where id = any ($1) returning id";
        let rows = tx.query_typed(sql, &[(&ids, Type::INT8_ARRAY)]).await?;
        Ok(rows.iter().map(|row| get(row, "id")).collect::<Result<_, _>>()?)
    }

    async fn lock_runs(
        &self,
        tx: &Transaction<'_>,
        runs: impl Iterator<Item = &RunId>,
    ) -> Result<Vec<RunRecord>, Failed> {
        let ids: Vec<uuid::Uuid> = runs.map(|run| *run.as_uuid()).collect();
        let params: [Param<'_>; 2] = [(&ids, Type::UUID_ARRAY), (&RUNS_MAX, Type::INT8)];
        let rows = tx.query_typed(&self.text(statement::LOCK_RUNS), &params).await?;
        Ok(rows.iter().map(record).collect::<Result<_, _>>()?)
    }

    /// Folds what was said of one run; answers how many sentences, and whether its consolidate was opened. What is said of
    /// a partition that is just committing a page is left, and then nothing is decided: it may be that it was revived.
    async fn fold_run(
        &self,
        tx: &Transaction<'_>,
        found: RunRecord,
        mut events: Vec<Said>,
    ) -> Result<(u32, bool), Failed> {
        let RunRecord { id, mut run, consolidate, .. } = found;
        let mut names: Vec<(RunId, String)> =
            events.iter().filter_map(|(_, event)| Some((id, event.told.partition()?.to_string()))).collect();
        names.sort_unstable();
        names.dedup();
        let mut partitions: HashMap<String, Partition> = HashMap::new();
        if !names.is_empty() {
            let locked = self.lock_partitions(tx, &names).await?;
            partitions = locked.into_iter().map(|(record, heart)| (record.name.to_string(), heart)).collect();
        }
        let whole = partitions.len() == names.len();
        events.retain(|(_, event)| event.told.partition().is_none_or(|name| partitions.contains_key(name.as_str())));
        let (was, before) = (run.state, partitions.clone());
        let taken = self.take(tx, &events).await?;
        for (_, event) in events.iter().filter(|(id, _)| taken.contains(id)) {
            let partition = event.told.partition().and_then(|name| partitions.get_mut(name.as_str()));
            run.hear(event, partition);
        }
        partitions.retain(|name, partition| before.get(name) != Some(partition));
        self.save_partitions(tx, id, &partitions).await?;
        let act = if whole { run.settle(self.time(tx).await?) } else { None };
        self.save_run(tx, id, &run, None).await?;
        let opened = self.act(tx, id, &mut run, act, consolidate).await?;
        self.told_of(tx, id, was, &run).await?;
        Ok((u32::try_from(taken.len()).unwrap_or(u32::MAX), opened))
    }

    pub(crate) async fn save_partitions(
        &self,
        tx: &Transaction<'_>,
        run: RunId,
        partitions: &HashMap<String, Partition>,
    ) -> Result<(), Failed> {
        if partitions.is_empty() {
            return Ok(());
        }
        let runs = vec![*run.as_uuid(); partitions.len()];
        let names: Vec<&str> = partitions.keys().map(String::as_str).collect();
        let states: Vec<i16> = partitions.values().map(|partition| partition.state.code()).collect();
        let errors: Vec<Option<&str>> = partitions.values().map(|partition| partition.last_error.as_deref()).collect();
        let now = self.moment();
        let params: [Param<'_>; 5] = [
            (&runs, Type::UUID_ARRAY),
            (&names, Type::TEXT_ARRAY),
            (&states, Type::INT2_ARRAY),
            (&errors, Type::TEXT_ARRAY),
            (&now, Type::TIMESTAMPTZ),
        ];
        tx.execute_typed(&self.text(statement::SAVE_PARTITIONS), &params).await?;
        Ok(())
    }

    /// Does what a run has decided; answers whether its consolidate was opened.
    async fn act(
        &self,
        tx: &Transaction<'_>,
        id: RunId,
        run: &mut Run,
        act: Option<Act>,
        consolidate: Option<JobId>,
    ) -> Result<bool, Failed> {
        let opens = act == Some(Act::Open) && consolidate.is_some();
        let word = |reason: &str| Word { actor: None, reason: Some(reason.to_owned()) };
        match (act, consolidate) {
            (Some(Act::Open), Some(job)) => {
                let word = word("all members of its run are done");
                match self.state_of(tx, job).await?.as_deref() {
                    Some("waiting") => self.open_in(tx, job, &word).await,
                    Some("failed" | "dead" | "canceled") => self.requeue_in(tx, job, &word).await,
                    // Somebody was faster, by hand.
                    _ => Ok(()),
                }
            }
            (Some(Act::Skip), Some(job)) => match self.state_of(tx, job).await?.as_deref() {
                // It may have ended by hand.
                None | Some("succeeded" | "failed" | "dead" | "canceled") => Ok(()),
                Some(_) => self.cancel_in(tx, job, &word("members of its run are missing")).await,
            },
            (Some(Act::CancelRest), _) => self.stop(tx, id, run).await,
            _ => Ok(()),
        }?;
        Ok(opens)
    }

    /// No page of a run goes on, and its jobs are to be canceled. The caller holds the run. A partition whose page is just
    /// being committed is left to the sweep.
    pub(crate) async fn stop(&self, tx: &Transaction<'_>, id: RunId, run: &mut Run) -> Result<(), Failed> {
        let now = self.moment();
        let params: [Param<'_>; 2] = [(id.as_uuid(), Type::UUID), (&now, Type::TIMESTAMPTZ)];
        let row = tx.query_typed_one("select tenure.end_partitions($1, $2) as ended", &params).await?;
        run.canceled += u64::try_from(get::<i64>(&row, "ended")?).unwrap_or(0);
        self.save_run(tx, id, run, None).await?;
        let sql = "update tenure.run set sweeping = true where id = $1";
        tx.execute_typed(sql, &[(id.as_uuid(), Type::UUID)]).await?;
        Ok(())
    }

    async fn sweep(&self, tx: &Transaction<'_>, id: RunId, limit: u32) -> Result<u32, Failed> {
        let (limit, now) = (i32::try_from(limit).unwrap_or(i32::MAX), self.moment());
        let params: [Param<'_>; 3] = [(id.as_uuid(), Type::UUID), (&limit, Type::INT4), (&now, Type::TIMESTAMPTZ)];
        let row = tx.query_typed_one("select tenure.sweep_run($1, $2, $3) as swept", &params).await?;
        Ok(u32::try_from(get::<i32>(&row, "swept")?).unwrap_or(0))
    }

    /// The store's clock, inside a transaction.
    pub(crate) async fn time(&self, tx: &Transaction<'_>) -> Result<tenure_core::Timestamp, Failed> {
        if let Some(now) = self.moment() {
            return Ok(now.0);
        }
        let row = tx.query_typed_one("select clock_timestamp() as now", &[]).await?;
        Ok(time(&row, "now")?)
    }

    async fn told_of(&self, tx: &Transaction<'_>, id: RunId, was: RunState, run: &Run) -> Result<(), Failed> {
        let event = match (was.is_open(), run.state.is_open()) {
            (true, false) => JournalEvent::RunEnded,
            (false, true) => {
                self.free(tx, id).await?;
                JournalEvent::RunReopened
            }
            _ => return Ok(()),
        };
        self.write(tx, id, event, Some(run.state), &Word::default()).await
    }

    async fn open_in(&self, tx: &Transaction<'_>, job: JobId, word: &Word) -> Result<(), Failed> {
        self.operate_in(tx, "select tenure.open($1, null, $2, $3, $4)", job, word).await
    }

    pub(crate) async fn requeue_in(&self, tx: &Transaction<'_>, job: JobId, word: &Word) -> Result<(), Failed> {
        self.operate_in(tx, "select tenure.requeue($1, null, $2, $3, $4)", job, word).await
    }

    pub(crate) async fn cancel_in(&self, tx: &Transaction<'_>, job: JobId, word: &Word) -> Result<(), Failed> {
        self.operate_in(tx, "select tenure.cancel($1, false, null, $2, $3, $4)", job, word).await
    }

    async fn operate_in(&self, tx: &Transaction<'_>, sql: &str, job: JobId, word: &Word) -> Result<(), Failed> {
        let now = self.moment();
        let params: [Param<'_>; 4] = [
            (job.as_uuid(), Type::UUID),
            (&word.actor, Type::TEXT),
            (&word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        tx.query_typed(sql, &params).await?;
        Ok(())
    }
}

impl Undone {
    /// Does something for one run. `None`: it failed, nothing of it is done, the other runs go on, and it is tried again
    /// the next time. A lock that somebody else keeps is no trouble.
    async fn apart<T>(
        &mut self,
        tx: &Transaction<'_>,
        work: impl Future<Output = Result<T, Failed>>,
    ) -> Result<Option<T>, Failed> {
        if self.locked_out >= LOCKED_OUT_MAX {
            return Ok(None);
        }
        tx.batch_execute("savepoint run").await?;
        match work.await {
            Ok(done) => {
                tx.batch_execute("release savepoint run").await?;
                return Ok(Some(done));
            }
            Err(Failed::Said(error)) if is_disconnect(&error) || is_retryable(&error) => return Err(error.into()),
            Err(Failed::Said(error)) if is_locked_out(&error) => self.locked_out += 1,
            Err(failed) => self.trouble = self.trouble.take().or(Some(failed)),
        }
        tx.batch_execute("rollback to savepoint run").await?;
        Ok(None)
    }
}

fn ids(rows: &[Row]) -> Result<Vec<RunId>, StoreError> {
    rows.iter().map(|row| get(row, "id").map(RunId::from_uuid)).collect()
}

fn said(row: &Row) -> Result<(RunId, Said), StoreError> {
    let part: Part = named(row, "part")?;
    let job = get::<Option<uuid::Uuid>>(row, "job")?.map(JobId::from_uuid);
    let (code, members): (i16, i64) = (get(row, "told")?, get(row, "members")?);
    let told = Told::from_code(code, &part, job, u64::try_from(members).unwrap_or(0));
    let told = told.ok_or_else(|| StoreError::Corrupt(format!("run_event.told is {code}")))?;
    Ok((part.run(), (get(row, "id")?, RunEvent { at: time(row, "at")?, told, error: get(row, "error")? })))
}
