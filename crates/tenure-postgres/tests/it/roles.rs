//! Roles: each is kept from what is not its business.

use std::collections::BTreeSet;

use tenure_postgres::PgOptions;
use tokio_postgres::{Client, NoTls};

use crate::database::Database;
use crate::two_tenants::{ACME, ZETA, settle};

/// Tables that hold no tenant's rows, or rows that only the views of `0016_own_views.sql` show.
#[rustfmt::skip]
const CLOSED: &[&str] = &[
    "cache", "cancel_request", "gate", "gate_event", "gate_rule", "gate_rules", "home", "journal", "lease", "migration",
    "new_name", "prune_mark", "ready", "rollup_cursor", "run_event", "run_fold", "seal", "session", "usage_fold",
    "webhook_cursor",
];
/// Tables of which tenants read the names of what is shared.
const SHARED: &[&str] = &["queue", "worker"];
/// Tables with rows of tenants.
#[rustfmt::skip]
const BOUND: &[&str] = &[
    "api_key", "attempt", "job", "job_callback", "gate_rollup", "operation", "partition", "rollup", "run", "schedule", "schedule_fire", "tenant", "unique_key", "usage_event",
    "usage_total", "webhook_delivery", "webhook_endpoint",
];

pub(crate) async fn walled() -> Database {
    let database = Database::new().await;
    database.store(PgOptions::default()).await.install_roles().await.expect("install roles");
    database
}

pub(crate) async fn connect(database: &Database) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.expect("connect");
    tokio::spawn(connection);
    client
}

/// What a role hears: the rows' first column, or the code of the refusal.
pub(crate) async fn heard(client: &Client, role: &str, tenant: Option<&str>, sql: &str) -> Result<Vec<String>, String> {
    let set = tenant.map_or(String::new(), |tenant| format!("set local tenure.tenant = '{tenant}'"));
    client.batch_execute(&format!("begin; set local role {role}; {set}")).await.expect("take the role");
    let answer = client.simple_query(sql).await;
    client.batch_execute("rollback").await.expect("roll back");
    let rows = answer.map_err(|error| error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned()))?;
    let first = |message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(first).collect())
}

/// Red when a table is added and nobody has decided whether tenants see it: give it a policy in `bind_roles.sql`, or put
/// it on the list of those that are closed to them.
#[tokio::test]
async fn every_table_is_bound_to_tenants_or_closed_to_them() {
    let database = walled().await;
    let set = |sql: &str| -> BTreeSet<String> { database.sql(sql).lines().map(str::to_owned).collect() };
    let of = |lists: &[&[&str]]| -> BTreeSet<String> { lists.concat().into_iter().map(str::to_owned).collect() };
    let tables =
        "select c.relname from pg_class c where relnamespace = 'tenure'::regnamespace and relkind in ('r', 'p')";
    assert_eq!(set(tables), of(&[CLOSED, SHARED, BOUND]));
    let tenants = "select relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and not attisdropped
        where relnamespace = 'tenure'::regnamespace and relkind in ('r', 'p')";
    let secured = set(&format!("{tables} and relrowsecurity"));
    assert_eq!(secured, of(&[BOUND]));
    assert!(set(tenants).is_subset(&secured), "whose rows have a tenant are bound to it");
    let policies = "select tablename from pg_policies where schemaname = 'tenure' and policyname = 'own' and roles = '{tenure_api}'";
    assert_eq!(set(policies), secured);
    let rights =
        |whole: &str| set(&format!("{tables} and {whole}(c.oid, 'select')").replace("(c.oid", "('tenure_api', c.oid"));
    assert!(rights("has_table_privilege").is_subset(&secured), "a table that is read has a policy");
    let columns = rights("has_any_column_privilege");
    assert!(columns.is_disjoint(&of(&[CLOSED])) && columns.is_superset(&of(&[SHARED])), "{columns:?}");
    let writes = "has_any_column_privilege('tenure_api', c.oid, 'insert, update') or has_table_privilege('tenure_api', c.oid, 'delete, truncate')";
    assert_eq!(set(&format!("{tables} and ({writes})")), BTreeSet::new(), "tenants write through verbs only");
    let kept_from = "not has_table_privilege('tenure_operator', c.oid, 'select')";
    assert_eq!(set(&format!("{tables} and {kept_from}")), BTreeSet::new(), "operators see every table");
    let same = "select count(*) from pg_attribute a where attrelid = 'tenure.jobs'::regclass
        and not exists (select from pg_attribute o where o.attrelid = 'tenure.own_jobs'::regclass and o.attname = a.attname)";
    assert_eq!(database.sql(same), "0", "own_jobs shows what jobs shows");
}

#[tokio::test]
async fn a_tenants_role_sees_its_own_rows_and_without_a_tenant_none() {
    let database = walled().await;
    settle(&database);
    let client = connect(&database).await;
    let number = database.sql(&format!("select id from tenure.tenant where name = '{ZETA}'"));
    let jobs_of = format!("select id from tenure.job where tenant = {number}");
    for (table, whose) in [
        ("tenant", format!("id <> {number}")),
        ("job", format!("tenant <> {number}")),
        ("run", format!("tenant <> {number}")),
        ("schedule", format!("tenant <> {number}")),
        ("attempt", format!("job not in ({jobs_of})")),
        ("partition", format!("run not in (select id from tenure.run where tenant = {number})")),
        ("schedule_fire", format!("job not in ({jobs_of})")),
        ("own_jobs", format!("tenant <> '{ZETA}'")),
        ("own_ready", format!("job not in ({jobs_of})")),
        ("own_lease", format!("not jobs <@ array({jobs_of})")),
        ("own_usages", format!("tenant <> '{ZETA}'")),
        ("job_callback", format!("job not in ({jobs_of})")),
        ("webhook_delivery", format!("tenant <> {number}")),
        ("operation", format!("tenant <> {number}")),
        ("rollup", format!("tenant <> {number}")),
        ("gate_rollup", format!("tenant <> {number}")),
        ("own_webhook_endpoint", format!("tenant <> {number} or secret <> '\\x00'")),
        ("own_api_key", format!("tenant <> {number} or hash <> decode(repeat('00', 32), 'hex')")),
    ] {
        let count = format!("select count(*) from tenure.{table}");
        let own = heard(&client, "tenure_api", Some(ZETA), &count).await.expect("count");
        assert_ne!(own, ["0"], "{table}: its own");
        let others = heard(&client, "tenure_api", Some(ZETA), &format!("{count} where {whose}")).await.expect("count");
        assert_eq!(others, ["0"], "{table}: of others");
        for nobody in [None, Some(""), Some("nobody")] {
            assert_eq!(
                heard(&client, "tenure_api", nobody, &count).await.expect("count"),
                ["0"],
                "{table}: {nobody:?}"
            );
        }
    }
    for table in CLOSED.iter().chain(&["api_key", "unique_key", "usage_event", "jobs", "audit_log", "api_keys"]) {
        let refused = heard(&client, "tenure_api", Some(ZETA), &format!("select 1 from tenure.{table}")).await;
        assert_eq!(refused, Err("42501".to_owned()), "{table}");
    }
    let hashes = heard(&client, "tenure_api", Some(ZETA), "select remote_hash from tenure.worker").await;
    assert_eq!(hashes, Err("42501".to_owned()));
}

/// Even with rights to write. Red when a policy lets rows be changed that are not seen, or given away.
#[tokio::test]
async fn a_tenants_role_moves_no_row_to_another_tenant() {
    let database = walled().await;
    settle(&database);
    database.sql(
        "grant select, update, delete, insert on tenure.run, tenure.schedule, tenure.api_key, tenure.usage_total to tenure_api",
    );
    let client = connect(&database).await;
    let number = |tenant: &str| database.sql(&format!("select id from tenure.tenant where name = '{tenant}'"));
    let (zeta, acme) = (number(ZETA), number(ACME));
    for table in ["run", "schedule", "usage_total"] {
        let give = format!("update tenure.{table} set tenant = {acme}");
        assert_eq!(heard(&client, "tenure_api", Some(ZETA), &give).await, Err("42501".to_owned()), "{table}");
        let keep = format!("update tenure.{table} set tenant = {zeta} returning tenant");
        assert_eq!(heard(&client, "tenure_api", Some(ZETA), &keep).await, Ok(vec![zeta.clone()]), "{table}");
        let take = format!("delete from tenure.{table} where tenant = {acme} returning tenant");
        assert_eq!(heard(&client, "tenure_api", Some(ZETA), &take).await, Ok(vec![]), "{table}");
    }
    let sneak = format!("insert into tenure.usage_total values (current_date, {acme}, 'k', 'n', 1, 1)");
    assert_eq!(heard(&client, "tenure_api", Some(ZETA), &sneak).await, Err("42501".to_owned()));
}

/// What each role must not do; what it must be able to do is below.
#[tokio::test]
async fn each_role_is_kept_from_what_is_not_its_business() {
    let database = walled().await;
    settle(&database);
    let client = connect(&database).await;
    for role in ["tenure_api", "tenure_producer", "tenure_worker", "tenure_operator", "tenure_reader"] {
        for sql in [
            "update tenure.journal set at = now()",
            "delete from tenure.journal",
            "truncate tenure.journal",
            "delete from tenure.seal",
            "update tenure.job set payload = '1'",
            "delete from tenure.job",
            "update tenure.attempt set how = 1",
            "delete from tenure.attempt",
            "truncate tenure.attempt",
            "delete from tenure.migration",
            "update tenure.home set system_identifier = 1",
            "create table tenure.mine (id int)",
            "alter table tenure.job disable row level security",
        ] {
            assert_eq!(heard(&client, role, None, sql).await, Err("42501".to_owned()), "{role}: {sql}");
        }
    }
    for (role, sql) in [
        ("tenure_producer", "select payload from tenure.job"),
        ("tenure_producer", "select result from tenure.attempt"),
        ("tenure_producer", "select 1 from tenure.api_key"),
        ("tenure_producer", "delete from tenure.ready"),
        ("tenure_api", "select tenure.prune(now(), true, 1)"),
        ("tenure_producer", "select tenure.prune(now(), true, 1)"),
        ("tenure_reader", "select tenure.prune(now(), true, 1)"),
        ("tenure_producer", "select jobs from tenure.lease"),
        ("tenure_producer", "select 1 from tenure.journal"),
        ("tenure_producer", "update tenure.queue set paused = true"),
        ("tenure_worker", "select 1 from tenure.api_key"),
        ("tenure_worker", "select 1 from tenure.session"),
        ("tenure_worker", "select 1 from tenure.api_keys"),
        ("tenure_worker", "select remote_hash from tenure.worker"),
        ("tenure_worker", "update tenure.worker set told = 'stop'"),
        ("tenure_worker", "update tenure.tenant set quota = 1"),
        ("tenure_worker", "insert into tenure.gate_rule (pattern) values ('*')"),
        ("tenure_reader", "select payload from tenure.jobs"),
        ("tenure_reader", "select result from tenure.jobs"),
        ("tenure_reader", "select payload from tenure.schedules"),
        ("tenure_reader", "select 1 from tenure.job"),
        ("tenure_reader", "select 1 from tenure.api_key"),
        ("tenure_reader", "select tenure.enqueue('noop')"),
    ] {
        assert_eq!(heard(&client, role, None, sql).await, Err("42501".to_owned()), "{role}: {sql}");
    }
    for (role, sql) in [
        (
            "tenure_producer",
            "select 1 from tenure.enqueue('noop', unique_key => 'k', idempotency_key => 'i', gate => 'g', queue => 'new', tenant => 'new')",
        ),
        ("tenure_producer", "select tenure.state_of(id) from tenure.job limit 1"),
        ("tenure_reader", "select state from tenure.jobs limit 1"),
        ("tenure_reader", "select event from tenure.audit_log limit 1"),
        ("tenure_reader", "select id from tenure.api_keys limit 1"),
        ("tenure_worker", "select count(*) from tenure.violations"),
        ("tenure_operator", "select count(hash) from tenure.api_key"),
        ("tenure_operator", "select count(hash) from tenure.session"),
    ] {
        assert_eq!(heard(&client, role, None, sql).await.as_deref().map(<[String]>::len), Ok(1), "{role}: {sql}");
    }
}
