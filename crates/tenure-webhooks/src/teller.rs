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
const PAGE_JOBS: usize = 500;
/// Bytes of bodies that are stored at once, unless one row alone makes more.
const PAGE_BYTES: usize = 16 << 20;
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

    /// Tells until `stop` is over. A page that is not stored is not half told, so it may be dropped at any moment.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let (mut in_trouble, mut rows) = (false, PAGE_ROWS);
        loop {
            let told = tokio::select! {
                biased;
                () = &mut stop => return,
                told = self.tell_page(rows) => told,
            };
            let rest = match told {
                Ok(more) => {
                    (in_trouble, rows) = (false, rows.saturating_mul(2).min(PAGE_ROWS));
                    if more { Duration::ZERO } else { EVERY }
                }
                Err(error) => {
                    match error.is_passing() {
                        // Once for each time of trouble: the worker beside it says the rest.
                        true if in_trouble => {}
                        true => tracing::warn!(error = %error, "webhooks wait: the store does not answer"),
                        false => tracing::error!(error = %error, "telling webhooks failed"),
                    }
                    // What is too much at once may be done in parts.
                    (in_trouble, rows) = (true, (rows / 2).max(1));
                    AFTER_TROUBLE
                }
            };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    /// Tells everything that is sealed: for tests and scripts.
    pub async fn tell_all(&self) -> Result<(), StoreError> {
        while self.tell_page(PAGE_ROWS).await? {}
        Ok(())
    }

    /// Tells one page; `false` when nothing is left, or nobody listens.
    async fn tell_page(&self, page_rows: u32) -> Result<bool, StoreError> {
        let Some(page) = self.read_page(page_rows).await? else { return Ok(false) };
        // After the rows: whoever listens since one of them was written is in this list.
        let endpoints = self.endpoints().await?;
        if endpoints.is_empty() {
            return Ok(false);
        }
        let (events, failed) = self.events(&page.rows, &endpoints).await?;
        let (told, cut_at) = share_out(&events, &endpoints);
        let upto = cut_at.map(|row| row - 1).or(page.rows.last().map(|row| row.id));
        let to = match upto {
            Some(after) if !page.is_last || cut_at.is_some() => Cursor { seal: page.seal, after },
            _ => Cursor::at(page.seal + 1),
        };
        let is_told = |row: i64| cut_at.is_none_or(|cut_at| row < cut_at);
        let failed = failed.into_iter().filter(|(row, _)| is_told(*row)).map(|(_, job)| job).collect();
        let ids = if told.is_empty() { Vec::new() } else { new_ids(self.store.now().await?, told.len()) };
        let deliveries = told.into_iter().zip(ids).map(|((event, to), job)| event.delivery(job, to)).collect();
        // Another teller was faster: what it left is read by the next look.
        self.store.put_deliveries(PutDeliveries { from: page.from, to, deliveries, failed }).await?;
        Ok(true)
    }

    /// What comes after the cursor, if there is anything and anybody who might listen.
    async fn read_page(&self, page_rows: u32) -> Result<Option<Page>, StoreError> {
        let anybody = EndpointFilter { sight: Sight::All, after: None, limit: 1 };
        if self.store.list_endpoints(&anybody).await?.is_empty() {
            return Ok(None);
        }
        let from = self.store.find_cursor().await?;
        let seals = self.store.list_seals(from.seal - 1, 1).await?;
        let Some(seal) = seals.first().map(|seal| seal.no) else { return Ok(None) };
        // Seals in between were dropped with their rows: what is left begins here.
        let after = if seal == from.seal { from.after } else { 0 };
        let mut rows = self.store.read_journal(JournalPage { seal: Some(seal), after, limit: page_rows }).await?;
        let is_full = rows.len() == page_rows as usize;
        let is_last = !cut(&mut rows) && !is_full;
        Ok(Some(Page { from, seal, rows, is_last }))
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

    /// What these rows tell in their order, and the deliveries among their jobs that were given up, by row.
    async fn events(
        &self,
        rows: &[JournalRow],
        endpoints: &[EndpointRecord],
    ) -> Result<(Vec<Event>, Vec<(i64, JobId)>), StoreError> {
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
                        failed.extend(is_given_up(row.event).then_some((row.id, *job)));
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

/// Rows that were read together.
struct Page {
    from: Cursor,
    seal: i64,
    rows: Vec<JournalRow>,
    /// Whether the seal has no more.
    is_last: bool,
}

/// Who is told what, as much as may be stored at once; and the row where that was enough, which begins the next page. The
/// first row is always told whole.
fn share_out<'a>(
    events: &'a [Event],
    endpoints: &'a [EndpointRecord],
) -> (Vec<(&'a Event, &'a EndpointRecord)>, Option<i64>) {
    let (mut told, mut bytes) = (Vec::new(), 0);
    for row in events.chunk_by(|one, other| one.journal() == other.journal()) {
        let before = told.len();
        for event in row {
            told.extend(endpoints.iter().filter(|to| event.concerns(to)).map(|to| (event, to)));
        }
        bytes += told[before..].iter().map(|(event, _)| event.bytes()).sum::<usize>();
        if bytes > PAGE_BYTES && before > 0 {
            told.truncate(before);
            return (told, row.first().map(Event::journal));
        }
    }
    (told, None)
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
        endpoint.listens_since <= row.at && (endpoint.events.contain(event_type) || event_type == "webhook.pinged")
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
