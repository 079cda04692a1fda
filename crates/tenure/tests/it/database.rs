//! One text of SQL, one handler, both stores.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::core::Json;
use tenure::sink::{Sink, Type, Upserted};
use tenure::store::clock::{Clock, ManualClock};
use tenure::store::gate::GateFilter;
use tenure::store::record::Sight;
use tenure::store::usage::UsageFilter;
use tenure::{
    Attempt, Builder, Client, Completed, Ctx, Database, Fail, Job, JobFilter, JobId, JobState, Mode, PgOptions,
    PgStore, SqliteOptions, SqliteStore, State, StoreError, Timestamp, Worker, row,
};
use tenure_contract::test_database::TestDatabase;
use tenure_contract::{clock_at_start, pgbouncer};

const TABLES: &str = "
    create table if not exists coin (
        id bigint primary key, name text not null unique, at timestamptz, doc jsonb, picture bytea, weight double precision,
        sold boolean not null default false, check (id < 1000)
    );
    create table if not exists receipt (job text not null, coin bigint not null references coin (id))";

/// A database of each kind, gone with this value, and its clock.
struct Place {
    database: Database,
    clock: ManualClock,
    _kept: Option<TestDatabase>,
}

impl Place {
    async fn sqlite() -> Self {
        let clock = clock_at_start();
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
        let database = SqliteStore::in_memory(options).unwrap().into();
        Self { database, clock, _kept: None }.ready().await
    }

    async fn postgres() -> Self {
        Self::on_postgres(Mode::Direct, |kept| kept.url.clone()).await
    }

    /// Behind a pooler, where the next transaction may meet another session.
    async fn pooled() -> Self {
        Self::on_postgres(Mode::Pooled, |kept| {
            let pooler = pgbouncer::shared_url();
            format!("{}/{}", pooler.rsplit_once('/').unwrap().0, kept.name)
        })
        .await
    }

    async fn on_postgres(mode: Mode, url: impl FnOnce(&TestDatabase) -> String) -> Self {
        let (kept, clock) = (TestDatabase::empty(), clock_at_start());
        let clocked = Clock::Manual(clock.clone());
        let options = PgOptions { mode, clock: clocked, connections_max: 4, ..PgOptions::default() };
        let store = PgStore::connect(&url(&kept), options).await.unwrap();
        Self { database: store.into(), clock, _kept: Some(kept) }.ready().await
    }

    async fn ready(self) -> Self {
        tenure::migrate(&self.database).await.unwrap();
        self.database.make_tables(TABLES).await.unwrap();
        self.database.make_tables(TABLES).await.unwrap(); // again, as every process does that starts
        self
    }

    fn client(&self) -> Client {
        Client::new(&self.database).with_clock(Clock::Manual(self.clock.clone()))
    }

    fn worker(&self) -> Builder<Database> {
        Worker::builder(&self.database).client(self.client()).state(self.database.clone())
    }
}

macro_rules! on_each_store {
    ($($name:ident,)*) => {
        on_each_store! { @on sqlite $($name,)* }
        on_each_store! { @on postgres $($name,)* }
        on_each_store! { @on pooled $($name,)* }
    };
    (@on $store:ident $($name:ident,)*) => {
        mod $store {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(super::Place::$store().await).await })*
        }
    };
}

on_each_store! {
    every_type_goes_in_and_comes_out,
    a_statement_that_was_refused_keeps_nothing,
    refusals_are_told_apart,
    rows_jobs_and_completions_are_kept_together,
    a_panic_keeps_nothing_and_goes_on,
    what_is_written_by_a_sink_is_read_again,
    what_is_refused_at_the_commit_keeps_nothing,
    a_tests_clock_moves_what_is_done_in_a_transaction,
    usage_and_words_about_a_gate_go_with_a_completion,
}

async fn every_type_goes_in_and_comes_out(place: Place) {
    let database = &place.database;
    let (at, doc) = (Timestamp::from_micros(1_700_000_000_123_456), Json::parse("doc", r#"{"a":[1,"x"]}"#).unwrap());
    let given = row![7, "Krugerrand", at, doc.clone(), vec![0_u8, 255, 7], 33.93, true];
    let insert = "insert into coin (id, name, at, doc, picture, weight, sold) values ($1, $2, $3, $4, $5, $6, $7)";
    assert_eq!(database.execute(insert, given).await.unwrap(), 1);
    let nothing = row![8, "Dollar", None::<Timestamp>, None::<Json>, None::<Vec<u8>>, None::<f64>, false];
    database.execute(insert, nothing).await.unwrap();

    let found = database.query("select * from coin where id >= $1 and (id = $1 or id > $1) order by id", row![7]).await;
    let [full, empty] = found.unwrap().try_into().unwrap();
    assert_eq!((full.get::<i64>("id").unwrap(), full.get::<String>("name").unwrap()), (7, "Krugerrand".into()));
    assert_eq!(full.get::<Timestamp>("at").unwrap(), at);
    assert_eq!(full.get::<Json>("doc").unwrap().as_str().replace(' ', ""), doc.as_str());
    assert_eq!(full.get::<Vec<u8>>("picture").unwrap(), [0, 255, 7]);
    assert_eq!((full.get::<f64>("weight").unwrap(), full.get::<bool>("sold").unwrap()), (33.93, true));
    assert_eq!(empty.get::<Option<Timestamp>>("at").unwrap(), None);
    assert_eq!(empty.get::<Option<Json>>("doc").unwrap(), None);
    assert_eq!(empty.get::<Option<Vec<u8>>>("picture").unwrap(), None);
    assert!(!empty.get::<bool>("sold").unwrap());
}

async fn a_statement_that_was_refused_keeps_nothing(place: Place) {
    let database = &place.database;
    // Whoever keeps the error to themselves hears of it all the same: Postgres would roll back in silence.
    let kept = database
        .transaction(|tx| {
            tx.execute("insert into coin (id, name) values (1, 'first')", row![])?;
            let refused = tx.execute("insert into coin (id, name) values (1, 'second')", row![]);
            assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
            let after = tx.execute("insert into coin (id, name) values (2, 'third')", row![]);
            assert!(matches!(after, Err(StoreError::Conflict(_))), "{after:?}");
            Ok::<_, StoreError>(())
        })
        .await;
    assert!(matches!(kept, Err(StoreError::Conflict(_))), "{kept:?}");
    assert!(database.query("select id from coin", row![]).await.unwrap().is_empty());
}

async fn refusals_are_told_apart(place: Place) {
    let database = &place.database;
    database.execute("insert into coin (id, name) values (1, 'one')", row![]).await.unwrap();
    let refused = async |sql: &'static str, params| database.execute(sql, params).await.unwrap_err();
    let insert = "insert into coin (id, name) values ($1, $2)";
    assert!(matches!(refused(insert, row![1, "two"]).await, StoreError::Conflict(_)));
    assert!(matches!(refused(insert, row![2, "one"]).await, StoreError::Conflict(_)));
    assert!(matches!(refused(insert, row![1_000, "three"]).await, StoreError::Invalid(_)));
    assert!(matches!(refused(insert, row![3, None::<&str>]).await, StoreError::Invalid(_)));
    assert!(matches!(refused("insert into coins (id) values ($1)", row![1]).await, StoreError::Schema(_)));
    for params in [row![3], row![3, "three", 3]] {
        let counted = refused(insert, params).await;
        assert!(matches!(&counted, StoreError::Schema(why) if why.contains("given")), "{counted:?}");
    }
    assert_eq!(database.query("select id from coin", row![]).await.unwrap().len(), 1);
    // An integer goes where a float is wanted; what fits nowhere is the statement's fault, not the server's.
    database.execute("update coin set weight = $1", row![33]).await.unwrap();
    if database.is_postgres() {
        let misfit = refused("update coin set sold = $1", row!["yes"]).await;
        assert!(matches!(&misfit, StoreError::Schema(why) if why.contains("a text was given")), "{misfit:?}");
    }
}

/// The server stops what takes too long, that is no outage, and the next one finds a good connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_takes_too_long_is_stopped_and_the_next_one_is_not() {
    let kept = TestDatabase::empty();
    let options = PgOptions { long_deadline: Duration::from_secs(1), connections_max: 1, ..PgOptions::default() };
    let database = Database::from(PgStore::connect(&kept.url, options).await.unwrap());
    let stopped = database.query("select pg_sleep(60)::text as slept", row![]).await;
    assert!(matches!(&stopped, Err(StoreError::Conflict(why)) if why.contains("stopped by the server")), "{stopped:?}");
    let dropped = database.query("select pg_sleep(60)::text as slept", row![]);
    assert!(tokio::time::timeout(Duration::from_millis(50), dropped).await.is_err());
    assert_eq!(database.query("select 7 as n", row![]).await.unwrap()[0].get::<i64>("n").unwrap(), 7);
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "coin.sell", max_attempts = 1)]
struct Sell {
    coin: i64,
    fail: bool,
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "coin.ship")]
struct Ship {
    coin: i64,
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "source.look")]
struct Look {
    source: String,
}

async fn sell(job: Sell, State(database): State<Database>, ctx: Ctx, attempt: Attempt) -> Result<Completed, Fail> {
    database
        .transaction(move |tx| {
            tx.execute("insert into receipt (job, coin) values ($1, $2)", row![attempt.job_id(), job.coin])?;
            ctx.client().enqueue(Ship { coin: job.coin }).within(tx)?;
            let completed = attempt.complete_in(tx)?;
            match job.fail {
                true => Err(Fail::permanent("changed its mind")),
                false => Ok(completed),
            }
        })
        .await
}

async fn rows_jobs_and_completions_are_kept_together(place: Place) {
    let database = &place.database;
    database.execute("insert into coin (id, name) values (1, 'one')", row![]).await.unwrap();
    let client = place.client();
    let sold = client.enqueue(Sell { coin: 1, fail: false }).await.unwrap().job();
    let kept = client.enqueue(Sell { coin: 1, fail: true }).await.unwrap().job();
    let nowhere = client.enqueue(Sell { coin: 999, fail: false }).await.unwrap().job();
    let worker = place.worker().handle(sell).build().unwrap();
    worker.run_until_idle().await.unwrap();
    for (job, state) in [(sold, JobState::Succeeded), (kept, JobState::Failed), (nowhere, JobState::Dead)] {
        assert_eq!(client.show(job).await.unwrap().summary.state, state, "{job}");
    }
    let receipts = database.query("select job from receipt", row![]).await.unwrap();
    assert_eq!(receipts.iter().map(|row| row.get("job").unwrap()).collect::<Vec<JobId>>(), [sold]);
    let filter = JobFilter { kind: Some("coin.ship".parse().unwrap()), ..JobFilter::default() };
    assert_eq!(client.store().list_jobs(&filter).await.unwrap().len(), 1);
}

async fn a_panic_keeps_nothing_and_goes_on(place: Place) {
    let database = &place.database;
    let panicking = database.clone();
    let panicked = tokio::spawn(async move {
        let work = |tx: &tenure::Tx<'_>| -> Result<(), StoreError> {
            tx.execute("insert into coin (id, name) values (1, 'one')", row![])?;
            panic!("dropped it");
        };
        panicking.transaction(work).await
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert!(database.query("select id from coin", row![]).await.unwrap().is_empty());
    database.execute("insert into coin (id, name) values (1, 'one')", row![]).await.unwrap();
}

async fn what_is_written_by_a_sink_is_read_again(place: Place) {
    let database = &place.database;
    let sink = Sink::table("coin").key("id", Type::Int).value("name", Type::Text).value("picture", Type::Bytes);
    let sink = sink.overwrite().unwrap();
    let rows = vec![row![1, "one", vec![1_u8]], row![2, "two", None::<Vec<u8>>]];
    let written = database.transaction(move |tx| sink.upsert(tx, rows)).await.unwrap();
    assert_eq!(written, Upserted { inserted: 2, ..Upserted::default() });
    let found = database.query("select picture from coin order by id", row![]).await.unwrap();
    assert_eq!(found[0].get::<Option<Vec<u8>>>("picture").unwrap(), Some(vec![1]));
    assert_eq!(found[1].get::<Option<Vec<u8>>>("picture").unwrap(), None);
}

async fn what_is_refused_at_the_commit_keeps_nothing(place: Place) {
    let tables = "create table if not exists pair (id bigint primary key, other bigint references pair (id) deferrable initially deferred)";
    place.database.make_tables(tables).await.unwrap();
    let lonely = place.database.execute("insert into pair (id, other) values (1, 2)", row![]).await;
    assert!(matches!(lonely, Err(StoreError::Conflict(_))), "{lonely:?}");
    assert!(place.database.query("select id from pair", row![]).await.unwrap().is_empty());
    place.database.execute("insert into pair (id, other) values (1, 2), (2, 1)", row![]).await.unwrap();
}

async fn a_tests_clock_moves_what_is_done_in_a_transaction(place: Place) {
    place.database.execute("insert into coin (id, name) values (1, 'one')", row![]).await.unwrap();
    place.clock.advance(Duration::from_secs(3_600));
    let client = place.client();
    let stored = place.database.transaction(move |tx| client.enqueue(Sell { coin: 1, fail: false }).within(tx));
    let job = stored.await.unwrap().job();
    place.clock.advance(Duration::from_secs(60));
    place.worker().handle(sell).build().unwrap().run_until_idle().await.unwrap();
    let shown = place.client().show(job).await.unwrap();
    let began = tenure_contract::fixture::START.plus(Duration::from_secs(3_600));
    assert_eq!(shown.summary.created_at, began);
    assert_eq!(shown.attempts[0].ended_at, began.plus(Duration::from_secs(60)));
    let told = place.database.transaction(|tx| tx.now()).await.unwrap();
    assert_eq!(told, began.plus(Duration::from_secs(60)));
}

/// What a handler says is not lost when it completes by itself: a source that was not asked is neither well nor ill.
async fn usage_and_words_about_a_gate_go_with_a_completion(place: Place) {
    async fn look(job: Look, State(database): State<Database>, ctx: Ctx, attempt: Attempt) -> Result<Completed, Fail> {
        ctx.set_usage(&serde_json::json!({ "calls": 3 }))?;
        match job.source.as_str() {
            "kept" => ctx.gate().silent(),
            "ill" => ctx.gate().unhealthy(),
            "tired" => ctx.gate().hold(Duration::from_secs(30)),
            _ => {}
        }
        database.transaction(move |tx| attempt.complete_in(tx)).await
    }
    let client = place.client();
    let mut jobs = Vec::new();
    for source in ["well", "kept", "ill", "tired"] {
        jobs.push(client.enqueue(Look { source: source.to_owned() }).gate(source).await.unwrap().job());
    }
    place.worker().handle(look).build().unwrap().run_until_idle().await.unwrap();
    for job in jobs {
        let shown = client.show(job).await.unwrap();
        assert_eq!(shown.summary.state, JobState::Succeeded);
        assert_eq!(
            shown.attempts[0].usage.as_ref().map(|usage| usage.as_str().replace(' ', "")),
            Some(r#"{"calls":3}"#.into())
        );
    }
    let gates = client.store().list_gates(&GateFilter::default()).await.unwrap();
    let gate = |name: &str| gates.iter().find(|gate| gate.name.as_str() == name).unwrap().gate.clone();
    assert!(gate("well").succeeded_at.is_some() && gate("well").held_until.is_none());
    assert_eq!((gate("kept").succeeded_at, gate("kept").failed_at), (None, None));
    assert_eq!((gate("ill").succeeded_at, gate("ill").streak), (None, 1));
    assert_eq!(gate("tired").held_until, Some(place.clock.now().plus(Duration::from_secs(30))));
    let used = client
        .store()
        .sum_usage(&UsageFilter { sight: Sight::All, kind: None, since: Timestamp::EPOCH, after: None, limit: 10 })
        .await
        .unwrap();
    assert_eq!(used.iter().map(|sum| sum.amount).sum::<f64>(), 12.0, "{used:?}");
}
