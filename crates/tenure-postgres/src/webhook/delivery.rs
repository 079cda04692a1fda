//! Deliveries: stored with their jobs in one transaction, listed, tried, sent again.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use tenure_core::journal::JournalEvent;
use tenure_core::name::TenantName;
use tenure_core::webhook::DELIVERY_KIND;
use tenure_core::{EndpointId, JobId, Json, LeaseNo, NewJob};
use tenure_store::StoreError;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{
    DeliveryFilter, DeliveryRecord, DeliveryState, DeliverySummary, EventSubject, NewDelivery, PutDeliveries,
    RecordTry, ResendDeliveries, TRIES_MAX, Tried, VALUE_BYTES_MAX, delivery_job,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::{Failed, Param};
use crate::enqueue::Columns;
use crate::jobs::attempt;
use crate::pool::Desk;
use crate::statement;
use crate::store::PgStore;
use crate::value::{Moment, get, job_id, named, time, time_maybe};

impl PgStore {
    pub(super) async fn subjects(&self, asked: Vec<(JobId, Option<LeaseNo>)>) -> Result<Vec<EventSubject>, StoreError> {
        let (jobs, leases): (Vec<Uuid>, Vec<Option<i64>>) =
            asked.iter().map(|(job, lease)| (*job.as_uuid(), lease.map(|lease| lease.0))).unzip();
        let most = i32::try_from(VALUE_BYTES_MAX).unwrap_or(i32::MAX);
        let params: [Param<'_>; 4] =
            [(&jobs, Type::UUID_ARRAY), (&leases, Type::INT8_ARRAY), (&DELIVERY_KIND, Type::TEXT), (&most, Type::INT4)];
        let rows = self.call(Desk::Long, statement::LIST_SUBJECTS, &params).await?;
        rows.iter().map(subject).collect()
    }

    pub(super) async fn put(&self, tx: &Transaction<'_>, request: &PutDeliveries) -> Result<bool, Failed> {
        let sql = "update tenure.webhook_cursor set seal = $3, after = $4 where seal = $1 and after = $2";
        let (from, to) = (request.from, request.to);
        let params: [Param<'_>; 4] =
            [(&from.seal, Type::INT8), (&from.after, Type::INT8), (&to.seal, Type::INT8), (&to.after, Type::INT8)];
        if tx.execute_typed(sql, &params).await? == 0 {
            return Ok(false);
        }
        let deliveries: Vec<(&NewDelivery, Option<JobId>)> = request.deliveries.iter().map(|new| (new, None)).collect();
        self.add(tx, &deliveries).await?;
        let failed: Vec<Uuid> = request.failed.iter().map(|job| *job.as_uuid()).collect();
        let at = Moment(self.time(tx).await?);
        let sql = "update tenure.webhook_delivery set state = 2, finished_at = $2 where job = any ($1) and state = 0";
        tx.execute_typed(sql, &[(&failed, Type::UUID_ARRAY), (&at, Type::TIMESTAMPTZ)]).await?;
        Ok(true)
    }

    /// Stores deliveries and the jobs that send them; answers how many are new.
    async fn add(&self, tx: &Transaction<'_>, new: &[(&NewDelivery, Option<JobId>)]) -> Result<usize, Failed> {
        if new.is_empty() {
            return Ok(0);
        }
        let uuids = |of: fn(&NewDelivery) -> Uuid| new.iter().map(|(new, _)| of(new)).collect::<Vec<Uuid>>();
        let texts = |of: fn(&NewDelivery) -> &str| new.iter().map(|(new, _)| of(new)).collect::<Vec<&str>>();
        let (jobs, endpoints) = (uuids(|new| *new.job.as_uuid()), uuids(|new| *new.endpoint.as_uuid()));
        let journal: Vec<i64> = new.iter().map(|(new, _)| new.journal).collect();
        let (subjects, bodies) = (texts(|new| &new.subject), texts(|new| &new.body));
        let (ids, types) = (texts(|new| &new.event_id), texts(|new| &new.event_type));
        let callbacks: Vec<Option<&str>> = new.iter().map(|(new, _)| new.callback_url.as_deref()).collect();
        let repeated: Vec<Option<Uuid>> = new.iter().map(|(_, old)| old.map(|old| *old.as_uuid())).collect();
        let at = Moment(self.time(tx).await?);
        let params: [Param<'_>; 10] = [
            (&jobs, Type::UUID_ARRAY),
            (&endpoints, Type::UUID_ARRAY),
            (&journal, Type::INT8_ARRAY),
            (&subjects, Type::TEXT_ARRAY),
            (&ids, Type::TEXT_ARRAY),
            (&types, Type::TEXT_ARRAY),
            (&callbacks, Type::TEXT_ARRAY),
            (&bodies, Type::TEXT_ARRAY),
            (&repeated, Type::UUID_ARRAY),
            (&at, Type::TIMESTAMPTZ),
        ];
        let rows = tx.query_typed(statement::ADD_DELIVERIES.sql, &params).await?;
        let traces: HashMap<JobId, &str> =
            new.iter().filter_map(|(new, _)| Some((new.job, new.trace.as_deref()?))).collect();
        let jobs: Vec<NewJob> = rows.iter().map(|row| job_of(row, &traces)).collect::<Result<_, _>>()?;
        if jobs.is_empty() {
            return Ok(0);
        }
        let columns = Columns::new(&jobs, self.moment())?;
        tx.query_typed(statement::ENQUEUE_JOBS.sql, &columns.params()).await?;
        tx.query_typed(statement::WAKE_IDLE.sql, &[(&columns.queue_names(), Type::TEXT_ARRAY)]).await?;
        Ok(jobs.len())
    }

    pub(super) async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliverySummary>, StoreError> {
        let (tenant, limit) = (filter.sight.tenant().map(TenantName::as_str), i64::from(filter.limit));
        let endpoint = filter.endpoint.map(|endpoint| *endpoint.as_uuid());
        let (state, (from, before)) = (filter.state.map(code), filter.ids());
        let (since, until) = (filter.since.map(Moment), filter.until.map(Moment));
        let common: [Param<'_>; 6] = [
            (&state, Type::INT2),
            (&since, Type::TIMESTAMPTZ),
            (&until, Type::TIMESTAMPTZ),
            (from.as_uuid(), Type::UUID),
            (before.as_uuid(), Type::UUID),
            (&limit, Type::INT8),
        ];
        let (statement, params) = match (&endpoint, &tenant) {
            (Some(endpoint), _) => {
                let params = [&[(endpoint as _, Type::UUID)], &common[..], &[(&tenant as _, Type::TEXT)]].concat();
                (statement::LIST_DELIVERIES_OF_ENDPOINT, params)
            }
            (None, Some(tenant)) => {
                (statement::LIST_DELIVERIES_OF_TENANT, [&[(tenant as _, Type::TEXT)], &common[..]].concat())
            }
            (None, None) => (statement::LIST_DELIVERIES, common.to_vec()),
        };
        let rows = self.call_within(tenant, Desk::Long, statement, &params).await?;
        rows.iter().map(summary).collect()
    }

    pub(super) async fn delivery(&self, sight: &Sight, job: JobId) -> Result<DeliveryRecord, StoreError> {
        let (jobs, tenant) = (vec![*job.as_uuid()], sight.tenant().map(TenantName::as_str));
        let params: [Param<'_>; 2] = [(&jobs, Type::UUID_ARRAY), (&tenant, Type::TEXT)];
        let rows = self.call_within(tenant, Desk::Short, statement::SHOW_DELIVERIES, &params).await?;
        let row = rows.first().ok_or_else(|| unknown(job))?;
        let tries = Json::from_store(get::<String>(row, "tries")?);
        Ok(DeliveryRecord { summary: summary(row)?, body: get(row, "body")?, tries })
    }

    pub(super) async fn record(&self, tx: &Transaction<'_>, request: &RecordTry) -> Result<bool, Failed> {
        let now = self.time(tx).await?;
        let (state, finished) =
            (code(request.tried.leads_to()), (request.tried != Tried::Again).then_some(Moment(now)));
        let (entry, most) = (request.entry.as_str(), i32::try_from(TRIES_MAX).unwrap_or(i32::MAX));
        // The endpoint first, as everybody does who holds both.
        let sql = "select endpoint from tenure.webhook_delivery where job = $1";
        let rows = tx.query_typed(sql, &[(request.job.as_uuid(), Type::UUID)]).await?;
        let row = rows.first().ok_or_else(|| unknown(request.job))?;
        let id = EndpointId::from_uuid(get(row, "endpoint")?);
        let before = self.hold_endpoint(tx, &Sight::All, id).await?;
        let sql = "update tenure.webhook_delivery
            set state = case when state = 1 then 1 else $2 end, finished_at = case when state = 1 then finished_at else $3 end,
                tries = case when jsonb_array_length(tries) < $5 then tries || jsonb_build_array($4::text::jsonb) else tries end
            where job = $1 returning state";
        let params: [Param<'_>; 5] = [
            (request.job.as_uuid(), Type::UUID),
            (&state, Type::INT2),
            (&finished, Type::TIMESTAMPTZ),
            (&entry, Type::TEXT),
            (&most, Type::INT4),
        ];
        let rows = tx.query_typed(sql, &params).await?;
        let row = rows.first().ok_or_else(|| unknown(request.job))?;
        if get::<i16>(row, "state")? != state {
            // It had arrived before: whoever says otherwise is late.
            return Ok(false);
        }
        let mut after = before.clone();
        let why = request.apply(&mut after, now);
        if after != before {
            self.save_endpoint(tx, &after).await?;
        }
        if let Some(why) = &why {
            let word = Word::default();
            self.note_endpoint(tx, JournalEvent::EndpointDisabled, &after, Some(why), &word).await?;
        }
        Ok(why.is_some())
    }

    pub(super) async fn resend(&self, tx: &Transaction<'_>, request: &ResendDeliveries) -> Result<u64, Failed> {
        let asked: Vec<Uuid> = request.deliveries.iter().map(|(old, _)| *old.as_uuid()).collect();
        let tenant = request.sight.tenant().map(TenantName::as_str);
        let params: [Param<'_>; 2] = [(&asked, Type::UUID_ARRAY), (&tenant, Type::TEXT)];
        let rows = tx.query_typed(&self.text(statement::SHOW_DELIVERIES), &params).await?;
        let mut again = Vec::with_capacity(rows.len());
        for row in &rows {
            let old = summary(row)?;
            let Some((_, job)) = request.deliveries.iter().find(|(asked, _)| *asked == old.job) else { continue };
            let (journal, body) = (get(row, "journal")?, get(row, "body")?);
            let DeliverySummary { endpoint, subject, event_id, event_type, callback_url, .. } = old;
            let trace = None;
            let new =
                NewDelivery { job: *job, endpoint, journal, subject, event_id, event_type, callback_url, trace, body };
            again.push((new, Some(old.job)));
        }
        let mut endpoints: Vec<EndpointId> = again.iter().map(|(new, _)| new.endpoint).collect();
        endpoints.sort_unstable();
        endpoints.dedup();
        let mut first = None;
        for endpoint in endpoints {
            let endpoint = self.hold_endpoint(tx, &request.sight, endpoint).await?;
            endpoint.refuse_disabled()?;
            first.get_or_insert(endpoint);
        }
        let new: Vec<(&NewDelivery, Option<JobId>)> = again.iter().map(|(new, old)| (new, *old)).collect();
        if self.add(tx, &new).await? > 0
            && let Some(endpoint) = first
        {
            self.note_endpoint(tx, JournalEvent::DeliveriesResent, &endpoint, None, &request.word).await?;
        }
        Ok(again.len() as u64)
    }
}

fn unknown(delivery: JobId) -> StoreError {
    StoreError::NotFound(format!("delivery {delivery}"))
}

const fn code(state: DeliveryState) -> i16 {
    match state {
        DeliveryState::Pending => 0,
        DeliveryState::Delivered => 1,
        DeliveryState::Failed => 2,
    }
}

fn job_of(row: &Row, traces: &HashMap<JobId, &str>) -> Result<NewJob, StoreError> {
    let job = job_id(row, "job")?;
    let trace = traces.get(&job).map(|trace| (*trace).to_owned());
    let endpoint = EndpointId::from_uuid(get(row, "endpoint")?);
    Ok(delivery_job(job, endpoint, named(row, "tenant")?, trace)?)
}

fn subject(row: &Row) -> Result<EventSubject, StoreError> {
    let ended = get::<Option<i64>>(row, "lease")?.is_some();
    let mut omitted = Vec::new();
    for (name, column) in [("error", "error_omitted"), ("result", "result_omitted"), ("usage", "usage_omitted")] {
        omitted.extend(get::<bool>(row, column)?.then_some(name));
    }
    Ok(EventSubject {
        job: job_id(row, "job")?,
        lease: get::<Option<i64>>(row, "asked")?.map(LeaseNo),
        tenant: named(row, "tenant")?,
        queue: named(row, "queue")?,
        kind: named(row, "kind")?,
        callback_url: get(row, "callback_url")?,
        trace: get(row, "trace")?,
        attempt: ended.then(|| attempt(row)).transpose()?,
        omitted,
    })
}

fn summary(row: &Row) -> Result<DeliverySummary, StoreError> {
    let state: i16 = get(row, "state")?;
    let known = DeliveryState::ALL.into_iter().find(|known| code(*known) == state);
    Ok(DeliverySummary {
        job: job_id(row, "job")?,
        endpoint: EndpointId::from_uuid(get(row, "endpoint")?),
        tenant: named(row, "tenant")?,
        event_id: get(row, "event_id")?,
        event_type: get(row, "event_type")?,
        subject: get(row, "subject")?,
        callback_url: get(row, "callback_url")?,
        state: known.ok_or_else(|| StoreError::Corrupt(format!("webhook_delivery.state is {state}")))?,
        created_at: time(row, "created_at")?,
        finished_at: time_maybe(row, "finished_at")?,
        resend_of: get::<Option<Uuid>>(row, "resend_of")?.map(JobId::from_uuid),
        tries: u32::try_from(get::<i32>(row, "tried")?).unwrap_or(0),
    })
}
