//! Fires schedules. Every worker does so, and none is asked first: the store lets one of them through for each fire.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;
use tenure_store::schedule::{Fired, ScheduleId, ScheduleRecord};

use crate::random;
use crate::shared::Shared;

/// The longest rest between two looks: so late a new schedule is noticed.
const EVERY: Duration = Duration::from_secs(1);
/// The shortest: who was too late for everything looks again after the others are done.
const BREATH: Duration = Duration::from_millis(20);
/// Schedules in one look; more are looked at right after.
const BATCH: u32 = 100;
/// Schedules that were told of as unable to fire and are remembered.
const TOLD_MAX: usize = 1_000;

/// The schedules of a store, as one process sees them.
pub(crate) struct Scheduler {
    shared: Arc<Shared>,
    /// What is wrong with these was told once; they are looked at every minute.
    told: HashSet<ScheduleId>,
}

impl Scheduler {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, told: HashSet::new() }
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

    /// Fires everything that is due; answers how long until another one is.
    pub(crate) async fn run_once(&mut self) -> Result<Option<Duration>, StoreError> {
        loop {
            let found = self.shared.store.due_schedules(BATCH).await?;
            if found.due.is_empty() {
                return Ok(found.next_in);
            }
            let mut moved = false;
            for schedule in &found.due {
                moved |= self.fire(schedule).await? != Fired::Lost;
            }
            // Somebody else has it: it is theirs to finish.
            if !moved {
                return Ok(Some(BREATH));
            }
        }
    }

    async fn fire(&mut self, schedule: &ScheduleRecord) -> Result<Fired, StoreError> {
        let ScheduleRecord { id, tenant, name, now, .. } = schedule;
        // The time in its id is the store's, too: no clock of this machine has a say in a fire.
        let request = schedule.decide(random::job_id_at(*now));
        if let Err(refused) = &schedule.timing {
            self.tell(*id, schedule, refused);
        }
        let fire_at = request.fire_at;
        let fired = match self.shared.store.fire_schedule(request).await {
            Err(error) if !error.is_passing() => {
                self.tell(*id, schedule, &error);
                let job = random::job_id_at(*now);
                let later = match error {
                    StoreError::Full(_) => schedule.wait_for_room(job),
                    _ => schedule.put_off(job),
                };
                return self.shared.store.fire_schedule(later).await;
            }
            answer => answer?,
        };
        if let (Fired::Stored(job), Some(fire_at)) = (fired, fire_at) {
            self.told.remove(id);
            tracing::debug!(job.id = %job, schedule = %name, tenant = %tenant, %fire_at, "a schedule fired");
        }
        Ok(fired)
    }

    /// Once for each: it is looked at again and again, and nothing changes before somebody mends it.
    fn tell(&mut self, id: ScheduleId, schedule: &ScheduleRecord, error: &dyn std::error::Error) {
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        if self.told.insert(id) {
            let (tenant, name) = (&schedule.tenant, &schedule.name);
            tracing::error!(error = %error, schedule = %name, tenant = %tenant, "a schedule cannot fire: mend what the error says, or set it anew");
        }
    }
}
