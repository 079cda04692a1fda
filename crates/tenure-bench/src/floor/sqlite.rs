//! The floor on SQLite: the same tables in a file of their own, one connection, commits that wait for the disk.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tenure_sqlite::rusqlite::{Connection, params};

/// The raw tables in a file of their own.
pub struct SqliteFloor(Mutex<Connection>);

impl SqliteFloor {
    /// Makes the file and its tables.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = Connection::open(path)?;
        file.pragma_update(None, "journal_mode", "wal")?;
        file.pragma_update(None, "synchronous", "full")?;
        file.pragma_update(None, "wal_autocheckpoint", 4_000)?;
        file.pragma_update(None, "cache_size", -32_000)?;
        file.execute_batch(include_str!("./layout_sqlite.sql"))?;
        Ok(Self(Mutex::new(file)))
    }

    pub(super) fn fill(&self, jobs: u32) -> Result<()> {
        self.enqueue(jobs, 10_000).map(drop)
    }

    pub(super) fn enqueue(&self, jobs: u32, bulk: u32) -> Result<Duration> {
        let mut file = self.lock();
        let payload = format!("{{\"p\": \"{}\"}}", "x".repeat(100));
        let first: i64 = file.query_row("select count(*) from job", [], |row| row.get(0))?;
        let ids: Vec<[u8; 16]> =
            (u128::from(first.unsigned_abs())..).take(jobs as usize).map(u128::to_be_bytes).collect();
        let began = Instant::now();
        for chunk in ids.chunks(bulk as usize) {
            let tx = file.transaction()?;
            let mut job = tx.prepare_cached(
                "insert into job (id, queue, kind, payload, created_at) values (?1, 1, 'noop', ?2, 0)",
            )?;
            let mut ready =
                tx.prepare_cached("insert into ready (queue, priority, run_at, job) values (1, 2, 0, ?1)")?;
            for id in chunk {
                job.execute(params![id, payload])?;
                ready.execute(params![id])?;
            }
            drop((job, ready));
            tx.commit()?;
        }
        Ok(began.elapsed())
    }

    pub(super) fn drain(&self, jobs: u32, batch: u32) -> Result<Duration> {
        let mut file = self.lock();
        let began = Instant::now();
        let (mut lease, mut done) = (Lease::default(), 0);
        loop {
            let next = turn(&mut file, &lease, batch)?;
            done += next.jobs.len();
            if next.jobs.is_empty() && lease.jobs.is_empty() {
                break;
            }
            lease = next;
        }
        ensure!(done == jobs as usize, "the floor ended {done} of {jobs} jobs");
        Ok(began.elapsed())
    }

    pub(super) async fn latency(&self, times: u32, gap: Duration) -> Result<Vec<Duration>> {
        let (mut took, mut lease) = (Vec::new(), Lease::default());
        for _ in 0..times {
            let began = Instant::now();
            self.enqueue(1, 1)?;
            lease = turn(&mut self.lock(), &lease, 1)?;
            took.push(began.elapsed());
            tokio::time::sleep(gap).await;
        }
        Ok(took)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one turn took.
#[derive(Default)]
struct Lease {
    no: i64,
    jobs: Vec<[u8; 16]>,
}

/// Ends the whole previous lease and claims the next jobs, in one transaction.
fn turn(file: &mut Connection, lease: &Lease, batch: u32) -> Result<Lease> {
    let tx = file.transaction()?;
    let mut note = tx.prepare_cached("insert into journal (at, event, lease, jobs) values (0, ?1, ?2, ?3)")?;
    if !lease.jobs.is_empty() {
        let mut end =
            tx.prepare_cached("insert into attempt (job, lease, attempt, how, ended_at) values (?1, ?2, 1, 1, 0)")?;
        for job in &lease.jobs {
            end.execute(params![job, lease.no])?;
        }
        note.execute(params![2, lease.no, as_json(&lease.jobs)])?;
        tx.prepare_cached("delete from lease where no = ?1")?.execute([lease.no])?;
    }
    let mut look = tx.prepare_cached(
        "select r.job, j.payload from ready r join job j on j.id = r.job where r.queue = 1 and r.priority = 2 order by r.run_at, r.job limit ?1",
    )?;
    let ready: Vec<([u8; 16], String)> =
        look.query_map([batch], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut next = Lease { no: 0, jobs: ready.into_iter().map(|(job, _)| job).collect() };
    if !next.jobs.is_empty() {
        let jobs = as_json(&next.jobs);
        next.no = tx
            .prepare_cached("insert into lease (worker, expires_at, jobs) values (1, 60, ?1) returning no")?
            .query_row([&jobs], |row| row.get(0))?;
        let mut take =
            tx.prepare_cached("delete from ready where queue = 1 and priority = 2 and run_at = 0 and job = ?1")?;
        for job in &next.jobs {
            take.execute([job])?;
        }
        note.execute(params![1, next.no, jobs])?;
    }
    drop((note, look));
    tx.commit()?;
    Ok(next)
}

fn as_json(jobs: &[[u8; 16]]) -> String {
    let hex: Vec<String> = jobs.iter().map(|job| format!("\"{:032x}\"", u128::from_be_bytes(*job))).collect();
    format!("[{}]", hex.join(","))
}
