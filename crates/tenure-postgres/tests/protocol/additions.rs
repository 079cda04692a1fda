//! A newer program adds to the schema while an older one works: columns, tables, and steps that only add.

use std::time::Duration;

use tenure_contract::fixture::success;
use tenure_contract::{CASES, clock_at_start, run_case};
use tenure_core::QueueName;
use tenure_core::gate::{GateRule, Pattern};
use tenure_postgres::migrate::STEPS;
use tenure_postgres::{PgOptions, statement};
use tenure_store::clock::Clock;
use tenure_store::gate::{GateFilter, SetRule};
use tenure_store::lease::{Claimed, RenewLeases};
use tenure_store::operate::{PruneJobs, SetQueue, Word};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{AdminStore, GateStore, JobStore, LeaseStore, RunStore, ScheduleStore};
use tokio_postgres::Client;

use crate::database::{Database, fixture_on};
use crate::scene::{Scene, connect, number, run, said};

/// What a newer program may do without telling the older one: a column in every table and in what functions answer to
/// statements, a table, and a step in the list.
fn additions() -> String {
    let known = STEPS.last().expect("steps").version;
    format!(
        "do $$ declare t regclass; begin
           for t in select c.oid from pg_class c where c.relnamespace = 'tenure'::regnamespace and c.relkind = 'r' loop
             execute format('alter table %s add column added_later text default ''of the future''', t);
           end loop;
         end $$;
         do $$ declare f record; begin
           for f in select p.oid, p.proname, p.pronargs, pg_get_function_arguments(p.oid) as args, pg_get_function_result(p.oid) as result
             from pg_proc p where p.pronamespace = 'tenure'::regnamespace and p.proname in ('claim_lines', 'reclaim', 'acquire', 'begin_page')
           loop
             execute format('alter function tenure.%I rename to %I', f.proname, f.proname || '_before');
             execute format('create function tenure.%I(%s) returns %s language sql as $f$ select b.*, null::text from tenure.%I(%s) b $f$',
               f.proname, f.args, regexp_replace(f.result, '\\)$', ', added_later text)'), f.proname || '_before',
               (select string_agg('$' || n, ', ') from generate_series(1, f.pronargs) n));
           end loop;
         end $$;
         create table tenure.added_later (id bigint generated always as identity primary key);
         insert into tenure.migration (version, name, checksum, min_binary) values (999, '0999_of_the_future', 'x', {known})"
    )
}

/// Every statement of ours, prepared and run once before the columns come.
async fn prepare_all(client: &Client) {
    for statement in statement::ALL {
        run(client, &format!("prepare {} as {}", statement.name, statement.sql)).await;
    }
}

/// Runs every prepared statement with nulls. Most of them refuse those in their own words.
async fn execute_all(client: &Client) {
    /// The result of a statement is another one than when it was prepared: `cached plan must not change result type`, and
    /// what the server says of functions.
    const CHANGED: [&str; 2] = ["0A000", "42804"];
    for statement in statement::ALL {
        let count = format!(
            "(select cardinality(parameter_types) from pg_prepared_statements where name = '{}')",
            statement.name
        );
        let nulls = vec!["null"; usize::try_from(number(client, &count).await).expect("a count")];
        let arguments = if nulls.is_empty() { String::new() } else { format!("({})", nulls.join(", ")) };
        run(client, "begin").await;
        let executed = client.simple_query(&format!("execute {}{arguments}", statement.name)).await;
        if let Err(error) = executed {
            let code = error.code().map(|code| code.code().to_owned()).unwrap_or_default();
            assert!(!CHANGED.contains(&code.as_str()), "{}: {}", statement.name, said(&error));
        }
        run(client, "rollback").await;
    }
}

/// Red when a statement has `*` in the columns that it answers.
#[tokio::test]
async fn prepared_statements_go_on_when_every_table_gets_a_column() {
    let database = Database::new().await;
    let session = connect(&database.url).await;
    run(&session, "set plan_cache_mode = force_generic_plan").await;
    prepare_all(&session).await;
    execute_all(&session).await;
    database.sql(&additions());
    execute_all(&session).await;
}

/// What a worker, a server and an operator do, on the sessions that they have.
async fn work(scene: &Scene) {
    let (store, worker) = (&scene.store, scene.worker("w").await);
    let (lease, jobs) = scene.claim_batch(worker, 4).await;
    store.renew_leases(RenewLeases { worker, leases: vec![lease] }).await.expect("renew");
    scene.end_all(worker, lease, &jobs, &success()).await;
    // A queue with lines, and a gate.
    let queue: QueueName = "lines".parse().expect("a name");
    let fair = SetQueue { fair: Some(true), ..SetQueue::new(queue.clone(), Duration::from_secs(60)) };
    store.set_queue(fair).await.expect("set the queue");
    let pattern: Pattern = "source:*".parse().expect("a pattern");
    let rule = GateRule { concurrency: Some(3), ..GateRule::default() };
    store.set_rule(SetRule { pattern, rule: Some(rule), word: Word::default() }).await.expect("set the rule");
    let mut job = scene.new_job();
    job.queue = queue.clone();
    job.gate = Some("source:a".parse().expect("a name"));
    store.enqueue_jobs(vec![job]).await.expect("enqueue");
    let claim = tenure_store::lease::ClaimJobs::new(worker, queue, 5);
    let Claimed { lease, jobs, .. } = store.claim_jobs(claim).await.expect("claim").expect("a job is due");
    let jobs: Vec<_> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(scene.end_all(worker, lease, &jobs, &success()).await.len(), 1);
    assert_eq!(store.list_gates(&GateFilter::default()).await.expect("list gates").len(), 1);
    // Lost jobs, and lists.
    scene.claim_batch(worker, 2).await;
    scene.advance(Duration::from_secs(61));
    assert_eq!(store.reclaim_jobs(None, 10).await.expect("reclaim").len(), 2);
    assert!(!store.list_jobs(&JobFilter::default()).await.expect("list jobs").is_empty());
    store.show_job(&Sight::All, jobs[0]).await.expect("show");
    assert!(!store.list_queues().await.expect("list queues").is_empty());
    store.due_schedules(10).await.expect("due schedules");
    store.fold_runs().await.expect("fold runs");
    store.list_workers(10).await.expect("list workers");
    store.prune_jobs(PruneJobs { older_than: Duration::ZERO, dead_too: true, limit: 10 }).await.expect("prune");
    scene.assert_sound().await;
}

/// A worker that was started before the migration goes on: the same sessions, one for each kind of verb. Transactions that
/// are open while a seal is made bring the functions into play that answer rows of the journal.
#[tokio::test]
async fn a_store_goes_on_when_every_table_gets_a_column() {
    let scene = Scene::with(PgOptions { connections_max: 1, ..PgOptions::default() }).await;
    let late = scene.client().await;
    for round in 0..3 {
        run(&late, "begin; select tenure.enqueue('noop')").await;
        scene.store.enqueue_jobs(vec![scene.new_job()]).await.expect("enqueue");
        scene.audit().await;
        run(&late, "commit").await;
        work(&scene).await;
        if round == 1 {
            scene.database.sql(&additions());
        }
    }
}

/// A part of the contract on a database that a newer program has migrated, by a store that is opened afterwards.
#[tokio::test]
async fn the_contract_holds_on_a_schema_with_additions() {
    for (case, _) in CASES.iter().step_by(12) {
        let (database, clock) = (Database::new().await, clock_at_start());
        database.sql(&additions());
        let options = PgOptions { clock: Clock::Manual(clock.clone()), connections_max: 4, ..PgOptions::default() };
        run_case(case, fixture_on(database, options, clock).await).await.expect("the case holds");
    }
}

/// An older program that is rolled back to runs its `migrate` first, and finds nothing to do.
#[tokio::test]
async fn a_newer_schema_that_only_adds_is_used_and_shown() {
    let database = Database::new().await;
    database.sql(&additions());
    let store = database.store(PgOptions::default()).await;
    assert!(store.migrate().await.expect("migrate").is_empty());
    let listed = store.list_migrations().await.expect("list");
    let newest = listed.last().expect("steps");
    assert_eq!((newest.version, newest.name.as_str(), newest.applied), (999, "0999_of_the_future", true));
    assert_eq!(listed.len(), STEPS.len() + 1);
}
