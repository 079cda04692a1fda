//! Home: a database that was restored into another cluster begins a new era (S3).
//!
//! Transaction ids start anew there. New rows would lie below the last seal's snapshot: no seal would ever hold them, and
//! nobody would notice.

use std::process::Command;

use tenure_contract::fixture::success;
use tenure_contract::postgres_server::{Options, Postgres, psql};
use tenure_core::{JobId, Json, KindName, LeaseNo, NewJob, QueueName};
use tenure_postgres::{PgOptions, PgStore};
use tenure_store::audit::{self, Report};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended};
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError};

use crate::scene::{Scene, number, real_now, run, soon, text, until};

/// So many transactions that a new cluster does not reach them.
pub(crate) const BURN: &str =
    "do $$ begin for i in 1..5000 loop perform pg_current_xact_id(); commit; end loop; end $$";

/// Two sealed rows and one that is not sealed yet; answers the last lease.
async fn history(scene: &Scene) -> LeaseNo {
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 1).await;
    scene.end_all(worker, lease, &jobs, &success()).await;
    scene.store.seal_journal().await.expect("seal").expect("there is something to seal");
    scene.claim_batch(worker, 1).await.0
}

/// Runs a job on a store through all verbs, seals, and checks.
async fn run_one_and_audit(store: &PgStore) -> (LeaseNo, Report) {
    let worker = store.register_worker(&"again".parse().expect("a name")).await.expect("register");
    let id = JobId::from_parts(real_now(), [9; 10]);
    let job = NewJob::new(id, KindName::new("noop").expect("a name"), Json::null());
    store.enqueue_jobs(vec![job]).await.expect("enqueue");
    let claim = ClaimJobs::new(worker, QueueName::default(), 10);
    let claimed = store.claim_jobs(claim).await.expect("claim").expect("a job is due");
    let end = EndJobs { worker, lease: claimed.lease, jobs: vec![EndJob::new(id, success())] };
    assert!(matches!(store.end_jobs(end).await.expect("end")[..], [Ended::Now(_)]));
    while store.seal_journal().await.expect("seal").is_some() {}
    (claimed.lease, audit::verify(store, None, |_| {}).await.expect("verify"))
}

/// A new era: the rest of the old one is sealed first, then what came after.
async fn assert_new_era(store: &PgStore, last: LeaseNo) {
    let (lease, report) = run_one_and_audit(store).await;
    assert!(lease.0 > last.0 + 1_000, "{lease} might be in a worker's hands since the backup; the last was {last}");
    assert!(report.findings.is_empty(), "{report:#?}");
    assert_eq!(
        (report.rows, report.tail),
        (6, 0),
        "two sealed, one of the rest, the move itself, and two of the new job"
    );
    let boundaries: Vec<String> =
        store.list_seals(0, 10).await.expect("list").into_iter().map(|seal| seal.boundary).collect();
    let eras: Vec<&str> = boundaries.iter().map(|boundary| boundary.split_once('/').expect("era/snapshot").0).collect();
    assert_eq!((eras, boundaries[1].starts_with("1/rest/")), (vec!["1", "1", "2"], true));
}

/// Red when the identity of the cluster is not stored or not compared.
#[tokio::test]
async fn a_database_of_another_cluster_is_refused_until_it_is_rehomed() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let last = history(&scene).await;
    run(&client, "update tenure.home set system_identifier = 4711").await;
    let here = text(&client, "select system_identifier from pg_control_system()").await;

    let url = &scene.database.url;
    let refused = PgStore::connect(url, PgOptions::default()).await.err().expect("refused");
    let said = refused.to_string();
    assert!(matches!(refused, StoreError::Schema(_)) && said.contains("4711") && said.contains(&here), "{said}");

    PgStore::rehome(url, false).await.expect("rehome");
    let twice = PgStore::rehome(url, false).await;
    assert!(matches!(twice, Err(StoreError::Conflict(_))), "{twice:?}");
    let store = PgStore::connect(url, PgOptions::default()).await.expect("connect");
    assert_new_era(&store, last).await;
}

/// A real dump, restored into a cluster whose transaction ids are younger.
#[tokio::test]
async fn a_dump_restored_into_a_younger_cluster_goes_on_in_a_new_era() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    run(&client, BURN).await;
    let last = history(&scene).await;
    let younger = Postgres::start(&Options::default()).expect("start another cluster");
    let url = restore(&scene.database.url, &younger, &scene.database.name);

    let refused = PgStore::connect(&url, PgOptions::default()).await.err().expect("refused");
    assert!(matches!(refused, StoreError::Schema(_)), "{refused:?}");
    PgStore::rehome(&url, false).await.expect("rehome");
    let store = PgStore::connect(&url, PgOptions::default()).await.expect("connect");
    assert_new_era(&store, last).await;
}

/// What the catalog has and the list of positions has not, or the other way round.
#[tokio::test]
async fn every_sequence_and_every_stored_transaction_id_is_on_the_list_that_rehoming_walks() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let differences = "select coalesce(string_agg(place, ', ' order by place), '') from (
        (select c.relname::text as place from pg_class c where c.relkind = 'S' and c.relnamespace = 'tenure'::regnamespace
         union
         select c.relname || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
         where c.relnamespace = 'tenure'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
           and a.atttypid = any (array['xid8', 'xid', 'pg_snapshot', 'txid_snapshot', 'pg_lsn', 'tid', 'cid']::regtype[]))
        except select place from tenure.positions()
        union all
        (select place from tenure.positions() where kind <> 'clock'
         except
         (select c.relname::text from pg_class c where c.relkind = 'S' and c.relnamespace = 'tenure'::regnamespace
          union
          select c.relname || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
          where c.relnamespace = 'tenure'::regnamespace and a.attnum > 0 and not a.attisdropped))
      ) d (place)";
    assert_eq!(text(&client, differences).await, "");
    let unguarded = "select count(*) from tenure.positions() p join pg_depend d on d.objid = ('tenure.' || p.place)::regclass and d.deptype = 'i'
        where p.step > 0 and not exists (select from pg_trigger t where t.tgrelid = d.refobjid and t.tgfoid = 'tenure.follow_timeline_first'::regproc)";
    assert_eq!(number(&client, unguarded).await, 0, "a sequence that leaps is guarded where its numbers are drawn");
    run(&client, "create table tenure.forgotten (at pg_lsn, id int generated always as identity)").await;
    assert_eq!(text(&client, differences).await, "forgotten.at, forgotten_id_seq", "a new one is noticed");
}

/// A transaction that has written to the journal is open while the database is rehomed: its rows belong to the era that
/// ends, and are sealed. Red when rehoming does not wait: no seal ever holds them.
#[tokio::test]
async fn rehoming_waits_for_transactions_that_have_written_to_the_journal() {
    let scene = Scene::new().await;
    history(&scene).await;
    let (user, look) = (scene.client().await, scene.client().await);
    run(&user, "begin; insert into tenure.journal (at, event, jobs) select now(), 6, '{}' from generate_series(1, 3)")
        .await;
    let url = scene.database.url.clone();
    let rehome = tokio::spawn(async move { PgStore::rehome(&url, true).await });
    let waits = "select exists (select from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like '%tenure.rehome%')";
    until(&look, "rehoming waits", waits).await;
    run(&user, "commit").await;
    soon("rehome", rehome).await.expect("no panic").expect("rehome");
    let store = PgStore::connect(&scene.database.url, PgOptions::default()).await.expect("connect");
    while store.seal_journal().await.expect("seal").is_some() {}
    let sealed = number(&look, "select sum(rows) from tenure.seal").await;
    assert_eq!(sealed, number(&look, "select count(*) from tenure.journal").await, "every row is under a seal");
}

/// Logical replication carries rows and no sequences.
#[tokio::test]
async fn numbers_leap_from_the_data_where_sequences_were_left_behind() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let last = history(&scene).await;
    let workers = number(&client, "select max(id) from tenure.worker").await;
    let forget =
        "do $$ declare p record; begin for p in select place from tenure.positions() where kind = 'sequence' loop
        execute format('alter sequence tenure.%I restart', p.place); end loop; end $$";
    run(&client, forget).await;
    run(&client, "update tenure.home set system_identifier = 4711").await;
    PgStore::rehome(&scene.database.url, false).await.expect("rehome");
    let store = PgStore::connect(&scene.database.url, PgOptions::default()).await.expect("connect");
    assert_new_era(&store, last).await;
    assert!(number(&client, "select max(id) from tenure.worker").await > workers);
    run(&client, "insert into tenure.queue (name) values ('q')").await;
    assert_eq!(store.find_violations(9).await.expect("find violations"), []);
}

/// The mutant: a store that believes it is at home loses the row that was not sealed when the dump was made. Its xid lies
/// above every snapshot of the younger cluster, so it is under no seal.
#[tokio::test]
async fn a_restored_database_that_is_not_rehomed_loses_its_unsealed_rows() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    run(&client, BURN).await;
    history(&scene).await;
    let younger = Postgres::start(&Options::default()).expect("start another cluster");
    let url = restore(&scene.database.url, &younger, &scene.database.name);
    psql(&url, "update tenure.home set system_identifier = (select system_identifier from pg_control_system())")
        .expect("forge");
    let store = PgStore::connect(&url, PgOptions::default()).await.expect("connect");
    let (_, report) = run_one_and_audit(&store).await;
    assert_eq!((report.rows, report.tail), (4, 0), "two and two of five: {report:#?}");
}

/// Dumps a database and restores it into another cluster in one transaction; answers its URL there.
pub(crate) fn restore(url: &str, into: &Postgres, name: &str) -> String {
    let file = std::env::temp_dir().join(format!("{name}_{}.sql", into.port()));
    let dumped = Command::new(into.bin_dir().join("pg_dump")).arg("--file").arg(&file).arg(url).status();
    assert!(dumped.expect("run pg_dump").success());
    psql(&into.admin_url(), "create database restored").expect("create a database");
    let url = into.url("restored");
    let mut psql = Command::new(into.bin_dir().join("psql"));
    psql.args([
        "--no-psqlrc",
        "--quiet",
        "--single-transaction",
        "--set=ON_ERROR_STOP=1",
        "--output=/dev/null",
        "--file",
    ]);
    let restored = psql.arg(&file).arg(&url).status().expect("run psql");
    std::fs::remove_file(&file).expect("remove the dump");
    assert!(restored.success());
    url
}
