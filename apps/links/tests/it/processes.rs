//! Whole processes on one database, by the machine's clock: workers that share, one that is killed, one that is stopped.

use std::process::Command;

use kit::testing::{Place, Process};
use kit::{BoxError, until};
use links::Settings;
use links::bookmarks::{self, Limits};
use links::import::{self, Import};
use links::world::World;
use tenure::{Database, JobFilter, JobState, KindName, Timestamp, row};

use crate::bed::export;

kit::on_each_store_for_processes! { links::TABLES;
    many_links_and_two_workers_of_which_one_is_killed,
    a_busy_domain_does_not_stop_the_others,
    as_many_links_run_at_once_as_is_set,
    a_worker_says_what_it_did_when_it_is_told_to_stop,
}

/// Imports look more often than a second apart.
pub(crate) const SOON: (&str, &str) = ("LINKS_SETTLE_MS", "20");

/// Starts the program.
pub(crate) fn start(place: &Place, world: &World, arguments: &[&str], env: &[(&str, &str)]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_links"));
    command.args(arguments).args(["--database", place.url()]);
    command.env("LINKS_PROXY", world.proxy().to_string()).env(SOON.0, SOON.1).envs(env.iter().copied());
    Process::start(command)
}

/// Imports addresses for ada, by the settings of the processes.
pub(crate) async fn import(place: &Place, urls: &[String], env: &[(&str, &str)]) -> String {
    let settings = Settings::read(&kit::Env::of(env)).unwrap();
    let file = export(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    let found = bookmarks::parse(file.as_bytes(), &Limits::default()).unwrap();
    import::store(&place.database, &place.client(), &settings, "ada", found).await.unwrap().to_string()
}

/// Waits for the end of an import, for as long as it moves on.
async fn end_of(place: &Place, id: &str) -> Import {
    let mut seen = 0;
    loop {
        let moved = async || -> Result<Option<Import>, BoxError> {
            let import = Import::find(&place.client(), &place.database, "ada", id).await?;
            Ok(import.filter(|import| import.finished_at.is_some() || import.processed_items > seen))
        };
        let import = until("progress of the import", moved).await.unwrap();
        if import.finished_at.is_some() {
            return import;
        }
        seen = import.processed_items;
    }
}

async fn count(database: &Database, sql: &'static str) -> i64 {
    database.query(sql, row![]).await.unwrap()[0].get("n").unwrap()
}

/// Shows: S1.04 S1.09 S1.13 S1.29 S1.36 S1.43 S1.44
async fn many_links_and_two_workers_of_which_one_is_killed(place: Place) {
    let world = World::open().await.unwrap();
    let links = if place.database.is_postgres() { 2_000_u64 } else { 10_000 };
    // Ten domains, two links each: as many as the two processes have slots.
    let urls: Vec<String> = (0..links).map(|n| format!("http://site-{}.example/{n}", n % 10)).collect();
    let env = [("LINKS_LEASE_SECONDS", "2"), ("LINKS_SETTLE_MS", "500")];
    // No worker has run before.
    let id = import(&place, &urls, &env).await;

    let mut first = start(&place, &world, &["worker"], &env);
    let _second = start(&place, &world, &["worker"], &env);
    // In the middle of its work, with links in its hands.
    until("a tenth of all pages", async || Ok((world.pages().calls() > links / 10).then_some(()))).await.unwrap();
    world.valve().close();
    until("calls of both", async || Ok((world.total().now == 20).then_some(()))).await.unwrap();
    first.kill();
    world.valve().open();
    let import = end_of(&place, &id).await;

    assert_eq!((import.status, import.total_items), ("succeeded", links));
    assert_eq!((import.processed_items, import.failed_items), (links, 0), "each is counted once");
    assert_eq!(place.client().show_run(id.parse().unwrap()).await.unwrap().rows, links);
    let enriched = "select count(*) as n from link_canonical where state = 'enriched' and title is not null";
    assert_eq!(count(&place.database, enriched).await as u64, links);
    let again = world.pages().calls() - links;
    assert!(again <= 10, "only what was in the hands of the killed one is fetched again: {again}");
    let most = world.domains().all().into_values().map(|count| count.most).max();
    // The killed one's calls end when it does: its places are taken when its leases are over.
    assert_eq!(most, Some(2), "two of a domain at once, across processes");
    let lost = "select count(*) as n from link_canonical where state <> 'enriched'";
    assert_eq!(count(&place.database, lost).await, 0);
}

/// Shows: S1.37 S1.38 S1.40 S1.42 S1.43
async fn a_busy_domain_does_not_stop_the_others(place: Place) {
    let world = World::open().await.unwrap();
    let busy = (0..40).map(|n| format!("http://hanging.example/{n}"));
    let others = (0..8).map(|n| format!("http://site-{n}.example/"));
    let urls: Vec<String> = busy.chain(others).collect();
    import(&place, &urls, &[]).await;
    world.valve().close();
    let _worker = start(&place, &world, &["worker"], &[]);
    // Ten at once: two of the domain that does not answer, and all the others.
    until("ten calls at once", async || Ok((world.total().now == 10).then_some(()))).await.unwrap();
    assert_eq!(world.domains().of("hanging.example").now, 2);
    let now: Vec<u64> = world.pages().all().into_values().map(|page| page.now).collect();
    assert_eq!(now, [1; 10], "ten different ones");
    world.valve().open();
    until("the other links", async || {
        let done = "select count(*) as n from link_canonical where state = 'enriched'";
        Ok((count(&place.database, done).await == 8).then_some(()))
    })
    .await
    .unwrap();
    assert_eq!((world.domains().of("hanging.example").most, world.total().most), (2, 10));
}

/// Shows: S1.41
async fn as_many_links_run_at_once_as_is_set(place: Place) {
    let world = World::open().await.unwrap();
    let urls: Vec<String> = (0..12).map(|n| format!("http://site-{n}.example/")).collect();
    let id = import(&place, &urls, &[]).await;
    world.valve().close();
    let _worker = start(&place, &world, &["worker"], &[("LINKS_CONCURRENCY", "3")]);
    until("three calls at once", async || Ok((world.total().now == 3).then_some(()))).await.unwrap();
    world.valve().open();
    assert_eq!(end_of(&place, &id).await.processed_items, 12);
    assert_eq!(world.total().most, 3);
}

/// Shows: S1.10 S1.39 S1.52 S1.53 S1.54 S1.55
async fn a_worker_says_what_it_did_when_it_is_told_to_stop(place: Place) {
    let world = World::open().await.unwrap();
    let urls = [
        "http://a.example/1",
        "http://a.example/2",
        "http://robots.example/1",
        "http://robots.example/2",
        "http://gone.example/",
    ];
    let id = import(&place, &urls.map(str::to_owned), &[]).await;
    let mut worker = start(&place, &world, &["worker"], &[]);
    until("five endings", async || {
        let filter = JobFilter { kind: Some(KindName::new("link.enrich")?), limit: 100, ..JobFilter::default() };
        let jobs = place.client().store().list_jobs(&filter).await?;
        let over = |state| matches!(state, JobState::Succeeded | JobState::Dead | JobState::Retryable);
        Ok((jobs.iter().filter(|job| over(job.state)).count() == 5).then_some(()))
    })
    .await
    .unwrap();
    until("four counted", async || {
        let import = Import::find(&place.client(), &place.database, "ada", &id).await?;
        Ok(import.filter(|import| import.processed_items >= 4 && import.started_at.is_some()))
    })
    .await
    .unwrap();
    worker.terminate();
    assert!(worker.ended().await.success());
    let line = worker.until_logged(&["batch_claimed_count"]).await;
    let number = |name: &str| {
        let from = line.find(&format!("{name}=")).unwrap_or_else(|| panic!("no {name} in {line}")) + name.len() + 1;
        let digits: String = line[from..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap()
    };
    assert!(number("batch_claimed_count") >= 5, "{line}");
    assert!(number("success_count") >= 2, "{line}");
    assert_eq!(number("fail_count"), 3, "{line}");
    number("job_duration_ms");
    let failing = line.find("domain:robots.example=2").unwrap_or_else(|| panic!("{line}"));
    assert!(failing < line.find("domain:gone.example=1").unwrap(), "the worst first: {line}");
    let log = worker.logged().join("\n");
    assert!(!log.contains("Just a moment") && !log.contains("<title>"), "{log}");

    let import = Import::find(&place.client(), &place.database, "ada", &id).await.unwrap().unwrap();
    let created: Timestamp = import.created_at.parse().unwrap();
    let started: Timestamp = import.started_at.unwrap().parse().unwrap();
    assert!(created <= started);
}
