//! Webhooks: endpoints, and how far the journal is told. What a change means is `tenure_store::webhook`'s to say.

use async_trait::async_trait;
use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::{EndpointId, JobId, LeaseNo, TenantName, Timestamp};
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{
    ChangeEndpoint, Cursor, DeliveryFilter, DeliveryRecord, DeliverySummary, ENDPOINTS_MAX, EndpointChange,
    EndpointFilter, EndpointRecord, EventSubject, NewEndpoint, OperateEndpoint, PutDeliveries, RecordTry,
    ResendDeliveries, beyond_endpoints_limit,
};
use tenure_store::{StoreError, WebhookStore};
use uuid::Uuid;

use crate::delivery;
use crate::fault::{Result, corrupt};
use crate::journal::{self, Entry};
use crate::lane::Urgency;
use crate::queue;
use crate::row::{optional_time, time, word};
use crate::show::sight_param;
use crate::store::SqliteStore;
use crate::tx::Tx;

const LIST_ENDPOINTS: &str = include_str!("sql/list_endpoints.sql");
const ADD_ENDPOINT: &str = include_str!("sql/add_endpoint.sql");
const SAVE_ENDPOINT: &str = include_str!("sql/save_endpoint.sql");
const REMOVE_ENDPOINT: &str = include_str!("sql/remove_endpoint.sql");
const REMOVE_DELIVERIES: &str = include_str!("sql/remove_deliveries.sql");
const COUNT_ENDPOINTS: &str = include_str!("sql/count_endpoints.sql");
const BEGIN_TO_TELL: &str = include_str!("sql/begin_to_tell.sql");
const FIND_CURSOR: &str = include_str!("sql/find_cursor.sql");

type Answer<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl WebhookStore for SqliteStore {
    async fn create_endpoint(&self, request: NewEndpoint) -> Answer<EndpointRecord> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| create_endpoint(tx, &request)).await
    }

    async fn list_endpoints(&self, filter: &EndpointFilter) -> Answer<Vec<EndpointRecord>> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| list(tx, &filter.sight, None, filter.after, filter.limit)).await
    }

    async fn show_endpoint(&self, sight: &Sight, endpoint: EndpointId) -> Answer<EndpointRecord> {
        let sight = sight.clone();
        self.read(move |tx| find(tx, &sight, endpoint)).await
    }

    async fn change_endpoint(&self, request: ChangeEndpoint) -> Answer<EndpointRecord> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| change_endpoint(tx, request)).await
    }

    async fn remove_endpoint(&self, request: OperateEndpoint) -> Answer<()> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| {
            let endpoint = find(tx, &request.sight, request.endpoint)?;
            tx.execute(REMOVE_DELIVERIES, named_params! { ":id": blob(&endpoint.id) })?;
            tx.execute(REMOVE_ENDPOINT, named_params! { ":id": blob(&endpoint.id) })?;
            note(tx, JournalEvent::EndpointRemoved, &endpoint, None, &request.word)
        })
        .await
    }

    async fn ping_endpoint(&self, request: OperateEndpoint) -> Answer<()> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| {
            let endpoint = find(tx, &request.sight, request.endpoint)?;
            endpoint.refuse_ping()?;
            note(tx, JournalEvent::EndpointPinged, &endpoint, None, &request.word)
        })
        .await
    }

    async fn find_cursor(&self) -> Answer<Cursor> {
        self.read(|tx| {
            let cursor = tx.one(FIND_CURSOR, &[], |row| Ok(Cursor { seal: row.get(0)?, after: row.get(1)? }))?;
            cursor.ok_or_else(|| corrupt("there is no webhook cursor"))
        })
        .await
    }

    async fn list_subjects(&self, asked: Vec<(JobId, Option<LeaseNo>)>) -> Answer<Vec<EventSubject>> {
        self.read(move |tx| delivery::subjects(tx, &asked)).await
    }

    async fn put_deliveries(&self, request: PutDeliveries) -> Answer<bool> {
        self.write(Urgency::Verb, move |tx| delivery::put(tx, &request)).await
    }

    async fn list_deliveries(&self, filter: &DeliveryFilter) -> Answer<Vec<DeliverySummary>> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| delivery::list(tx, &filter)).await
    }

    async fn show_delivery(&self, sight: &Sight, delivery: JobId) -> Answer<DeliveryRecord> {
        let sight = sight.clone();
        self.read(move |tx| Ok(delivery::show(tx, &sight, delivery)?.0)).await
    }

    async fn record_try(&self, request: RecordTry) -> Answer<bool> {
        self.write(Urgency::Verb, move |tx| delivery::record_try(tx, &request)).await
    }

    async fn resend_deliveries(&self, request: ResendDeliveries) -> Answer<u64> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| delivery::resend(tx, &request)).await
    }
}

fn create_endpoint(tx: &Tx<'_>, request: &NewEndpoint) -> Result<EndpointRecord> {
    request.id.check(tx.now)?;
    if let Some(known) = list(tx, &Sight::All, Some(request.id), None, 1)?.pop() {
        return match known.is_made_of(request) {
            true => Ok(known),
            false => Err(StoreError::Conflict(format!("endpoint {} is there already", request.id)).into()),
        };
    }
    // The default tenant is always there, also before its first job.
    let tenant = match request.tenant == TenantName::default() {
        true => Some(queue::ensure_tenant(tx, &request.tenant)?),
        false => queue::find_tenant(tx, &request.tenant)?,
    };
    let tenant = tenant.ok_or_else(|| StoreError::NotFound(format!("tenant {}", request.tenant)))?;
    let counts = tx.one(COUNT_ENDPOINTS, named_params! { ":tenant": tenant }, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (all, callbacks): (u32, u32) = counts.unwrap_or_default();
    if all >= ENDPOINTS_MAX {
        return Err(beyond_endpoints_limit(&request.tenant).into());
    }
    if request.url.is_none() && callbacks > 0 {
        let text = format!("tenant {} has an endpoint for callbacks: one signs them all", request.tenant);
        return Err(StoreError::Conflict(text).into());
    }
    tx.execute(BEGIN_TO_TELL, &[])?;
    tx.execute(
        ADD_ENDPOINT,
        named_params! {
            ":id": blob(&request.id),
            ":tenant": tenant,
            ":url": request.url,
            ":events": request.events.to_string(),
            ":prefix": request.prefix,
            ":secret": request.secret,
            ":now": tx.now.as_micros(),
        },
    )?;
    let record = find(tx, &Sight::All, request.id)?;
    note(tx, JournalEvent::EndpointSet, &record, None, &request.word)?;
    Ok(record)
}

fn change_endpoint(tx: &Tx<'_>, request: ChangeEndpoint) -> Result<EndpointRecord> {
    let before = find(tx, &request.sight, request.endpoint)?;
    let word = request.word.clone();
    let EndpointChange { after, events } = request.apply(&before, tx.now)?;
    if before.disabled.is_some() && after.disabled.is_none() {
        tx.execute(BEGIN_TO_TELL, &[])?;
    }
    save(tx, &after)?;
    for (event, why) in events {
        note(tx, event, &after, why.as_deref(), &word)?;
    }
    Ok(after)
}

fn list(
    tx: &Tx<'_>,
    sight: &Sight,
    one: Option<EndpointId>,
    after: Option<EndpointId>,
    limit: u32,
) -> Result<Vec<EndpointRecord>> {
    let params = named_params! {
        ":sight": sight_param(sight),
        ":id": one.as_ref().map(blob),
        ":after": after.as_ref().map(blob),
        ":limit": limit,
    };
    tx.all(LIST_ENDPOINTS, params, read)
}

pub(crate) fn find(tx: &Tx<'_>, sight: &Sight, endpoint: EndpointId) -> Result<EndpointRecord> {
    let found = list(tx, sight, Some(endpoint), None, 1)?.pop();
    found.ok_or_else(|| StoreError::NotFound(format!("endpoint {endpoint}")).into())
}

pub(crate) fn save(tx: &Tx<'_>, record: &EndpointRecord) -> Result<()> {
    let previous = record.previous.as_ref();
    let disabled = record.disabled.as_ref();
    tx.execute(
        SAVE_ENDPOINT,
        named_params! {
            ":id": blob(&record.id),
            ":url": record.url,
            ":events": record.events.to_string(),
            ":prefix": record.prefix,
            ":secret": record.secret,
            ":previous": previous.map(|(secret, _)| secret),
            ":previous_until": previous.map(|(_, until)| until.as_micros()),
            ":disabled_at": disabled.map(|(at, _)| at.as_micros()),
            ":disabled_why": disabled.map(|(_, why)| why),
            ":failing_since": record.failing_since.map(Timestamp::as_micros),
            ":listens_since": record.listens_since.as_micros(),
        },
    )?;
    Ok(())
}

pub(crate) fn note(
    tx: &Tx<'_>,
    event: JournalEvent,
    endpoint: &EndpointRecord,
    why: Option<&str>,
    word: &Word,
) -> Result<()> {
    let details = Some(endpoint.details(why));
    journal::add_json(tx, &Entry { details, ..Entry::said(event, word) }, "[]")
}

pub(crate) fn blob(endpoint: &EndpointId) -> &[u8] {
    endpoint.as_uuid().as_bytes()
}

pub(crate) fn endpoint_id(row: &Row<'_>, column: usize) -> Result<EndpointId> {
    Ok(EndpointId::from_uuid(Uuid::from_bytes(row.get(column)?)))
}

fn read(row: &Row<'_>) -> Result<EndpointRecord> {
    Ok(EndpointRecord {
        id: endpoint_id(row, 0)?,
        tenant: word(row, 1)?,
        url: row.get(2)?,
        events: word(row, 3)?,
        prefix: row.get(4)?,
        secret: row.get(5)?,
        previous: row.get::<_, Option<Vec<u8>>>(6)?.zip(optional_time(row, 7)?),
        created_at: time(row, 8)?,
        disabled: optional_time(row, 9)?.zip(row.get(10)?),
        failing_since: optional_time(row, 11)?,
        listens_since: time(row, 12)?,
    })
}
