//! The registry of worker processes.

use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::name::WorkerName;
use tenure_core::{WorkerId, worker_loop};
use tenure_store::StoreError;
use tenure_store::worker::{About, Beat, Order, OrderWorker, WorkerRecord};

use crate::fault::{Result, corrupt};
use crate::journal::{self, Entry};
use crate::row::{number, optional_time, text, time, word};
use crate::tx::Tx;

const REGISTER_WORKER: &str = include_str!("sql/register_worker.sql");
const BEAT_WORKER: &str = include_str!("sql/beat_worker.sql");
const FIND_ORDER: &str = include_str!("sql/find_order.sql");
const ORDER_WORKER: &str = include_str!("sql/order_worker.sql");
const LIST_WORKERS: &str = include_str!("sql/list_workers.sql");
const LIST_SLOTS: &str = include_str!("sql/list_slots.sql");

/// Enters a start of a worker process.
pub(crate) fn register_worker(tx: &Tx<'_>, name: &WorkerName) -> Result<WorkerId> {
    let params = named_params! { ":name": name.as_str(), ":now": tx.now.as_micros() };
    let id = tx.one(REGISTER_WORKER, params, |row| Ok(WorkerId(row.get(0)?)))?;
    id.ok_or_else(|| corrupt("a worker was added without a number"))
}

/// Writes down what a worker does.
pub(crate) fn beat_worker(tx: &Tx<'_>, beat: &Beat) -> Result<Order> {
    let Beat { worker, state, running, reporting, about } = beat;
    let queues = about.queues.iter().map(|(queue, slots)| format!("[{},{slots}]", quote(queue.as_str())));
    let queues = format!("[{}]", queues.collect::<Vec<_>>().join(","));
    let params = named_params! {
        ":worker": worker.0,
        ":now": tx.now.as_micros(),
        ":state": state.as_str(),
        ":running": running,
        ":reporting": reporting,
        ":version": about.version,
        ":host": about.host,
        ":pid": about.pid,
        ":queues": queues,
    };
    let order = tx.one(BEAT_WORKER, params, |row| order(row, 0))?;
    order.ok_or_else(|| StoreError::NotFound(format!("worker {worker}")).into())
}

/// Tells a worker what to do.
pub(crate) fn order_worker(tx: &Tx<'_>, request: &OrderWorker) -> Result<()> {
    let OrderWorker { worker, order: told, word } = request;
    let before = tx.one(FIND_ORDER, named_params! { ":worker": worker.0 }, |row| order(row, 0))?;
    let before = before.ok_or_else(|| StoreError::NotFound(format!("worker {worker}")))?;
    if before == *told {
        return Ok(());
    }
    tx.execute(ORDER_WORKER, named_params! { ":worker": worker.0, ":told": told.as_str() })?;
    let details = format!("{{\"worker\":{worker},\"order\":\"{}\"}}", told.as_str());
    let entry = Entry { details: Some(details), ..Entry::said(JournalEvent::WorkerOrdered, word) };
    journal::add_json(tx, &entry, "[]")
}

fn order(row: &Row<'_>, column: usize) -> Result<Order> {
    let word = text(row, column)?;
    Order::parse(word).ok_or_else(|| corrupt(format!("worker.told is {word}")))
}

/// The registry, or one line of it.
pub(crate) fn list_workers(tx: &Tx<'_>, worker: Option<WorkerId>, limit: u32) -> Result<Vec<WorkerRecord>> {
    tx.all(LIST_WORKERS, named_params! { ":worker": worker.map(|worker| worker.0), ":limit": limit }, |row| {
        let (id, seen_at) = (WorkerId(row.get(0)?), optional_time(row, 3)?);
        let beat = seen_at.map(|_| read_beat(tx, row, id)).transpose()?;
        let (name, registered_at) = (word(row, 1)?, time(row, 2)?);
        Ok(WorkerRecord { id, name, registered_at, beat, seen_at, order: order(row, 11)? })
    })
}

fn read_beat(tx: &Tx<'_>, row: &Row<'_>, worker: WorkerId) -> Result<Beat> {
    let state = text(row, 4)?;
    let known = worker_loop::State::parse(state);
    let queues = tx.all(LIST_SLOTS, named_params! { ":queues": text(row, 10)? }, |row| {
        Ok((word(row, 0)?, number::<i64, u32>(row, 1, "worker.queues")?))
    })?;
    Ok(Beat {
        worker,
        state: known.ok_or_else(|| corrupt(format!("worker.state is {state}")))?,
        running: number::<i64, u32>(row, 5, "worker.running")?,
        reporting: number::<i64, u32>(row, 6, "worker.reporting")?,
        about: About {
            version: row.get(7)?,
            host: row.get(8)?,
            pid: number::<i64, u32>(row, 9, "worker.pid")?,
            queues,
        },
    })
}
