//! F52: an asynchronous standby that misses many claims takes over, a backup is recovered to a point in time, and a clone is
//! started. No lease number is given out twice, reports of before are refused, and an old anchor is not confirmed.

use std::time::Duration;

use tenure_cluster::postgres_backup::Backup;
use tenure_cluster::postgres_server::{Options, Postgres, psql};
use tenure_core::seal::Anchor;
use tenure_core::{LeaseNo, WorkerId};
use tenure_postgres::PgStore;
use tenure_store::Store;
use tenure_store::audit::{self, Finding};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending};
use tenure_store::operate::{PauseQueue, Word};

use crate::Act;
use crate::pass_line::PassLine;
use crate::place::Place;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F52",
    fault: "asynchronous failover, recovery to a point in time, clone",
    injected: "a standby that is cut off misses claims, the primary is stopped, the standby promoted under living and frozen \
               workers, again and again; then a recovery to a restore point; then a clone and `rehome --leap`",
    run: |size| Box::pin(run(size)),
};

const LEASE: Duration = Duration::from_secs(2);
/// One job for each claim, so that claims are many.
const FLAGS: [&str; 2] = ["--queue", "default=1"];
const WORKERS: usize = 3;

/// What was given out before a server was replaced.
#[derive(Default)]
struct Totals {
    replaced: usize,
    missed: usize,
    refused: usize,
}

async fn run(size: Size) -> Report {
    // A sequence logs 32 numbers ahead: a lag below that would repeat nothing.
    let (rounds, lag) = size.pick((1, 60), (4, 500));
    let mut report = Report::default();
    let mut totals = Totals::default();
    let mut primary = Postgres::start(&Options::default()).unwrap();
    let mut stage = Stage::at(primary.url("postgres")).await;
    stage.set_lease("default", LEASE).await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let through = Place::Postgres(through);
    let workers: Vec<Process> = (0..WORKERS).map(|n| stage.worker_at(&through, &format!("w{n}"), &FLAGS)).collect();
    for _ in 0..rounds {
        primary = fail_over(&mut report, &mut totals, &mut stage, primary, &proxy, &workers, lag).await;
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    drop(workers);
    recover(&mut report, &mut totals, lag).await;
    clone(&mut report, &mut totals, &stage, &primary, lag).await;
    report.number(format!(
        "{} servers replaced ({rounds} failovers, a recovery, a clone): {} claims were missing on the new ones; {} reports of \
         before refused; timeline {}; attempts {:?}, {} refused in the journal",
        totals.replaced,
        totals.missed,
        totals.refused,
        stage.sql("select timeline from tenure.home"),
        record.tally(),
        record.refused.len()
    ));
    report.line(line);
    report.bite(totals.missed, (rounds + 2) * lag, "claims that the new server had not seen");
    report
}

/// Workers claim what the standby never hears of; one sleeps through the promotion with a job in its hands.
async fn fail_over(
    report: &mut Report,
    totals: &mut Totals,
    stage: &mut Stage,
    mut primary: Postgres,
    proxy: &Proxy,
    workers: &[Process],
    lag: usize,
) -> Postgres {
    let standby = primary.back_up().and_then(Backup::start_standby).unwrap();
    pause(stage, true).await;
    stage.enqueue((0..lag * 2).map(|_| Act::Wait { ms: 5 }).collect()).await;
    standby.wait_for(&primary).unwrap();
    standby.cut_off().unwrap();
    pause(stage, false).await;
    let seen = claims(&standby);
    watch("workers claim", async || (claims(&primary) >= seen + lag).then_some(())).await;
    let anchor = anchor(&*stage.store).await;
    // Not before: it may fall asleep while it seals, and its open transaction keeps others from sealing.
    workers[0].freeze();
    let known = newest(&*stage.store).await;
    let missed = claims(&primary) - seen;
    primary.stop().unwrap();
    standby.promote().unwrap();
    let before = stage.entries().len();
    proxy.lead_to(&standby.url("postgres"));
    stage.move_to(standby.url("postgres")).await;
    pause(stage, false).await;
    workers[0].thaw();
    watch("workers go on", async || (stage.entries().len() > before + lag / 2).then_some(())).await;
    // By its journal: a worker may still begin what it was given before.
    let granted = "select coalesce(min(lease), 0) from tenure.journal where event = 1
        and id > (select max(id) from tenure.journal where event = 9)";
    let lowest: i64 = stage.sql(granted).parse().unwrap();
    report.must(lowest > known.0, format!("lease {lowest} was given out after {known}"));
    missed_anchor(report, &*stage.store, &anchor).await;
    totals.replaced += 1;
    totals.missed += missed;
    standby
}

/// While the queue is paused, all of its jobs wait: what is claimed then is claimed on one server only.
async fn pause(stage: &Stage, paused: bool) {
    let request = PauseQueue { queue: Default::default(), paused, word: Word::default() };
    stage.store.pause_queue(request).await.unwrap();
}

/// The restore point lies before claims that the recovered server never sees.
async fn recover(report: &mut Report, totals: &mut Totals, lag: usize) {
    let archived = Postgres::start(&Options { archive: true, ..Options::default() }).unwrap();
    let other = Stage::at(archived.url("postgres")).await;
    other.enqueue((0..lag * 2).map(|_| Act::Wait { ms: 0 }).collect()).await;
    let backup = archived.back_up().unwrap();
    let worker = other.store.register_worker(&"recovered".parse().unwrap()).await.unwrap();
    other.sql("select pg_create_restore_point('here')");
    let known = Known::work(&other, worker, lag).await;
    let file = other.sql("select pg_walfile_name(pg_switch_wal())");
    let archive = format!("select last_archived_wal >= '{file}' from pg_stat_archiver");
    watch("the log is archived", async || (other.sql(&archive) == "t").then_some(())).await;
    let recovered = backup.start_recovered(&archived, "here").unwrap();
    known.hold(report, totals, &recovered).await;
}

/// A clone keeps its timeline: only the operator can tell.
async fn clone(report: &mut Report, totals: &mut Totals, stage: &Stage, primary: &Postgres, lag: usize) {
    stage.enqueue((0..lag * 2).map(|_| Act::Wait { ms: 0 }).collect()).await;
    let worker = stage.store.register_worker(&"cloned".parse().unwrap()).await.unwrap();
    let clone = primary.back_up().and_then(Backup::start_clone).unwrap();
    let known = Known::work(stage, worker, lag).await;
    PgStore::rehome(&clone.url("postgres"), true).await.unwrap();
    known.hold(report, totals, &clone).await;
}

/// Claims that only the original has seen.
struct Known {
    worker: WorkerId,
    claims: Vec<(LeaseNo, tenure_core::JobId)>,
    anchor: Anchor,
}

impl Known {
    async fn work(stage: &Stage, worker: WorkerId, claims: usize) -> Self {
        let claims = claim(&*stage.store, worker, claims).await;
        Self { worker, claims, anchor: anchor(&*stage.store).await }
    }

    /// The new server draws other numbers and refuses what is reported under the old ones.
    async fn hold(self, report: &mut Report, totals: &mut Totals, server: &Postgres) {
        let store = Place::Postgres(server.url("postgres")).open().await.unwrap();
        let newest = self.claims.iter().map(|(lease, _)| *lease).max().unwrap_or(LeaseNo(0));
        let drawn = claim(&*store, self.worker, self.claims.len() / 2).await;
        let lowest = drawn.iter().map(|(lease, _)| *lease).min().unwrap_or(LeaseNo(0));
        report.must(lowest > newest, format!("lease {lowest} was drawn after {newest}"));
        for (lease, job) in &self.claims {
            let ending = Ending::Succeeded { result: None, usage: None };
            let end = EndJobs { worker: self.worker, lease: *lease, jobs: vec![EndJob::new(*job, ending)] };
            let answer = store.end_jobs(end).await.unwrap()[0];
            report.must(matches!(answer, Ended::LeaseLost { .. }), format!("{lease} was reported: {answer:?}"));
            totals.refused += usize::from(matches!(answer, Ended::LeaseLost { .. }));
        }
        missed_anchor(report, &*store, &self.anchor).await;
        // A server that has just started has no statistics, and the view would be planned for tables without a row.
        psql(&server.admin_url(), "analyze").unwrap();
        let violations = store.find_violations(10).await.unwrap();
        report.must(violations.is_empty(), format!("no invariant is broken: {violations:?}"));
        totals.replaced += 1;
        totals.missed += self.claims.len();
    }
}

/// Claims that a server has seen.
fn claims(server: &Postgres) -> usize {
    psql(&server.admin_url(), "select count(*) from tenure.journal where event = 1").unwrap().parse().unwrap()
}

async fn claim(store: &dyn Store, worker: WorkerId, claims: usize) -> Vec<(LeaseNo, tenure_core::JobId)> {
    let mut claimed = Vec::new();
    for _ in 0..claims {
        let one = store.claim_jobs(ClaimJobs::new(worker, Default::default(), 1)).await.unwrap().unwrap();
        claimed.push((one.lease, one.jobs[0].id));
    }
    claimed
}

async fn newest(store: &dyn Store) -> LeaseNo {
    store.newest_lease().await.unwrap()
}

/// The head of the chain, as it is kept elsewhere.
async fn anchor(store: &dyn Store) -> Anchor {
    while store.seal_journal().await.unwrap().is_some() {}
    audit::verify(store, None, |_| ()).await.unwrap().head.unwrap()
}

/// The chain of the new server does not contain a seal that it never had.
async fn missed_anchor(report: &mut Report, store: &dyn Store, anchor: &Anchor) {
    while store.seal_journal().await.unwrap().is_some() {}
    let findings = audit::verify(store, Some(anchor), |_| ()).await.unwrap().findings;
    let refused = matches!(findings[..], [Finding::AnchorMissed { .. }]);
    report.must(refused, format!("an anchor of before is refused: {findings:?}"));
}
