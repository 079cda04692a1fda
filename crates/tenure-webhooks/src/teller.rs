//! [`Teller`]: reads the sealed journal and stores what endpoints are to be told.
//!
//! The journal is the truth: a transition and its row are one transaction, seals put rows into an order without gaps, and
//! a cursor says how far they were told. Reading a page, storing the deliveries that follow from it with the jobs that
//! send them, and moving the cursor is one transaction; so an event is told exactly when its transition was committed,
//! and never a second time, however many tellers there are and wherever they die.
//!
//! ```text
//!   journal ──seal──► read a page after the cursor ──► whom it concerns ──► deliveries + their jobs + cursor, or nothing
//! ```
//!
//! Any number of tellers may run: the cursor lets one of them through, the others read again.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::webhook::{DELIVERY_KIND, event_type};
use tenure_core::{How, JobId, LeaseNo, RunId};
use tenure_store::journal::JournalPage;
use tenure_store::record::Sight;
use tenure_store::webhook::{Cursor, EndpointFilter, EndpointRecord, EventSubject, PutDeliveries};
use tenure_store::{Store, StoreError};

use crate::event::Event;
use crate::ids::new_ids;

/// The rest between two looks that found nothing; seals come about once a second.
const EVERY: Duration = Duration::from_millis(500);
/// The rest after trouble with the store.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);
/// Rows read at once.
const PAGE_ROWS: u32 = 500;
/// Jobs looked up at once, unless one row alone names more.
const PAGE_JOBS: usize = 2_000;
/// Endpoints read at once.
const PAGE_ENDPOINTS: u32 = 1_000;

/// Tells endpoints what happened. Clones share the store.
#[derive(Clone)]
pub struct Teller {
    store: Arc<dyn Store>,
}

impl Teller {
    /// Tells of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Tells until `stop` is over.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut in_trouble = false;
        loop {
            let rest = match self.tell_page().await {
                Ok(true) => Duration::ZERO,
                Ok(false) => EVERY,
                Err(error) => {
                    match error.is_passing() {
                        // Once for each time of trouble: the worker beside it says the rest.
                        true if in_trouble => {}
                        true => tracing::warn!(error = %error, "webhooks wait: the store does not answer"),
                        false => tracing::error!(error = %error, "telling webhooks failed"),
                    }
                    in_trouble = true;
                    AFTER_TROUBLE
                }
            };
            in_trouble &= rest == AFTER_TROUBLE;
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    /// Tells everything that is sealed: for tests and scripts.
    pub async fn tell_all(&self) -> Result<(), StoreError> {
        while self.tell_page().await? {}
        Ok(())
    }

    /// Tells one page; `false` when nothing is left, or nobody listens.
    async fn tell_page(&self) -> Result<bool, StoreError> {
        let endpoints = self.endpoints().await?;
        if endpoints.is_empty() {
            return Ok(false);
        }
        let from = self.store.find_cursor().await?;
        let seals = self.store.list_seals(from.seal - 1, 1).await?;
        let Some(seal) = seals.first().map(|seal| seal.no) else { return Ok(false) };
        // Seals in between were dropped with their rows: what is left begins here.
        let after = if seal == from.seal { from.after } else { 0 };
        let page = JournalPage { seal: Some(seal), after, limit: PAGE_ROWS };
        let mut rows = self.store.read_journal(page).await?;
        let is_last = rows.len() < PAGE_ROWS as usize && !cut(&mut rows);
        let to = match rows.last() {
            Some(row) if !is_last => Cursor { seal, after: row.id },
            _ => Cursor::at(seal + 1),
        };
        let (events, failed) = self.events(&rows, &endpoints).await?;
        let told: Vec<(&Event, &EndpointRecord)> = events
            .iter()
            .flat_map(|event| endpoints.iter().filter(|to| event.concerns(to)).map(move |to| (event, to)))
            .collect();
        let ids = if told.is_empty() { Vec::new() } else { new_ids(self.store.now().await?, told.len()) };
        let deliveries = told.into_iter().zip(ids).map(|((event, to), job)| event.delivery(job, to)).collect();
        // Another teller was faster: what it left is read by the next look.
        self.store.put_deliveries(PutDeliveries { from, to, deliveries, failed }).await?;
        Ok(true)
    }

    async fn endpoints(&self) -> Result<Vec<EndpointRecord>, StoreError> {
        let mut filter = EndpointFilter { sight: Sight::All, after: None, limit: PAGE_ENDPOINTS };
        let mut all = Vec::new();
        loop {
            let page = self.store.list_endpoints(&filter).await?;
            let is_full = page.len() == PAGE_ENDPOINTS as usize;
            filter.after = page.last().map(|endpoint| endpoint.id);
            all.extend(page.into_iter().filter(|endpoint| endpoint.disabled.is_none()));
            if !is_full {
                return Ok(all);
            }
        }
    }

    /// What these rows tell, and the deliveries among their jobs that were given up.
    async fn events(
        &self,
        rows: &[JournalRow],
        endpoints: &[EndpointRecord],
    ) -> Result<(Vec<Event>, Vec<JobId>), StoreError> {
        let mut events: BTreeMap<(i64, usize), Event> = BTreeMap::new();
        let mut asked: Vec<(JobId, Option<LeaseNo>)> = Vec::new();
        let mut wanted: Vec<&JournalRow> = Vec::new();
        for row in rows.iter().filter(|row| is_wanted(row, endpoints)) {
            match subject_of(row.event) {
                Some("job") => {
                    wanted.push(row);
                    asked.extend(row.jobs.iter().map(|job| (*job, row.lease)));
                }
                Some("run") => {
                    let told = self.run_of(row).await?;
                    events.extend(told.map(|event| ((row.id, 0), event)));
                }
                Some(_) => events.extend(Event::of_endpoint(row).map(|event| ((row.id, 0), event))),
                None => {}
            }
        }
        let mut failed = Vec::new();
        if !asked.is_empty() {
            let subjects = self.store.list_subjects(asked).await?;
            let known: HashMap<(JobId, Option<LeaseNo>), EventSubject> =
                subjects.into_iter().map(|subject| ((subject.job, subject.lease), subject)).collect();
            for row in wanted {
                for (place, job) in row.jobs.iter().enumerate() {
                    let Some(subject) = known.get(&(*job, row.lease)) else { continue };
                    if subject.kind.as_str() == DELIVERY_KIND {
                        failed.extend(is_given_up(row.event).then_some(*job));
                    } else if let Some(event) = Event::of_job(row, subject) {
                        events.insert((row.id, place), event);
                    }
                }
            }
        }
        Ok((events.into_values().collect(), failed))
    }

    async fn run_of(&self, row: &JournalRow) -> Result<Option<Event>, StoreError> {
        let details =
            row.details.as_ref().and_then(|details| serde_json::from_str::<serde_json::Value>(details.as_str()).ok());
        let run = details.as_ref().and_then(|details| details.get("run")?.as_str()?.parse::<RunId>().ok());
        let Some(run) = run else { return Ok(None) };
        match self.store.show_run(&Sight::All, run).await {
            Ok(record) => Ok(Event::of_run(row, &record)),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Keeps as many rows as may be looked up at once, one at least; answers whether some were left.
fn cut(rows: &mut Vec<JournalRow>) -> bool {
    let mut jobs = 0;
    let fit = rows.iter().take_while(|row| {
        jobs += row.jobs.len();
        jobs <= PAGE_JOBS
    });
    let fit = fit.count().max(1);
    let is_cut = fit < rows.len();
    rows.truncate(fit);
    is_cut
}

/// Whether a row happened while some endpoint listened for such; or whether it may be the end of a delivery.
fn is_wanted(row: &JournalRow, endpoints: &[EndpointRecord]) -> bool {
    let Some(event_type) = event_type(row.event) else { return false };
    let hears = |endpoint: &EndpointRecord| {
        endpoint.created_at <= row.at && (endpoint.events.contain(event_type) || event_type == "webhook.pinged")
    };
    is_given_up(row.event) || endpoints.iter().any(hears)
}

fn subject_of(event: JournalEvent) -> Option<&'static str> {
    event_type(event).and_then(|event_type| event_type.split_once('.')).map(|(subject, _)| subject)
}

/// Whether a job that ended so has not done what it was for.
const fn is_given_up(event: JournalEvent) -> bool {
    matches!(event, JournalEvent::Ended(How::Dead | How::Failed | How::Canceled))
}
