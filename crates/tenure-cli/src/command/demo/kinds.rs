//! What the shop does: its kinds of jobs, and their handlers. The work is simulated; how it ends is not.
//!
//! What goes wrong is written into the payloads (an address that does not exist, a page that is always down), so that
//! handlers read like handlers and decide by what they meet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::Priority;
use tenure_worker::{Builder, Ctx, Defaults, Fail, Job, State};

use super::stage::{EXPORTS, IMAGES, REPORTS, SHOP};

/// How long a parcel is left alone before somebody looks again.
pub(super) const SNOOZE: Duration = Duration::from_millis(700);

/// What handlers share.
#[derive(Clone)]
pub(super) struct Shop {
    gates: Arc<Path>,
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
    "report.build" ReportBuild { month: String } Defaults::new().queue(REPORTS), |job| job.month;
}

const SHOP_JOB: Defaults = Defaults::new().queue(SHOP);

/// A worker that handles all of them.
pub(super) fn add(worker: Builder, gates: PathBuf) -> Builder<Shop> {
    worker
        .state(Shop { gates: gates.into() })
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
