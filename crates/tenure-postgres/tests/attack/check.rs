//! What must hold at every moment, and what must hold in the end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::seal::Anchor;
use tenure_core::{How, JobId, LeaseNo};
use tenure_postgres::PgStore;
use tenure_store::journal::JournalPage;
use tenure_store::{AdminStore, JournalStore, audit};
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::GATE_LIMIT;
use crate::field::Field;
use crate::producer::WINDOW;

/// Looks every second until the field is stopped.
pub(crate) async fn watch(field: Arc<Field>) {
    let (store, client) = (field.store().await, field.client().await);
    while !field.is_stopped() {
        look(&field, &store, &client).await;
        field.pause(Duration::from_secs(1)).await;
    }
}

/// Looks once, while everything moves.
pub(crate) async fn look(field: &Field, store: &PgStore, client: &Client) {
    let began = Instant::now();
    for broken in store.find_violations(10).await.expect("look for violations") {
        field.ledger.fault(format!("{broken:?}"));
    }
    // What is inside of each gate, by what leases really hold; and that it mattered.
    let inside = "
        select count(*) as inside from tenure.lease l cross join lateral unnest(l.jobs) u (job) join tenure.job j on j.id = u.job
        where j.line <> '' and not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no) group by j.line";
    for row in client.query(inside, &[]).await.expect("look at gates") {
        let inside = row.get::<_, i64>(0);
        if inside > i64::from(GATE_LIMIT) {
            field.ledger.fault(format!("{inside} jobs are inside a gate of {GATE_LIMIT}"));
        }
        field.ledger.count("gated");
        field.ledger.add("full gates", u64::from(inside == i64::from(GATE_LIMIT)));
    }
    let held_twice = "
        select j.unique_policy, j.unique_key, string_agg(j.id || ' ' || s, ', ') as jobs
        from tenure.job j cross join lateral tenure.state_now(j.id) s
        where j.unique_policy < 4 and (s not in ('succeeded', 'failed', 'dead', 'canceled') or (j.unique_policy = 2 and s = 'succeeded'))
        group by j.tenant, j.unique_scope, j.unique_policy, j.unique_key having count(*) > 1";
    for row in client.query(held_twice, &[]).await.expect("look at keys") {
        let (policy, key, jobs) = (row.get::<_, i16>(0), row.get::<_, &str>(1), row.get::<_, &str>(2));
        field.ledger.fault(format!("key `{key}` of policy {policy} is held twice: {jobs}"));
    }
    // A window begins when the enqueue arrived, and one that waited for a lock may arrive in the past: only what is in
    // its window now can be held against each other.
    let window_ms = i64::try_from(WINDOW.as_millis()).expect("short");
    let in_window = "
        select unique_key, count(*) from tenure.job
        where unique_policy = 4 and created_at > clock_timestamp() - $1 * interval '1 ms'
        group by tenant, unique_scope, unique_key having count(*) > 1";
    for row in client.query_typed(in_window, &[(&window_ms, Type::INT8)]).await.expect("look at windows") {
        field.ledger.fault(format!("window `{}` was taken {} times", row.get::<_, &str>(0), row.get::<_, i64>(1)));
    }
    // Whoever is open: what was there before a seal began is sealed when it has ended.
    let before: i64 = client.query_one("select count(*) from tenure.journal", &[]).await.expect("count").get(0);
    store.seal_journal().await.expect("seal");
    let sealed: i64 =
        client.query_one("select coalesce(sum(rows), 0)::bigint from tenure.seal", &[]).await.expect("sum").get(0);
    if sealed < before {
        field.ledger.fault(format!("{before} journal rows, only {sealed} sealed after that"));
    }
    let ended_twice: Vec<String> = {
        let pages = field.ledger.pages();
        pages
            .accepted
            .iter()
            .filter(|(_, hows)| hows.len() > 1)
            .map(|(grant, hows)| format!("{grant:?}: {hows:?}"))
            .collect()
    };
    for grant in ended_twice {
        field.ledger.fault(format!("a grant was ended twice, {grant}"));
    }
    field.ledger.count("checks");
    if began.elapsed() > Duration::from_secs(5) {
        field.ledger.count("slow checks");
    }
}

/// Looks at what is left when nothing moves any more.
pub(crate) async fn settle(field: &Field, store: &PgStore, client: &Client, anchor: Option<&Anchor>) {
    look(field, store, client).await;
    while store.seal_journal().await.expect("seal").is_some() {}
    let report = audit::verify(store, anchor, |_| {}).await.expect("verify");
    for finding in &report.findings {
        field.ledger.fault(format!("the record does not hold: {finding}"));
    }
    let rows: i64 = client.query_one("select count(*) from tenure.journal", &[]).await.expect("count").get(0);
    if (report.rows, report.tail) != (rows, 0) {
        field.ledger.fault(format!("{rows} journal rows, {} sealed, {} in the tail", report.rows, report.tail));
    }
    let record = Record::read(field, store).await;
    if i64::try_from(record.rows).expect("not that many") != rows {
        field.ledger.fault(format!("{rows} journal rows, {} read from their seals", record.rows));
    }
    check_endings(field, &record);
    check_jobs(field, client, &record).await;
    check_effects(field, client, &record).await;
}

/// The record as it was sealed.
#[derive(Default)]
struct Record {
    rows: usize,
    ended: HashMap<(JobId, LeaseNo), How>,
    last_lease: HashMap<JobId, LeaseNo>,
    pruned: HashMap<JobId, u32>,
    claimed: HashSet<(JobId, LeaseNo)>,
}

impl Record {
    async fn read(field: &Field, store: &PgStore) -> Self {
        let mut record = Self::default();
        let mut ids = HashSet::new();
        for seal in store.list_seals(0, u32::MAX).await.expect("list seals") {
            let mut page = JournalPage { seal: Some(seal.no), after: 0, limit: 1_000 };
            loop {
                let rows = store.read_journal(page).await.expect("read the journal");
                let Some(last) = rows.last() else { break };
                page.after = last.id;
                for row in rows {
                    if !ids.insert(row.id) {
                        field.ledger.fault(format!("journal row {} is under two seals", row.id));
                    }
                    record.row(field, &row);
                }
            }
        }
        record.rows = ids.len();
        record
    }

    fn row(&mut self, field: &Field, row: &JournalRow) {
        for job in &row.jobs {
            match (row.event, row.lease) {
                (JournalEvent::Claimed, Some(lease)) => {
                    self.claimed.insert((*job, lease));
                    let last = self.last_lease.insert(*job, lease);
                    if last.is_some_and(|last| last >= lease) {
                        field.ledger.fault(format!("job {job} was claimed under lease {lease} after {last:?}"));
                    }
                }
                (JournalEvent::Ended(how), Some(lease)) => {
                    if let Some(before) = self.ended.insert((*job, lease), how) {
                        field
                            .ledger
                            .fault(format!("job {job} ended twice under lease {lease}: {before:?} and {how:?}"));
                    }
                    let last = self.last_lease.insert(*job, lease);
                    if last.is_some_and(|last| last > lease) {
                        field.ledger.fault(format!("job {job} ended under lease {lease} after {last:?}"));
                    }
                }
                (JournalEvent::Refused, _) => field.ledger.count("refusals on record"),
                (JournalEvent::Pruned, _) => *self.pruned.entry(*job).or_default() += 1,
                _ => {}
            }
        }
    }

    fn pruned(&self, job: JobId) -> u32 {
        self.pruned.get(&job).copied().unwrap_or_default()
    }
}

/// What holders were told is what the record says, and every grant has an end.
fn check_endings(field: &Field, record: &Record) {
    let accepted = std::mem::take(&mut field.ledger.pages().accepted);
    for (grant, hows) in accepted {
        if hows != [*record.ended.get(&grant).unwrap_or(&How::Lost)] {
            field.ledger.fault(format!(
                "grant {grant:?} was accepted as {hows:?}, the record says {:?}",
                record.ended.get(&grant)
            ));
        }
    }
    for grant in record.claimed.iter().filter(|grant| !record.ended.contains_key(grant)) {
        field.ledger.fault(format!("grant {grant:?} has no end"));
    }
}

/// Every job that was stored is there and has ended, or was pruned; nothing is there that nobody asked for.
async fn check_jobs(field: &Field, client: &Client, record: &Record) {
    let rows = client.query("select id, tenure.state_now(id) from tenure.job", &[]).await.expect("read jobs");
    let there: HashMap<JobId, String> = rows.iter().map(|row| (JobId::from_uuid(row.get(0)), row.get(1))).collect();
    let mut faults = Vec::new();
    {
        let pages = field.ledger.pages();
        for (job, state) in &there {
            if !matches!(state.as_str(), "succeeded" | "failed" | "dead" | "canceled") {
                faults.push(format!("job {job} is still {state}"));
            }
            if !pages.asked.contains(job) {
                faults.push(format!("nobody asked for job {job}"));
            }
        }
        for (job, times) in &pages.created {
            let lives = record.pruned(*job) + u32::from(there.contains_key(job));
            if *times > lives || lives == 0 {
                faults.push(format!("job {job} was created {times} times and lived {lives} times"));
            }
        }
        for job in pages.named.values().flatten().chain(&pages.found) {
            if record.pruned(*job) == 0 && !there.contains_key(job) {
                faults.push(format!("job {job} was named by an answer and never stored"));
            }
        }
        let several = |keys: &HashMap<String, HashSet<JobId>>| -> Vec<String> {
            keys.iter()
                .filter(|(_, jobs)| jobs.len() > 1)
                .map(|(key, jobs)| format!("key `{key}` names {jobs:?}"))
                .collect()
        };
        faults.extend(several(&pages.named));
        faults.extend(several(&pages.forever));
    }
    faults.into_iter().for_each(|fault| field.ledger.fault(fault));
}

/// A user's row is there once, exactly when the completion that came with it is.
async fn check_effects(field: &Field, client: &Client, record: &Record) {
    let rows = client.query("select job, lease from effect", &[]).await.expect("read effects");
    let effects: Vec<(JobId, LeaseNo)> =
        rows.iter().map(|row| (JobId::from_uuid(row.get(0)), LeaseNo(row.get(1)))).collect();
    let mut by_job: HashMap<JobId, u32> = HashMap::new();
    for effect in &effects {
        let times = by_job.entry(effect.0).or_default();
        *times += 1;
        if *times > 1 + record.pruned(effect.0) {
            field.ledger.fault(format!("job {} has {times} effects", effect.0));
        }
        if record.ended.get(effect) != Some(&How::Succeeded) {
            field.ledger.fault(format!("effect {effect:?} without its completion: {:?}", record.ended.get(effect)));
        }
    }
    let done: HashSet<(JobId, LeaseNo)> = effects.into_iter().collect();
    let rows = client
        .query("select job, lease from tenure.attempt where result ->> 'by' = 'user'", &[])
        .await
        .expect("read attempts");
    for row in rows {
        let grant = (JobId::from_uuid(row.get::<_, Uuid>(0)), LeaseNo(row.get(1)));
        if !done.contains(&grant) {
            field.ledger.fault(format!("completion {grant:?} without its effect"));
        }
    }
}
