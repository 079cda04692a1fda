//! Fires schedules. Every worker does so, and none is asked first: the store lets one of them through for each fire.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::Timestamp;
use tenure_store::StoreError;
use tenure_store::schedule::{FireResult, FireSchedule, Fired, ScheduleId, ScheduleRecord};

use crate::random;
use crate::shared::Shared;

/// The longest rest between two looks: so late a new schedule is noticed.
const EVERY: Duration = Duration::from_secs(1);
/// The shortest: a process that was too late for a whole page looks again after the others are done.
const BREATH: Duration = Duration::from_millis(20);
/// Schedules in one look and one transaction; more are looked at right after. A transaction of this size takes some ten
/// milliseconds, and a tenant waits for one such page at most.
const BATCH: u32 = 100;
/// Schedules that were told of as unable to fire and are remembered.
const TOLD_MAX: usize = 1_000;

/// The schedules of a store, as one process sees them.
pub(crate) struct Scheduler {
    shared: Arc<Shared>,
    /// What is wrong with these was told once; they are looked at every minute.
    told: HashSet<ScheduleId>,
    /// The rest after a page that other processes fire.
    lost_rest: Duration,
}

impl Scheduler {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, told: HashSet::new(), lost_rest: BREATH }
    }

    /// Fires what is due, rests until the next is, and never stops by itself.
    pub(crate) async fn run(mut self) {
        // What fell due while nobody was there does not wait for a round.
        let mut rest = BREATH;
        loop {
            tokio::time::sleep(random::jitter(rest)).await;
            if self.shared.worker.get().is_none() {
                rest = (rest * 2).min(EVERY);
                continue;
            }
            rest = match self.run_once().await {
                // A jitter may end it a little early: the look after that finds it.
                Ok(next) => next.unwrap_or(EVERY).clamp(BREATH, EVERY),
                Err(error) => {
                    match error.is_passing() {
                        true => self.shared.trouble.failed("scheduling", &error),
                        false => tracing::error!(error = %error, "scheduling failed"),
                    }
                    EVERY
                }
            };
        }
    }

    /// Fires everything that is due, a page and its transaction at a time; answers how long until another one is due. The
    /// store reads a page with the tenants in turn, so a tenant with many due schedules delays no other one.
    pub(crate) async fn run_once(&mut self) -> Result<Option<Duration>, StoreError> {
        loop {
            let found = self.shared.store.due_schedules(BATCH).await?;
            if found.due.is_empty() {
                self.lost_rest = BREATH;
                return Ok(found.next_in);
            }
            if !self.fire_page(&found.due).await? {
                // Other processes fire the whole page, or an open transaction holds it: look again, less and less often.
                let rest = self.lost_rest;
                self.lost_rest = (rest * 2).min(EVERY);
                return Ok(Some(rest));
            }
            self.lost_rest = BREATH;
        }
    }

    /// Fires a page in one transaction; answers whether this process moved any schedule of it on.
    async fn fire_page(&mut self, page: &[ScheduleRecord]) -> Result<bool, StoreError> {
        // The time in a job's id is the store's, too: no clock of this machine has a say in a fire.
        let decide = |schedule: &ScheduleRecord| schedule.decide(random::job_id_at(schedule.now));
        let requests: Vec<FireSchedule> = page.iter().map(decide).collect();
        let answers = match self.shared.store.fire_schedules(requests.clone()).await {
            Err(error) if !error.is_passing() => self.fire_one_by_one(&requests).await?,
            answers => answers?,
        };
        let (mut moved, mut later) = (false, Vec::new());
        for ((schedule, request), answer) in page.iter().zip(requests).zip(answers) {
            if let Err(unreadable) = &schedule.timing {
                self.tell(schedule, unreadable);
            }
            match answer {
                Ok(fired) => {
                    moved |= fired != Fired::Lost;
                    self.note(schedule, request.fire_at, fired);
                }
                Err(refused) => {
                    self.tell(schedule, &refused);
                    later.push(match refused {
                        StoreError::Full(_) => schedule.wait_for_room(request.job),
                        _ => schedule.put_off(request.job),
                    });
                }
            }
        }
        if !later.is_empty() {
            let answers = self.shared.store.fire_schedules(later).await?;
            moved |= answers.iter().any(|answer| !matches!(answer, Ok(Fired::Lost)));
        }
        Ok(moved)
    }

    /// The store refused a batch as a whole, which is a bug: what is wrong with one schedule must not stop the others.
    async fn fire_one_by_one(&self, requests: &[FireSchedule]) -> Result<Vec<FireResult>, StoreError> {
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            match self.shared.store.fire_schedule(request.clone()).await {
                Err(error) if error.is_passing() => return Err(error),
                answer => answers.push(answer),
            }
        }
        Ok(answers)
    }

    fn note(&mut self, schedule: &ScheduleRecord, fire_at: Option<Timestamp>, fired: Fired) {
        if let (Fired::Stored(job), Some(fire_at)) = (fired, fire_at) {
            let ScheduleRecord { id, tenant, name, .. } = schedule;
            self.told.remove(id);
            tracing::debug!(job.id = %job, schedule = %name, tenant = %tenant, %fire_at, "a schedule fired");
        }
    }

    /// Once for each: it is looked at again and again, and nothing changes before somebody mends it.
    fn tell(&mut self, schedule: &ScheduleRecord, error: &dyn std::error::Error) {
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        if self.told.insert(schedule.id) {
            let (tenant, name) = (&schedule.tenant, &schedule.name);
            tracing::error!(error = %error, schedule = %name, tenant = %tenant, "a schedule cannot fire: mend what the error says, or set it anew");
        }
    }
}
