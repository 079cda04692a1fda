//! The same commands on Postgres.

use serde_json::json;
use tenure_contract::postgres_server::{Options, Postgres, psql};
use tenure_contract::test_database::TestDatabase;
use tenure_core::worker_loop::State;
use tenure_store::lease::Ending;

use crate::bench::Bench;
use crate::following::Following;
use crate::place::Place;
use crate::run::Run;
use crate::workers::beat;

/// A database that goes with this value, and a place whose commands use it.
pub(crate) struct Server {
    database: TestDatabase,
    pub(crate) place: Place,
}

impl Server {
    pub(crate) fn new() -> Self {
        let database = TestDatabase::empty();
        Self { place: Place::new().with_env("DATABASE_URL", &database.url), database }
    }
}

#[test]
fn a_database_is_set_up_once_and_then_used() {
    let server = Server::new();
    let place = &server.place;
    let early = place.run(&["jobs", "list"]);
    assert_eq!(early.code, 3);
    assert!(early.err.contains("tenure migrate"), "{}", early.err);
    let missing = place.json(&["migrate", "dry-run"])["missing"].as_array().unwrap().len();
    assert_eq!(place.json(&["migrate"])["applied"].as_array().unwrap().len(), missing);
    assert_eq!(place.json(&["migrate"])["applied"], json!([]));

    let id = place.enqueue(&["mail.send", "{\"to\": 1}", "--queue=mail", "--unique=k"]);
    assert_eq!(place.enqueue(&["mail.send", "{\"to\": 2}", "--queue=mail", "--unique=k"]), id);
    assert_eq!(place.json(&["jobs", "show", &id])["state"], "queued");
    assert_eq!(place.json(&["jobs", "cancel", &id])["canceled"], "now");
    assert_eq!(place.run(&["jobs", "requeue", &id]).code, 0);
    assert_eq!(place.json(&["jobs", "list", "--state=queued"])[0]["id"], json!(id));
    assert_eq!(place.run(&["queues", "pause", "mail", "--reason=provider is down"]).code, 0);
    assert_eq!(place.json(&["queues", "list"])[1]["paused"], true);
    assert_eq!(place.run(&["queues", "resume", "mail"]).code, 0);
    let verified = place.json(&["audit", "verify", "--seal"]);
    assert_eq!((&verified["findings"], &verified["rows"]), (&json!([]), &json!(4)), "{verified}");
}

#[test]
fn roles_are_installed_and_shown_before() {
    let server = Server::new();
    let place = &server.place;
    let sql = place.run(&["migrate", "dry-run", "--roles"]);
    assert!(sql.code == 0 && sql.out.contains("create policy") && sql.out.contains("create role"), "{sql:?}");
    assert_eq!(
        psql(&server.database.url, "select count(*) from pg_namespace where nspname = 'tenure'").unwrap(),
        "0",
        "it only shows"
    );
    let said = place.json(&["migrate", "--roles"]);
    assert_eq!(said["roles"], json!({ "installed": true, "second_wall": true }), "{said}");
    let again = place.run(&["migrate", "up", "--roles"]);
    assert!(again.code == 0 && again.out.contains("The roles are installed."), "{again:?}");
    // What was shown can be run by somebody else, as it stands.
    psql(&server.database.url, &sql.out).unwrap();

    let file = Place::new();
    let refused = file.run(&["migrate", "--roles"]);
    assert!(refused.code == 1 && refused.err.contains("has no roles"), "{refused:?}");
}

#[test]
fn a_restored_database_is_refused_until_it_is_rehomed() {
    let server = Server::new();
    let place = &server.place;
    assert_eq!(place.run(&["migrate"]).code, 0);
    assert_eq!(place.run(&["migrate", "rehome"]).code, 1, "it is at home already");
    psql(&server.database.url, "update tenure.home set system_identifier = 42").unwrap();
    let refused = place.run(&["jobs", "list"]);
    assert_eq!(refused.code, 3);
    assert!(refused.err.contains("tenure migrate rehome"), "{}", refused.err);
    assert_eq!(place.json(&["migrate", "rehome"])["rehomed"], true);
    assert_eq!(place.json(&["jobs", "list"]), json!([]));
    assert_eq!(place.json(&["audit", "verify", "--seal"])["findings"], json!([]));
}

/// Red when `--leap` is refused at home, or leaps nothing.
#[test]
fn a_clone_leaps_though_it_seems_to_be_at_home() {
    let server = Server::new();
    let place = &server.place;
    assert_eq!(place.run(&["migrate"]).code, 0);
    let refused = place.run(&["migrate", "rehome"]);
    assert!(refused.code == 1 && refused.err.contains("--leap"), "{refused:?}");
    assert_eq!(place.json(&["migrate", "rehome", "--leap"])["rehomed"], true);
    let drawn = psql(&server.database.url, "select last_value from tenure.lease_no_seq").unwrap();
    assert!(drawn.parse::<i64>().unwrap() >= 1 << 40, "{drawn}");
    assert!(place.json(&["audit", "list"]).to_string().contains("\"rehomed\""));

    let file = Place::new();
    file.enqueue(&["a"]);
    let refused = file.run(&["migrate", "rehome"]);
    assert!(refused.code == 1 && refused.err.contains("--leap"), "{refused:?}");
    assert_eq!(file.json(&["migrate", "rehome", "--leap"])["rehomed"], true);
    assert!(file.json(&["audit", "list"]).to_string().contains("\"rehomed\""));
}

#[test]
fn dead_letters_are_grouped_and_requeued() {
    let server = Server::new();
    let place = &server.place;
    let bench = Bench::on_server(&server.database.url);
    let message = |n: u32| json!({ "message": format!("user {n} not found") });
    bench.bury(&[("mail.send", message(1)), ("mail.send", message(2)), ("mail.send", json!({ "code": "quota" }))]);
    let listed = place.json(&["dead", "list"]);
    let group = &listed["groups"][0];
    assert_eq!((&group["count"], &group["error"]), (&json!(2), &json!("user <n> not found")), "{listed}");
    assert_eq!(place.json(&["dead", "list", "--limit=2"])["complete"], false);
    assert_eq!(place.json(&["dead", "requeue", "--group", group["group"].as_str().unwrap()])["requeued"], 2);
    assert_eq!(place.json(&["dead", "requeue", "--all"])["requeued"], 1);
}

#[test]
fn the_journal_is_followed_and_anchored() {
    let server = Server::new();
    let place = &server.place;
    place.json(&["migrate"]);
    place.json(&["queues", "set", "mail", "--lease-ttl=1m"]);
    place.json(&["queues", "pause", "mail"]);
    let anchor = place.run(&["audit", "anchor"]).out.trim().to_owned();
    let tail = Following::start(place, &["audit", "tail", "--follow", "--json"]);
    assert_eq!(tail.json(|_| true)["event"], "queue_paused");
    place.json(&["queues", "resume", "mail"]);
    assert_eq!(tail.json(|_| true)["event"], "queue_resumed");
    place.json(&["audit", "anchor"]);
    place.json(&["queues", "pause", "mail", "--reason=again"]);
    assert_eq!(tail.json(|_| true)["reason"], "again");
    assert_eq!(tail.interrupt(), Some(0));
    assert_eq!(place.json(&["audit", "verify", "--anchor", &anchor])["verified"], true);
    assert_eq!(place.json(&["audit", "tail"]).as_array().unwrap().len(), 3);
}

#[test]
fn jobs_are_watched_workers_listed_and_endings_counted() {
    let server = Server::new();
    let place = &server.place;
    let bench = Bench::on_server(&server.database.url);
    let id = bench.enqueue(1);
    let view = Following::start(place, &["jobs", "watch", "--every=100ms", "--json"]);
    view.json(|look| look["queues"][0]["due"] == 1 && look["queues"][0]["oldest_due"].is_string());
    let job = Following::start(place, &["jobs", "watch", &id.to_string(), "--every=100ms", "--json"]);
    job.json(|job| job["state"] == "queued");
    let claimed = bench.claim();
    view.json(|look| look["queues"][0]["running"] == 1 && look["jobs"][0]["state"] == "running");
    bench.end(&claimed, id, Ending::Succeeded { result: None, usage: None });
    job.json(|job| job["state"] == "succeeded");
    assert_eq!((job.code(), view.interrupt()), (Some(0), Some(0)));

    bench.wait(bench.store.beat_worker(beat(bench.worker, State::Idle))).unwrap();
    let workers = place.json(&["workers", "list"]);
    assert_eq!(json!([workers[0]["name"], workers[0]["state"], workers[0]["pid"]]), json!(["ops", "idle", 42]));
    let stats = place.json(&["stats"]);
    assert_eq!(json!([stats["kinds"][0]["kind"], stats["total"]["succeeded"]]), json!(["mail.send", 1]));
    assert!(place.run(&["stats"]).out.contains("1 attempt ended in the last 1h"));
}

#[test]
fn a_run_is_shown_resumed_and_canceled() {
    let server = Server::new();
    let place = &server.place;
    let bench = Bench::on_server(&server.database.url);
    let run = Run::new(&bench, 1, &["east", "west"]);
    let east = place.json(&["partitions", "list", "--run", &run.id])[0]["job"].as_str().unwrap().to_owned();
    let claimed = bench.claim();
    let (dies, lives): (Vec<_>, Vec<_>) = claimed.jobs.iter().map(|job| job.id).partition(|id| id.to_string() == east);
    run.page(&claimed, lives[0], 7, None);
    run.die(&claimed, dies[0], "no such page");
    let text = place.run(&["runs", "show", &run.id]).out;
    let resume = format!("tenure partitions resume {} east", run.id);
    for part in ["1 of 2 done, 1 failed", "no such page", &resume] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(place.run(&["runs", "watch", &run.id]).code, 1);
    assert_eq!(place.json(&["partitions", "resume", &run.id, "--all"])["resumed"], 1);
    let reset = place.json(&["partitions", "reset", &run.id, "east", "--offset=3"]);
    assert_eq!((&reset["offset"], &reset["state"]), (&json!(3), &json!("queued")));
    assert_eq!(place.json(&["runs", "list", "--open"])[0]["rows"], 7);
    assert_eq!(place.json(&["partitions", "list", "--active", "--stuck=1h"]), json!([]));
    let canceled = place.json(&["runs", "cancel", &run.id, "--reason=wrong catalogue"]);
    assert_eq!((&canceled["canceled"], &canceled["run"]["canceled"]), (&json!("now"), &json!(1)));
    assert_eq!(place.json(&["runs", "cancel", &run.id])["canceled"], "before");
    let rows = place.json(&["audit", "tail"]);
    let events = ["run_created", "partition_resumed", "partition_reset", "run_canceled"];
    for event in events {
        assert!(rows.as_array().unwrap().iter().any(|row| row["event"] == event), "{event}: {rows}");
    }
}

/// A database that cannot be reached says why, in words that name the server and the way out.
#[test]
fn a_database_that_cannot_be_opened_says_why() {
    let server = Server::new();
    let url = &server.database.url;
    let (base, _) = url.rsplit_once('/').unwrap();
    let place_of = |base: &str| base.rsplit_once(['@', '/']).unwrap().1.to_owned();
    let at = place_of(base);
    let look = |url: &str| {
        let ran = Place::new().with_env("DATABASE_URL", url).run(&["jobs", "list"]);
        assert_eq!(ran.code, 3, "{url}: {ran:?}");
        for internal in ["creating a new object", "db error", "os error"] {
            assert!(!ran.err.contains(internal), "{url}: {}", ran.err);
        }
        ran.err
    };
    let unknown = look(&format!("{base}/nosuchdb"));
    assert!(unknown.contains("`nosuchdb`") && unknown.contains(&at) && unknown.contains("createdb"), "{unknown}");
    let refused = look("postgres://ops@127.0.0.1:1/app");
    assert!(refused.contains("127.0.0.1:1") && refused.contains("refused the connection"), "{refused}");
    // An empty label is no name: the resolver refuses it without asking anybody.
    let nohost = look("postgres://ops@no..such..host/app");
    assert!(nohost.contains("host `no..such..host` cannot be found"), "{nohost}");
}

/// A server where the role `ops` needs its password, `right-secret`.
fn locked() -> Postgres {
    let server = Postgres::start(&Options::default()).unwrap();
    psql(&server.admin_url(), "create role ops login superuser password 'right-secret'").unwrap();
    let hba = server.data_dir().join("pg_hba.conf");
    let rules = std::fs::read_to_string(&hba).unwrap();
    std::fs::write(&hba, format!("host all ops 127.0.0.1/32 scram-sha-256\n{rules}")).unwrap();
    psql(&server.admin_url(), "select pg_reload_conf()").unwrap();
    // The server reads its rules again in its own time.
    let url = format!("postgres://ops@127.0.0.1:{}/postgres", server.port());
    Place::new().until("the rule is read", || psql(&url, "select 1").is_err());
    server
}

#[test]
fn a_wrong_password_says_so_and_names_user_and_server() {
    let server = locked();
    let at = format!("127.0.0.1:{}", server.port());
    let look = |user: &str| {
        let ran =
            Place::new().with_env("DATABASE_URL", format!("postgres://{user}@{at}/postgres")).run(&["jobs", "list"]);
        assert!(ran.code == 3 && !ran.err.contains("creating a new object"), "{ran:?}");
        assert!(!ran.err.contains("secret"), "{}", ran.err);
        ran.err
    };
    let wrong = look("ops:wrong-secret");
    assert!(wrong.contains("password of user `ops`") && wrong.contains(&at) && wrong.contains("PGPASSWORD"), "{wrong}");
    let none = look("ops");
    assert!(none.contains("user `ops`") && none.contains("needs a password") && none.contains("PGPASSWORD"), "{none}");
}

/// A password need not stand in the URL: the variable and the file of every Postgres client are read.
#[test]
fn a_password_comes_from_the_environment() {
    let server = locked();
    let url = format!("postgres://ops@127.0.0.1:{}/postgres", server.port());
    let file = Place::new();
    let passfile = file.write("pass", format!("127.0.0.1:{}:*:ops:right-secret\n", server.port()));
    std::fs::set_permissions(&passfile, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    for (name, value) in [("PGPASSWORD", "right-secret"), ("PGPASSFILE", passfile.to_str().unwrap())] {
        let ran = Place::new().with_env("DATABASE_URL", &url).with_env(name, value).run(&["migrate", "status"]);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
    }
}
