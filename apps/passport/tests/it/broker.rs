//! RabbitMQ beside polling, by a private broker.
//!
//! The database is asked once an hour here and tells nobody anything, so what is done at once was done for a message.

use kit::testing::Place;
use kit::{BoxError, Running, Site, until};
use lapin::options::{BasicGetOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use passport::app::App;
use passport::bom::Format;
use passport::{api, orders, worker};
use tenure::core::worker_loop::State;
use tenure::store::worker::WorkerRecord;
use tenure::{Client, Database, JobId, JobState, Mode, PgOptions, PgStore, Worker};
use tenure_cluster::rabbitmq_server::RabbitServer;
use uuid::Uuid;

use crate::plant::{BILL, Plant, kept, settings};
use crate::process::ask;

/// Listens and speaks as anybody could.
async fn channel(url: &str) -> (Connection, Channel) {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let queue = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare("ours".into(), queue, FieldTable::default()).await.unwrap();
    let bind = channel.queue_bind(
        "ours".into(),
        "bpc".into(),
        "jobs.trigger".into(),
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    bind.await.unwrap();
    (connection, channel)
}

async fn say(channel: &Channel, body: &[u8]) {
    let options = BasicPublishOptions::default();
    let key = "jobs.trigger".into();
    let said = channel.basic_publish("bpc".into(), key, options, body, BasicProperties::default());
    said.await.unwrap();
}

async fn heard(channel: &Channel) -> Result<Option<String>, BoxError> {
    let options = BasicGetOptions { no_ack: true };
    let message = channel.basic_get("ours".into(), options).await?;
    Ok(message.map(|message| String::from_utf8_lossy(&message.data).into_owned()))
}

async fn done(client: &Client, job: JobId) {
    until("the job done", async || {
        let state = client.show(job).await?.summary.state;
        Ok((state == JobState::Succeeded).then_some(()))
    })
    .await
    .unwrap();
}

/// Shows: S4.06 S4.07 S4.08 S4.09 S4.10 S4.11 S4.12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_wakes_a_worker_and_nothing_depends_on_it() {
    let mut server = RabbitServer::start().unwrap();
    let place = Place::postgres_shared(passport::TABLES).await;
    let quiet = PgOptions { mode: Mode::PollOnly, ..PgOptions::default() };
    let database = Database::from(PgStore::connect(place.url(), quiet).await.unwrap());
    let url = server.url();
    let env = [
        ("BPC_QUEUE_ENABLED", "true"),
        ("BPC_QUEUE_URL", url.as_str()),
        ("BPC_JOBS_POLL_INTERVAL_MS", "3600000"),
        ("BPC_HEALTH_REQUIRE_QUEUE", "true"),
    ];
    let plant = Plant::with(place, &env).await;
    let broker = plant.app.broker().unwrap();
    until("the broker is there", async || Ok(broker.is_up().then_some(()))).await.unwrap();
    let site = Site::open(api::router(plant.app.clone())).await.unwrap();
    let at = site.address().to_string();
    assert_eq!(ask(&at, "GET /v1/health/ready", "", "").0, 200);
    let (_connection, channel) = channel(&url).await;

    let app = App::new(&database, Client::new(&database), &settings(&env)).unwrap();
    let running = Running::start(worker::worker(Worker::builder(&database), &app).build().unwrap());
    let of_worker = app.broker().unwrap();
    until("the worker listens", async || Ok(of_worker.is_up().then_some(()))).await.unwrap();
    let store = plant.client.store();
    until("the worker rests", async || {
        let workers = store.list_workers(10).await?;
        let rests = |it: &WorkerRecord| it.beat.as_ref().is_some_and(|beat| beat.state == State::Idle);
        Ok(workers.iter().any(rests).then_some(()))
    })
    .await
    .unwrap();

    // Nobody says that there is something to do: the worker does not know.
    let silent = App::new(&plant.place.database, Client::new(&plant.place.database), &settings(&[])).unwrap();
    let uploaded = orders::upload(&silent, &plant.tenant, Format::Csv, BILL.into(), None).await;
    let job = kept(uploaded).job_id;
    // What is no message is ignored.
    let before = of_worker.counts();
    for body in ["nonsense", "{}", "{\"job_id\": 7}", "", "\u{0}"] {
        say(&channel, body.as_bytes()).await;
    }
    until("five ignored", async || Ok((of_worker.counts().malformed == before.malformed + 5).then_some(())))
        .await
        .unwrap();
    assert_eq!(plant.show(job).await.summary.state, JobState::Queued, "it woke nobody");
    // What is one makes it look into the database, whatever else it says, and of whatever job.
    say(&channel, format!("{{\"job_id\": \"{}\", \"status\": \"FAILED\"}}", Uuid::nil()).as_bytes()).await;
    done(&plant.client, job).await;
    assert_eq!(of_worker.counts().received, before.received + 6);

    while heard(&channel).await.unwrap().is_some() {}
    let uploaded = plant.upload(&BILL.replace("4800", "4900"), None).await;
    done(&plant.client, uploaded.job_id).await;
    let message = until("what was said", async || heard(&channel).await).await.unwrap();
    assert_eq!(message, format!("{{\"job_id\":\"{}\"}}", uploaded.job_id), "and no more than that");
    running.stop().await.unwrap();

    // Away: not ready where it is required, and jobs are found by polling.
    server.kill().unwrap();
    until("the broker is missed", async || Ok((!broker.is_up()).then_some(()))).await.unwrap();
    let (status, answer) = ask(&at, "GET /v1/health/ready", "", "");
    assert_eq!((status, answer["code"].as_str()), (503, Some("QUEUE_UNAVAILABLE")));
    let polling: Vec<(&str, &str)> = env[..2].to_vec();
    let app = App::new(&database, Client::new(&database), &settings(&polling)).unwrap();
    let site = Site::open(api::router(app.clone())).await.unwrap();
    assert_eq!(
        ask(&site.address().to_string(), "GET /v1/health/ready", "", "").0,
        200,
        "unless required it is no matter"
    );
    let third = plant.upload(&BILL.replace("4800", "5000"), None).await;
    let running = Running::start(worker::worker(Worker::builder(&database), &app).build().unwrap());
    done(&plant.client, third.job_id).await;
    running.stop().await.unwrap();
}
