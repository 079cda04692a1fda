//! The binary behind PgBouncer with `pool_mode = transaction`.

use std::thread;

use serde_json::json;
use tenure_contract::pgbouncer;
use tenure_contract::postgres_server::psql;
use tenure_contract::test_database::TestDatabase;

use crate::place::Place;
use crate::server::{Served, serves};

/// A migrated database, its URL behind the pooler, and a place whose commands go through the pooler.
struct Pooled {
    database: TestDatabase,
    url: String,
    place: Place,
}

impl Pooled {
    fn new() -> Self {
        let database = TestDatabase::empty();
        let base = pgbouncer::shared_url().rsplit_once('/').unwrap().0;
        let url = format!("{base}/{}", database.name);
        let place = Place::new().with_env("DATABASE_URL", &url).with_env("TENURE_POOLER", "transaction");
        assert_eq!(place.json(&["migrate"])["store"].as_str(), Some(url.replace("postgres@", "").as_str()));
        Self { database, url, place }
    }
}

/// Red in direct mode, where a prepared statement meets a session that does not know it.
#[test]
fn forty_enqueues_and_a_worker_go_through_a_transaction_pooler() {
    let pooled = Pooled::new();
    let place = &pooled.place;
    // Four at once, so that the pooler has several sessions to hand out.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..10 {
                    let ran = place.run(&["enqueue", "noop", &format!("{{\"n\": {n}}}")]);
                    assert_eq!(ran.code, 0, "{ran:?}");
                }
            });
        }
    });
    let ran = place.run(&["worker", "--once"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.json(&["jobs", "list", "--state=succeeded", "--limit=100"]).as_array().unwrap().len(), 40);
    assert_eq!(place.json(&["audit", "verify", "--seal"])["findings"], json!([]));
}

#[test]
fn a_server_serves_behind_a_transaction_pooler() {
    let pooled = Pooled::new();
    assert_eq!(pooled.place.run(&["migrate", "--roles"]).code, 0);
    let said = serves(&pooled.place);
    assert!(said.contains("the second wall stands"), "{said}");
}

/// Red without the check for a pooler: the commands fail now and then, and leave their settings on the pooler's sessions.
#[test]
fn direct_mode_behind_a_transaction_pooler_is_refused_with_the_way_out() {
    let pooled = Pooled::new();
    let direct = Place::new().with_env("DATABASE_URL", &pooled.url);
    for args in [&["enqueue", "noop"][..], &["jobs", "list"], &["worker"], &["server"], &["migrate"]] {
        let ran = direct.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        for part in ["DATABASE_URL: database `postgres://127.0.0.1:", "transaction pooler", "--pooler transaction"] {
            assert!(ran.err.contains(part), "{args:?}: {ran:?}");
        }
    }
    let ran = direct.run(&["enqueue", "noop", "--pooler=transaction"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(psql(&pooled.database.url, "select count(*) from tenure.job").unwrap(), "1");
}

#[test]
fn the_pooler_is_a_setting_and_refused_values_name_the_others() {
    let place = Place::new();
    place.write("tenure.toml", "database = \"postgres://db/app\"\npooler = \"transaction\"\n");
    let shown = place.json(&["config", "show"]);
    let from = "tenure.toml line 2, pooler";
    assert_eq!(shown["settings"]["pooler"], json!({ "value": "transaction", "from": from }));
    let shown = place.json(&["config", "show", "--pooler=none"]);
    assert_eq!(shown["settings"]["pooler"], json!({ "value": "none", "from": "--pooler" }));
    let place = place.with_env("TENURE_DIRECT_DATABASE_URL", "postgres://ops:secret@db:5432/app");
    let shown = place.json(&["config", "show"]);
    let direct = json!({ "value": "postgres://db:5432/app", "from": "TENURE_DIRECT_DATABASE_URL" });
    assert_eq!(shown["settings"]["direct_database"], direct);
    for (args, parts) in [
        (["config", "show", "--pooler=none"], ["TENURE_DIRECT_DATABASE_URL", "pooler = \"transaction\""]),
        (["config", "show", "--pooler=statement"], ["--pooler: pooler `statement`", "none"]),
    ] {
        let ran = place.run(&args);
        assert!(ran.code == 2 && parts.iter().all(|part| ran.err.contains(part)), "{ran:?}");
        assert!(!ran.err.contains("secret"), "{ran:?}");
    }
}

/// Red when the direct URL is not used for `LISTEN`.
#[test]
fn a_server_listens_at_the_direct_url() {
    let pooled = Pooled::new();
    let place = pooled.place;
    let place = place.with_env("TENURE_DIRECT_DATABASE_URL", &pooled.database.url);
    let served = Served::start(&place, &["server"]);
    let listens =
        "select count(*) from pg_stat_activity where datname = current_database() and query = 'listen tenure'";
    place.until("it listens", || psql(&pooled.database.url, listens).unwrap() == "1");
    assert_eq!(served.process.terminate().code, 0);
}
