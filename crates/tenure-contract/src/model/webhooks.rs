//! Webhooks: endpoints, the cursor, deliveries.

use async_trait::async_trait;
use tenure_core::journal::JournalEvent;
use tenure_core::webhook::DELIVERY_KIND;
use tenure_core::{EndpointId, JobId, Json, LeaseNo, TenantName, Timestamp};
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{
    ChangeEndpoint, Cursor, DeliveryFilter, DeliveryRecord, DeliveryState, DeliverySummary, ENDPOINTS_MAX,
    EndpointChange, EndpointFilter, EndpointRecord, EventSubject, NewDelivery, NewEndpoint, OperateEndpoint,
    PutDeliveries, RecordTry, ResendDeliveries, TRIES_MAX, Tried, beyond_endpoints_limit, delivery_job,
};
use tenure_store::{StoreError, WebhookStore};

use super::ModelStore;
use super::jobs::Room;
use super::tables::Tables;

/// A delivery, and the journal row it comes from.
#[derive(Clone)]
pub(super) struct Delivery {
    journal: i64,
    summary: DeliverySummary,
    body: String,
    tries: Vec<Json>,
}

#[async_trait]
impl WebhookStore for ModelStore {
    async fn create_endpoint(&self, request: NewEndpoint) -> Result<EndpointRecord, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            request.id.check(now)?;
            if let Some(known) = tables.endpoints.get(&request.id) {
                return match known.is_made_of(&request) {
                    true => Ok(known.clone()),
                    false => Err(StoreError::Conflict(format!("endpoint {} is there already", request.id))),
                };
            }
            let NewEndpoint { id, tenant, url, events, prefix, secret, word } = request;
            if tenant == TenantName::default() {
                tables.tenant_no(&tenant);
            } else if !tables.tenants.contains(&tenant) {
                return Err(StoreError::NotFound(format!("tenant {tenant}")));
            }
            let others: Vec<&EndpointRecord> =
                tables.endpoints.values().filter(|other| other.tenant == tenant).collect();
            if others.len() >= ENDPOINTS_MAX as usize {
                return Err(beyond_endpoints_limit(&tenant));
            }
            if url.is_none() && others.iter().any(|other| other.url.is_none()) {
                return Err(StoreError::Conflict(format!("tenant {tenant} has an endpoint for callbacks")));
            }
            begin_to_tell(tables);
            let record = EndpointRecord {
                id,
                tenant,
                url,
                events,
                prefix,
                secret,
                previous: None,
                created_at: now,
                listens_since: now,
                disabled: None,
                failing_since: None,
            };
            tables.endpoints.insert(id, record.clone());
            note(tables, JournalEvent::EndpointSet, &record, None, &word, now);
            Ok(record)
        })
    }

    async fn list_endpoints(&self, filter: &EndpointFilter) -> Result<Vec<EndpointRecord>, StoreError> {
        filter.check()?;
        self.look(|tables, _| {
            let wanted = |endpoint: &&EndpointRecord| {
                is_seen(&endpoint.tenant, &filter.sight) && filter.after.is_none_or(|after| endpoint.id > after)
            };
            Ok(tables.endpoints.values().filter(wanted).take(filter.limit as usize).cloned().collect())
        })
    }

    async fn show_endpoint(&self, sight: &Sight, endpoint: EndpointId) -> Result<EndpointRecord, StoreError> {
        self.look(|tables, _| seen(tables, sight, endpoint))
    }

    async fn change_endpoint(&self, request: ChangeEndpoint) -> Result<EndpointRecord, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let before = seen(tables, &request.sight, request.endpoint)?;
            let word = request.word.clone();
            let EndpointChange { after, events } = request.apply(&before, now)?;
            if before.disabled.is_some() && after.disabled.is_none() {
                begin_to_tell(tables);
            }
            for (event, why) in events {
                note(tables, event, &after, why.as_deref(), &word, now);
            }
            tables.endpoints.insert(after.id, after.clone());
            Ok(after)
        })
    }

    async fn remove_endpoint(&self, request: OperateEndpoint) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let endpoint = seen(tables, &request.sight, request.endpoint)?;
            tables.endpoints.remove(&endpoint.id);
            tables.deliveries.retain(|_, delivery| delivery.summary.endpoint != endpoint.id);
            note(tables, JournalEvent::EndpointRemoved, &endpoint, None, &request.word, now);
            Ok(())
        })
    }

    async fn ping_endpoint(&self, request: OperateEndpoint) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let endpoint = seen(tables, &request.sight, request.endpoint)?;
            endpoint.refuse_ping()?;
            note(tables, JournalEvent::EndpointPinged, &endpoint, None, &request.word, now);
            Ok(())
        })
    }

    async fn find_cursor(&self) -> Result<Cursor, StoreError> {
        self.look(|tables, _| Ok(cursor(tables)))
    }

    async fn list_subjects(&self, asked: Vec<(JobId, Option<LeaseNo>)>) -> Result<Vec<EventSubject>, StoreError> {
        self.look(|tables, _| Ok(asked.into_iter().filter_map(|(job, lease)| subject(tables, job, lease)).collect()))
    }

    async fn put_deliveries(&self, request: PutDeliveries) -> Result<bool, StoreError> {
        let put = self.transact(|tables, now| {
            if cursor(tables) != request.from {
                return Ok(false);
            }
            tables.cursor = Some(request.to);
            for new in request.deliveries {
                let Some(endpoint) = tables.endpoints.get(&new.endpoint).filter(|to| to.disabled.is_none()) else {
                    continue;
                };
                let is_known = |known: &Delivery| {
                    known.summary.resend_of.is_none()
                        && (known.journal, known.summary.endpoint) == (new.journal, new.endpoint)
                        && known.summary.subject == new.subject
                };
                let tenant = endpoint.tenant.clone();
                if !tables.deliveries.values().any(is_known) {
                    self.deliver(tables, tenant, new, None, now)?;
                }
            }
            for job in request.failed {
                let failed = tables.deliveries.get_mut(&job).map(|delivery| &mut delivery.summary);
                if let Some(failed) = failed.filter(|delivery| delivery.state == DeliveryState::Pending) {
                    (failed.state, failed.finished_at) = (DeliveryState::Failed, Some(now));
                }
            }
            Ok(true)
        })?;
        self.work.notify_one();
        Ok(put)
    }

    async fn list_deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliverySummary>, StoreError> {
        filter.check()?;
        self.look(|tables, _| {
            let wanted = |summary: &DeliverySummary| {
                is_seen(&summary.tenant, &filter.sight)
                    && filter.endpoint.is_none_or(|endpoint| endpoint == summary.endpoint)
                    && filter.state.is_none_or(|state| state == summary.state)
                    && filter.since.is_none_or(|since| summary.created_at >= since)
                    && filter.until.is_none_or(|until| summary.created_at < until)
                    && filter.before.is_none_or(|before| summary.job < before)
            };
            let newest_first = tables.deliveries.values().rev().map(summary).filter(wanted);
            Ok(newest_first.take(filter.limit as usize).collect())
        })
    }

    async fn show_delivery(&self, sight: &Sight, delivery: JobId) -> Result<DeliveryRecord, StoreError> {
        self.look(|tables, _| {
            let found = tables.deliveries.get(&delivery).filter(|found| is_seen(&found.summary.tenant, sight));
            let found = found.ok_or_else(|| StoreError::NotFound(format!("delivery {delivery}")))?;
            let tries: Vec<&str> = found.tries.iter().map(Json::as_str).collect();
            let tries = Json::from_store(format!("[{}]", tries.join(",")));
            Ok(DeliveryRecord { summary: summary(found), body: found.body.clone(), tries })
        })
    }

    async fn record_try(&self, request: RecordTry) -> Result<bool, StoreError> {
        self.transact(|tables, now| {
            let delivery = tables.deliveries.get_mut(&request.job);
            let delivery = delivery.ok_or_else(|| StoreError::NotFound(format!("delivery {}", request.job)))?;
            if delivery.tries.len() < TRIES_MAX {
                delivery.tries.push(request.entry.clone());
            }
            if delivery.summary.state == DeliveryState::Delivered && request.tried != Tried::Delivered {
                // It had arrived before: whoever says otherwise is late.
                return Ok(false);
            }
            delivery.summary.state = request.tried.leads_to();
            delivery.summary.finished_at = (request.tried != Tried::Again).then_some(now);
            let Some(endpoint) = tables.endpoints.get_mut(&delivery.summary.endpoint) else { return Ok(false) };
            let why = request.apply(endpoint, now);
            let endpoint = endpoint.clone();
            if let Some(why) = &why {
                note(tables, JournalEvent::EndpointDisabled, &endpoint, Some(why), &Word::default(), now);
            }
            Ok(why.is_some())
        })
    }

    async fn resend_deliveries(&self, request: ResendDeliveries) -> Result<u64, StoreError> {
        request.check()?;
        let resent = self.transact(|tables, now| {
            let (mut resent, mut first) = (0, None);
            for (old, new) in request.deliveries {
                let Some(old) = tables.deliveries.get(&old).filter(|old| is_seen(&old.summary.tenant, &request.sight))
                else {
                    continue;
                };
                let (tenant, again) = again(old, new);
                let endpoint = seen(tables, &Sight::All, again.endpoint)?;
                endpoint.refuse_disabled()?;
                let of = Some(old.summary.job);
                resent += 1;
                if !tables.deliveries.contains_key(&new) {
                    self.deliver(tables, tenant, again, of, now)?;
                    first.get_or_insert(endpoint);
                }
            }
            if let Some(endpoint) = first {
                note(tables, JournalEvent::DeliveriesResent, &endpoint, None, &request.word, now);
            }
            Ok(resent)
        })?;
        self.work.notify_one();
        Ok(resent)
    }
}

impl ModelStore {
    fn deliver(
        &self,
        tables: &mut Tables,
        tenant: TenantName,
        new: NewDelivery,
        resend_of: Option<JobId>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let job = delivery_job(new.job, new.endpoint, tenant.clone(), new.trace)?;
        job.check(now)?;
        self.enqueue(tables, job, Room::Needed, now)?;
        let summary = DeliverySummary {
            job: new.job,
            endpoint: new.endpoint,
            tenant,
            event_id: new.event_id,
            event_type: new.event_type,
            subject: new.subject,
            callback_url: new.callback_url,
            state: DeliveryState::Pending,
            created_at: now,
            finished_at: None,
            resend_of,
            tries: 0,
        };
        let delivery = Delivery { journal: new.journal, summary, body: new.body, tries: Vec::new() };
        tables.deliveries.insert(new.job, delivery);
        Ok(())
    }
}

fn again(old: &Delivery, job: JobId) -> (TenantName, NewDelivery) {
    let DeliverySummary { endpoint, tenant, event_id, event_type, subject, callback_url, .. } = old.summary.clone();
    let (journal, body) = (old.journal, old.body.clone());
    (tenant, NewDelivery { job, endpoint, journal, subject, event_id, event_type, callback_url, trace: None, body })
}

fn summary(delivery: &Delivery) -> DeliverySummary {
    DeliverySummary { tries: delivery.tries.len() as u32, ..delivery.summary.clone() }
}

fn cursor(tables: &Tables) -> Cursor {
    tables.cursor.unwrap_or(Cursor::at(1))
}

/// Nobody listened until now: what happened before is not told.
fn begin_to_tell(tables: &mut Tables) {
    if tables.endpoints.values().all(|endpoint| endpoint.disabled.is_some()) {
        tables.cursor = Some(Cursor::at(tables.seals.len() as i64 + 1));
    }
}

fn subject(tables: &Tables, job: JobId, lease: Option<LeaseNo>) -> Option<EventSubject> {
    let row = tables.jobs.get(&job)?;
    let asked = &row.asked;
    let listens = tables.endpoints.values().any(|to| to.tenant == asked.tenant && to.disabled.is_none());
    let subject = EventSubject {
        job,
        lease,
        tenant: asked.tenant.clone(),
        queue: asked.queue.clone(),
        kind: asked.kind.clone(),
        callback_url: asked.callback_url.clone(),
        trace: asked.trace.clone(),
        attempt: row.attempts.iter().map(|attempt| &attempt.record).find(|at| Some(at.lease) == lease).cloned(),
        omitted: Vec::new(),
    };
    (listens || asked.kind.as_str() == DELIVERY_KIND).then(|| subject.shortened())
}

fn seen(tables: &Tables, sight: &Sight, endpoint: EndpointId) -> Result<EndpointRecord, StoreError> {
    let found = tables.endpoints.get(&endpoint).filter(|found| is_seen(&found.tenant, sight)).cloned();
    found.ok_or_else(|| StoreError::NotFound(format!("endpoint {endpoint}")))
}

fn is_seen(tenant: &TenantName, sight: &Sight) -> bool {
    sight.tenant().is_none_or(|seen| seen == tenant)
}

fn note(
    tables: &mut Tables,
    event: JournalEvent,
    endpoint: &EndpointRecord,
    why: Option<&str>,
    word: &Word,
    now: Timestamp,
) {
    tables.write(now, None, event, None, Vec::new(), word);
    if let Some(row) = tables.journal.last_mut() {
        row.details = Some(Json::from_store(endpoint.details(why)));
    }
}
