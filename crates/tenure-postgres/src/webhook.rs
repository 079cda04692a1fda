//! Webhooks: endpoints, and how far the journal is told. What a change means is `tenure_store::webhook`'s to say.

mod delivery;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use tenure_core::journal::JournalEvent;
use tenure_core::name::TenantName;
use tenure_core::{EndpointId, Invalid, JobId, LeaseNo};
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{
    ChangeEndpoint, Cursor, DeliveryFilter, DeliveryRecord, DeliverySummary, ENDPOINTS_MAX, EndpointChange,
    EndpointFilter, EndpointRecord, EventSubject, NewEndpoint, OperateEndpoint, PutDeliveries, RecordTry,
    ResendDeliveries, beyond_endpoints_limit,
};
use tenure_store::{AdminStore, StoreError, WebhookStore};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::{Failed, Param, transact};
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, named, time, time_maybe};
use crate::wall::Seen;

const FIND_CURSOR: Statement = Statement { name: "find_cursor", sql: "select seal, after from tenure.webhook_cursor" };

#[async_trait]
impl WebhookStore for PgStore {
    async fn create_endpoint(&self, request: NewEndpoint) -> Result<EndpointRecord, StoreError> {
        request.check()?;
        request.id.check(self.now().await?)?;
        transact!(self, |tx| self.create_one(&tx, &request).await)
    }

    async fn list_endpoints(&self, filter: &EndpointFilter) -> Result<Vec<EndpointRecord>, StoreError> {
        filter.check()?;
        self.endpoints(&filter.sight, None, filter.after, filter.limit).await
    }

    async fn show_endpoint(&self, sight: &Sight, endpoint: EndpointId) -> Result<EndpointRecord, StoreError> {
        let found = self.endpoints(sight, Some(endpoint), None, 1).await?;
        found.into_iter().next().ok_or_else(|| unknown(endpoint))
    }

    async fn change_endpoint(&self, request: ChangeEndpoint) -> Result<EndpointRecord, StoreError> {
        request.check()?;
        transact!(self, |tx| {
            let before = self.hold_endpoint(&tx, &request.sight, request.endpoint).await?;
            let EndpointChange { after, events } = request.clone().apply(&before, self.time(&tx).await?)?;
            if before.disabled.is_some() && after.disabled.is_none() {
                begin_to_tell(&tx).await?;
            }
            self.save_endpoint(&tx, &after).await?;
            for (event, why) in events {
                self.note_endpoint(&tx, event, &after, why.as_deref(), &request.word).await?;
            }
            Ok::<_, Failed>(after)
        })
    }

    async fn remove_endpoint(&self, request: OperateEndpoint) -> Result<(), StoreError> {
        request.word.check()?;
        transact!(self, |tx| {
            let endpoint = self.hold_endpoint(&tx, &request.sight, request.endpoint).await?;
            let sql = "delete from tenure.webhook_endpoint where id = $1";
            tx.execute_typed(sql, &[(endpoint.id.as_uuid(), Type::UUID)]).await?;
            self.note_endpoint(&tx, JournalEvent::EndpointRemoved, &endpoint, None, &request.word).await
        })
    }

    async fn ping_endpoint(&self, request: OperateEndpoint) -> Result<(), StoreError> {
        request.word.check()?;
        transact!(self, |tx| {
            let endpoint = self.hold_endpoint(&tx, &request.sight, request.endpoint).await?;
            endpoint.refuse_ping()?;
            self.note_endpoint(&tx, JournalEvent::EndpointPinged, &endpoint, None, &request.word).await
        })
    }

    async fn find_cursor(&self) -> Result<Cursor, StoreError> {
        let rows = self.call(Desk::Long, FIND_CURSOR, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("there is no webhook cursor".into()))?;
        Ok(Cursor { seal: get(row, "seal")?, after: get(row, "after")? })
    }

    async fn list_subjects(&self, asked: Vec<(JobId, Option<LeaseNo>)>) -> Result<Vec<EventSubject>, StoreError> {
        self.subjects(asked).await
    }

    async fn put_deliveries(&self, request: PutDeliveries) -> Result<bool, StoreError> {
        transact!(self, |tx| self.put(&tx, &request).await)
    }

    async fn list_deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliverySummary>, StoreError> {
        filter.check()?;
        self.deliveries(filter).await
    }

    async fn show_delivery(&self, sight: &Sight, delivery: JobId) -> Result<DeliveryRecord, StoreError> {
        self.delivery(sight, delivery).await
    }

    async fn record_try(&self, request: RecordTry) -> Result<bool, StoreError> {
        transact!(self, |tx| self.record(&tx, &request).await)
    }

    async fn resend_deliveries(&self, request: ResendDeliveries) -> Result<u64, StoreError> {
        request.check()?;
        transact!(self, |tx| self.resend(&tx, &request).await)
    }
}

impl PgStore {
    async fn create_one(&self, tx: &Transaction<'_>, request: &NewEndpoint) -> Result<EndpointRecord, Failed> {
        let tenant = request.tenant.as_str();
        // Whoever makes endpoints of one tenant takes turns: they are counted.
        let sql = "select id from tenure.tenant where name = $1 for no key update";
        if tx.query_typed(sql, &[(&tenant, Type::TEXT)]).await?.is_empty() {
            return Err(StoreError::NotFound(format!("tenant {tenant}")).into());
        }
        match self.hold_endpoint(tx, &Sight::All, request.id).await {
            Ok(known) if known.is_made_of(request) => return Ok(known),
            Ok(_) => return Err(StoreError::Conflict(format!("endpoint {} is there already", request.id)).into()),
            Err(Failed::Other(StoreError::NotFound(_))) => {}
            Err(error) => return Err(error),
        }
        let sql = "select count(*) as count, count(*) filter (where e.url is null) as callbacks
            from tenure.webhook_endpoint e join tenure.tenant t on t.id = e.tenant where t.name = $1";
        let row = tx.query_typed_one(sql, &[(&tenant, Type::TEXT)]).await?;
        if get::<i64>(&row, "count")? >= i64::from(ENDPOINTS_MAX) {
            return Err(beyond_endpoints_limit(&request.tenant).into());
        }
        if request.url.is_none() && get::<i64>(&row, "callbacks")? > 0 {
            let text = format!("tenant {tenant} has an endpoint for callbacks: one signs them all");
            return Err(StoreError::Conflict(text).into());
        }
        begin_to_tell(tx).await?;
        let sql =
            "insert into tenure.webhook_endpoint (id, tenant, url, events, prefix, secret, created_at, listens_since)
            values ($1, (select id from tenure.tenant where name = $2), $3, $4, $5, $6, $7, $7)";
        let (events, at) = (request.events.to_string(), Moment(self.time(tx).await?));
        let params: [Param<'_>; 7] = [
            (request.id.as_uuid(), Type::UUID),
            (&tenant, Type::TEXT),
            (&request.url, Type::TEXT),
            (&events, Type::TEXT),
            (&request.prefix, Type::TEXT),
            (&request.secret, Type::BYTEA),
            (&at, Type::TIMESTAMPTZ),
        ];
        tx.execute_typed(sql, &params).await?;
        let record = self.hold_endpoint(tx, &Sight::All, request.id).await?;
        self.note_endpoint(tx, JournalEvent::EndpointSet, &record, None, &request.word).await?;
        Ok(record)
    }

    async fn endpoints(
        &self,
        sight: &Sight,
        one: Option<EndpointId>,
        after: Option<EndpointId>,
        limit: u32,
    ) -> Result<Vec<EndpointRecord>, StoreError> {
        let (tenant, limit) = (sight.tenant().map(TenantName::as_str), i64::from(limit));
        let (one, after) = (one.map(|id| *id.as_uuid()), after.map(|id| *id.as_uuid()));
        let params: [Param<'_>; 4] =
            [(&tenant, Type::TEXT), (&one, Type::UUID), (&after, Type::UUID), (&limit, Type::INT8)];
        let rows = self.call_within(tenant, Desk::Short, statement::LIST_ENDPOINTS, &params).await?;
        rows.iter().map(endpoint).collect()
    }

    async fn hold_endpoint(
        &self,
        tx: &Transaction<'_>,
        sight: &Sight,
        id: EndpointId,
    ) -> Result<EndpointRecord, Failed> {
        let tenant = sight.tenant().map(TenantName::as_str);
        self.see(tx.client(), tenant, Seen::Endpoint(id.as_uuid())).await?;
        let params: [Param<'_>; 2] = [(id.as_uuid(), Type::UUID), (&tenant, Type::TEXT)];
        let rows = tx.query_typed(&self.text(statement::HOLD_ENDPOINT), &params).await?;
        Ok(endpoint(rows.first().ok_or_else(|| unknown(id))?)?)
    }

    async fn save_endpoint(&self, tx: &Transaction<'_>, record: &EndpointRecord) -> Result<(), Failed> {
        let events = record.events.to_string();
        let (previous, until) = record.previous.as_ref().map(|(secret, until)| (secret, Moment(*until))).unzip();
        let (at, why) = record.disabled.as_ref().map(|(at, why)| (Moment(*at), why)).unzip();
        let failing = record.failing_since.map(Moment);
        let listens = Moment(record.listens_since);
        let params: [Param<'_>; 11] = [
            (record.id.as_uuid(), Type::UUID),
            (&record.url, Type::TEXT),
            (&events, Type::TEXT),
            (&record.prefix, Type::TEXT),
            (&record.secret, Type::BYTEA),
            (&previous, Type::BYTEA),
            (&until, Type::TIMESTAMPTZ),
            (&at, Type::TIMESTAMPTZ),
            (&why, Type::TEXT),
            (&failing, Type::TIMESTAMPTZ),
            (&listens, Type::TIMESTAMPTZ),
        ];
        tx.execute_typed(statement::SAVE_ENDPOINT.sql, &params).await?;
        Ok(())
    }

    async fn note_endpoint(
        &self,
        tx: &Transaction<'_>,
        event: JournalEvent,
        endpoint: &EndpointRecord,
        why: Option<&str>,
        word: &Word,
    ) -> Result<(), Failed> {
        let (details, at) = (endpoint.details(why), Moment(self.time(tx).await?));
        let code = event.code();
        let params: [Param<'_>; 5] = [
            (&code, Type::INT2),
            (&details, Type::TEXT),
            (&word.actor, Type::TEXT),
            (&word.reason, Type::TEXT),
            (&at, Type::TIMESTAMPTZ),
        ];
        tx.query_typed("select tenure.note_access($1, $2::text::jsonb, $3, $4, $5)", &params).await?;
        Ok(())
    }
}

async fn begin_to_tell(tx: &Transaction<'_>) -> Result<(), Failed> {
    tx.query_typed("select tenure.begin_to_tell()", &[]).await?;
    Ok(())
}

fn unknown(endpoint: EndpointId) -> StoreError {
    StoreError::NotFound(format!("endpoint {endpoint}"))
}

fn endpoint(row: &Row) -> Result<EndpointRecord, StoreError> {
    let corrupt = |refused: Invalid| StoreError::Corrupt(refused.to_string());
    let (previous, until): (Option<Vec<u8>>, _) = (get(row, "previous")?, time_maybe(row, "previous_until")?);
    let (at, why): (_, Option<String>) = (time_maybe(row, "disabled_at")?, get(row, "disabled_why")?);
    Ok(EndpointRecord {
        id: EndpointId::from_uuid(get(row, "id")?),
        tenant: named(row, "tenant")?,
        url: get(row, "url")?,
        events: get::<&str>(row, "events")?.parse().map_err(corrupt)?,
        prefix: get(row, "prefix")?,
        secret: get(row, "secret")?,
        previous: previous.zip(until),
        created_at: time(row, "created_at")?,
        listens_since: time(row, "listens_since")?,
        disabled: at.zip(why),
        failing_since: time_maybe(row, "failing_since")?,
    })
}
