//! What the shop does: its kinds of jobs, and their handlers. The work is simulated; how it ends is not.
//!
//! What goes wrong is written into the payloads (an address that does not exist, a page that is always down), so that
//! handlers read like handlers and decide by what they meet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::Priority;
use tenure_sqlite::SqliteStore;
use tenure_store::StoreError;
use tenure_worker::{Builder, Completed, Ctx, Defaults, Fail, Job, Page, State};

use super::stage::{EXPORTS, IMAGES, REPORTS, SHOP};
use crate::failure::Failure;

/// How long a parcel is left alone before somebody looks again.
pub(super) const SNOOZE: Duration = Duration::from_millis(700);

/// What handlers share.
/// The source of prices, as a gate.
pub(super) const PRICES: &str = "source:prices";

#[derive(Clone)]
pub(super) struct Shop {
    gates: Arc<Path>,
    store: SqliteStore,
}

/// A job as the view calls it.
pub(super) trait Named: Job {
    fn name(&self) -> String;
}

/// A kind, its payload, its defaults and its name.
macro_rules! kinds {
    ($($kind:literal $job:ident { $($field:ident: $type:ty),* } $defaults:expr, |$this:ident| $name:expr;)*) => {$(
        #[derive(Serialize, Deserialize)]
        pub(super) struct $job { $(pub(super) $field: $type),* }

        impl Job for $job {
            const KIND: &'static str = $kind;
            const DEFAULTS: Defaults = $defaults;
        }

        impl Named for $job {
            fn name(&self) -> String {
                let $this = self;
                format!("{} {}", $kind, $name)
            }
        }
    )*};
}

kinds! {
    "stock.alert" StockAlert { item: String } SHOP_JOB.priority(Priority::CRITICAL), |job| job.item;
    "invoice.send" InvoiceSend { order: u32, to: String } SHOP_JOB.backoff("exponential 400ms..2s by failures"), |job| job.order;
    "page.fetch" PageFetch { path: String } SHOP_JOB.priority(Priority::LOW).backoff("steps 300ms 600ms").max_attempts(3), |job| job.path;
    "cart.sync" CartSync { cart: u32 } SHOP_JOB, |job| job.cart;
    "parcel.track" ParcelTrack { order: u32 } SHOP_JOB, |job| job.order;
    "review.ask" ReviewAsk { order: u32 } SHOP_JOB, |job| job.order;
    "newsletter.send" NewsletterSend { issue: String } SHOP_JOB, |job| job.issue;
    "image.resize" ImageResize { file: String } Defaults::new().queue(IMAGES), |job| job.file;
    "catalog.export" CatalogExport { part: u32 } Defaults::new().queue(EXPORTS), |job| job.part;
    "price.fetch" PriceFetch { item: u32 } SHOP_JOB.backoff("fixed 200ms").max_attempts(100), |job| job.item;
    "catalog.page" CatalogPage { shelf: u32, items: u32 } SHOP_JOB, |job| job.shelf;
    "catalog.publish" CatalogPublish { night: String } SHOP_JOB, |job| job.night;
    "report.build" ReportBuild { month: String } Defaults::new().queue(REPORTS), |job| job.month;
}

const SHOP_JOB: Defaults = Defaults::new().queue(SHOP);

/// A worker that handles all of them.
pub(super) fn add(worker: Builder, store: SqliteStore, gates: PathBuf) -> Builder<Shop> {
    worker
        .state(Shop { gates: gates.into(), store })
        .handle(stock_alert)
        .handle(invoice_send)
        .handle(page_fetch)
        .handle(cart_sync)
        .handle(parcel_track)
        .handle(review_ask)
        .handle(newsletter_send)
        .handle(image_resize)
        .handle(catalog_export)
        .handle(report_build)
        .handle(price_fetch)
        .handle(catalog_page)
        .handle(catalog_publish)
}

async fn stock_alert(_: StockAlert, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, 60).await
}

async fn invoice_send(job: InvoiceSend, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, 40 + u64::from(job.order) * 7_919 % 160).await?;
    match job.to.as_str() {
        to if to.starts_with("nobody@") => Err(Fail::permanent(format!("550 no such mailbox: {to}"))),
        // A busy server: it takes the letter at the third try.
        to if to.starts_with("busy@") && ctx.attempt() < 3 => Err(Fail::transient("421 mail server busy")),
        _ => Ok(()),
    }
}

async fn page_fetch(job: PageFetch, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, 20 + job.path.len() as u64 * 31 % 120).await?;
    match job.path.as_str() {
        "/down" => Err(Fail::http_status(503, "503 service unavailable")),
        "/sale" if ctx.attempt() == 1 => {
            Err(Fail::http_status(429, "429 too many requests").retry_in(Duration::from_millis(500)))
        }
        _ => Ok(()),
    }
}

async fn cart_sync(_: CartSync, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, 200).await
}

/// Not delivered when it is looked at for the first time: that is no failure, only too early.
async fn parcel_track(_: ParcelTrack, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, 50).await?;
    if ctx.run_at().since(ctx.created_at()) < SNOOZE {
        return Err(Fail::snooze(SNOOZE));
    }
    Ok(())
}

async fn review_ask(job: ReviewAsk, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, 30 + u64::from(job.order) % 70).await
}

/// Letter by letter to everybody: it takes minutes, and it stops between two letters when it is told to.
async fn newsletter_send(_: NewsletterSend, ctx: Ctx) -> Result<(), Fail> {
    for _letter in 0..2_000 {
        work(&ctx, 100).await?;
    }
    Ok(())
}

async fn image_resize(job: ImageResize, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, 150 + job.file.bytes().map(u64::from).sum::<u64>() * 97 % 250).await?;
    if !job.file.ends_with(".jpg") {
        return Err(Fail::dead(format!("{} is no picture", job.file)));
    }
    Ok(())
}

async fn catalog_export(_: CatalogExport, State(shop): State<Shop>, ctx: Ctx) -> Result<(), Fail> {
    shop.gate(EXPORTS, &ctx).await?;
    work(&ctx, 300).await
}

async fn report_build(_: ReportBuild, State(shop): State<Shop>, ctx: Ctx) -> Result<(), Fail> {
    shop.gate(REPORTS, &ctx).await?;
    work(&ctx, 400).await
}

/// The source is down until the story lets it up. Its breaker hears of every failure.
async fn price_fetch(_: PriceFetch, State(shop): State<Shop>, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, 40).await?;
    match gate(&shop.gates, "prices").exists() {
        true => Ok(()),
        false => Err(Fail::http_status(503, "503 service unavailable")),
    }
}

/// One page of a shelf: its items, the shelf's progress, the next page and this one's end are one transaction.
async fn catalog_page(job: CatalogPage, State(shop): State<Shop>, ctx: Ctx, page: Page) -> Result<Completed, Fail> {
    work(&ctx, 60).await?;
    let items: Vec<u64> = (page.offset()..u64::from(job.items)).take(page.limit() as usize).collect();
    shop.store
        .transaction(move |tx| {
            for item in &items {
                let item = format!("{}-{item}", job.shelf);
                tx.connection().execute("insert into demo_item (id) values (?1)", [item])?;
            }
            page.advance(tx, items.len() as u64)
        })
        .await
}

async fn catalog_publish(_: CatalogPublish, State(shop): State<Shop>) -> Result<(), Fail> {
    let publish = "insert into demo_publication (items) select count(*) from demo_item";
    shop.store.transaction(move |tx| Ok::<_, Fail>(tx.connection().execute(publish, [])?)).await?;
    Ok(())
}

/// The shop's own tables, in the same file. No key in them: what comes twice is seen twice.
pub(super) async fn create_tables(store: &SqliteStore) -> Result<(), Failure> {
    let tables = "create table demo_item (id text not null); create table demo_publication (items integer not null);";
    let create = move |tx: &tenure_sqlite::Transaction<'_, '_>| {
        tx.connection().execute_batch(tables).map_err(StoreError::unavailable)
    };
    Ok(store.transaction(create).await?)
}

/// What was published, a number of items each time.
pub(super) async fn publications(store: &SqliteStore) -> Result<Vec<u64>, Failure> {
    let read = |tx: &tenure_sqlite::Transaction<'_, '_>| {
        let mut statement = tx.connection().prepare("select items from demo_publication")?;
        statement.query_map([], |row| row.get::<_, u32>(0).map(u64::from))?.collect::<Result<Vec<_>, _>>()
    };
    Ok(store.transaction(move |tx| read(tx).map_err(StoreError::unavailable)).await?)
}

impl Shop {
    /// Work whose length the story decides: it lasts until the demo has done to the worker what it wants to show, on
    /// the slowest machine too.
    async fn gate(&self, name: &str, ctx: &Ctx) -> Result<(), Fail> {
        let gate = gate(&self.gates, name);
        while !gate.exists() {
            work(ctx, 25).await?;
        }
        Ok(())
    }
}

/// The file that ends the work behind a gate.
pub(super) fn gate(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.done"))
}

/// Takes its time, and stops when it is told to.
async fn work(ctx: &Ctx, ms: u64) -> Result<(), Fail> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(ms)) => Ok(()),
        _ = ctx.stopped() => ctx.check(),
    }
}
