//! A broker beside the store: settings, one that is away, and a real one.

use std::time::Duration;

use serde_json::json;
use tenure_cluster::rabbitmq_server::RabbitServer;
use tenure_rabbitmq::{Broker, Options};

use crate::place::Place;
use crate::running::Running;
use crate::server::Served;

/// Port 1 of the loopback: nothing listens there.
const NOBODY: &str = "amqp://ops:s3cret@127.0.0.1:1/jobs";

#[test]
fn settings_of_a_broker_are_shown_without_its_password() {
    let place = Place::new().with_env("TENURE_RABBITMQ_URL", NOBODY).with_env("TENURE_RABBITMQ_QUEUE", "wakes");
    place.write(
        "tenure.toml",
        "[rabbitmq]\nurl = \"amqp://other\"\nqueue = \"file\"\npublish = true\nca = \"ca.pem\"\n",
    );
    let ran = place.run(&["config", "show"]);
    assert!(ran.out.contains("rabbitmq.url") && !ran.out.contains("s3cret"), "{}", ran.out);
    let shown = &place.json(&["config", "show"])["settings"];
    for (name, value, from) in [
        ("rabbitmq.url", "amqp://127.0.0.1:1/jobs", "TENURE_RABBITMQ_URL"),
        ("rabbitmq.queue", "wakes", "TENURE_RABBITMQ_QUEUE"),
        ("rabbitmq.publish", "true", "tenure.toml line 4, rabbitmq.publish"),
        ("rabbitmq.ca", "ca.pem", "tenure.toml line 5, rabbitmq.ca"),
        ("rabbitmq.exchange", "tenure", "default"),
        ("rabbitmq.required", "false", "default"),
    ] {
        assert_eq!(shown[name], json!({ "value": value, "from": from }), "{name}");
    }
}

#[test]
fn settings_that_no_broker_could_have_are_refused_by_their_source() {
    for (name, value, part) in [
        ("TENURE_RABBITMQ_URL", "http://ops:s3cret@broker", "TENURE_RABBITMQ_URL: url `http://ops@broker` is refused"),
        ("TENURE_RABBITMQ_EXCHANGE", "amq.topic", "TENURE_RABBITMQ_EXCHANGE: exchange `amq.topic` is refused"),
        ("TENURE_RABBITMQ_CA", "no/such.pem", "TENURE_RABBITMQ_CA: ca `no/such.pem` is refused"),
    ] {
        for command in ["worker", "server", "dev"] {
            let place = Place::new().with_env("TENURE_RABBITMQ_URL", NOBODY).with_env(name, value);
            let refused = place.run(&[command]);
            assert!(refused.code == 2 && refused.err.contains(part), "{command}: {refused:?}");
            assert!(!refused.err.contains("s3cret"), "{}", refused.err);
        }
    }
}

/// Jobs are done by polling, the outage is told once, and only who requires the broker is not ready without it.
#[test]
fn a_broker_that_is_away_stops_nobody() {
    let place = Place::new().with_env("TENURE_RABBITMQ_URL", NOBODY);
    let served = Served::start(&place, &["dev"]);
    let (status, stored) = served.call("POST", "/v1/jobs", "", r#"{"kind":"noop"}"#);
    assert_eq!(status, 201, "{stored}");
    let path = format!("/v1/jobs/{}", stored["id"].as_str().unwrap());
    place.until("it has run", || served.call("GET", &path, "", "").1["state"] == "succeeded");
    let (status, health) = served.call("GET", "/v1/health/ready", "", "");
    assert_eq!((status, &health["checks"][1]["status"]), (200, &json!("unavailable")), "{health}");
    let ended = served.process.terminate();
    assert_eq!((ended.code, ended.err.matches("the broker is away").count()), (0, 1), "{}", ended.err);
    assert!(!ended.err.contains("s3cret"), "{}", ended.err);

    let place = place.with_env("TENURE_RABBITMQ_REQUIRED", "true");
    let served = Served::start(&place, &["dev"]);
    let (status, health) = served.call("GET", "/v1/health/ready", "", "");
    let broker = json!({ "name": "broker", "status": "unavailable", "required": true });
    assert_eq!((status, &health["checks"][1]), (503, &broker), "{health}");
    assert_eq!(served.process.terminate().code, 0);
}

/// What a server stores is heard at a real broker, on the exchange and with the key of the settings, and a worker is
/// connected to it.
#[test]
fn a_server_publishes_to_a_real_broker_and_a_worker_listens() {
    let rabbit = RabbitServer::start().unwrap();
    let options = Options { exchange: "shop".into(), routing_key: "shop.jobs".into(), ..Options::new(rabbit.url()) };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(async { Broker::start(options) }).unwrap();
    let place = Place::new().with_env("TENURE_RABBITMQ_URL", rabbit.url());
    place.write(
        "tenure.toml",
        "[rabbitmq]\nexchange = \"shop\"\nrouting_key = \"shop.jobs\"\npublish = true\nrequired = true\n",
    );
    let worker = Running::start(&place, &["worker"]);
    let served = Served::start(&place, &["dev", "--queue=other"]);
    place.until("all are connected", || listener.is_up() && served.call("GET", "/v1/health/ready", "", "").0 == 200);
    let (status, stored) = served.call("POST", "/v1/jobs", "", r#"{"kind":"noop"}"#);
    assert_eq!(status, 201, "{stored}");
    place.until("the word is heard", || listener.counts().received == 1);
    let path = format!("/v1/jobs/{}", stored["id"].as_str().unwrap());
    place.until("it has run", || served.call("GET", &path, "", "").1["state"] == "succeeded");
    let server = served.process.terminate();
    let worker = worker.terminate();
    for ended in [server, worker] {
        assert_eq!((ended.code, ended.err.matches("the broker is there").count()), (0, 1), "{}", ended.err);
        assert!(!ended.err.contains("guest:guest"), "{}", ended.err);
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
}
