//! F55: values that grow inside the database.
//!
//! Postgres writes numbers out without their exponents, so `1e-16383` grows from 8 bytes to 16 kB between the request
//! and every later read. A tenant that sends such values must be refused, and one that sends the largest values that
//! are allowed must not slow down the others. A row that holds such a value all the same fails alone.

use std::time::{Duration, Instant};

use tenure_cluster::postgres_server::psql;
use tenure_core::json::PAYLOAD_BYTES_MAX;
use tenure_core::{JobId, Json, State};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::usage::check_usage;

use super::harm::enqueue_raw;
use crate::Act;
use crate::pass_line::PassLine;
use crate::place::Place;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// Row F55.
pub(super) const ROW: Row = Row {
    id: "F55",
    fault: "values that grow inside the database",
    injected: "numbers of 16 kB and of many digits, 1e308 and 1e-400 in payloads and usage, by the library and by SQL; payloads and \
               results of 1 MiB beside another tenant's jobs; rows that no text can hold, written past the verbs",
    run: |size| Box::pin(values(size)),
};

const QUEUE: [&str; 2] = ["--queue", "default=4"];
/// Postgres writes these 840 kB out as 1.1 GB.
const UNREADABLE: &str = "(select ('[' || repeat('1e-16383,', 69999) || '1e-16383]')::jsonb)";

async fn values(size: Size) -> Report {
    let (calm_jobs, unreadable_jobs) = size.pick((30, 2), (300, 10));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(5)).await;
    let mut worker = stage.worker("w0", &QUEUE);
    let mut report = Report::default();

    let refused = refuse_growing_values(&stage, &mut report);
    let alone = latencies(&stage, calm_jobs, async || {}).await;
    let beside = latencies(&stage, calm_jobs, async || send_largest_values(&stage).await).await;
    let (p99_alone, p99_beside) = (p99(&alone), p99(&beside));
    report.must(
        p99_beside <= 2 * size.slack() * p99_alone.max(Duration::from_millis(50)),
        format!("p99 of the other tenant's jobs is {p99_beside:?} beside the largest values and {p99_alone:?} alone"),
    );

    let failed = fail_unreadable_rows(&stage, unreadable_jobs, &mut report).await;
    report.must(worker.ended().is_none(), format!("the process lives\n{}", worker.log()));
    let (line, record) = PassLine::measure(&mut stage).await;
    report.number(format!(
        "{refused} growing values refused; p99 from enqueue to end {} ms beside payloads and results of 1 MiB, {} ms alone; \
         {failed} jobs with a payload that cannot be read failed alone; attempts {:?}",
        p99_beside.as_millis(),
        p99_alone.as_millis(),
        record.tally()
    ));
    report.line(line);
    report.bite(refused + failed, 10 + unreadable_jobs, "values refused and jobs that could not be read");
    report
}

/// Sends every growing value by the library and by SQL; answers how many were refused.
fn refuse_growing_values(stage: &Stage, report: &mut Report) -> usize {
    let many = |number: &str, count: usize| format!("[{}]", vec![number; count].join(","));
    let payloads = [
        many("1e-16383", 70_000),
        many("0e-16383", 70_000),
        many("1e308", 3_500),
        many("1e-400", 1),
        format!("1{}", "0".repeat(100_000)),
    ];
    let figures = [r#"{"a":1.7e308}"#, r#"{"a":-1}"#, r#"{"a":1e-400}"#];
    let Place::Postgres(url) = &stage.place else { panic!("this row is about Postgres") };
    let (mut refused, mut sent) = (0, 0);
    for payload in &payloads {
        let parsed = Json::parse("payload", payload.as_str());
        let by_library = parsed.and_then(|json| json.check_bytes("payload", PAYLOAD_BYTES_MAX));
        let file = stage.directory().join("value.sql");
        std::fs::write(&file, format!("select tenure.enqueue('act', '{payload}')")).expect("write a script");
        let by_sql = psql(url, &format!("\\i {}", file.display()));
        refused += usize::from(by_library.is_err())
            + usize::from(by_sql.is_err_and(|error| error.to_string().contains("is refused")));
        sent += 2;
    }
    for figure in figures {
        let checked = Json::parse("usage", figure).and_then(|usage| check_usage(&usage));
        refused += usize::from(checked.is_err());
        sent += 1;
    }
    report.must(refused == sent, format!("{refused} of {sent} growing values are refused"));
    refused
}

/// How long each of `count` jobs takes from its enqueue to its end, one after the other, with `beside` before each.
async fn latencies(stage: &Stage, count: usize, beside: impl AsyncFn()) -> Vec<Duration> {
    let mut latencies = Vec::with_capacity(count);
    for _ in 0..count {
        beside().await;
        let begin = Instant::now();
        let stored = stage.client.enqueue(Act::Wait { ms: 1 }).tenant("calm").await.unwrap();
        stage.history.acknowledge(&[stored]);
        until_ended(stage, stored.job()).await;
        latencies.push(begin.elapsed());
    }
    latencies
}

/// The largest payload and the largest result that are allowed, and a list over both.
async fn send_largest_values(stage: &Stage) {
    let text = "x".repeat(PAYLOAD_BYTES_MAX - 100);
    let payload = format!(r#"{{"do":"wait","ms":1,"text":"{text}"}}"#);
    enqueue_raw(stage, "act", &payload, |job| job.tenant = "large".parse().unwrap()).await;
    stage.enqueue(vec![Act::Return { bytes: (1 << 20) - 2 }]).await;
    let filter = JobFilter { limit: 1_000, ..JobFilter::default() };
    stage.store.list_jobs(&filter).await.unwrap();
}

/// Writes payloads past the verbs, each beside a healthy job; answers how many of them failed alone.
async fn fail_unreadable_rows(stage: &Stage, count: usize, report: &mut Report) -> usize {
    let mut failed = 0;
    for _ in 0..count {
        let later =
            |job: &mut tenure_core::NewJob| job.due = tenure_core::new_job::Due::After(Duration::from_secs(3_600));
        let bad = enqueue_raw(stage, "act", "{}", later).await;
        stage.sql(&format!(
            "alter table tenure.job disable trigger all; update tenure.job set payload = {UNREADABLE} where id = '{bad}';
             alter table tenure.job enable trigger all; update tenure.ready set run_at = now() where job = '{bad}'"
        ));
        let healthy = stage.client.enqueue(Act::Wait { ms: 1 }).await.unwrap();
        stage.history.acknowledge(&[healthy]);
        until_ended(stage, healthy.job()).await;
        let state = until_ended(stage, bad).await;
        failed += usize::from(state == State::Failed);
    }
    report.must(failed == count, format!("{failed} of {count} unreadable jobs failed"));
    failed
}

async fn until_ended(stage: &Stage, id: JobId) -> State {
    watch("the job ends", async || {
        let job = stage.store.show_job(&Sight::All, id).await.unwrap();
        job.summary.finished_at.is_some().then_some(job.summary.state)
    })
    .await
}

fn p99(latencies: &[Duration]) -> Duration {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * 99 / 100).min(sorted.len() - 1)]
}
