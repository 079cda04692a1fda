//! The first program a user copies: built in a crate of its own, and run on a real store.

use std::fs;
use std::path::Path;

use tenure::{JobFilter, JobState, JobStore, JobSummary, PgOptions, PgStore, SqliteOptions, SqliteStore};
use tenure_contract::postgres_server::psql;
use tenure_contract::test_database::TestDatabase;

use crate::user_crate::UserCrate;

#[tokio::test]
async fn the_readme_example_runs_on_sqlite() {
    let program = UserCrate::new();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quickstart");
    let _from_last_time = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    for round in 1..=2 {
        assert_eq!(program.run("sqlite", &directory, None), "sent: 1\n", "round {round}");
    }
    let store = SqliteStore::open(directory.join("quickstart.db"), SqliteOptions::default()).unwrap();
    let count = |sql: &'static str| {
        let store = store.clone();
        async move {
            let counted = store.transaction(move |tx| {
                let counted = tx.connection().query_row(sql, [], |row| row.get::<_, i64>(0));
                Ok::<_, tenure::StoreError>(counted.unwrap())
            });
            counted.await.unwrap()
        }
    };
    assert_eq!(count("select count(*) from orders").await, 2);
    assert_eq!(count("select count(*) from orders join sent on invoice = id").await, 2);
    assert_done(&store.list_jobs(&JobFilter::default()).await.unwrap());
}

#[tokio::test]
async fn the_readme_example_runs_on_postgres() {
    let program = UserCrate::new();
    let database = TestDatabase::empty();
    for round in 1..=2 {
        assert_eq!(program.run("postgres", &std::env::temp_dir(), Some(&database.url)), "sent: 1\n", "round {round}");
    }
    assert_eq!(psql(&database.url, "select count(*) from orders").unwrap(), "2");
    assert_eq!(psql(&database.url, "select count(*) from orders join sent on invoice = id").unwrap(), "2");
    let store = PgStore::connect(&database.url, PgOptions::default()).await.unwrap();
    assert_done(&store.list_jobs(&JobFilter::default()).await.unwrap());
}

fn assert_done(jobs: &[JobSummary]) {
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        assert_eq!((job.kind.as_str(), job.queue.as_str()), ("invoice.send", "mail"));
        assert_eq!((job.state, job.attempt), (JobState::Succeeded, 1));
    }
}
