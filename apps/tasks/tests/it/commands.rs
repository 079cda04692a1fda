//! The program as people use it.

use std::process::Output;

use kit::testing::{Place, Process};
use tasks::task::Status;

use crate::scene::{KEYS, Scene, program};

kit::on_each_store_for_processes! {
    tasks::TABLES;
    tasks_are_added_run_watched_and_audited,
    the_outside_prints_what_it_is_told_of_every_task,
}

fn run(scene: &Scene, arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, stderr } = program(scene.place.url(), arguments).output().unwrap();
    let text = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (status.success(), text.concat())
}

/// Shows: S3.03 S3.18 S3.54
async fn tasks_are_added_run_watched_and_audited(place: Place) {
    let scene = Scene::new(place).await;
    let mut worker = scene.process("shown");
    let url = scene.world.document("words-70");
    let (added, id) = run(&scene, &["add", "fetch", &url]);
    assert!(added, "{id}");
    let task = id.trim().parse().unwrap();
    scene.until(task, Status::Done).await;
    for arguments in [["add", "digest", url.as_str()].as_slice(), &["add", "report", "--times", "2"]] {
        let (added, said) = run(&scene, arguments);
        assert!(added, "{said}");
        for id in said.lines() {
            scene.until(id.parse().unwrap(), Status::Done).await;
        }
    }
    // Logs and steps are heard before the loop begins: its first step is there.
    worker.until_logged(&["registered"]).await;
    worker.until_said(&["task    Claiming         -> Processing       ", id.trim()]).await;
    worker.until_said(&["task    ReportingSuccess -> Polling          ", id.trim()]).await;
    assert_eq!(worker.said()[0], "worker  Startup          -> Connecting");

    let look = async || Ok(Some(run(&scene, &["watch", "--once"]).1).filter(|said| said.contains("shown")));
    let shown = kit::until("the worker is shown", look).await.unwrap();
    for line in ["usage  task.fetch   1 tasks", "usage  task.digest  1 tasks", "usage  task.report  2 tasks"] {
        assert!(shown.contains(line), "{shown}");
    }
    let (whole, said) = run(&scene, &["audit"]);
    assert!(whole && said.starts_with("4 tasks, 8 changes with their entries"), "{said}");
    worker.terminate();
    assert!(worker.ended().await.success());

    let delete = match scene.place.database.is_postgres() {
        true => "alter table tenure.journal disable trigger all; delete from tenure.journal where event = 11",
        false => "drop trigger journal_is_kept; delete from journal where event = 11",
    };
    scene.place.database.make_tables(delete).await.unwrap();
    let (whole, said) = run(&scene, &["audit"]);
    assert!(
        !whole && said.contains("has no entry `succeeded`") && said.contains("error: the record is not whole"),
        "{said}"
    );
    for (arguments, refusal) in [
        (["add", "fetch", "ftp://x"].as_slice(), "error: url `ftp://x` is refused"),
        (&["worker"], "error: TASKS_SLOTS=`0` is refused"),
        (&["add", "report", "--callback", "nowhere"], "callback_url"),
    ] {
        let output = program(scene.place.url(), arguments).env("TASKS_SLOTS", "0").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(refusal) && !output.status.success(), "{said}");
    }
}

/// As in the walk of the README: the API's address is a setting, and every end is told there.
///
/// Shows: S3.13 S3.16
async fn the_outside_prints_what_it_is_told_of_every_task(place: Place) {
    let scene = Scene::new(place).await;
    let secret = scene.settings.callbacks.as_ref().unwrap().secret.text().clone();
    let mut command = program(scene.place.url(), &["world", "--listen", "127.0.0.1:0"]);
    command.env("TASKS_API_SECRET", secret.as_str());
    let outside = Process::start(command);
    let said = outside.until_said(&["callbacks: "]).await;
    let callback = said.trim_start_matches("callbacks: ");
    let add = |name: &str, more: &[&str]| {
        let url = callback.replace("/callbacks", &format!("/documents/{name}"));
        let arguments = [["add", "fetch", url.as_str()].as_slice(), more].concat();
        let output = program(scene.place.url(), &arguments).env("TASKS_API_URL", callback).output().unwrap();
        let [id, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success(), "{said}");
        (id.trim().to_owned(), said)
    };
    let (_, warning) = add("words-7", &["--no-callback"]);
    assert_eq!(warning, "", "nobody wants to be told");
    let (good, warning) = add("words-7", &[]);
    assert!(warning.starts_with("warning: nobody is told yet") && warning.lines().count() == 1, "{warning}");
    let mut command = program(scene.place.url(), &["worker"]);
    command.env("TASKS_API_SECRET", secret.as_str()).env("TENURE_WEBHOOK_KEYS", KEYS);
    let worker = Process::start(command);
    outside.until_said(&["job.succeeded", &good, "\"bytes\":", "usage {", "\"units\":1"]).await;
    let (bad, warning) = add("missing", &[]);
    assert_eq!(warning, "");
    outside.until_said(&["job.failed", &bad, "http_404"]).await;
    assert_eq!(outside.said().iter().filter(|line| line.starts_with("job.")).count(), 2);
    drop(worker);
}
