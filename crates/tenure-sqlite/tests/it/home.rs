//! A copy of a file goes on with numbers that its original never draws.

use tenure_core::How;
use tenure_core::name::WorkerName;
use tenure_sqlite::SqliteStore;
use tenure_store::audit::{self, Finding};
use tenure_store::lease::Ended;
use tenure_store::{AdminStore, JournalStore};

use crate::fixture::{Directory, Fixture, options, succeeded};

/// Copies the file of a closed store, as a backup does.
fn copy(of: &Fixture, to: &Directory) -> std::path::PathBuf {
    let path = to.file();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(of.path(), &path).unwrap();
    path
}

async fn register(fixture: &Fixture) -> i32 {
    fixture.store.register_worker(&WorkerName::new("new").unwrap()).await.unwrap().0
}

/// Red when nothing leaps: the copy gives the number of the original's last claim out again and takes its report.
#[tokio::test]
async fn a_copied_file_that_leaps_draws_none_of_its_originals_numbers() {
    let mut fixture = Fixture::file().await;
    let jobs = fixture.enqueue(8).await;
    let seen = fixture.claim(2).await.unwrap();
    fixture.end(seen.lease, jobs[0], succeeded()).await;
    // The last handle is closed, so that the file is whole.
    fixture.store = SqliteStore::in_memory(options(&fixture.clock)).unwrap();
    let directory = Directory::new();
    let path = copy(&fixture, &directory);

    // The original goes on.
    fixture.store = SqliteStore::open(fixture.path(), options(&fixture.clock)).unwrap();
    let known = fixture.claim(2).await.unwrap();
    let newest_worker = register(&fixture).await;
    while fixture.store.seal_journal().await.unwrap().is_some() {}
    let anchor = audit::verify(&fixture.store, None, |_| ()).await.unwrap().head.unwrap();
    let newest_row = anchor.rows;

    fixture.store = SqliteStore::open(&path, options(&fixture.clock)).unwrap();
    fixture.store.rehome().await.unwrap();
    let claimed = fixture.claim(2).await.unwrap();
    assert!(claimed.lease.0 > known.lease.0 + (1 << 40) - 100, "{} after {}", claimed.lease, known.lease);
    let answer = fixture.end(known.lease, known.jobs[0].id, succeeded()).await;
    assert!(matches!(answer, Ended::LeaseLost { .. }), "a report from the original: {answer:?}");
    assert!(register(&fixture).await > newest_worker);
    assert_eq!(fixture.end(claimed.lease, claimed.jobs[0].id, succeeded()).await, Ended::Now(How::Succeeded));
    while fixture.store.seal_journal().await.unwrap().is_some() {}
    let rows = fixture.store.read_journal(tenure_store::journal::JournalPage { seal: Some(1), after: 0, limit: 99 });
    let rows = rows.await.unwrap();
    assert!(rows.iter().all(|row| row.id <= 2 || row.id > newest_row), "ids of the original come again: {rows:?}");
    let findings = audit::verify(&fixture.store, Some(&anchor), |_| ()).await.unwrap().findings;
    assert!(matches!(findings[..], [Finding::AnchorMissed { .. }]), "{findings:?}");
    fixture.assert_sound().await;
}
