//! Deliveries: stored with their jobs, listed, tried, sent again.

use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::webhook::DELIVERY_KIND;
use tenure_core::{JobId, Json, LeaseNo, TenantName, Timestamp};
use tenure_store::StoreError;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{
    DeliveryFilter, DeliveryRecord, DeliveryState, DeliverySummary, EventSubject, NewDelivery, PutDeliveries,
    RecordTry, ResendDeliveries, TRIES_MAX, Tried, delivery_job,
};

use crate::enqueue;
use crate::fault::{Result, corrupt};
use crate::row::{self, job_id, optional_time, text, time, word};
use crate::show::{attempt_under, sight_param};
use crate::tx::Tx;
use crate::webhook::{blob, endpoint_id, find, note, save};

const MOVE_CURSOR: &str = include_str!("sql/move_cursor.sql");
const FIND_SUBJECT: &str = include_str!("sql/find_subject.sql");
const ADD_DELIVERY: &str = include_str!("sql/add_delivery.sql");
const FAIL_DELIVERY: &str = include_str!("sql/fail_delivery.sql");
const LIST_DELIVERIES: &str = include_str!("sql/list_deliveries.sql");
const LIST_DELIVERIES_OF_TENANT: &str = include_str!("sql/list_deliveries_of_tenant.sql");
const LIST_DELIVERIES_OF_ENDPOINT: &str = include_str!("sql/list_deliveries_of_endpoint.sql");
const SHOW_DELIVERY: &str = include_str!("sql/show_delivery.sql");
const RECORD_TRY: &str = include_str!("sql/record_try.sql");

pub(crate) fn subjects(tx: &Tx<'_>, asked: &[(JobId, Option<LeaseNo>)]) -> Result<Vec<EventSubject>> {
    let mut found = Vec::new();
    for (job, lease) in asked {
        let params = named_params! { ":job": row::blob(job), ":delivery_kind": DELIVERY_KIND };
        let subject = tx.one(FIND_SUBJECT, params, |row| {
            let (tenant, queue, kind) = (word(row, 0)?, word(row, 1)?, word(row, 2)?);
            let (callback_url, trace) = (row.get(3)?, row.get(4)?);
            Ok(EventSubject {
                job: *job,
                lease: *lease,
                tenant,
                queue,
                kind,
                callback_url,
                trace,
                attempt: None,
                omitted: Vec::new(),
            })
        })?;
        if let Some(mut subject) = subject {
            subject.attempt = lease.map_or(Ok(None), |lease| attempt_under(tx, *job, lease))?;
            found.push(subject.shortened());
        }
    }
    Ok(found)
}

pub(crate) fn put(tx: &Tx<'_>, request: &PutDeliveries) -> Result<bool> {
    let params = named_params! {
        ":seal": request.from.seal,
        ":after": request.from.after,
        ":to_seal": request.to.seal,
        ":to_after": request.to.after,
    };
    if tx.execute(MOVE_CURSOR, params)? == 0 {
        return Ok(false);
    }
    for new in &request.deliveries {
        add(tx, new, None)?;
    }
    for job in &request.failed {
        tx.execute(FAIL_DELIVERY, named_params! { ":job": row::blob(job), ":now": tx.now.as_micros() })?;
    }
    Ok(true)
}

/// Stores a delivery and the job that sends it; answers whether it is new.
fn add(tx: &Tx<'_>, new: &NewDelivery, resend_of: Option<&JobId>) -> Result<bool> {
    let params = named_params! {
        ":job": row::blob(&new.job),
        ":endpoint": blob(&new.endpoint),
        ":journal": new.journal,
        ":subject": new.subject,
        ":event_id": new.event_id,
        ":event_type": new.event_type,
        ":callback_url": new.callback_url,
        ":now": tx.now.as_micros(),
        ":resend_of": resend_of.map(row::blob),
        ":body": new.body,
    };
    if tx.execute(ADD_DELIVERY, params)? == 0 {
        return Ok(false);
    }
    let tenant: TenantName = find(tx, &Sight::All, new.endpoint)?.tenant;
    let job = delivery_job(new.job, new.endpoint, tenant, new.trace.clone())?;
    job.check(tx.now)?;
    enqueue::enqueue_jobs(tx, &[job])?;
    Ok(true)
}

pub(crate) fn list(tx: &Tx<'_>, filter: &DeliveryFilter) -> Result<Vec<DeliverySummary>> {
    let (state, (from, before)) = (filter.state.map(code), filter.ids());
    let (since, until) = (filter.since.map(Timestamp::as_micros), filter.until.map(Timestamp::as_micros));
    let (sight, endpoint) = (sight_param(&filter.sight), filter.endpoint.as_ref().map(blob));
    let (from, before) = (row::blob(&from), row::blob(&before));
    let mut params: Vec<(&str, &dyn rusqlite::ToSql)> = vec![
        (":state", &state),
        (":since", &since),
        (":until", &until),
        (":from", &from),
        (":before", &before),
        (":limit", &filter.limit),
    ];
    let statement = match (endpoint.is_some(), sight.is_some()) {
        (true, _) => {
            params.extend([(":endpoint", &endpoint as &dyn rusqlite::ToSql), (":sight", &sight)]);
            LIST_DELIVERIES_OF_ENDPOINT
        }
        (false, true) => {
            params.push((":sight", &sight));
            LIST_DELIVERIES_OF_TENANT
        }
        (false, false) => LIST_DELIVERIES,
    };
    tx.all(statement, &params, read)
}

/// One delivery in full, and the journal row it comes from.
pub(crate) fn show(tx: &Tx<'_>, sight: &Sight, job: JobId) -> Result<(DeliveryRecord, i64)> {
    let params = named_params! { ":job": row::blob(&job), ":sight": sight_param(sight) };
    let found = tx.one(SHOW_DELIVERY, params, |row| {
        let tries = Json::from_store(text(row, 12)?);
        Ok((DeliveryRecord { summary: read(row)?, body: row.get(13)?, tries }, row.get(14)?))
    })?;
    found.ok_or_else(|| unknown(job).into())
}

pub(crate) fn record_try(tx: &Tx<'_>, request: &RecordTry) -> Result<bool> {
    let params = named_params! {
        ":job": row::blob(&request.job),
        ":state": code(request.tried.leads_to()),
        ":finished_at": (request.tried != Tried::Again).then_some(tx.now.as_micros()),
        ":entry": request.entry.as_str(),
        ":most": TRIES_MAX as i64,
    };
    let found = tx.one(RECORD_TRY, params, |row| Ok((endpoint_id(row, 0)?, row.get::<_, i64>(1)?)))?;
    let (endpoint, state) = found.ok_or_else(|| unknown(request.job))?;
    if state != code(request.tried.leads_to()) {
        // It had arrived before: whoever says otherwise is late.
        return Ok(false);
    }
    let before = find(tx, &Sight::All, endpoint)?;
    let mut after = before.clone();
    let why = request.apply(&mut after, tx.now);
    if after != before {
        save(tx, &after)?;
    }
    if let Some(why) = &why {
        note(tx, JournalEvent::EndpointDisabled, &after, Some(why), &Word::default())?;
    }
    Ok(why.is_some())
}

pub(crate) fn resend(tx: &Tx<'_>, request: &ResendDeliveries) -> Result<u64> {
    let (mut resent, mut first) = (0, None);
    for (old, job) in &request.deliveries {
        let (record, journal) = match show(tx, &request.sight, *old) {
            Ok(found) => found,
            Err(fault) => match StoreError::from(fault) {
                StoreError::NotFound(_) => continue,
                error => return Err(error.into()),
            },
        };
        let DeliverySummary { endpoint, subject, event_id, event_type, callback_url, .. } = record.summary;
        let body = record.body;
        let trace = None;
        let new =
            NewDelivery { job: *job, endpoint, journal, subject, event_id, event_type, callback_url, trace, body };
        let endpoint = find(tx, &Sight::All, endpoint)?;
        endpoint.refuse_disabled()?;
        resent += 1;
        if add(tx, &new, Some(old))? {
            first.get_or_insert(endpoint);
        }
    }
    if let Some(endpoint) = first {
        note(tx, JournalEvent::DeliveriesResent, &endpoint, None, &request.word)?;
    }
    Ok(resent)
}

fn unknown(delivery: JobId) -> StoreError {
    StoreError::NotFound(format!("delivery {delivery}"))
}

const fn code(state: DeliveryState) -> i64 {
    match state {
        DeliveryState::Pending => 0,
        DeliveryState::Delivered => 1,
        DeliveryState::Failed => 2,
    }
}

fn read(row: &Row<'_>) -> Result<DeliverySummary> {
    let state: i64 = row.get(7)?;
    let known = DeliveryState::ALL.into_iter().find(|known| code(*known) == state);
    let resend_of = row.get::<_, Option<[u8; 16]>>(10)?;
    Ok(DeliverySummary {
        job: job_id(row, 0)?,
        endpoint: endpoint_id(row, 1)?,
        tenant: word(row, 2)?,
        event_id: row.get(3)?,
        event_type: row.get(4)?,
        subject: row.get(5)?,
        callback_url: row.get(6)?,
        state: known.ok_or_else(|| corrupt(format!("webhook_delivery.state is {state}")))?,
        created_at: time(row, 8)?,
        finished_at: optional_time(row, 9)?,
        resend_of: resend_of.map(|bytes| JobId::from_uuid(uuid::Uuid::from_bytes(bytes))),
        tries: row.get(11)?,
    })
}
