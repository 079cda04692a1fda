//! F11: SIGTERM while the database does not answer: the process is gone in time all the same, and at once when told twice.

use std::time::{Duration, Instant};

use super::sigterm::terminate;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::report::{Report, Row};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Place};

/// "At once", on a busy machine.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Signals within this time of the first count as one.
const SAME_REQUEST: Duration = Duration::from_secs(1);
/// The exit code of a process that was told twice.
const TOLD_TWICE: Option<i32> = Some(130);

/// The row.
pub(super) const ROW: Row = Row {
    id: "F11",
    fault: "SIGTERM twice, during a start, and while the database does not answer",
    injected: "signals to workers that are opening their store, starting, running, or cut off by a frozen proxy",
    run: |_| Box::pin(run()),
};

async fn run() -> Report {
    let mut report = Report::default();
    let mut logs = String::new();
    during_a_start(&mut report, &mut logs).await;
    twice(&mut report, &mut logs).await;
    let line = while_frozen(&mut report, &mut logs).await;
    let panics = logs.matches("panicked").count();
    report.number(format!("{panics} panics"));
    report.must(panics == 0, "no panics");
    report.line(line);
    report
}

async fn during_a_start(report: &mut Report, logs: &mut String) {
    let stage = Stage::postgres().await;
    let (_proxy, mut worker) = starting(&stage, "once").await;
    report.number(format!("during a start: gone after {:.2?}", terminate(&mut worker).await));
    logs.push_str(&worker.log());
}

async fn twice(report: &mut Report, logs: &mut String) {
    let mut stage = Stage::postgres().await;
    let (_proxy, starting) = starting(&stage, "starting").await;
    let opening = stage.worker_at(&Place::Postgres(deaf_url().await), "opening", &[]);
    let running = stage.worker("running", &["--grace-ms", "60000"]);
    stage.enqueue(vec![Act::Hold { gate: "never".into() }]).await;
    watch("it holds a job", async || (stage.count("start") == 1).then_some(())).await;
    let mut told = 0;
    for mut worker in [starting, opening, running] {
        worker.wait_for_line("listening").await;
        worker.terminate();
        watch("it was told once", async || {
            // Without a job it may be gone before it is told again.
            (worker.ended().is_some() || worker.log().contains("ends the process at once")).then_some(())
        })
        .await;
        let once = worker.ended();
        if once.is_none() {
            // Signals within a second of the first count as the same request.
            let first = Instant::now();
            watch("a second has passed", async || (first.elapsed() > SAME_REQUEST).then_some(())).await;
            worker.terminate();
            told += 1;
        }
        let (status, took) = worker.wait().await;
        report.number(format!("told twice while {}: {status} {took:.2?} after the second signal", worker.name));
        match once {
            Some(_) => assert!(status.success() && worker.name != "running", "{status}"),
            // It may have been on its way out already.
            None => assert!([TOLD_TWICE, Some(0)].contains(&status.code()) && took < AT_ONCE, "{status} {took:?}"),
        }
        if worker.name == "running" {
            assert_eq!(status.code(), TOLD_TWICE, "the grace period was not over");
        }
        logs.push_str(&worker.log());
    }
    report.bite(told, 1, "processes told twice");
}

async fn while_frozen(report: &mut Report, logs: &mut String) -> PassLine {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(2)).await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let flags = ["--grace-ms", "1500", "--queue", "default=4"];
    let mut worker = stage.worker_at(&Place::Postgres(through), "w", &flags);
    stage.enqueue(vec![Act::Hold { gate: "go".into() }, Act::Wait { ms: 5_000 }, Act::Block { ms: 5_000 }]).await;
    watch("it holds its jobs", async || (stage.count("start") == 3).then_some(())).await;
    proxy.freeze_all();
    let held = proxy.held_back();
    watch("the freeze is noticed", async || (proxy.held_back() > held + 1).then_some(())).await;
    report.number(format!("while the database is frozen: gone after {:.2?}", terminate(&mut worker).await));
    logs.push_str(&worker.log());
    // What it could not give back runs out, and another one ends it.
    let _successor = stage.worker("successor", &["--queue", "default=4"]);
    stage.gates.open("go").unwrap();
    PassLine::measure(&mut stage).await.0
}

/// A worker whose database stops to answer right before it starts.
async fn starting(stage: &Stage, name: &str) -> (Proxy, Process) {
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let gate = format!("start-{name}");
    let flags = ["--grace-ms", "1500", "--start-gate", &gate];
    let mut worker = stage.worker_at(&Place::Postgres(through), name, &flags);
    worker.wait_for_line("waiting").await;
    proxy.freeze_all();
    stage.gates.open(&gate).unwrap();
    watch("it asks the database that does not answer", async || (proxy.held_back() > 0).then_some(())).await;
    (proxy, worker)
}

/// A server that accepts and says nothing.
async fn deaf_url() -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("postgres://postgres@{}/nowhere", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((client, _)) = listener.accept().await {
            kept.push(client);
        }
    });
    url
}
