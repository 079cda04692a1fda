//! Schedules are set by operators near the store; workers look and fire over the network.

use async_trait::async_trait;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_store::schedule::{
    DueSchedules, FireRecord, FireResult, FireSchedule, Fired, PauseSchedule, RemoveSchedule, ScheduleFilter,
    ScheduleRecord, ScheduleSet, SetSchedule,
};
use tenure_store::{ScheduleStore, StoreError};

use crate::sim::net::{Twice, Verb, Wire};
use crate::sim::world::World;

#[async_trait]
impl ScheduleStore for Wire {
    async fn set_schedule(&self, request: SetSchedule) -> Result<ScheduleSet, StoreError> {
        self.store.set_schedule(request).await
    }

    async fn remove_schedule(&self, request: RemoveSchedule) -> Result<(), StoreError> {
        self.store.remove_schedule(request).await
    }

    async fn pause_schedule(&self, request: PauseSchedule) -> Result<(), StoreError> {
        self.store.pause_schedule(request).await
    }

    async fn list_schedules(&self, filter: &ScheduleFilter) -> Result<Vec<ScheduleRecord>, StoreError> {
        self.store.list_schedules(filter).await
    }

    async fn show_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<(ScheduleRecord, Vec<FireRecord>), StoreError> {
        self.store.show_schedule(tenant, name).await
    }

    async fn due_schedules(&self, limit: u32) -> Result<DueSchedules, StoreError> {
        let tell = |_: &World, found: &DueSchedules| format!("{} due", found.due.len());
        self.send(Verb("due_schedules", Twice::AtOnce), String::new(), tell, move |site| {
            Box::pin(async move { site.store.due_schedules(limit).await })
        })
        .await
    }

    async fn fire_schedules(&self, requests: Vec<FireSchedule>) -> Result<Vec<FireResult>, StoreError> {
        let said = requests.iter().map(|request| match request.fire_at {
            Some(at) => format!("for {at}"),
            None => "nothing".to_owned(),
        });
        let said = said.collect::<Vec<_>>().join(", ");
        let tell = |_: &World, answers: &Vec<FireResult>| {
            let words = answers.iter().map(|answer| match answer {
                Ok(Fired::Stored(_)) => "stored",
                Ok(Fired::Passed) => "passed",
                Ok(Fired::Lost) => "lost",
                Err(_) => "refused",
            });
            words.collect::<Vec<_>>().join(", ")
        };
        self.send(Verb("fire", Twice::Later), said, tell, move |site| {
            let requests = requests.clone();
            Box::pin(async move {
                let fire_ats: Vec<_> = requests.iter().map(|request| request.fire_at).collect();
                let answers = site.store.fire_schedules(requests).await?;
                for (answer, fire_at) in answers.iter().zip(fire_ats) {
                    match (answer, fire_at) {
                        (Ok(Fired::Stored(job)), Some(fire_at)) => {
                            site.world.ledger.fired(fire_at, *job);
                            site.world.count("fired");
                        }
                        (Ok(Fired::Lost), _) => site.world.count("fire_lost"),
                        _ => {}
                    }
                }
                Ok(answers)
            })
        })
        .await
    }
}
