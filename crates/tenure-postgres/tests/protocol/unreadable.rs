//! Rows that were written past the verbs and hold JSON that is too long for any text.
//!
//! `1e-16383` takes 12 bytes in a jsonb and 16 kB as text, so an array of 70,000 of them fits a row and fits no text:
//! every statement that reads it fails with 54000. The verbs refuse such a value; these tests write it by SQL, as an
//! earlier release or another program might have, and check that only its own job suffers.

use tenure_contract::fixture::success;
use tenure_core::{JobId, State};
use tenure_store::audit;
use tenure_store::journal::JournalPage;
use tenure_store::record::JobFilter;
use tenure_store::{JobStore, JournalStore};

use crate::scene::{Scene, retry, run};

/// A JSON document of 840 kB that Postgres would write out as 1.1 GB.
const UNREADABLE: &str = "(select ('[' || repeat('1e-16383,', 69999) || '1e-16383]')::jsonb)";

/// Replaces a column of a job's rows behind the verbs.
async fn write_past_the_verbs(scene: &Scene, table: &str, column: &str, key: &str, job: JobId) {
    let client = scene.client().await;
    run(&client, &format!("alter table tenure.{table} disable trigger all")).await;
    run(&client, &format!("update tenure.{table} set {column} = {UNREADABLE} where {key} = '{job}'")).await;
}

#[tokio::test]
async fn no_text_can_hold_the_value_of_these_tests() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let error = client.query_one(&format!("select {UNREADABLE}::text"), &[]).await.expect_err("no text can hold it");
    assert_eq!(error.code().expect("a code of the server").code(), "54000");
}

#[tokio::test]
async fn an_unreadable_payload_fails_its_own_job_and_the_queue_goes_on() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    for gate in [None, Some("api")] {
        let mut jobs = Vec::new();
        for _ in 0..5 {
            let mut job = scene.new_job();
            job.gate = gate.map(|name| name.parse().expect("a name"));
            jobs.push(job.id);
            scene.fixture.store.enqueue_jobs(vec![job]).await.expect("enqueue");
        }
        let bad = jobs[2];
        write_past_the_verbs(&scene, "job", "payload", "id", bad).await;
        let mut claimed = Vec::new();
        // A claim may hand out fewer jobs than asked for: one that met the bad row answers with the others later.
        for _ in 0..jobs.len() + 1 {
            let Some(batch) = scene.claim(worker, 10).await else { break };
            for job in batch.jobs {
                claimed.push(job.id);
                scene.end(worker, batch.lease, job.id, success()).await;
            }
        }
        let good: Vec<JobId> = jobs.iter().copied().filter(|job| *job != bad).collect();
        assert_eq!(claimed, good, "through gate {gate:?}");
        let shown = scene.show(bad).await;
        assert_eq!(shown.summary.state, State::Failed);
        let error = shown.summary.error.as_ref().expect("an error").to_string();
        assert!(error.contains("\"unreadable\"") && error.contains("longer than 1048576 bytes"), "{error}");
        assert!(shown.payload.as_str().contains("unreadable"), "{}", shown.payload);
    }
    let listed = scene.store.list_jobs(&JobFilter::default()).await.expect("a list with both bad jobs");
    assert_eq!(listed.len(), 10);
    scene.assert_sound().await;
}

#[tokio::test]
async fn unreadable_results_errors_and_usage_stop_no_reader() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 2).await;
    scene.end(worker, lease, jobs[0], success()).await;
    scene.end(worker, lease, jobs[1], retry()).await;
    for (column, job) in [("result", jobs[0]), ("usage", jobs[0]), ("error", jobs[1])] {
        write_past_the_verbs(&scene, "attempt", column, "job", job).await;
    }
    for job in &jobs {
        let shown = scene.show(*job).await;
        assert_eq!(shown.attempts.len(), 1);
    }
    let listed = scene.store.list_jobs(&JobFilter::default()).await.expect("a list");
    assert_eq!(listed.len(), 2);
    scene.assert_sound().await;
    let page = JournalPage { seal: Some(1), after: 0, limit: 100 };
    assert!(!scene.store.read_journal(page).await.expect("the journal").is_empty());
    audit::verify(&scene.store, None, |_| {}).await.expect("verify");
}
