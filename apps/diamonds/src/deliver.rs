//! [`deliver`]: WORK_ITEM messages that come from outside, once, twice or out of order.
//!
//! Pages follow each other by themselves. But whoever still speaks the messages of the old system, a scheduler of theirs
//! or a person with a message in hand, may send one. It is a job, known by its stable id for ten minutes, and it can never
//! do more than the page's own job: what its partition waits for is on its way already, and everything else is skipped.
//! Only where the page has failed for good the message gives it another five tries, as it did in the old system.

use serde::{Deserialize, Serialize};
use tenure::store::enqueue::Enqueued;
use tenure::{Client, Ctx, Fail, Job, Policy, Returned, RunState, State, StoreError, Unique};

use crate::monitor::{self, NotResumed};
use crate::settings::Settings;
use crate::work_item::WorkItem;
use crate::worker::Diamonds;

/// A message that came.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "diamonds.deliver", queue = "diamonds", max_attempts = 5, backoff = "none", timeout = "60s")]
#[serde(transparent)]
pub struct Deliver(pub WorkItem);

/// What came of it, kept as the job's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "delivered", rename_all = "snake_case")]
pub enum Delivered {
    /// Its partition is complete.
    Completed,
    /// Its run was canceled.
    Canceled,
    /// It was repeated, or comes out of order.
    OffsetMismatch {
        /// Where the partition goes on.
        expected: u64,
        /// What came.
        got: u64,
    },
    /// The page has a job of its own, which has not ended.
    OnItsWay,
    /// The page had failed, and stays so while another run goes on.
    Busy {
        /// Which one.
        run: String,
    },
    /// The page had failed and is tried again.
    Resumed,
}

/// Takes a message as it came. One that was sent in the last ten minutes is found.
pub async fn send(client: &Client, settings: &Settings, message: &[u8]) -> Result<Enqueued, StoreError> {
    let item = WorkItem::read(message)?;
    let unique = Unique::new(item.message_id(), Policy::Window(settings.window));
    client.enqueue(Deliver(item)).max_attempts(settings.deliveries).unique_by(unique).await
}

/// Compares a message with its partition.
pub async fn deliver(
    Deliver(item): Deliver,
    State(diamonds): State<Diamonds>,
    ctx: Ctx,
) -> Result<Returned<Delivered>, Fail> {
    let unknown = || Fail::permanent(format!("there is no partition {} in run {}", item.partition_id, item.run_id));
    let run = match ctx.client().show_run(item.run_id).await {
        Ok(record) => record.run,
        Err(StoreError::NotFound(_)) => return Err(unknown()),
        Err(error) => return Err(error.into()),
    };
    let partitions = ctx.client().partitions_of(item.run_id).await?;
    let found = partitions.into_iter().find(|partition| partition.name == item.partition_id);
    let partition = found.ok_or_else(unknown)?;
    let (expected, got) = (partition.next_offset, item.offset);
    let delivered = match (partition.state, run.state) {
        (RunState::Succeeded, _) => Delivered::Completed,
        (RunState::Canceled, _) | (_, RunState::Canceled) => Delivered::Canceled,
        _ if expected != got => Delivered::OffsetMismatch { expected, got },
        (RunState::Queued | RunState::Running, _) => Delivered::OnItsWay,
        (RunState::Failed, _) => resume(&diamonds, &ctx, &item).await?,
    };
    let (message, trace) = (item.message_id(), item.trace_id);
    match &delivered {
        Delivered::OffsetMismatch { .. } => {
            tracing::warn!(message, trace, expected, got, "offset_mismatch: a message changes nothing");
        }
        delivered => tracing::info!(message, trace, ?delivered, "a message came"),
    }
    Ok(Returned(delivered))
}

async fn resume(diamonds: &Diamonds, ctx: &Ctx, item: &WorkItem) -> Result<Delivered, Fail> {
    match monitor::resume(&diamonds.database, ctx.client(), item.run_id, &item.partition_id).await {
        Ok(()) => Ok(Delivered::Resumed),
        Err(NotResumed::Busy { open, .. }) => Ok(Delivered::Busy { run: open.to_string() }),
        // Somebody was faster: the next try sees what they did.
        Err(NotResumed::Store(error)) => Err(error.into()),
    }
}
