//! The program on the command line: what it says, and how it refuses.

use std::process::{Command, Output};

use diamonds::work_item::WorkItem;
use kit::Http;
use kit::http::HttpOptions;
use kit::testing::{Place, Process};
use tenure::RunState;

use crate::bed::{Bed, listed};

fn diamonds(bed: &Bed, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diamonds"));
    command.args(arguments).args(["--database", bed.place.url()]).envs(bed.env.iter().cloned()).output().unwrap()
}

#[track_caller]
fn says(bed: &Bed, arguments: &[&str]) -> String {
    let output = diamonds(bed, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refuses(bed: &Bed, arguments: &[&str], why: &str) {
    let output = diamonds(bed, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains(why), "{arguments:?}: {told}");
}

/// Shows: S2.56 S2.57
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_does_what_it_says() {
    let bed = Bed::open(Place::sqlite_file(::diamonds::TABLES).await, 95).await;
    let job = says(&bed, &["schedule", "--trace", "by-hand"]);
    bed.control().await;
    let run: tenure::RunId = job.trim().parse().unwrap();
    assert!(says(&bed, &["runs"]).contains(&format!("{run}  queued  0 of 1 partitions, 0 failed, 0 stones")));
    assert!(says(&bed, &["partitions", "--active"]).contains("next offset 0"));
    assert_eq!(says(&bed, &["partitions", "--stuck"]), "");

    let name = bed.partition(run).await.name;
    refuses(&bed, &["resume", &run.to_string(), name.as_str()], "needs no help");
    bed.world.fault(::diamonds::world::Fault::on_pages(::diamonds::world::Act::Status(404)).times(1));
    bed.work().await;
    says(&bed, &["resume", &run.to_string(), name.as_str()]);

    let file = std::env::temp_dir().join(format!("diamonds-message-{}.json", std::process::id()));
    let first: WorkItem = serde_json::from_str(bed.pages().await[0].payload.as_str()).unwrap();
    std::fs::write(&file, first.to_json().to_string()).unwrap();
    let path = file.to_str().unwrap();
    assert!(says(&bed, &["deliver", path]).starts_with("Created"));
    assert!(says(&bed, &["deliver", path]).starts_with("Found"));
    std::fs::write(&file, "{\"type\": \"WORK_ITEM\"}").unwrap();
    refuses(&bed, &["deliver", path], "runId `nothing` is refused: it is missing");
    std::fs::remove_file(&file).unwrap();
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
    assert_eq!(says(&bed, &["runs"]), "");

    refuses(&bed, &["schedule", "--trace", ""], "it is a text of 1 to 100 bytes");
    refuses(&bed, &["schedule", "--trace", &"x".repeat(101)], "it is a text of 1 to 100 bytes");
    says(&bed, &["schedule", "--nightly", "0 3 * * *"]);
    refuses(&bed, &["schedule", "--nightly", "at three"], "at three");
    refuses(&bed, &["partitions"], "--active");
    refuses(&bed, &["resume", "1", "p"], "uuid");
    assert!(says(&bed, &["--help"]).contains("DIAMONDS_PARTITION_SIZE (5000)"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_wrong_settings_does_not_start() {
    let mut bed = Bed::open(Place::sqlite_file(::diamonds::TABLES).await, 0).await;
    for (name, value, why) in [
        ("DIAMONDS_SLOTS", "many", "DIAMONDS_SLOTS=`many` is refused: it is a whole number from 1 to 1000"),
        ("DIAMONDS_LEASE_SECONDS", "0", "DIAMONDS_LEASE_SECONDS=`0` is refused"),
        ("DIAMONDS_MARKUP", "no-such-file.json", "no-such-file.json: "),
    ] {
        bed.env.push((name.to_owned(), value.to_owned()));
        refuses(&bed, &["worker"], why);
        bed.env.pop();
    }
}

/// The seed's checks by hand: the supplier is told what goes wrong, is stopped, and goes on where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_catalogue_can_be_told_to_fail_and_be_stopped_and_started() {
    let start = |revision: &str, port: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_diamonds"));
        Process::start({
            command.args(["world", "--stones", "95", "--seed", "7", "--revision", revision, "--port", port]);
            command
        })
    };
    let mut world = start("2", "0");
    let url = world.until_said(&["listening on"]).await.replace("listening on ", "");
    assert_eq!(world.said()[0], "95 stones, revision 2");
    let http = Http::new(&HttpOptions::default()).unwrap();
    let post = async |path: &str, body: &str| {
        http.post(&format!("{url}{path}"), &[], body.as_bytes().to_vec()).await.unwrap().status
    };
    let bed = Bed::with(Place::sqlite_file(::diamonds::TABLES).await, 0, &[("DIAMONDS_SUPPLIER_URL", &url)]).await;
    let run = bed.schedule().await;
    assert_eq!(post("/fault", r#"{"on": "page", "offset": 30, "status": 404}"#).await, 204);
    assert_eq!(post("/fault", r#"{"on": "page", "status": 200}"#).await, 400);
    assert_eq!(post("/fault", r#"{"on": "everything"}"#).await, 422);
    bed.work().await;
    let partition = bed.partition(run).await;
    assert_eq!((partition.state, partition.next_offset), (RunState::Failed, 30));
    assert_eq!(post("/heal", "").await, 204);

    world.terminate();
    assert_eq!(world.ended().await.code(), Some(0));
    let world = start("2", url.rsplit(':').next().unwrap());
    world.until_said(&["listening on", &url]).await;
    bed.resume(&partition).await;
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, bed.sold().await), (RunState::Succeeded, 95));
}
