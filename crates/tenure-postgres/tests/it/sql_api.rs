//! Plain SQL: what it stores the library reads, and what the library refuses it refuses in the same words.

use std::time::Duration;

use tenure_core::journal::JournalEvent;
use tenure_core::new_job::Due;
use tenure_core::unique::Policy;
use tenure_core::{
    Backoff, Invalid, Json, KindName, NewJob, Priority, QueueName, State, TenantName, Timestamp, Timing, Unique,
    worker_loop,
};
use tenure_postgres::PgOptions;
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::schedule::{SetSchedule, Template};
use tenure_store::worker::{About, Beat};
use tenure_store::{AdminStore, JobStore, ScheduleStore};
use tokio_postgres::{Client, NoTls};

use crate::database::Database;

async fn connect(database: &Database) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.expect("connect");
    tokio::spawn(connection);
    client
}

/// What the server says to a call with these arguments.
async fn refusal(client: &Client, arguments: &str) -> String {
    match client.simple_query(&format!("select * from tenure.enqueue({arguments})")).await {
        Ok(_) => "it was stored".to_owned(),
        Err(error) => {
            let said = error.as_db_error().expect("the server's own words");
            format!("{} {}", said.code().code(), said.message())
        }
    }
}

fn deep(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

fn kind(name: &str) -> Result<(), Invalid> {
    KindName::new(name).map(drop)
}

/// A new job with one thing changed, checked as the library does.
fn checked(change: impl FnOnce(&mut NewJob)) -> Result<(), Invalid> {
    let now = Timestamp::from_micros(1_767_225_600_000_000);
    let id = tenure_core::JobId::from_parts(now, [1; 10]);
    let mut job = NewJob::new(id, KindName::new("k").expect("a name"), Json::null());
    change(&mut job);
    job.check(now)
}

#[tokio::test]
async fn plain_sql_refuses_what_the_library_refuses_in_the_same_words() {
    let database = Database::new().await;
    let client = connect(&database).await;
    let long = "x".repeat(501);
    let window = |window| Some(Unique::new("u", Policy::Window(window)));
    let cases: Vec<(String, Result<(), Invalid>)> = vec![
        ("'a b'".into(), kind("a b")),
        ("''".into(), kind("")),
        (format!("'{}'", "k".repeat(101)), kind(&"k".repeat(101))),
        ("'k', queue => 'no queue'".into(), QueueName::new("no queue").map(drop)),
        ("'k', tenant => 'ten;ant'".into(), TenantName::new("ten;ant").map(drop)),
        ("'k', priority => 4".into(), Priority::new(4).map(drop)),
        ("'k', priority => -1".into(), Priority::new(-1).map(drop)),
        ("'k', max_attempts => 0".into(), checked(|j| j.rules.max_attempts = 0)),
        ("'k', max_attempts => 1001, max_losses => 5".into(), checked(|j| j.rules.max_attempts = 1_001)),
        ("'k', max_losses => 0".into(), checked(|j| j.rules.max_losses = 0)),
        ("'k', backoff => 'fixed 5'".into(), "fixed 5".parse::<Backoff>().map(drop)),
        ("'k', backoff => 'fixed 366d'".into(), "fixed 366d".parse::<Backoff>().map(drop)),
        ("'k', backoff => 'steps'".into(), "steps".parse::<Backoff>().map(drop)),
        ("'k', backoff => 'never jitter 5%'".into(), "never jitter 5%".parse::<Backoff>().map(drop)),
        ("'k', unique_key => ''".into(), checked(|j| j.unique = Some(Unique::new("", Policy::Forever)))),
        (format!("'k', unique_key => '{long}'"), checked(|j| j.unique = Some(Unique::new(&long, Policy::Forever)))),
        ("'k', trace => e'a\\nb'".into(), checked(|j| j.trace = Some("a\nb".into()))),
        ("'k', idempotency_key => ''".into(), checked(|j| j.idempotency_key = Some(String::new()))),
    ];
    for (arguments, library) in cases {
        let expected = format!("TN422 {}", library.expect_err("the library refuses it"));
        // Control characters are shown as they are by the server and escaped by the library.
        let said = refusal(&client, &arguments).await.replace('\n', "\\n");
        assert_eq!(said, expected, "{arguments:.60}");
    }
    assert!(checked(|j| j.unique = window(Duration::ZERO)).is_err());
    for (arguments, words) in [
        (
            "'k', unique_key => 'u', unique_policy => 'window', unique_window => '0 s'".to_owned(),
            "TN422 unique window `0`",
        ),
        (
            "'k', unique_key => 'u', unique_policy => 'once'".to_owned(),
            "TN422 unique policy `once` is refused: it is while_active",
        ),
        ("'k', delay => '-1 s'".to_owned(), "TN422 delay `-1000` is refused"),
        ("'k', run_at => 'infinity'".to_owned(), "TN422 run_at `infinity` is refused: a date is RFC 3339"),
        ("'k', null".to_owned(), "TN422 payload `null` is refused"),
        (format!("'k', '{}'", deep(65)), "TN422 payload `[[["),
        ("'k', '[1e309]'".to_owned(), "TN422 payload `array` is refused: a number lies outside"),
        ("'k', '[-1e309]'".to_owned(), "TN422 payload `array` is refused: a number lies outside"),
        ("'k', '{\"a\": [1e-400]}'".to_owned(), "TN422 payload `object` is refused: a number lies outside"),
        (
            "'k', ('[' || repeat('1e-16383,', 69999) || '1e-16383]')::jsonb".to_owned(),
            "TN422 payload `array` is refused: a number lies outside",
        ),
        (
            "'k', ('[' || repeat('0e-16383,', 69999) || '0e-16383]')::jsonb".to_owned(),
            "TN422 payload `array` is refused: it is at most 1048576 bytes",
        ),
        (
            "'k', (select jsonb_agg(1e308) from generate_series(1, 4000))".to_owned(),
            "TN422 payload `of 1244000 bytes` is refused: it is at most 1048576 bytes",
        ),
        (
            format!("'k', to_jsonb(repeat('x', {}))", 1 << 20),
            "TN422 payload `of 1048578 bytes` is refused: it is at most 1048576 bytes",
        ),
        ("'k', id => gen_random_uuid()".to_owned(), "TN422 id `"),
        ("'k', id => '00000000-0000-7000-8000-000000000000'".to_owned(), "TN422 id `"),
        ("'k', '\"\\u0000\"'".to_owned(), "22P05"),
    ] {
        let said = refusal(&client, &arguments).await;
        assert!(said.starts_with(words), "{arguments:.60}: {said}");
    }
    for accepted in [
        format!("'k', '{}'", deep(64)),
        "'k', '[1e308, -1e308, 1e-300]'".to_owned(),
        "'k', backoff => 'steps 1s 5m'".to_owned(),
    ] {
        assert_eq!(refusal(&client, &accepted).await, "it was stored", "{accepted:.60}");
    }
    assert_eq!(database.sql("select count(*) from tenure.job"), "3", "what was refused left nothing");
}

#[tokio::test]
async fn many_are_stored_in_order_or_not_at_all() {
    let database = Database::new().await;
    let client = connect(&database).await;
    let sql = r#"select string_agg(ord || ' ' || created, ', ' order by ord) from tenure.enqueue_many('[
        {"kind": "a", "unique_key": "u"}, {"kind": "b", "delay": 1.5, "priority": 0}, {"kind": "a", "unique_key": "u"}, {"kind": "c", "waiting": true}]')"#;
    let row = client.query_one(sql, &[]).await.expect("enqueue");
    assert_eq!(row.get::<_, String>(0), "1 true, 2 true, 3 false, 4 true");
    for bad in [
        r#"[{"kind": "a"}, {"kind": "b", "priority": 9}]"#,
        r#"[{"kind": "a"}, {"kind": "b", "colour": "red"}]"#,
        r#"{"kind": "a"}"#,
        "null",
    ] {
        let error = client.execute("select tenure.enqueue_many($1::text::jsonb)", &[&bad]).await.expect_err(bad);
        assert_eq!(error.code().expect("a code").code(), "TN422", "{bad}: {error}");
    }
    assert_eq!(database.sql("select count(*) from tenure.job"), "3");
    assert_eq!(client.execute("select tenure.enqueue_many('[]')", &[]).await.expect("nothing"), 0);
    let states = database.sql("select string_agg(kind || ' ' || state, ', ' order by kind) from tenure.jobs");
    assert_eq!(states, "a queued, b queued, c waiting");
}

#[tokio::test]
async fn the_library_reads_what_plain_sql_stored() {
    let database = Database::new().await;
    let client = connect(&database).await;
    let store = database.store(PgOptions::default()).await;
    let sql = "select job from tenure.enqueue('mail.send', '{\"to\": 1}', queue => 'mail', priority => 1, delay => '90 s', max_attempts => 3,
        backoff => 'exponential 1m..24h by failures', unique_key => 'u', unique_policy => 'window', unique_window => '10 min', trace => 't-1', tenant => 'acme')";
    let id = tenure_core::JobId::from_uuid(client.query_one(sql, &[]).await.expect("enqueue").get(0));
    let shown = store.show_job(&Sight::Tenant(TenantName::new("acme").expect("a name")), id).await.expect("show");
    assert_eq!(
        (shown.summary.state, shown.summary.priority, shown.rules.max_attempts, shown.rules.max_losses),
        (State::Queued, Priority::HIGH, 3, 6)
    );
    assert_eq!(shown.rules.backoff.to_string(), "exponential 1m..1d by failures");
    assert_eq!((shown.trace.as_deref(), shown.payload.as_str()), (Some("t-1"), "{\"to\": 1}"));
    assert_eq!(shown.summary.run_at.since(shown.summary.created_at), Duration::from_secs(90));
    // The same key from the library meets it.
    let mut twin = NewJob::new(
        tenure_core::JobId::from_parts(shown.summary.created_at, [9; 10]),
        KindName::new("mail.send").expect("a name"),
        Json::null(),
    );
    twin.tenant = TenantName::new("acme").expect("a name");
    twin.unique = Some(Unique::new("u", Policy::WhileActive));
    twin.due = Due::Now;
    let found = store.enqueue_jobs(vec![twin]).await.expect("enqueue");
    assert_eq!(found, [Enqueued::Found { job: id, state: Some(State::Queued) }]);
}

#[tokio::test]
async fn names_in_sql_are_data() {
    let database = Database::new().await;
    let store = database.store(PgOptions::default()).await;
    let sql = "select tenure.cancel(job, reason => $1) from tenure.enqueue('k')";
    let client = connect(&database).await;
    client.execute(sql, &[&"'); drop table tenure.job; --"]).await.expect("cancel");
    assert_eq!(store.list_jobs(&Default::default()).await.expect("list").len(), 1);
    assert_eq!(database.sql("select reason from tenure.audit_log"), "'); drop table tenure.job; --");
}

#[tokio::test]
async fn the_view_of_the_record_has_a_word_for_every_event() {
    let database = Database::new().await;
    for event in JournalEvent::ALL {
        database.sql(&format!(
            "insert into tenure.journal (at, event, jobs) values (now(), {}, array[]::uuid[])",
            event.code()
        ));
        let word = database.sql("select event from tenure.audit_log order by id desc limit 1");
        assert_eq!(word, event.as_str());
    }
}

#[tokio::test]
async fn the_view_of_workers_shows_what_they_said() {
    let database = Database::new().await;
    let store = database.store(PgOptions::default()).await;
    let silent = store.register_worker(&"silent".parse().expect("a name")).await.expect("register");
    let worker = store.register_worker(&"busy".parse().expect("a name")).await.expect("register");
    let queues = vec![("mail".parse().expect("a name"), 4), (QueueName::default(), 1)];
    let about = About { version: "1.2".into(), host: "h".into(), pid: 7, queues };
    let beat = Beat { worker, state: worker_loop::State::ErrorWait, running: 3, reporting: 1, about };
    store.beat_worker(beat).await.expect("beat");
    let columns = "id, name, state, running, reporting, version, host, pid, queues, seen_at is not null";
    let shown = database.sql(&format!("select {columns} from tenure.workers order by id"));
    let busy = format!("{worker}|busy|error_wait|3|1|1.2|h|7|mail=4, default=1|t");
    assert_eq!(shown, format!("{silent}|silent||||||||f\n{busy}"));
}

#[tokio::test]
async fn a_schedule_is_paused_resumed_and_removed_by_sql() {
    let database = Database::new().await;
    let store = database.store(PgOptions::default()).await;
    let timing = Timing::new("0 3 * * *".parse().expect("a cron"));
    let template = Template::new(KindName::new("report").expect("a name"), Json::null());
    let (tenant, name) = (TenantName::default(), "nightly".parse().expect("a name"));
    let set = SetSchedule { tenant: tenant.clone(), name, timing, template, word: Word::default() };
    let name = set.name.clone();
    store.set_schedule(set).await.expect("set");
    database.sql("select tenure.pause_schedule('nightly', 'month end')");
    let (paused, _) = store.show_schedule(&tenant, &name).await.expect("show");
    assert_eq!((paused.paused, paused.pause_reason.as_deref()), (true, Some("month end")));
    let columns = "tenant, name, cron, zone, missed, kind, paused, pause_reason, last_fire_at is null";
    let shown = database.sql(&format!("select {columns} from tenure.schedules"));
    assert_eq!(shown, "default|nightly|0 3 * * *|UTC|skip|report|t|month end|t");
    database.sql("select tenure.resume_schedule('nightly')");
    assert!(!store.show_schedule(&tenant, &name).await.expect("show").0.paused);
    let client = connect(&database).await;
    for (call, said) in [
        ("pause_schedule('hourly')", "TN404 schedule hourly is not known here"),
        ("resume_schedule('nightly', tenant => 'acme')", "TN404 schedule nightly is not known here"),
        (
            "pause_schedule('nightly', e'a\\nb')",
            "TN422 reason `a\nb` is refused: it is 1 to 500 bytes of text without control characters",
        ),
    ] {
        let error = client.simple_query(&format!("select tenure.{call}")).await.expect_err(call);
        let error = error.as_db_error().expect("the server's own words");
        assert_eq!(format!("{} {}", error.code().code(), error.message()), said);
    }
    database.sql("select tenure.remove_schedule('nightly')");
    assert_eq!(database.sql("select count(*) from tenure.schedules"), "0");
    let events = database.sql("select string_agg(event, ' ' order by id) from tenure.audit_log");
    assert_eq!(events, "schedule_set schedule_paused schedule_resumed schedule_removed");
}
