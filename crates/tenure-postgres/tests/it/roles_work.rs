//! Roles: each can do what it is for, and installing them is safe: twice, by two at once, and beside rights given by hand.

use tenure_contract::fixture::success;
use tenure_contract::postgres_server::{psql, shared_admin_url};
use tenure_contract::{clock_at_start, run_case};
use tenure_core::How;
use tenure_postgres::{PgOptions, PgStore, roles};
use tenure_store::clock::Clock;
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended};
use tenure_store::record::{JobFilter, SecondWall};
use tenure_store::schedule::{FireSchedule, Fired};
use tenure_store::{AdminStore, JobStore, LeaseStore, ScheduleStore, StoreError};

use crate::database::{Database, fixture_on};
use crate::roles::{connect, heard, walled};
use crate::two_tenants::{leaks, settle};

/// Cases of the contract suite that touch most of what these roles are for.
const CASES: &[(&str, &str)] = &[
    ("tenure_worker", "a_stale_worker_cannot_complete_while_its_successor_runs"),
    ("tenure_worker", "a_run_is_healed_by_an_ordinary_requeue"),
    ("tenure_operator", "a_tenant_sees_and_ends_only_its_own_keys"),
    ("tenure_operator", "a_breaker_is_tripped_and_reset_by_hand"),
];

/// Logged in as the superuser of the tests, and then no more than this role.
fn within(database: &mut Database, role: &str) {
    database.url += &format!("?options=-c%20role%3D{role}");
}

/// A user of the cluster who goes with this value; logins have a name of their own in each test.
struct Login(String);

impl Login {
    fn new(name: &str) -> Self {
        let name = format!("{name}_{}", std::process::id());
        psql(shared_admin_url(), &format!("create role {name} login")).expect("make a user");
        Self(name)
    }

    fn url(&self, database: &Database) -> String {
        database.url.replacen("postgres@", &format!("{}@", self.0), 1)
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        // A user that stays is of no harm: the cluster goes with the tests.
        let _left_behind = psql(shared_admin_url(), &format!("drop role if exists {}", self.0));
    }
}

#[tokio::test]
async fn workers_and_operators_can_do_what_they_are_for() {
    for (role, case) in CASES {
        let clock = clock_at_start();
        let options = PgOptions { clock: Clock::Manual(clock.clone()), ..PgOptions::default() };
        let mut database = walled().await;
        within(&mut database, role);
        let ran = run_case(case, fixture_on(database, options, clock).await).await;
        ran.unwrap_or_else(|why| panic!("{role}: {why}"));
    }
}

/// What operators have set up, workers obey: a rule of a gate, and a schedule.
#[tokio::test]
async fn a_worker_passes_gates_and_fires_schedules_it_may_not_make() {
    let mut database = walled().await;
    settle(&database);
    database.sql("select tenure.set_gate('g', concurrency => 1); update tenure.schedule set look_at = now()");
    let seven = database.sql("select tenure.new_id()");
    within(&mut database, "tenure_worker");
    let store = database.store(PgOptions::default()).await;
    let jobs = database.sql("select job from tenure.enqueue('noop', queue => 'far', gate => 'g')");
    let worker = store.register_worker(&"w".parse().expect("a name")).await.expect("register");
    let claim = ClaimJobs::new(worker, "far".parse().expect("a name"), 5);
    let claimed = store.claim_jobs(claim).await.expect("claim").expect("a job");
    assert_eq!(claimed.jobs[0].id.to_string(), jobs);
    let jobs = vec![EndJob::new(claimed.jobs[0].id, success())];
    let ended = store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await.expect("end");
    assert_eq!(ended, [Ended::Now(How::Succeeded)]);
    // A failover: the worker may neither change the timeline nor set a sequence, and both happen before its next claim.
    database.sql("set role none; update tenure.home set timeline = timeline - 1");
    database.sql("select tenure.enqueue('noop', queue => 'far')");
    let claim = ClaimJobs::new(worker, "far".parse().expect("a name"), 5);
    let leapt = store.claim_jobs(claim).await.expect("claim").expect("a job").lease;
    assert!(leapt.0 > 1 << 32, "{leapt}");
    let due = store.due_schedules(1).await.expect("look").due.pop().expect("one is due");
    let job = seven.parse().expect("an id");
    let fire = FireSchedule { schedule: due.id, version: due.version, fire_at: Some(due.now), job, look_at: due.now };
    assert_eq!(store.fire_schedule(fire).await.expect("fire"), Fired::Stored(job));
}

/// A server whose user has few rights: an operator for its own part, and each tenant's role in turn.
#[tokio::test]
async fn the_wall_stands_for_a_user_who_may_take_the_role() {
    let database = walled().await;
    settle(&database);
    let login = Login::new("server");
    database.sql(&format!("grant tenure_operator to {}", login.0));
    let store = PgStore::connect(&login.url(&database), PgOptions::default()).await.expect("connect");
    assert!(matches!(store.second_wall(), SecondWall::Missing(why) if why.contains("grant tenure_api")));
    database.sql(&format!("grant tenure_api to {}", login.0));
    let store = PgStore::connect(&login.url(&database), PgOptions::default()).await.expect("connect");
    assert_eq!(store.second_wall(), SecondWall::Stands);
    assert_eq!(leaks(&store).await, [] as [&str; 0]);
    assert_eq!(
        store.list_jobs(&JobFilter::default()).await.expect("list").len(),
        8,
        "it sees all where it asks for all"
    );
    drop(store);
}

/// No superuser is needed. Red when one is, or when the wall does not bind the owner's own connections.
#[tokio::test]
async fn an_owner_who_may_make_roles_installs_them() {
    let owner = Login::new("owner");
    let database = Database::bare();
    database.sql(&format!("alter role {0} createrole; alter database {1} owner to {0}", owner.0, database.name));
    let store = PgStore::connect(&owner.url(&database), PgOptions::default()).await.expect("connect");
    store.migrate().await.expect("migrate");
    assert_eq!(store.install_roles().await.expect("install"), SecondWall::Stands);
    settle(&database);
    let store = PgStore::connect(&owner.url(&database), PgOptions::default()).await.expect("connect");
    assert_eq!(store.second_wall(), SecondWall::Stands);
    assert_eq!(leaks(&store).await, [] as [&str; 0]);
    // Nor is one needed for the next version, even where one has installed them.
    database.store(PgOptions::default()).await.install_roles().await.expect("install");
    database.sql("drop table tenure.cache; delete from tenure.migration where name like '%cache'");
    assert_eq!(store.migrate().await.expect("migrate").len(), 1);
}

/// Red when a role that is being made, by another database of the cluster, fails who comes second.
#[tokio::test]
async fn two_databases_may_ask_for_the_roles_at_the_same_time() {
    let (one, two) = (Database::new().await, Database::new().await);
    let name = format!("race_{}", std::process::id());
    // Other names than those that all tests share.
    let text = roles::text().replace("tenure_", &format!("{name}_"));
    let create = text.split_once("-- bind_roles.sql").expect("two parts").0.trim_start_matches("begin;").to_owned();
    let (first, second, look) = (connect(&one).await, connect(&two).await, connect(&two).await);
    first.batch_execute(&format!("begin; {create}")).await.expect("make the roles");
    let pid: i32 = second.query_one("select pg_backend_pid()", &[]).await.expect("its process").get(0);
    let waiting = tokio::spawn(async move { second.batch_execute(&create).await });
    let blocked = "select cardinality(pg_blocking_pids($1)) > 0";
    while !look.query_one(blocked, &[&pid]).await.expect("look").get::<_, bool>(0) {
        tokio::task::yield_now().await;
    }
    first.batch_execute("commit").await.expect("commit");
    waiting.await.expect("no panic").expect("the second finds them made");
    let made = format!("select string_agg(rolname, ', ') from pg_roles where rolname like '{name}%'");
    let made = psql(shared_admin_url(), &made).expect("look");
    assert_eq!(made.split(", ").count(), 5, "{made}");
    psql(shared_admin_url(), &format!("drop role {made}")).expect("drop them");
}

/// Installed by four at once, twice, all of them succeed; and a user who was given rights by hand keeps its sight.
#[tokio::test]
async fn roles_are_installed_by_anybody_at_any_time_and_take_nothing_away() {
    let database = Database::new().await;
    settle(&database);
    let hand = Login::new("by_hand");
    database.sql(&format!("grant usage on schema tenure to {0}; grant select on tenure.job to {0}", hand.0));
    for _ in 0..2 {
        let mut all = Vec::new();
        for _ in 0..4 {
            let store = database.store(PgOptions::default()).await;
            all.push(tokio::spawn(async move { store.install_roles().await }));
        }
        for one in all {
            assert_eq!(one.await.expect("no panic").expect("install"), SecondWall::Stands);
        }
    }
    let client = connect(&database).await;
    let count = "select count(*) from tenure.job";
    assert_eq!(heard(&client, &hand.0, None, count).await, Ok(vec!["8".to_owned()]));
    // Once it is bound to a tenant it is bound, whatever it was given before.
    database.sql(&format!("grant tenure_api to {}", hand.0));
    database.store(PgOptions::default()).await.install_roles().await.expect("install");
    assert_eq!(heard(&client, &hand.0, None, count).await, Ok(vec!["0".to_owned()]));
}

#[tokio::test]
async fn what_a_migration_adds_is_bound_to_the_roles() {
    let database = walled().await;
    // As if the cache were new.
    database.sql("drop table tenure.cache; delete from tenure.migration where name like '%cache'");
    let store = database.store(PgOptions::default()).await;
    assert_eq!(store.migrate().await.expect("migrate").len(), 1);
    let client = connect(&database).await;
    assert_eq!(
        heard(&client, "tenure_worker", None, "select count(*) from tenure.cache").await,
        Ok(vec!["0".to_owned()])
    );
}

#[tokio::test]
async fn who_lacks_a_right_is_told_which_and_what_to_do() {
    let mut database = walled().await;
    within(&mut database, "tenure_operator");
    let refused = database.store(PgOptions::default()).await.install_roles().await;
    let Err(StoreError::Schema(said)) = refused else { panic!("not a word about rights: {refused:?}") };
    for part in ["permission denied", "owner of the schema", "CREATEROLE", "tenure migrate dry-run --roles"] {
        assert!(said.contains(part), "{said}");
    }
}
