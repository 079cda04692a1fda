//! What the shop has to do: a backlog in which everything can happen once, and orders that keep coming.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tenure_core::{JobId, RunId};
use tenure_store::enqueue::Enqueued;
use tenure_worker::Client;
use tenure_worker::enqueue::Enqueue;

use super::board::Board;
use super::kinds::{
    CartSync, CatalogExport, CatalogPage, CatalogPublish, ImageResize, InvoiceSend, Named, NewsletterSend, PRICES,
    PageFetch, ParcelTrack, PriceFetch, ReportBuild, ReviewAsk, StockAlert,
};
use crate::failure::Failure;
use tenure_server::new_job::Ids;

/// A review is asked for so long after the order.
pub(super) const REVIEW_DELAY: Duration = Duration::from_secs(2);
/// Jobs that the worker to be killed will hold.
const EXPORTS: u32 = 4;
/// The catalogue: so many shelves of so many items, and so many items a page.
pub(super) const SHELVES: u32 = 2;
pub(super) const SHELF_ITEMS: u32 = 25;
const PAGE_ITEMS: u32 = 10;
/// The first order's number.
const FIRST_ORDER: u32 = 1_001;

/// Puts jobs into the store, and their names onto the board.
pub(super) struct Producer {
    client: Client,
    board: Board,
    ids: Mutex<Ids>,
}

/// The jobs that something special happens to.
pub(super) struct Cast {
    /// Enqueued last, and most urgent.
    pub(super) alert: JobId,
    /// Those of its queue that were enqueued before it.
    pub(super) before_alert: HashSet<JobId>,
    pub(super) no_mailbox: JobId,
    pub(super) always_down: JobId,
    pub(super) no_picture: JobId,
    pub(super) snoozed: JobId,
    pub(super) delayed: JobId,
    /// Due tomorrow, and canceled today.
    pub(super) queued_newsletter: JobId,
    /// Canceled while it runs.
    pub(super) running_newsletter: JobId,
    /// The job that was there, and what an enqueue with the same key was answered.
    pub(super) unique: (JobId, Enqueued),
    pub(super) exports: Vec<JobId>,
    pub(super) report: JobId,
}

impl Producer {
    pub(super) fn new(client: Client, board: Board) -> Self {
        Self { client, board, ids: Mutex::new(Ids::new()) }
    }

    /// Stores one job, with what differs from its kind's defaults.
    async fn put<J: Named>(&self, job: J, say: impl FnOnce(Enqueue<'_>) -> Enqueue<'_>) -> Result<Enqueued, Failure> {
        let id = self.next_id()?;
        self.board.name_job(id, job.name());
        let answer = say(self.client.enqueue(job).id(id)).await?;
        self.board.stored(answer.job());
        Ok(answer)
    }

    async fn plain<J: Named>(&self, job: J) -> Result<JobId, Failure> {
        Ok(self.put(job, |job| job).await?.job())
    }

    /// Asks for a price at the source that the shop shares with others.
    pub(super) async fn price(&self, item: u32) -> Result<JobId, Failure> {
        Ok(self.put(PriceFetch { item }, |job| job.gate(PRICES)).await?.job())
    }

    /// A run: each shelf is a partition, and the publication waits for all of them.
    pub(super) async fn catalogue(&self) -> Result<RunId, Failure> {
        let mut run = self.client.new_run().source("catalogue").owner("demo");
        for shelf in 1..=SHELVES {
            let page = CatalogPage { shelf, items: SHELF_ITEMS };
            let (id, name) = (self.next_id()?, page.name());
            self.board.name_job(id, name);
            run = run
                .partition(&format!("shelf-{shelf}"), self.client.enqueue(page).id(id), PAGE_ITEMS)
                .expected(SHELF_ITEMS.into());
        }
        let publish = CatalogPublish { night: "tonight".into() };
        let id = self.next_id()?;
        self.board.name_job(id, publish.name());
        Ok(run.consolidate(self.client.enqueue(publish).id(id)).await?)
    }

    fn next_id(&self) -> Result<JobId, Failure> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).make().map_err(Failure::from)
    }

    /// Everything that can happen to a job, once or twice.
    pub(super) async fn backlog(&self) -> Result<Cast, Failure> {
        let mut shop = Vec::new();
        for order in 901..909 {
            // Two of them meet a busy mail server.
            let to = if order % 4 == 0 { "busy@example.com" } else { "ann@example.com" };
            shop.push(self.plain(InvoiceSend { order, to: to.into() }).await?);
        }
        let no_mailbox = self.plain(InvoiceSend { order: 909, to: "nobody@example.com".into() }).await?;
        for path in ["/", "/shoes", "/shirts", "/sale", "/sale", "/hats", "/bags", "/contact"] {
            shop.push(self.plain(PageFetch { path: path.into() }).await?);
        }
        let always_down = self.plain(PageFetch { path: "/down".into() }).await?;
        let snoozed = self.plain(ParcelTrack { order: 901 }).await?;
        let running_newsletter = self.plain(NewsletterSend { issue: "spring".into() }).await?;
        let unique = {
            let sync = || self.put(CartSync { cart: 7 }, |job| job.unique("cart:7"));
            let first = sync().await?.job();
            (first, sync().await?)
        };
        let delayed = self.put(ReviewAsk { order: 901 }, |job| job.delay(REVIEW_DELAY)).await?.job();
        let tomorrow = Duration::from_secs(86_400);
        let queued_newsletter =
            self.put(NewsletterSend { issue: "summer".into() }, |job| job.delay(tomorrow)).await?.job();
        for n in 1..=6 {
            self.plain(ImageResize { file: format!("shoe-{n}.jpg") }).await?;
        }
        let no_picture = self.plain(ImageResize { file: "readme.txt".into() }).await?;
        let mut exports = Vec::new();
        for part in 1..=EXPORTS {
            exports.push(self.plain(CatalogExport { part }).await?);
        }
        let report = self.plain(ReportBuild { month: "March".into() }).await?;
        shop.extend([no_mailbox, always_down, snoozed, running_newsletter, unique.0]);
        let before_alert = shop.into_iter().collect();
        let alert = self.plain(StockAlert { item: "shoes sold out".into() }).await?;
        Ok(Cast {
            alert,
            before_alert,
            no_mailbox,
            always_down,
            no_picture,
            snoozed,
            delayed,
            queued_newsletter,
            running_newsletter,
            unique,
            exports,
            report,
        })
    }

    /// The n-th customer: an invoice, and pictures or pages to go with it.
    pub(super) async fn order(&self, n: u32) -> Result<(), Failure> {
        let order = FIRST_ORDER + n;
        let to = if n % 6 == 3 { "busy@example.com" } else { "ben@example.com" };
        self.plain(InvoiceSend { order, to: to.into() }).await?;
        match n % 3 {
            0 => self.plain(ImageResize { file: format!("order-{order}.jpg") }).await?,
            1 => self.plain(PageFetch { path: format!("/orders/{order}") }).await?,
            _ => self.plain(ReviewAsk { order }).await?,
        };
        Ok(())
    }
}
