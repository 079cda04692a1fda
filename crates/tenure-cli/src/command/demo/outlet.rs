//! The outlet next door: another tenant of the same store, so that there is something to see on every page of the
//! dashboard from its first moment on. The story has nothing to do with it: it has a queue and a worker of its own, and
//! whatever is proven at the end is proven without it.
//!
//! What it shows stays as it is: a source that is down behind an open breaker, labels that died of the same error, a
//! truck that takes long, a delivery that comes in page by page for a minute or two.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenure_core::gate::{Admit, Breaker, GateRule, Why};
use tenure_core::webhook::OWN_QUEUE;
use tenure_core::{GateName, JobId, QueueName, RunState, State};
use tenure_server::operation::operate;
use tenure_sqlite::SqliteStore;
use tenure_store::gate::SetRule;
use tenure_store::operate::{CancelJob, SetQueue, Word};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::run::RunFilter;
use tenure_worker::{Client, Completed, Ctx, Defaults, Fail, Job, Page, Schedule, State as Shared, Summary, Worker};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::stage::Stage;
use crate::failure::{Failure, exit};

/// Whose jobs these are.
pub(super) const TENANT: &str = "outlet";
/// Where they wait, and who works on them.
pub(super) const QUEUE: &str = "outlet";
pub(super) const WORKER: &str = "outlet-1";
/// The source that is down.
const SUPPLIER: &str = "source:supplier";

const OUTLET_JOB: Defaults = Defaults::new().queue(QUEUE);
/// Rows of each part of the delivery, rows of a page, and what a page takes.
const ROWS: u64 = 320;
const PAGE_ROWS: u32 = 10;
const PAGE_TIME: Duration = Duration::from_millis(900);
/// It is open by then, on the slowest machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// Pause between two looks while the scene is set.
const LOOK_EVERY: Duration = Duration::from_millis(20);

macro_rules! kinds {
    ($($kind:literal $job:ident { $($field:ident: $type:ty),* } $defaults:expr;)*) => {$(
        #[derive(Serialize, Deserialize)]
        struct $job { $($field: $type),* }

        impl Job for $job {
            const KIND: &'static str = $kind;
            const DEFAULTS: Defaults = $defaults;
        }
    )*};
}

kinds! {
    "stock.count" StockCount { shelf: u32 } OUTLET_JOB;
    "label.print" LabelPrint { parcel: u32 } OUTLET_JOB;
    "refund.pay" RefundPay { order: u32, iban: String } OUTLET_JOB;
    "feed.fetch" FeedFetch { part: u32 } OUTLET_JOB.backoff("fixed 10m").max_attempts(4);
    "truck.unload" TruckUnload { gate: u32 } OUTLET_JOB;
    "delivery.page" DeliveryPage { pallet: u32 } OUTLET_JOB;
    "delivery.book" DeliveryBook { truck: String } OUTLET_JOB;
}

/// The outlet at work.
pub(super) struct Outlet {
    stop: oneshot::Sender<()>,
    ran: JoinHandle<std::io::Result<Summary>>,
}

impl Outlet {
    /// Opens it, and waits until what is to be seen is there.
    pub(super) async fn open(stage: &Stage) -> Result<Self, Failure> {
        let store = &stage.store;
        store.set_queue(SetQueue::new(QueueName::new(QUEUE)?, Duration::from_secs(10))).await?;
        let breaker = Breaker { failures: 3, cooldown: Duration::from_secs(3_600) };
        let rule = GateRule { breaker: Some(breaker), concurrency: Some(3), ..GateRule::default() };
        store.set_rule(SetRule { pattern: SUPPLIER.parse()?, rule: Some(rule), word: Word::default() }).await?;
        let client = Client::new(store).for_tenant(TENANT.parse()?);
        let canceled = stock(&client).await?;
        let word = Word { actor: Some("outlet".into()), reason: Some("paid twice".into()) };
        store.cancel_job(CancelJob { sight: Sight::All, job: canceled, force: false, word }).await?;
        let outlet = Self::start(stage)?;
        outlet.is_set(stage).await?;
        Ok(outlet)
    }

    fn start(stage: &Stage) -> Result<Self, Failure> {
        let worker = Worker::builder(&stage.store)
            .name(WORKER)
            .grace(Duration::from_millis(300))
            .poll_every(Duration::from_millis(100))
            .queue(QUEUE, 6)
            .queue(OWN_QUEUE, 4)
            .state(stage.file.clone())
            .handle(stock_count)
            .handle(label_print)
            .handle(refund_pay)
            .handle(feed_fetch)
            .handle(truck_unload)
            .handle(delivery_page)
            .handle(delivery_book)
            .handle(operate)
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let ran = tokio::spawn(worker.run_until(async move {
            let _ = stopped.await;
        }));
        Ok(Self { stop, ran })
    }

    /// Waits for the facts that the first page shows, and has them summed up for its charts.
    async fn is_set(&self, stage: &Stage) -> Result<(), Failure> {
        let store = &stage.store;
        let gate = GateName::new(SUPPLIER)?;
        let deadline = Instant::now() + DEADLINE;
        loop {
            let is_open = matches!(store.show_gate(&gate).await?.admit, Admit::Closed { why: Why::Open, .. });
            let runs = RunFilter { state: Some(RunState::Running), limit: 1, ..RunFilter::default() };
            let mut seen = is_open && !store.list_runs(&runs).await?.is_empty();
            for state in [State::Running, State::Succeeded, State::Failed, State::Dead] {
                let sight = Sight::Tenant(TENANT.parse()?);
                let filter = JobFilter { sight, state: Some(state), limit: 3, ..JobFilter::default() };
                let jobs = store.list_jobs(&filter).await?.len();
                seen &= if state == State::Dead { jobs == 3 } else { jobs > 0 };
            }
            if seen {
                break;
            }
            if Instant::now() > deadline {
                let hint = "Is this machine very busy? Nothing is left behind: try again.";
                return Err(Failure::new("demo", exit::REFUSED, "the outlet did not open in time").hint(hint));
            }
            if self.ran.is_finished() {
                return Err(Failure::new("demo", exit::STORE, "the outlet's worker has stopped"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        store.seal_journal().await?;
        while store.fold_rollups().await? > 0 {}
        Ok(())
    }

    /// Closes it. What is not done stays undone.
    pub(super) async fn close(self) {
        // Nobody listens when it has ended by itself; either way it is over.
        let _ = self.stop.send(());
        let _ = self.ran.await;
    }
}

/// Stores what the outlet has to do; answers the job that is canceled.
async fn stock(client: &Client) -> Result<JobId, Failure> {
    client.enqueue_many((1..=12).map(|shelf| StockCount { shelf })).await?;
    client.enqueue_many((1..=3).map(|parcel| LabelPrint { parcel })).await?;
    client.enqueue(RefundPay { order: 7, iban: "XX00".into() }).await?;
    client.enqueue_many((1..=5).map(|part| FeedFetch { part })).each(|_, job| job.gate(SUPPLIER)).await?;
    client.enqueue(TruckUnload { gate: 2 }).await?;
    let mut run = client.new_run().source("outlet delivery").owner("warehouse");
    for pallet in 1..=8 {
        let page = client.enqueue(DeliveryPage { pallet });
        run = run.partition(&format!("pallet-{pallet}"), page, PAGE_ROWS).expected(ROWS);
    }
    run.consolidate(client.enqueue(DeliveryBook { truck: "B-42".into() })).await?;
    client.set_schedule(Schedule::new("nightly-count", "0 3 * * *"), StockCount { shelf: 0 }).await?;
    let later = client.enqueue(RefundPay { order: 8, iban: "DE02".into() }).delay(Duration::from_secs(86_400)).await?;
    Ok(later.job())
}

async fn stock_count(job: StockCount, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, Duration::from_millis(20 + u64::from(job.shelf) * 7)).await
}

async fn label_print(_: LabelPrint) -> Result<(), Fail> {
    Err(Fail::dead("the label printer is out of paper"))
}

async fn refund_pay(job: RefundPay) -> Result<(), Fail> {
    Err(Fail::permanent(format!("{} is no account", job.iban)))
}

async fn feed_fetch(_: FeedFetch) -> Result<(), Fail> {
    Err(Fail::http_status(503, "503 service unavailable"))
}

async fn truck_unload(_: TruckUnload, ctx: Ctx) -> Result<(), Fail> {
    work(&ctx, Duration::from_secs(1_800)).await
}

async fn delivery_page(
    _: DeliveryPage,
    Shared(store): Shared<SqliteStore>,
    ctx: Ctx,
    page: Page,
) -> Result<Completed, Fail> {
    work(&ctx, PAGE_TIME).await?;
    let rows = ROWS.saturating_sub(page.offset()).min(u64::from(page.limit()));
    store.transaction(move |tx| page.advance(tx, rows)).await
}

async fn delivery_book(_: DeliveryBook) -> Result<(), Fail> {
    Ok(())
}

/// Takes its time, and stops when it is told to.
async fn work(ctx: &Ctx, time: Duration) -> Result<(), Fail> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        _ = ctx.stopped() => ctx.check(),
    }
}
