//! The verbs of webhooks.

use async_trait::async_trait;
use tenure_core::{EndpointId, JobId, LeaseNo};

use crate::error::StoreError;
use crate::record::Sight;
use crate::webhook::{
    ChangeEndpoint, Cursor, DeliveryFilter, DeliveryRecord, DeliverySummary, EndpointFilter, EndpointRecord,
    EventSubject, NewEndpoint, OperateEndpoint, PutDeliveries, RecordTry, ResendDeliveries,
};

/// Webhooks: who is told what, and what came of it.
#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Makes an endpoint. `NotFound` when there is no such tenant; `Conflict` when it has too many, a second one for
    /// callbacks, or the id is taken.
    async fn create_endpoint(&self, request: NewEndpoint) -> Result<EndpointRecord, StoreError>;

    /// Endpoints that match.
    async fn list_endpoints(&self, filter: &EndpointFilter) -> Result<Vec<EndpointRecord>, StoreError>;

    /// One endpoint. `NotFound` for an unknown id and for one out of sight alike.
    async fn show_endpoint(&self, sight: &Sight, endpoint: EndpointId) -> Result<EndpointRecord, StoreError>;

    /// Changes an endpoint. What was not delivered while it was disabled is not made up for.
    async fn change_endpoint(&self, request: ChangeEndpoint) -> Result<EndpointRecord, StoreError>;

    /// Removes an endpoint and its deliveries; those under way are given up.
    async fn remove_endpoint(&self, request: OperateEndpoint) -> Result<(), StoreError>;

    /// Writes down that somebody wants to see whether an endpoint hears: what is written is delivered, as ever.
    async fn ping_endpoint(&self, request: OperateEndpoint) -> Result<(), StoreError>;

    /// How far the journal is told.
    async fn find_cursor(&self) -> Result<Cursor, StoreError>;

    /// Whom these events of jobs concern, each under the lease given. Left out: jobs that are gone, and those of tenants
    /// without an endpoint, but for the jobs that deliver.
    async fn list_subjects(&self, asked: Vec<(JobId, Option<LeaseNo>)>) -> Result<Vec<EventSubject>, StoreError>;

    /// Moves the cursor and stores deliveries with their jobs; `false`: it stood elsewhere, and nothing happened.
    async fn put_deliveries(&self, request: PutDeliveries) -> Result<bool, StoreError>;

    /// Deliveries that match, newest first.
    async fn list_deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliverySummary>, StoreError>;

    /// One delivery. `NotFound` for an unknown id and for one out of sight alike.
    async fn show_delivery(&self, sight: &Sight, delivery: JobId) -> Result<DeliveryRecord, StoreError>;

    /// Writes a try down; answers whether the endpoint was disabled by it. `NotFound` when the endpoint was removed.
    async fn record_try(&self, request: RecordTry) -> Result<bool, StoreError>;

    /// Sends deliveries again; answers how many. Those out of sight are left out; `Conflict` when an endpoint is disabled.
    async fn resend_deliveries(&self, request: ResendDeliveries) -> Result<u64, StoreError>;
}
