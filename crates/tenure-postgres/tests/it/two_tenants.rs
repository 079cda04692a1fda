//! Two tenants that have the same of everything, and what one of them is told.

use std::time::Duration;

use tenure_core::key::KeyId;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_core::{EndpointId, JobId, RunId, State, Timestamp};
use tenure_postgres::PgStore;
use tenure_store::access::{KeyFilter, NewKey, RevokeKey};
use tenure_store::operate::{CancelJob, HastenJob, OpenJob, RequeueJob, Word};
use tenure_store::operation::OperationFilter;
use tenure_store::record::{JobFilter, Sight};
use tenure_store::rollup::{By, RollupFilter, Step};
use tenure_store::run::{
    AddToRun, CancelRun, Members, OperatePartition, PartitionAct, PartitionFilter, RunFilter, SealRun,
};
use tenure_store::schedule::ScheduleFilter;
use tenure_store::usage::UsageFilter;
use tenure_store::webhook::{ChangeEndpoint, DeliveryFilter, EndpointFilter};
use tenure_store::{
    AccessStore, AdminStore, JobStore, JournalStore, OperationStore, RollupStore, RunStore, ScheduleStore, StoreError,
    WebhookStore,
};

use crate::database::Database;

/// Who asks. All that `acme` has is newer, so that it comes first in lists of the newest.
pub(crate) const ZETA: &str = "zeta";
/// Whose things zeta must not hear of.
pub(crate) const ACME: &str = "acme";

const JOBS: [(u128, State); 4] = [(1, State::Queued), (2, State::Running), (3, State::Dead), (4, State::Succeeded)];

fn uuid(tenant: &str, number: u128) -> uuid::Uuid {
    let whose = if tenant == ACME { 0xa0 } else { 0x20 };
    uuid::Uuid::from_u128(0x0193_3c5e_0000_7000_8000_0000_0000_0000 + whose + number)
}

pub(crate) fn job(tenant: &str, number: u128) -> JobId {
    JobId::from_uuid(uuid(tenant, number))
}

fn endpoint(tenant: &str) -> EndpointId {
    EndpointId::from_uuid(uuid(tenant, 7))
}

fn key(tenant: &str) -> KeyId {
    format!("{tenant}aaaaaaaa").parse().expect("a key's id")
}

/// Writes them in.
pub(crate) fn settle(database: &Database) {
    let mut sql = String::new();
    for tenant in [ZETA, ACME] {
        let id = |number| uuid(tenant, number);
        let owner = format!("(select id from tenure.tenant where name = '{tenant}')");
        sql += &format!("insert into tenure.tenant (name) values ('{tenant}');");
        for (number, _) in JOBS {
            let job = format!("('{}', now(), now(), {owner}, 1, 'noop', '{{}}')", id(number));
            sql +=
                &format!("insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload) values {job};");
        }
        sql += &format!(
            "insert into tenure.ready (run_at, job, queue, priority) values (now(), '{}', 1, 2);
             insert into tenure.attempt (job, lease, ended_at, attempt, how, final) values ('{}', 1, now(), 1, 4, true), ('{}', 2, now(), 1, 1, true);
             insert into tenure.run (id, tenant, state, sealed, fail_fast, tolerated, total, fan, created_at, deadline, deadline_asked)
               values ('{}', {owner}, 1, false, false, 0, 1, 0, now(), now() + interval '1 day', false);
             insert into tenure.partition (run, name, state, next_offset, page_limit, job, created_at, moved_at) values ('{}', 'north', 3, 0, 1, '{}', now(), now());
             insert into tenure.schedule (tenant, name, cron, zone, missed, grace_ms, queue, kind, payload, priority, max_attempts, max_losses, last_at, look_at)
               values ({owner}, 'nightly', '0 3 * * *', 'UTC', 'skip', 0, 'default', 'noop', '{{}}', 2, 1, 1, now(), now());
             insert into tenure.schedule_fire (schedule, fire_at, job) select id, now(), '{}' from tenure.schedule where tenant = {owner};
             insert into tenure.usage_event (at, tenant, kind, usage) values (now(), {owner}, 'noop', '{{\"tokens\": 1}}');
             insert into tenure.usage_total (day, tenant, kind, name, amount, attempts) values (current_date, {owner}, 'noop', 'pages', 1, 1);
             insert into tenure.unique_key (tenant, scope, key, policy, job) values ({owner}, 'noop', 'k', 1, '{}');
             insert into tenure.api_key (id, hash, tenant, name, scopes, created_at) values ('{}', sha256('{tenant}'), {owner}, 'k', 'read', now());
             insert into tenure.job_callback (job, url) values ('{}', 'https://{tenant}.example/');
             insert into tenure.webhook_endpoint (id, tenant, url, events, prefix, secret, created_at, listens_since) values ('{}', {owner}, 'https://{tenant}.example/', '*', 'X-T-', '\\x01', now(), now());
             insert into tenure.gate_rollup (step, at, tenant, gate, ended, unhealthy) values (0, date_trunc('minute', now()), {owner}, 'g', 1, 1);
             insert into tenure.rollup (step, at, tenant, queue, kind, claimed, succeeded, retried, failed, dead, canceled, snoozed, released, lost, run, run_micros, wait, wait_micros)
               values (3, 'epoch', {owner}, 1, 'noop', 1, 1, 0, 0, 0, 0, 0, 0, 0, array_fill(0::bigint, '{{22}}'), 0, array_fill(0::bigint, '{{22}}'), 0);
             insert into tenure.operation (id, tenant, name, act, state, created_at) values ('{}', {owner}, 'o', 'requeue', 'dead', now());
             insert into tenure.webhook_delivery (job, endpoint, tenant, journal, subject, event_id, event_type, created_at, body) values ('{}', '{}', {owner}, 1, 's', 'e', 'job.dead', now(), '{{}}');",
            id(1), id(3), id(4), id(9), id(9), id(8), id(1), id(1), key(tenant), id(1), id(7), id(6), id(4), id(7),
        );
    }
    // Claimed together: one lease lists jobs of both.
    let both = format!("array['{}', '{}']::uuid[]", uuid(ZETA, 2), uuid(ACME, 2));
    sql += &format!(
        "insert into tenure.worker (name) values ('w');
         insert into tenure.lease (queue, worker, claimed_at, renewed_at, expires_at, jobs, attempts, losses) values (1, 1, now(), now(), now() + interval '1 day', {both}, '{{1,1}}', '{{0,0}}');
         insert into tenure.cancel_request (job, requested_at) select unnest({both}), now();
         insert into tenure.journal (at, event, jobs) values (now(), 1, {both})"
    );
    database.sql(&sql);
}

/// What zeta is told that is not as it should be: the verbs, by name.
pub(crate) async fn leaks(store: &PgStore) -> Vec<&'static str> {
    let zeta = TenantName::new(ZETA).expect("a name");
    let sight = Sight::Tenant(zeta.clone());
    let mut leaks = reads(store, &zeta, &sight).await;
    let (theirs, run) = (job(ACME, 1), RunId::from_uuid(uuid(ACME, 9)));
    let unknown = |answer: &Result<(), StoreError>| matches!(answer, Err(StoreError::NotFound(_)));
    let word = Word::default;
    let members = || Members::default();
    let partition = "north".parse().expect("a name");
    let act = PartitionAct::Resume;
    let verbs = [
        (
            "cancel_job",
            store
                .cancel_job(CancelJob { sight: sight.clone(), job: theirs, force: false, word: word() })
                .await
                .map(drop),
        ),
        ("requeue_job", store.requeue_job(RequeueJob { sight: sight.clone(), job: job(ACME, 3), word: word() }).await),
        ("open_job", store.open_job(OpenJob { sight: sight.clone(), job: theirs, word: word() }).await),
        ("hasten_job", store.hasten_job(HastenJob { sight: sight.clone(), job: theirs, word: word() }).await.map(drop)),
        ("list_job_rows", store.list_job_rows(&sight, theirs).await.map(drop)),
        ("add_to_run", store.add_to_run(AddToRun { sight: sight.clone(), run, members: members() }).await.map(drop)),
        (
            "operate_partition",
            store.operate_partition(OperatePartition { sight: sight.clone(), run, partition, act, word: word() }).await,
        ),
        ("seal_run", store.seal_run(SealRun { sight: sight.clone(), run, consolidate: None, word: word() }).await),
        ("cancel_run", store.cancel_run(CancelRun { sight: sight.clone(), run, word: word() }).await.map(drop)),
        (
            "change_endpoint",
            store.change_endpoint(ChangeEndpoint::new(sight.clone(), endpoint(ACME), word())).await.map(drop),
        ),
        ("revoke_key", store.revoke_key(RevokeKey { sight, key: key(ACME), word: word() }).await.map(drop)),
    ];
    let replaces = Some((key(ACME), Duration::ZERO));
    let new = NewKey {
        id: "zetabbbbbbbb".parse().expect("a key's id"),
        hash: [7; 32],
        tenant: Some(zeta),
        name: "k".to_owned(),
        scopes: "read".parse().expect("a scope"),
        life: None,
        replaces,
        word: word(),
    };
    if !unknown(&store.create_key(new).await.map(drop)) {
        leaks.push("create_key");
    }
    leaks.extend(verbs.into_iter().filter(|(_, answer)| !unknown(answer)).map(|(verb, _)| verb));
    leaks
}

/// The same for verbs that change nothing.
async fn reads(store: &PgStore, zeta: &TenantName, sight: &Sight) -> Vec<&'static str> {
    let mut leaks = Vec::new();
    let mut check = |verb, right: bool| {
        if !right {
            leaks.push(verb);
        }
    };
    let theirs = store.show_job(sight, job(ACME, 1)).await;
    check("show_job", matches!(theirs, Err(StoreError::NotFound(_))));
    let own = store.show_job(sight, job(ZETA, 3)).await.expect("show");
    check("show_job", own.attempts.len() == 1);
    let lists = ["list_jobs queued", "list_jobs running", "list_jobs dead", "list_jobs succeeded"];
    for ((number, state), verb) in JOBS.into_iter().zip(lists) {
        let filter = JobFilter { sight: sight.clone(), state: Some(state), limit: 1, ..JobFilter::default() };
        let ids: Vec<JobId> = store.list_jobs(&filter).await.expect("list").iter().map(|job| job.id).collect();
        check(verb, ids == [job(ZETA, number)]);
    }
    let found =
        store.search_jobs(&JobFilter { sight: sight.clone(), ..JobFilter::default() }, "l").await.expect("search");
    check("search_jobs", found.jobs.iter().all(|job| job.tenant == *zeta));
    let run = RunId::from_uuid(uuid(ZETA, 9));
    let runs = store.list_runs(&RunFilter { sight: sight.clone(), ..RunFilter::default() }).await.expect("list");
    check("list_runs", runs.iter().map(|run| run.id).eq([run]));
    let filter = PartitionFilter { sight: sight.clone(), ..PartitionFilter::default() };
    let partitions = store.list_partitions(&filter).await.expect("list");
    check("list_partitions", partitions.iter().map(|partition| partition.run).eq([run]));
    let filter = ScheduleFilter { sight: sight.clone(), ..ScheduleFilter::default() };
    let schedules = store.list_schedules(&filter).await.expect("list");
    check("list_schedules", schedules.iter().map(|schedule| &schedule.tenant).eq([zeta]));
    let nightly: ScheduleName = "nightly".parse().expect("a name");
    let (_, fires) = store.show_schedule(zeta, &nightly).await.expect("show");
    check("show_schedule", fires.iter().map(|fire| fire.state).eq([Some(State::Queued)]));
    let filter = UsageFilter { sight: sight.clone(), kind: None, since: Timestamp::EPOCH, after: None, limit: 10 };
    let used = store.sum_usage(&filter).await.expect("sum");
    check("sum_usage", used.len() == 2 && used.iter().all(|total| total.tenant == *zeta));
    let filter = EndpointFilter { sight: sight.clone(), after: None, limit: 10 };
    let endpoints = store.list_endpoints(&filter).await.expect("list");
    check("list_endpoints", endpoints.iter().map(|endpoint| endpoint.id).eq([endpoint(ZETA)]));
    let deliveries = store.list_deliveries(&DeliveryFilter::new(sight.clone(), 10)).await.expect("list");
    check("list_deliveries", deliveries.iter().map(|delivery| delivery.job).eq([job(ZETA, 4)]));
    let filter = OperationFilter { sight: sight.clone(), before: None, limit: 10 };
    let operations = store.list_operations(&filter).await.expect("list");
    check("list_operations", operations.iter().map(|operation| operation.id).eq([job(ZETA, 6)]));
    let filter = RollupFilter {
        sight: sight.clone(),
        step: Step::All,
        since: Timestamp::EPOCH,
        until: Timestamp::MAX,
        queue: None,
        kind: None,
        by: By::Tenant,
        limit: 10,
    };
    let rollups = store.list_rollups(&filter).await.expect("list");
    check("list_rollups", rollups.iter().map(|line| line.tenant.clone()).eq([Some(zeta.clone())]));
    let since = store.now().await.expect("now").minus(Duration::from_secs(3_600));
    let gates = store.list_failing_gates(sight, since, 10).await.expect("list");
    check("list_failing_gates", gates.iter().map(|gate| gate.ended).eq([1]));
    let theirs = store.show_delivery(sight, job(ACME, 4)).await;
    check("show_delivery", matches!(theirs, Err(StoreError::NotFound(_))));
    let filter = KeyFilter { sight: sight.clone(), ended_too: true, after: None, limit: 10 };
    let keys = store.list_keys(&filter).await.expect("list");
    check("list_keys", keys.iter().map(|key| key.id.clone()).eq([key(ZETA)]));
    leaks
}
