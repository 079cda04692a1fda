//! What a new user types first: help as a command, a path with a typing error, a payload that is not JSON, a name for a
//! priority.

use crate::place::Place;

#[test]
fn help_and_version_are_commands_too() {
    let place = Place::new();
    for (command, flag) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "enqueue"], &["enqueue", "--help"]),
        (&["help", "jobs", "list"], &["jobs", "list", "--help"]),
        (&["help", "help"], &["help", "--help"]),
        (&["version"], &["--version"]),
    ] {
        let (command, flag) = (place.run(command), place.run(flag));
        assert_eq!((command.code, &command.out, &command.err), (0, &flag.out, &flag.err), "{flag:?}");
        assert!(!command.out.is_empty(), "{flag:?}");
    }
    let unknown = place.run(&["help", "nosuch"]);
    assert!(unknown.code == 2 && unknown.err.contains("nosuch"), "{unknown:?}");
}

#[test]
fn a_command_that_only_looks_makes_no_database_at_a_mistyped_path() {
    let place = Place::new();
    for args in [
        &["jobs", "list"][..],
        &["jobs", "show", "01933c5e-7b5a-7000-8000-000000000001"],
        &["jobs", "cancel", "01933c5e-7b5a-7000-8000-000000000001"],
        &["jobs", "watch", "--until-idle", "--timeout=1s"],
        &["dead", "list"],
        &["dead", "requeue", "--all"],
        &["queues", "list"],
        &["queues", "pause", "mail"],
        &["gates", "list"],
        &["schedules", "list"],
        &["runs", "list"],
        &["workers", "list"],
        &["tenants", "list"],
        &["keys", "list"],
        &["webhooks", "list"],
        &["stats"],
        &["usage"],
        &["audit", "verify"],
        &["audit", "list"],
    ] {
        for (flag, path) in [("--database=typo/jobs.db", "typo/jobs.db"), ("--data-dir=typo", "typo/tenure.db")] {
            let ran = place.run(&[args, &[flag]].concat());
            assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{args:?} {flag}: {ran:?}");
            let way_out = format!("tenure --database {path} migrate");
            assert!(ran.err.contains(path) && ran.err.contains(&way_out), "{args:?} {flag}: {}", ran.err);
            assert!(!place.path("typo").exists(), "{args:?} {flag} made a database");
        }
    }
    let ran = place.run(&["jobs", "list", "--database=typo.db", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].as_str()), (3, Some("schema")), "{ran:?}");
    assert_eq!(place.run(&["--database", "typo/jobs.db", "migrate"]).code, 0, "the way out works as it is shown");
    assert_eq!(place.run(&["jobs", "list", "--database=typo/jobs.db"]).code, 0);
}

#[test]
fn a_look_at_a_file_without_jobs_adds_no_tables() {
    let place = Place::new();
    place.write("empty.db", "");
    let ran = place.run(&["jobs", "list", "--database=empty.db"]);
    assert!(ran.code == 3 && ran.err.contains("tenure --database empty.db migrate"), "{ran:?}");
    let status = place.json(&["migrate", "status", "--database=empty.db"]);
    assert!(status["migrations"].as_array().unwrap().iter().all(|step| step["applied"] == false), "{status}");
    place.json(&["enqueue", "noop", "--database=empty.db"]);
    assert_eq!(place.run(&["jobs", "list", "--database=empty.db"]).code, 0);
}

#[test]
fn a_dry_run_of_migrate_makes_no_database() {
    let place = Place::new();
    for what in ["dry-run", "status"] {
        place.json(&["migrate", what, "--database=new.db"]);
        assert!(!place.path("new.db").exists(), "{what}");
    }
    let missing = place.json(&["migrate", "dry-run", "--database=new.db"]);
    assert!(!missing["missing"].as_array().unwrap().is_empty(), "{missing}");
}

#[test]
fn the_first_look_at_the_default_store_says_that_nothing_is_there_and_makes_nothing() {
    let place = Place::new();
    let ran = place.run(&["jobs", "list"]);
    assert!(ran.code == 0 && ran.out.starts_with("No jobs yet"), "{ran:?}");
    for args in [&["queues", "list"][..], &["dead", "list"], &["gates", "list"], &["keys", "list"], &["stats"]] {
        assert_eq!(place.run(args).code, 0, "{args:?}");
    }
    assert_eq!(place.run(&["jobs", "show", "01933c5e-7b5a-7000-8000-000000000001"]).code, 1);
    assert!(!place.path(".local").exists(), "a look makes nothing");
    place.enqueue(&["noop"]);
    assert!(place.path(".local/share/tenure/tenure.db").exists());
}

#[test]
fn commands_that_store_something_make_the_database() {
    for (n, args) in [
        &["enqueue", "noop"][..],
        &["queues", "set", "mail", "--lease-ttl=5m"],
        &["gates", "set", "domain:a", "--concurrency=1"],
        &["gates", "pause", "domain:a"],
        &["schedules", "set", "nightly", "0 3 * * *", "report"],
        &["tenants", "create", "acme"],
        &["keys", "create", "--name=ops", "--scopes=read"],
        &["worker", "--once"],
    ]
    .into_iter()
    .enumerate()
    {
        let place = Place::new();
        let path = format!("new-{n}/jobs.db");
        let ran = place.run(&[&["--database", path.as_str()], args].concat());
        assert!(ran.code == 0 && place.path(&path).exists(), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_payload_that_is_not_json_is_refused_with_the_right_form() {
    let place = Place::new();
    let ran = place.run(&["enqueue", "sleep", "2s"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("payload is refused: it is not JSON"), "{}", ran.err);
    assert!(ran.err.contains("tenure enqueue sleep '{\"for\": \"2s\"}'"), "{}", ran.err);
    let ran = place.run(&["enqueue", "invoice.send", "{order: 42}"]);
    assert!(ran.err.contains("it is not JSON") && ran.err.contains("tenure enqueue invoice.send '{\""), "{}", ran.err);
    // JSON that cannot be stored is refused for its own reason.
    let ran = place.run(&["enqueue", "invoice.send", "1e999"]);
    assert!(ran.code == 2 && !ran.err.contains("not JSON"), "{}", ran.err);
}

#[test]
fn a_priority_is_a_name_or_a_number() {
    let place = Place::new();
    for (said, number) in [("critical", 0), ("high", 1), ("normal", 2), ("low", 3), ("0", 0), ("3", 3)] {
        let id = place.enqueue(&["noop", "--priority", said]);
        assert_eq!(place.json(&["jobs", "show", &id])["priority"], number, "{said}");
    }
    let ran = place.run(&["enqueue", "noop", "--priority=urgent"]);
    assert!(ran.code == 2 && ran.err.contains("'urgent'"), "{ran:?}");
    assert!(ran.err.contains("critical, high, normal or low, or 0 to 3"), "{}", ran.err);
    let set = place.run(&["schedules", "set", "nightly", "0 3 * * *", "report", "--priority=high"]);
    assert_eq!(set.code, 0, "{set:?}");
    place.write("tenure.toml", "[schedules.a]\ncron = \"@daily\"\nkind = \"k\"\npriority = \"low\"\n");
    assert_eq!(place.run(&["schedules", "apply"]).code, 0);
}

#[test]
fn a_boolean_is_read_the_same_way_in_every_place() {
    let broker = "url = \"amqp://127.0.0.1:1\"";
    for said in ["true", "\"true\"", "false", "\"false\""] {
        let place = Place::new();
        place.write("tenure.toml", format!("webhook_http = {said}\n[rabbitmq]\n{broker}\npublish = {said}\n"));
        let ran = place.run(&["config", "show"]);
        assert_eq!(ran.code, 0, "{said}: {ran:?}");
        let word = said.trim_matches('"');
        let env = Place::new()
            .with_env("TENURE_WEBHOOK_HTTP", word)
            .with_env("TENURE_RABBITMQ_URL", "amqp://127.0.0.1:1")
            .with_env("TENURE_RABBITMQ_PUBLISH", word);
        assert_eq!(env.run(&["config", "show"]).code, 0, "{said}");
    }
    for (text, key) in [
        ("webhook_http = 1", "webhook_http"),
        ("webhook_http = \"yes\"", "webhook_http"),
        (&format!("[rabbitmq]\n{broker}\npublish = \"yes\""), "publish"),
        (&format!("[rabbitmq]\n{broker}\npublish = 1"), "publish"),
    ] {
        let place = Place::new();
        place.write("tenure.toml", text);
        let ran = place.run(&["config", "show"]);
        assert!(ran.code == 2 && ran.err.contains(key) && ran.err.contains("true or false"), "{text}: {}", ran.err);
    }
}
