//! The second wall: where a statement forgets its tenant, the database does not.

use tenure_postgres::mutant::Mutant;
use tenure_postgres::{Mode, PgOptions, PgStore};
use tenure_store::record::{JobFilter, SecondWall, Sight};
use tenure_store::{AdminStore, JobStore};

use crate::database::Database;
use crate::two_tenants::{ACME, ZETA, job, leaks, settle};

const JOB_FILTER: &str = "j.tenant = (select id from tenure.tenant where name = $1)";

const ROLLUP_FILTER: &str = "e.tenant = case when $1::text is null then 0 \
                             else (select o.id from tenure.tenant o where o.name = $1::text) end";

/// Statements without their tenant, and what leaks then when there is no other wall.
#[rustfmt::skip] // one a line
const FORGETFUL: &[(&str, &str, &str, &str)] = &[
    ("show_jobs", "tenant = $2", "$2 is not null", "show_job"),
    ("list_ready", JOB_FILTER, "$1 is not null", "list_jobs queued"),
    ("list_running", JOB_FILTER, "$1 is not null", "list_jobs running"),
    ("list_unsuccessful", JOB_FILTER, "$1 is not null", "list_jobs dead"),
    ("list_jobs", JOB_FILTER, "$1 is not null", "list_jobs succeeded"),
    ("list_runs", "t.name = $1", "$1 is not null", "list_runs"),
    ("list_partitions", "exists (select from tenure.run r join tenure.tenant t on t.id = r.tenant where r.id = p.run and t.name = $1)", "$1 is not null", "list_partitions"),
    ("list_schedules", "t.name = $1", "$1 is not null", "list_schedules"),
    ("sum_usage", "u.tenant = $1::text", "$1 is not null", "sum_usage"),
    ("list_api_keys", "t.name = $2::text", "$2 is not null", "list_keys"),
    ("share_run", "t.name = $2", "$2 is not null", "add_to_run"),
    ("list_endpoints", "t.name = $1", "$1 is not null", "list_endpoints"),
    ("list_operations", "t.name = $1", "$1 is not null", "list_operations"),
    ("list_rollups", ROLLUP_FILTER, "true", "list_rollups"),
    ("list_failing_gates", ROLLUP_FILTER, "true", "list_failing_gates"),
    ("hold_endpoint", "t.name = $2", "$2 is not null", "change_endpoint"),
    ("list_deliveries_of_tenant", "d.tenant = (select o.id from tenure.tenant o where o.name = $1::text)", "$1::text is not null", "list_deliveries"),
    ("show_deliveries", "t.name = $2", "$2 is not null", "show_delivery"),
    ("hold_run", "t.name = $2", "$2 is not null", "operate_partition"),
];

/// The same for functions.
#[rustfmt::skip] // one a line
const FORGETFUL_FUNCTIONS: &[(&str, &str, &str, &str)] = &[
    ("find_job", "_tenant is distinct from (select name from tenure.tenant where id = j.tenant)", "false", "cancel_job"),
    ("revoke_key", "and (_tenant is null or t.name = _tenant)", "", "revoke_key"),
    ("create_key", "and (owner is null or k.tenant = owner)", "", "create_key"),
];

async fn open(database: &Database, mode: Mode, mutant: Option<Mutant>) -> PgStore {
    database.store(PgOptions { mode, mutant, connections_max: 1, ..PgOptions::default() }).await
}

fn forgetful() -> impl Iterator<Item = (Mutant, &'static str)> {
    FORGETFUL.iter().map(|(statement, find, replace, leak)| (Mutant { statement, find, replace }, *leak))
}

#[tokio::test]
async fn a_statement_that_forgets_its_tenant_shows_nothing_of_another() {
    let database = Database::new().await;
    settle(&database);
    let mut open_ones = Vec::new();
    for (mutant, leak) in forgetful() {
        open_ones.push((open(&database, Mode::Direct, Some(mutant)).await, leak));
    }
    let open_one = open(&database, Mode::Direct, None).await;
    assert_eq!(leaks(&open_one).await, [] as [&str; 0], "the first wall alone");
    assert!(matches!(open_one.second_wall(), SecondWall::Missing(_)));
    open_one.install_roles().await.expect("install roles");

    for mode in [Mode::Direct, Mode::Pooled] {
        let whole = open(&database, mode, None).await;
        assert_eq!(whole.second_wall(), SecondWall::Stands);
        assert_eq!(leaks(&whole).await, [] as [&str; 0], "both walls, {mode:?}");
    }
    for (mutant, leak) in forgetful() {
        let walled = open(&database, Mode::Direct, Some(mutant)).await;
        assert_eq!(leaks(&walled).await, [] as [&str; 0], "the second wall alone, for {leak}");
    }
    // Without it each of them is heard of: what is checked above can fail.
    for (store, leak) in open_ones {
        let heard = leaks(&store).await;
        assert!(heard.contains(&leak), "{leak} is not missed: {heard:?}");
    }

    let walled = open(&database, Mode::Direct, None).await;
    for (function, find, replace, _) in FORGETFUL_FUNCTIONS {
        let text = database.sql(&format!("select pg_get_functiondef('tenure.{function}'::regproc)"));
        assert!(text.contains(find), "{function} has no `{find}`");
        database.sql(&text.replace(find, replace));
    }
    assert_eq!(leaks(&walled).await, [] as [&str; 0], "the second wall alone, for functions");

    let heard = leaks(&open_one).await;
    for (_, _, _, leak) in FORGETFUL_FUNCTIONS {
        assert!(heard.contains(leak), "{leak} is not missed: {heard:?}");
    }
}

/// One connection serves a tenant and then an operator. Red when role or tenant outlive the transaction, however it ends.
#[tokio::test]
async fn the_next_user_of_a_connection_is_nobodys_tenant() {
    let database = Database::new().await;
    settle(&database);
    let bare = open(&database, Mode::Direct, None).await;
    bare.install_roles().await.expect("install roles");
    for mode in [Mode::Direct, Mode::Pooled] {
        // Queues are called like the tenant of the session that lists them, if it has one.
        let replace = "select coalesce(nullif(current_setting('tenure.tenant', true), ''), q.name) as name,";
        let tell = Mutant { statement: "list_queues", find: "select q.name,", replace };
        let store = open(&database, mode, Some(tell)).await;
        let zeta = Sight::Tenant(ZETA.parse().expect("a name"));
        store.show_job(&zeta, job(ZETA, 1)).await.expect("its own");
        store.show_job(&zeta, job(ACME, 1)).await.expect_err("another's");
        let refused = tenure_store::operate::OpenJob { sight: zeta, job: job(ACME, 1), word: Default::default() };
        store.open_job(refused).await.expect_err("another's");
        let queues = store.list_queues().await.expect("list");
        assert!(queues.iter().map(|queue| queue.name.as_str()).eq(["default"]), "{queues:?}");
        store.show_job(&Sight::All, job(ACME, 1)).await.expect("an operator sees all");
        assert_eq!(store.list_jobs(&JobFilter::default()).await.expect("list").len(), 8);
        let prune = tenure_contract::fixture::cancel(job(ACME, 1), true);
        store.cancel_job(prune).await.expect("and may do all");
        database.sql(&format!(
            "insert into tenure.ready (run_at, job, queue, priority) values (now(), '{}', 1, 2); \
            delete from tenure.attempt where job = '{0}'",
            job(ACME, 1)
        ));
    }
}
