//! The registry of worker processes.

use tenure_core::{WorkerId, worker_loop};
use tenure_store::StoreError;
use tenure_store::worker::{About, Beat, Order, OrderWorker, WorkerRecord};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::Param;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{get, named, time, time_maybe};

const ORDER_WORKER: Statement =
    Statement { name: "order_worker", sql: "select tenure.order_worker($1, $2, $3, $4, $5)" };

impl PgStore {
    /// Writes down what a worker does.
    pub(crate) async fn beat(&self, beat: &Beat) -> Result<Order, StoreError> {
        beat.check()?;
        let Beat { worker, state, running, reporting, about } = beat;
        let queues: Vec<&str> = about.queues.iter().map(|(queue, _)| queue.as_str()).collect();
        let slots: Vec<i64> = about.queues.iter().map(|(_, slots)| i64::from(*slots)).collect();
        let (running, reporting, pid) = (i64::from(*running), i64::from(*reporting), i64::from(about.pid));
        let (state, now) = (state.as_str(), self.moment());
        let params: [Param<'_>; 10] = [
            (&worker.0, Type::INT4),
            (&state, Type::TEXT),
            (&running, Type::INT8),
            (&reporting, Type::INT8),
            (&about.version, Type::TEXT),
            (&about.host, Type::TEXT),
            (&pid, Type::INT8),
            (&queues, Type::TEXT_ARRAY),
            (&slots, Type::INT8_ARRAY),
            (&now, Type::TIMESTAMPTZ),
        ];
        match self.call(Desk::Short, statement::BEAT_WORKER, &params).await?.first() {
            Some(row) => order(row),
            None => Err(StoreError::NotFound(format!("worker {worker}"))),
        }
    }

    /// Tells a worker what to do.
    pub(crate) async fn order(&self, request: &OrderWorker) -> Result<(), StoreError> {
        request.word.check()?;
        let (order, now) = (request.order.as_str(), self.moment());
        let params: [Param<'_>; 5] = [
            (&request.worker.0, Type::INT4),
            (&order, Type::TEXT),
            (&request.word.actor, Type::TEXT),
            (&request.word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        self.call(Desk::Short, ORDER_WORKER, &params).await?;
        Ok(())
    }

    /// Reads the registry.
    pub(crate) async fn workers(&self, worker: Option<WorkerId>, limit: u32) -> Result<Vec<WorkerRecord>, StoreError> {
        WorkerRecord::check_limit(limit)?;
        let (worker, limit) = (worker.map(|worker| worker.0), i64::from(limit));
        let rows =
            self.call(Desk::Long, statement::LIST_WORKERS, &[(&limit, Type::INT8), (&worker, Type::INT4)]).await?;
        rows.iter().map(record).collect()
    }
}

fn record(row: &Row) -> Result<WorkerRecord, StoreError> {
    let id = WorkerId(get(row, "id")?);
    let seen_at = time_maybe(row, "seen_at")?;
    Ok(WorkerRecord {
        id,
        name: named(row, "name")?,
        registered_at: time(row, "registered_at")?,
        beat: seen_at.map(|_| beat(row, id)).transpose()?,
        seen_at,
        order: order(row)?,
    })
}

fn beat(row: &Row, worker: WorkerId) -> Result<Beat, StoreError> {
    let word: &str = get(row, "state")?;
    let state = worker_loop::State::parse(word);
    let queues: Vec<&str> = get(row, "queues")?;
    let slots: Vec<i64> = get(row, "slots")?;
    let queue = |(name, slots): (&str, i64)| {
        let name = name.parse().map_err(|e: tenure_core::Invalid| StoreError::Corrupt(e.to_string()))?;
        Ok((name, small("slots", slots)?))
    };
    let about = About {
        version: get(row, "version")?,
        host: get(row, "host")?,
        pid: number(row, "pid")?,
        queues: queues.into_iter().zip(slots).map(queue).collect::<Result<_, StoreError>>()?,
    };
    Ok(Beat {
        worker,
        state: state.ok_or_else(|| StoreError::Corrupt(format!("worker {worker} is `{word}`")))?,
        running: number(row, "running")?,
        reporting: number(row, "reporting")?,
        about,
    })
}

fn order(row: &Row) -> Result<Order, StoreError> {
    let word: &str = get(row, "told")?;
    Order::parse(word).ok_or_else(|| StoreError::Corrupt(format!("a worker is told to `{word}`")))
}

fn number(row: &Row, column: &str) -> Result<u32, StoreError> {
    small(column, get(row, column)?)
}

fn small(column: &str, value: i64) -> Result<u32, StoreError> {
    u32::try_from(value).map_err(|_| StoreError::Corrupt(format!("column {column} is {value}")))
}
