//! Every step of the seed's list, table and diagram, provoked in a real worker with one slot; and no other step. Its database
//! goes away when it starts, while a task is processed, and while one is completed.

use std::time::Duration;

use kit::testing::Place;
use tasks::path::{holes, merged, most_at_once};
use tasks::settings::this_machine;
use tasks::state::State::{ErrorWait, Polling, Processing, ReportingFailure, ReportingSuccess};
use tasks::state::{STEPS, State, Step, is_added, is_listed};
use tasks::task::{Fetch, Status, client};
use tasks::trace::Heard;
use tasks::traced::Traced;
use tasks::{Settings, World, worker};
use tenure::store::operate::{HastenJob, Word};
use tenure::webhooks::Secret;
use tenure::{Client, Database, How, JobId, JobState, Sight, row};

use crate::outage::Outage;
use crate::scene::{SHORT_WAIT, Scene, until_ok};

kit::on_each_store! {
    tasks::TABLES;
    who_comes_too_late_goes_on_looking,
}

/// Shows: S3.04 S3.18 S3.19 S3.21 S3.22 S3.23 S3.24 S3.25 S3.26 S3.27 S3.28 S3.29 S3.30 S3.31 S3.32 S3.33 S3.34 S3.35 S3.42 S3.54
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_of_the_seed_is_taken_and_no_other_on_sqlite() {
    takes_every_step_of_the_seed(Outage::sqlite().await).await;
}

/// Shows: S3.04 S3.18 S3.19 S3.21 S3.22 S3.23 S3.24 S3.25 S3.26 S3.27 S3.28 S3.29 S3.30 S3.31 S3.32 S3.33 S3.34 S3.35 S3.42 S3.54
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_of_the_seed_is_taken_and_no_other_on_postgres() {
    takes_every_step_of_the_seed(Outage::postgres().await).await;
}

async fn takes_every_step_of_the_seed(mut outage: Outage) {
    let world = World::open(&Secret::generate()).await.unwrap();
    let (own, database) = (outage.open().await, outage.open().await);
    let client = client(&database);

    // The database is away when the worker starts.
    outage.begin();
    let settings = Settings {
        allow: this_machine().unwrap(),
        poll: Duration::from_millis(100),
        error_wait: SHORT_WAIT,
        ..Settings::default()
    };
    let traced = Traced::start(async move || Ok(worker(&own, &settings)?.build()?)).unwrap();
    until_taken(&traced, (State::Connecting, ErrorWait), 1).await;
    outage.end();

    // It comes back, and there is nothing to do.
    until_taken(&traced, (ErrorWait, State::Connecting), 1).await;
    until_taken(&traced, (State::Idle, State::Connecting), 2).await;

    // A task that is done, one that fails, and one of which nothing is left when it is claimed.
    add(&client, &world, "words-7").await;
    until_taken(&traced, (ReportingSuccess, Polling), 1).await;
    add(&client, &world, "missing").await;
    until_taken(&traced, (ReportingFailure, Polling), 1).await;
    let doomed = doom(&database, &client, &world).await;
    until_taken(&traced, (State::Claiming, Polling), 1).await;
    assert_eq!(client.show(doomed).await.unwrap().summary.state, JobState::Canceled);

    // The database goes away while a task is processed: its fault, not the task's.
    let held = world.library.hold("words-70");
    let task = add(&client, &world, "words-70").await;
    until_asked(&world, "words-70").await;
    let waits = |heard: &[Heard]| taken(heard, |step| step.1 == ErrorWait);
    let before = waits(&traced.steps().heard());
    outage.begin();
    held.open();
    until_heard(&traced, "a wait", |heard| waits(heard) > before).await;
    outage.end();
    is_put_aside_and_done(&client, task).await;
    let mut stays = 4;

    // And between the row of a result and the word that completes it. A file has one writer: nobody comes between there.
    if database.is_postgres() {
        database.make_tables(HOLD_COMPLETION).await.unwrap();
        let task = add(&client, &world, "words-71").await;
        let is_held = "select count(*) as n from pg_stat_activity where wait_event = 'PgSleep'";
        let look = async || Ok((database.query(is_held, row![]).await?[0].get::<i64>("n")? == 1).then_some(()));
        kit::until("a completion on its way", look).await.unwrap();
        outage.begin();
        until_heard(&traced, "a failure", |heard| taken(heard, |step| step.1 == ReportingFailure) >= 3).await;
        outage.end();
        until_ok("completions go on", || database.make_tables("drop table held_up")).await;
        is_put_aside_and_done(&client, task).await;
        stays += 2;
    }
    let results = database.query("select job from task_result", row![]).await.unwrap();
    assert_eq!(results.len(), if database.is_postgres() { 3 } else { 2 }, "one for each that is done");

    let heard = traced.steps().clone();
    traced.stop().await.unwrap();
    let heard = heard.heard();
    let path = merged(&heard);
    assert_eq!(holes(&path), [], "each step begins where the one before ended");
    let unlisted: Vec<Step> = path.iter().copied().filter(|step| !is_listed(*step) && !is_added(*step)).collect();
    assert_eq!(unlisted, [], "no step that the seed does not know");
    let missing: Vec<Step> = STEPS.into_iter().filter(|step| !path.contains(step)).collect();
    assert_eq!(missing, [], "every step that it knows");
    let elsewhere = |step: Step| step.1 == ErrorWait && step.0 != State::Connecting;
    assert!(taken(&heard, elsewhere) > 0, "any state leads to ErrorWait, not Connecting alone");
    assert_eq!((path[0], most_at_once(&heard)), ((State::Startup, State::Connecting), 1));
    assert_eq!(path.iter().filter(|step| step.1 == Processing).count(), stays);
}

/// The task ended well in the end: its first try was put aside, and nothing was charged.
async fn is_put_aside_and_done(client: &Client, task: JobId) {
    let ended = async || Ok(client.show(task).await.ok().filter(|record| record.summary.state.is_terminal()));
    let record = kit::until("the task's end", ended).await.unwrap();
    let hows: Vec<How> = record.attempts.iter().map(|attempt| attempt.how).collect();
    assert_eq!((record.summary.state, hows), (JobState::Succeeded, vec![How::Snoozed, How::Succeeded]), "{record:?}");
    assert_eq!((record.summary.attempt, record.losses), (1, 0), "nothing was charged");
}

/// While the table is there, whoever completes a task gets no answer.
const HOLD_COMPLETION: &str = "create table held_up ();
    create function hold_up() returns trigger language plpgsql as $$ begin
      if new.result is not null and to_regclass('public.held_up') is not null then perform pg_sleep(600); end if;
      return new;
    end $$;
    create trigger hold_up before insert on tenure.attempt for each row execute function hold_up()";

/// Two workers want the same ten tasks. The claim is the look here: whoever is too late finds nothing, and rests.
///
/// Shows: S3.24 S3.45
async fn who_comes_too_late_goes_on_looking(place: Place) {
    let scene = Scene::new(place).await;
    let names: Vec<String> = (0..10).map(|number| format!("words-{number}")).collect();
    let held: Vec<_> = names.iter().map(|name| scene.world.library.hold(name)).collect();
    let mut tasks = Vec::new();
    for name in &names {
        tasks.push(scene.fetch(name).await);
    }
    let workers = [scene.trace("one"), scene.trace("two")];
    // Both have one, and want the others.
    let look = async || Ok((scene.world.library.traffic().calls() == 2).then_some(()));
    kit::until("a task for each", look).await.unwrap();
    held.iter().for_each(kit::Valve::open);
    for task in tasks {
        scene.until(task, Status::Done).await;
    }
    let mut processed = 0;
    for worker in workers {
        until_taken(&worker, (Polling, State::Backoff), 1).await;
        let steps = worker.steps().clone();
        worker.stop().await.unwrap();
        let path = merged(&steps.heard());
        assert!(path.iter().all(|step| is_listed(*step) || is_added(*step)), "{path:?}");
        assert_eq!(holes(&path), []);
        let own = path.iter().filter(|step| step.1 == Processing).count();
        assert!(own >= 1, "each had one");
        processed += own;
    }
    assert_eq!(processed, 10, "each by one of them");
}

/// Waits until the worker has taken a step so many times.
async fn until_taken(traced: &Traced, step: Step, times: usize) {
    let what = format!("{} -> {}", step.0, step.1);
    until_heard(traced, &what, |heard| taken(heard, |taken| taken == step) >= times).await;
}

async fn until_heard(traced: &Traced, what: &str, is_so: impl Fn(&[Heard]) -> bool) {
    traced.steps().until(what, is_so).await.unwrap();
}

async fn until_asked(world: &World, name: &str) {
    kit::until(name, async || Ok((world.library.traffic().of(name).now == 1).then_some(()))).await.unwrap();
}

fn taken(heard: &[Heard], is_meant: impl Fn(Step) -> bool) -> usize {
    merged(heard).into_iter().filter(|step| is_meant(*step)).count()
}

async fn add(client: &Client, world: &World, name: &str) -> JobId {
    client.enqueue(Fetch { url: world.document(name) }).await.unwrap().job()
}

/// A task that somebody asked to cancel and that waits all the same. On Postgres a request and a holder who puts its task
/// back may pass each other; SQLite has one writer, so there the row is written by hand, and here for both.
async fn doom(database: &Database, client: &Client, world: &World) -> JobId {
    let fetch = Fetch { url: world.document("never") };
    let task = client.enqueue(fetch).delay(Duration::from_secs(3_600)).await.unwrap().job();
    let request = match database.is_postgres() {
        true => "insert into tenure.cancel_request (job, requested_at) values (cast($1 as text)::uuid, now())",
        false => "insert into cancel_request (job, requested_at) values (unhex(replace($1, '-', '')), 0)",
    };
    database.execute(request, row![task]).await.unwrap();
    let hasten = HastenJob { sight: Sight::All, job: task, word: Word::default() };
    assert!(client.store().hasten_job(hasten).await.unwrap());
    task
}
