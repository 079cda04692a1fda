//! F7: only the keeper's way to the database is cut: handlers are stopped before the database lets the lease go.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tenure_core::LeaseNo;
use tenure_postgres::tokio_postgres::{Client, NoTls, connect};

use crate::pass_line::PassLine;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::record::{Grant, Record};
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Place};

/// The row.
pub(super) const ROW: Row = Row {
    id: "F7",
    fault: "only the way of renewals is cut",
    injected: "the proxy freezes the keeper's connections while 20 handlers run, and nothing else",
    run: |size| Box::pin(run(size)),
};

const JOBS: usize = 20;
const LEASE: Duration = Duration::from_secs(2);
/// As the keeper's connections call themselves.
const KEEPER: &str = "tenure-keeper";

async fn run(size: Size) -> Report {
    let freezes = size.pick(5, 10);
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let eye = Eye::open(&stage.place.text()).await;
    let worker = stage.worker_at(&Place::Postgres(through), "w", &["--queue", "default=20"]);
    let mut slacks: Vec<i64> = Vec::new();
    for freeze in 0..freezes {
        slacks.extend(freeze_once(&mut stage, &proxy, &eye, &worker, freeze).await);
    }
    slacks.sort_unstable();
    let in_time = slacks.iter().filter(|slack| **slack > 0).count();
    let (line, record) = PassLine::measure(&mut stage).await;
    let mut report = Report::default();
    report.number(format!(
        "{in_time} of {} handlers were gone before the database's expiry, by {} ms at least and {} ms in the middle; \
         the proxy held back {} times; attempts {:?}",
        slacks.len(),
        slacks[0] / 1_000,
        slacks[slacks.len() / 2] / 1_000,
        proxy.held_back(),
        record.tally()
    ));
    report.must((in_time, slacks.len()) == (freezes * JOBS, freezes * JOBS), "every handler is gone in time");
    report.must(proxy.held_back() >= freezes, "every freeze was noticed");
    report.must(record.succeeded().len() == freezes * JOBS, "and all succeed in the end");
    report.line(line);
    report.bite(slacks.len(), freezes * JOBS, "handlers whose lease was not renewed");
    report
}

/// How long before the end of its lease each handler was gone, in microseconds.
async fn freeze_once(stage: &mut Stage, proxy: &Proxy, eye: &Eye, worker: &Process, freeze: usize) -> Vec<i64> {
    let gate = format!("go-{freeze}");
    let before: HashSet<Grant> = stage.noted("start").iter().map(|entry| (entry.job, entry.fence)).collect();
    stage.enqueue((0..JOBS).map(|_| Act::Hold { gate: gate.clone() }).collect()).await;
    let held = watch("all jobs are held", async || {
        let starts = stage.noted("start");
        let held: HashSet<Grant> = starts.iter().map(|entry| (entry.job, entry.fence)).collect();
        let held: HashSet<Grant> = held.difference(&before).copied().collect();
        (held.len() == JOBS).then_some(held)
    })
    .await;
    let noticed = proxy.held_back();
    proxy.freeze(KEEPER);
    let mut expiries: HashMap<LeaseNo, i64> = HashMap::new();
    let gone = watch(&format!("the handlers are gone\n{}", worker.log()), async || {
        expiries.extend(eye.expiries().await);
        let gone: HashMap<Grant, i64> =
            stage.noted("gone").iter().map(|entry| ((entry.job, entry.fence), entry.at)).collect();
        held.iter().all(|grant| gone.contains_key(grant)).then_some(gone)
    })
    .await;
    assert!(proxy.held_back() > noticed, "the keeper met the freeze, or the run is void");
    let told: HashSet<Grant> = stage.noted("told lease_lost").iter().map(|entry| (entry.job, entry.fence)).collect();
    assert!(held.is_subset(&told), "it was the lost lease that they were told of");
    proxy.thaw(KEEPER);
    stage.gates.open(&gate).unwrap();
    watch("they end under later leases", async || {
        let record = Record::read(&*stage.store).await;
        (record.succeeded().len() == (freeze + 1) * JOBS).then_some(())
    })
    .await;
    held.iter().map(|grant| expiries[&grant.1] - gone[grant]).collect()
}

/// Another connection to the database, past the proxy.
struct Eye(Client);

impl Eye {
    async fn open(url: &str) -> Self {
        let (client, connection) = connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self(client)
    }

    /// When the database lets each lease go, in microseconds.
    async fn expiries(&self) -> Vec<(LeaseNo, i64)> {
        let sql = "select no, (extract(epoch from expires_at) * 1000000)::bigint from tenure.lease";
        let rows = self.0.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| (LeaseNo(row.get(0)), row.get(1))).collect()
    }
}
