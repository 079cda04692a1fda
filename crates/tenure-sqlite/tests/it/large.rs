//! Much at once: a hundred thousand jobs in one call, lists over them, and readers that stay.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, StatementStatus, named_params};
use tenure_core::json::PAYLOAD_BYTES_MAX;
use tenure_core::{Json, NewJob, State};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{JobStore, StoreError};

use crate::fixture::{Fixture, new_job};
use crate::writer::occupy;

const MANY: usize = 100_000;

/// Steps of SQLite's machine for the first page of a list.
fn steps(conn: &Connection, name: &str) -> i32 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/sql/{name}.sql"));
    let mut list = conn.prepare(&fs::read_to_string(path).unwrap()).unwrap();
    let params = named_params! {
        ":before": [0xff_u8; 16], ":tenant": 1, ":queue": 1, ":kind": "noop", ":limit": 20, ":code": 1,
        ":from": [0_u8; 16], ":since": 0, ":until": i64::MAX,
    };
    let params: Vec<_> = params.iter().filter(|(name, _)| list.parameter_index(name).unwrap().is_some()).collect();
    for (name, value) in &params {
        let index = list.parameter_index(name).unwrap().unwrap();
        list.raw_bind_parameter(index, value).unwrap();
    }
    let mut rows = list.raw_query();
    let mut count = 0;
    while rows.next().unwrap().is_some() {
        count += 1;
    }
    drop(rows);
    assert_eq!(count, 20, "{name}");
    list.get_status(StatementStatus::VmStep)
}

#[tokio::test]
async fn a_hundred_thousand_jobs_are_one_call_and_their_lists_stay_flat() {
    let fixture = Fixture::file().await;
    let conn = Connection::open(fixture.path()).unwrap();
    fixture.enqueue(50).await;
    let lists = ["list_all", "list_of_tenant", "list_of_queue", "list_of_kind", "list_queued"];
    let few = lists.map(|list| steps(&conn, list));
    // A reader that stays keeps the log from being folded into the file.
    conn.execute_batch("begin; select count(*) from job").unwrap();
    let payload = Json::parse("payload", format!("\"{}\"", "x".repeat(200))).unwrap();
    let job = || NewJob { payload: payload.clone(), ..new_job(fixture.clock.now()) };
    let jobs: Vec<NewJob> = (0..MANY).map(|_| job()).collect();
    assert_eq!(fixture.store.enqueue_jobs(jobs.clone()).await.unwrap().len(), MANY);
    let log = fixture.path().with_extension("db-wal");
    assert!(fs::metadata(&log).unwrap().len() > 32 << 20);
    conn.execute_batch("rollback").unwrap();
    // Sent twice is the same jobs.
    let again = fixture.store.enqueue_jobs(jobs[..1_000].to_vec()).await.unwrap();
    assert!(again.iter().all(|answer| matches!(answer, tenure_store::enqueue::Enqueued::Found { .. })));

    assert_eq!(lists.map(|list| steps(&conn, list)), few, "{lists:?}");
    let filter = JobFilter { state: Some(State::Queued), limit: 1_000, ..JobFilter::default() };
    assert_eq!(fixture.store.list_jobs(&filter).await.unwrap().len(), 1_000);
    for _ in 0..3 {
        assert_eq!(fixture.claim(256).await.unwrap().jobs.len(), 256);
    }
    assert!(fs::metadata(&log).unwrap().len() <= 32 << 20, "the log has shrunk");
}

#[tokio::test]
async fn a_reader_that_stays_stops_no_writer_and_a_writer_no_reader() {
    let fixture = Fixture::file().await;
    let jobs = fixture.enqueue(3).await;
    let reader = Connection::open(fixture.path()).unwrap();
    reader.execute_batch("begin; select count(*) from job").unwrap();
    assert_eq!(fixture.claim(1).await.unwrap().jobs.len(), 1);
    let ready: i64 = reader.query_row("select count(*) from ready", [], |row| row.get(0)).unwrap();
    assert_eq!(ready, 3, "its snapshot stands");

    let (free, occupied) = occupy(&fixture);
    tokio::task::yield_now().await;
    assert_eq!(fixture.store.list_jobs(&JobFilter::default()).await.unwrap().len(), 3);
    assert_eq!(fixture.state(jobs[0]).await, State::Running);
    drop(free);
    occupied.await.unwrap();
}

#[tokio::test]
async fn the_largest_payload_comes_back_whole_and_a_larger_one_is_refused() {
    for fixture in [Fixture::file().await, Fixture::memory().await] {
        let text = |bytes: usize| Json::parse("payload", format!("\"{}\"", "ä".repeat((bytes - 2) / 2))).unwrap();
        let largest = NewJob { payload: text(PAYLOAD_BYTES_MAX), ..new_job(fixture.clock.now()) };
        let larger = NewJob { payload: text(PAYLOAD_BYTES_MAX + 2), ..new_job(fixture.clock.now()) };
        let (id, payload) = (largest.id, largest.payload.clone());
        assert_eq!(payload.as_str().len(), PAYLOAD_BYTES_MAX);
        assert!(matches!(fixture.store.enqueue_jobs(vec![larger]).await, Err(StoreError::Invalid(_))));
        fixture.store.enqueue_jobs(vec![largest]).await.unwrap();
        assert_eq!(fixture.claim(5).await.unwrap().jobs[0].payload, payload);
        assert_eq!(fixture.store.show_job(&Sight::All, id).await.unwrap().payload, payload);
    }
}
