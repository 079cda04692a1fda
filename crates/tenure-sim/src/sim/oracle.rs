//! What must hold when a run is over: the books against the store's own record.
//!
//! The journal is authoritative. It says who held which job when, and how that ended; whatever a worker heard, ran or wrote
//! must agree with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_contract::{Fixture, harness};
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{How, JobId, LeaseNo};
use tenure_sqlite::SqliteStore;
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{JobStore, StoreError};

use super::finding::Rule;
use super::gate;
use super::world::World;

/// Checks everything that can only be known at the end.
pub(crate) async fn check(world: &World, store: &SqliteStore) -> Result<(), StoreError> {
    world.clock.sync();
    let fixture = Fixture::new("sim", Arc::new(store.clone()), world.clock.shown());
    if let Err(why) = harness::check_after(&fixture).await {
        world.ledger.find(Rule::Journal, why);
    }
    let history = History::read(world, &fixture.journal().await);
    gate::check(world, store).await?;
    check_runs(world, &history);
    check_endings(world, store, &history).await?;
    check_requests(world, store, &history).await?;
    check_effects(world, store, &history).await?;
    let book = world.ledger.book();
    let unheard = book.grants.values().filter(|grant| grant.is_unheard()).count();
    drop(book);
    world.add("claims_unheard", unheard);
    Ok(())
}

/// What the journal says about each job.
#[derive(Default)]
struct History {
    granted: BTreeSet<(JobId, LeaseNo)>,
    ended: BTreeSet<(JobId, LeaseNo, How)>,
    jobs: BTreeMap<JobId, Life>,
}

/// Where a job stands by the journal.
#[derive(Default)]
struct Life {
    held: Option<LeaseNo>,
    newest: Option<LeaseNo>,
    /// How it ended, if it has.
    last: Option<How>,
    is_pruned: bool,
    /// Since it was last revived.
    retries: u16,
    losses: u16,
    /// The most of each that it ever had in one life.
    most: (u16, u16),
}

impl History {
    /// Follows every job through the rows; what does not fit is found.
    fn read(world: &World, rows: &[JournalRow]) -> Self {
        let mut history = Self::default();
        for row in rows {
            for job in &row.jobs {
                if let Err(why) = history.follow(row, *job) {
                    let name = world.ledger.name_of(*job);
                    world.ledger.find(Rule::StaleAccepted, format!("journal row {}: {name} {why}", row.id));
                }
            }
        }
        history
    }

    fn follow(&mut self, row: &JournalRow, job: JobId) -> Result<(), String> {
        let life = self.jobs.entry(job).or_default();
        match row.event {
            JournalEvent::Claimed => {
                let lease = row.lease.ok_or("is claimed under no lease")?;
                let before = life.held.replace(lease);
                let newest = life.newest.replace(lease);
                self.granted.insert((job, lease));
                match (before, newest) {
                    (Some(held), _) => Err(format!("is claimed under {lease} while {held} holds it")),
                    (None, Some(newest)) if newest >= lease => Err(format!("is claimed under {lease} after {newest}")),
                    _ => Ok(()),
                }
            }
            JournalEvent::Ended(how) => {
                let lease = row.lease.ok_or("ended under no lease")?;
                self.ended.insert((job, lease, how));
                life.retries += u16::from(how == How::Retry);
                life.losses += u16::from(how == How::Lost);
                life.most = (life.most.0.max(life.retries), life.most.1.max(life.losses));
                life.last = how.is_final().then_some(how);
                match life.held.take() {
                    Some(held) if held != lease => Err(format!("ended under {lease} while {held} held it")),
                    // Nobody held it: only a cancel ends what waits.
                    None if how != How::Canceled => {
                        Err(format!("ended ({}) under {lease}, held by nobody", how.as_str()))
                    }
                    _ => Ok(()),
                }
            }
            JournalEvent::Requeued => {
                (life.retries, life.losses, life.last) = (0, 0, None);
                Ok(())
            }
            JournalEvent::Pruned => {
                *life =
                    Life { is_pruned: true, most: life.most, newest: life.newest, last: life.last, ..Life::default() };
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Nobody ran without a grant, and nobody heard of an ending that was not written.
fn check_runs(world: &World, history: &History) {
    let mut found = Vec::new();
    let book = world.ledger.book();
    for grant in book.runs.keys().filter(|grant| !history.granted.contains(grant)) {
        found.push((Rule::RanWithoutGrant, grant.0, format!("ran under {}", grant.1)));
    }
    for (job, lease, how) in book.accepted.iter().filter(|ended| !history.ended.contains(ended)) {
        found.push((Rule::StaleAccepted, *job, format!("was said to have {} under {lease}", how.as_str())));
    }
    drop(book);
    tell(world, found);
}

/// Every job has ended, within its limits, and nothing is held any more.
async fn check_endings(world: &World, store: &SqliteStore, history: &History) -> Result<(), StoreError> {
    let mut found = Vec::new();
    for job in list(store).await? {
        let name = world.ledger.name_of(job.id);
        if !job.state.is_terminal() {
            found.push((Rule::NotEnded, job.id, format!("is {}", job.state.as_str())));
        }
        let Some(life) = history.jobs.get(&job.id) else { continue };
        if life.last.is_none() || life.held.is_some() {
            found.push((Rule::NotEnded, job.id, format!("by the journal: {:?}, held by {:?}", life.last, life.held)));
        }
        let rules = store.show_job(&Sight::All, job.id).await?.rules;
        let (retries, losses) = life.most;
        if retries >= rules.max_attempts || losses >= rules.max_losses {
            let text =
                format!("{name}: {retries} retries of {}, {losses} losses of {}", rules.max_attempts, rules.max_losses);
            found.push((Rule::TooManyTries, job.id, text));
        }
    }
    tell(world, found);
    Ok(())
}

/// What was acknowledged is there, and what was asked for twice is there once.
async fn check_requests(world: &World, store: &SqliteStore, history: &History) -> Result<(), StoreError> {
    let there: BTreeSet<JobId> = list(store).await?.into_iter().map(|job| job.id).collect();
    let was_there = |job: &JobId| there.contains(job) || history.jobs.get(job).is_some_and(|life| life.is_pruned);
    let mut found = Vec::new();
    let book = world.ledger.book();
    for job in book.acknowledged.iter().filter(|job| !was_there(job)) {
        found.push((Rule::JobLost, *job, "was acknowledged and is not there".to_owned()));
    }
    for job in book.fires.values().filter(|job| !was_there(job)) {
        found.push((Rule::Fires, *job, "was stored for a fire and is not there".to_owned()));
    }
    for ids in &book.requests {
        let made: Vec<JobId> = ids.iter().copied().filter(|id| was_there(id)).collect();
        if let [first, _, ..] = made[..] {
            found.push((Rule::EnqueuedTwice, first, format!("one request made {} jobs", made.len())));
        }
    }
    drop(book);
    tell(world, found);
    Ok(())
}

/// A handler's own rows are there exactly where its transaction completed the job, and once.
async fn check_effects(world: &World, store: &SqliteStore, history: &History) -> Result<(), StoreError> {
    let effects: Vec<(String, i64)> = store
        .transaction(|tx| {
            let read = || -> tenure_sqlite::rusqlite::Result<Vec<(String, i64)>> {
                let mut select = tx.connection().prepare("select job, fence from effect order by job, fence")?;
                let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect()
            };
            read().map_err(StoreError::unavailable)
        })
        .await?;
    let mut found = Vec::new();
    let mut written: BTreeMap<JobId, u32> = BTreeMap::new();
    for (job, fence) in effects {
        let job: JobId = job.parse()?;
        let times = written.entry(job).or_default();
        *times += 1;
        if *times > 1 {
            found.push((Rule::Effects, job, format!("wrote its row {times} times")));
        }
        if !history.ended.contains(&(job, LeaseNo(fence), How::Succeeded)) {
            found.push((Rule::Effects, job, format!("wrote a row under {fence} and did not succeed there")));
        }
    }
    for job in list(store).await?.into_iter().filter(|job| job.kind.as_str() == "pay") {
        let succeeded = job.state == tenure_core::State::Succeeded;
        if succeeded != written.contains_key(&job.id) {
            found.push((
                Rule::Effects,
                job.id,
                format!("is {} with {:?} rows", job.state.as_str(), written.get(&job.id)),
            ));
        }
    }
    tell(world, found);
    Ok(())
}

async fn list(store: &SqliteStore) -> Result<Vec<tenure_store::record::JobSummary>, StoreError> {
    store.list_jobs(&JobFilter { limit: 1_000, ..JobFilter::default() }).await
}

fn tell(world: &World, found: Vec<(Rule, JobId, String)>) {
    for (rule, job, what) in found {
        let name = world.ledger.name_of(job);
        world.ledger.find(rule, format!("{name} {what}"));
    }
}
