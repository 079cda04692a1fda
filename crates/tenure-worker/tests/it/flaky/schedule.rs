//! Schedules: only a fire can fail.

use async_trait::async_trait;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_store::schedule::{
    DueSchedules, FireRecord, FireResult, FireSchedule, PauseSchedule, RemoveSchedule, ScheduleFilter, ScheduleRecord,
    ScheduleSet, SetSchedule,
};
use tenure_store::{ScheduleStore, StoreError};

use super::{Flaky, Verb};

#[async_trait]
impl ScheduleStore for Flaky {
    async fn set_schedule(&self, request: SetSchedule) -> Result<ScheduleSet, StoreError> {
        self.inner.set_schedule(request).await
    }

    async fn remove_schedule(&self, request: RemoveSchedule) -> Result<(), StoreError> {
        self.inner.remove_schedule(request).await
    }

    async fn pause_schedule(&self, request: PauseSchedule) -> Result<(), StoreError> {
        self.inner.pause_schedule(request).await
    }

    async fn list_schedules(&self, filter: &ScheduleFilter) -> Result<Vec<ScheduleRecord>, StoreError> {
        self.inner.list_schedules(filter).await
    }

    async fn show_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<(ScheduleRecord, Vec<FireRecord>), StoreError> {
        self.inner.show_schedule(tenant, name).await
    }

    async fn due_schedules(&self, limit: u32) -> Result<DueSchedules, StoreError> {
        self.inner.due_schedules(limit).await
    }

    async fn fire_schedules(&self, requests: Vec<FireSchedule>) -> Result<Vec<FireResult>, StoreError> {
        let batch = requests.iter().map(|request| request.schedule).collect();
        self.plan.lock().unwrap().fires.push(batch);
        self.through(Verb::Fire, self.inner.fire_schedules(requests)).await
    }
}
