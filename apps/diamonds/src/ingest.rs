//! [`ingest`]: one page, from the supplier into the raw table.
//!
//! The page is fetched while no transaction is open. Then one transaction stores its stones by one statement, moves the
//! partition on, stores the job of the next page, or WORK_DONE when it was the last, and ends this job: all of it or
//! nothing. Whether it is this page's turn is asked twice: before the supplier is called, and in the transaction.

use tenure::core::{Invalid, Json};
use tenure::sink::{Row, Sink, Type};
use tenure::{Completed, Ctx, Fail, Page, State, row};

use crate::supplier::Told;
use crate::work_done::WorkDone;
use crate::work_item::WorkItem;
use crate::worker::Diamonds;

/// Fetches a page and stores it.
pub async fn ingest(
    first: WorkItem,
    State(diamonds): State<Diamonds>,
    page: Page,
    ctx: Ctx,
) -> Result<Completed, Fail> {
    let item = WorkItem::of(first, &page);
    let (message, trace) = (item.message_id(), item.trace_id.clone());
    let (as_of, told) = diamonds.supplier.page(&ctx, &item).await?;
    let rows =
        told.iter().map(|told| raw_row(&item, as_of, told)).collect::<Result<_, _>>().map_err(Fail::permanent)?;
    let (raw, came) = (diamonds.raw.clone(), told.len() as u64);
    let completed = diamonds
        .database
        .transaction(move |tx| {
            raw.upsert(tx, rows)?;
            let completed = page.advance(tx, came)?;
            if item.after(came).is_none() {
                WorkDone::completed(&item, item.offset + came).store(tx)?;
            }
            Ok::<_, Fail>(completed)
        })
        .await?;
    tracing::info!(message, trace, came, "a page is stored");
    Ok(completed)
}

/// The table that pages go into. Each revision has its own rows: what another run reads, later or earlier, neither undoes
/// nor joins what this one publishes.
pub(crate) fn raw_sink() -> Result<Sink, Invalid> {
    Sink::table("diamonds_raw")
        .key("as_of", Type::Int)
        .key("supplier_stone_id", Type::Text)
        .value("run_id", Type::Text)
        .value("offer_id", Type::Text)
        .value("payload", Type::Json)
        .overwrite()
}

fn raw_row(item: &WorkItem, as_of: u32, Told { stone, json }: &Told) -> Result<Row, Invalid> {
    let payload = Json::parse("payload", json.to_string())?;
    Ok(row![as_of, stone.supplier_stone_id.as_str(), item.run_id, stone.offer_id.as_str(), payload])
}
