//! Every setting is shown with its value and its origin, and no password.

use serde_json::json;

use crate::place::Place;

#[test]
fn worker_settings_have_defaults() {
    let shown = Place::new().json(&["config", "show"]);
    for (name, value) in
        [("log", json!("human")), ("log_level", json!("info")), ("retention", json!("7d")), ("grace", json!("30s"))]
    {
        assert_eq!(shown["settings"][name], json!({ "value": value, "from": "default" }), "{name}");
    }
    assert_eq!(shown["settings"]["worker_id"], json!({ "value": null, "from": "default" }));
}

#[test]
fn worker_settings_come_from_flag_then_variable_then_file() {
    let file = "worker_id = \"f\"\nlog = \"json\"\nlog_level = \"warn\"\nretention = \"1d\"\ngrace = \"1m\"\n";
    let place =
        Place::new().with_env("TENURE_GRACE", "2m").with_env("TENURE_RETENTION", "48h").with_env("WORKER_ID", "w");
    place.write("tenure.toml", file);
    let shown = place.json(&["config", "show", "--grace=3m", "--log-level=debug"]);
    for (name, value, from) in [
        ("worker_id", "w", "WORKER_ID"),
        ("log", "json", "tenure.toml line 2, log"),
        ("log_level", "debug", "--log-level"),
        ("retention", "2d", "TENURE_RETENTION"),
        ("grace", "3m", "--grace"),
    ] {
        assert_eq!(shown["settings"][name], json!({ "value": value, "from": from }), "{name}");
    }
    let named = place.with_env("TENURE_WORKER_ID", "mail-1").json(&["config", "show"]);
    assert_eq!(named["settings"]["worker_id"], json!({ "value": "mail-1", "from": "TENURE_WORKER_ID" }));
}

#[test]
fn the_old_name_and_the_short_form_show_the_same() {
    let place = Place::new();
    let shown = place.run(&["config", "show"]).out;
    assert!(shown.starts_with("SETTING") && shown.contains("\nlog_level  "), "{shown}");
    assert_eq!(place.run(&["settings"]).out, shown);
    assert_eq!(place.run(&["config"]).out, shown);
    assert!(!place.run(&["--help"]).out.contains("  settings"), "the old name is hidden");
}

#[test]
fn no_command_shows_the_password_of_the_database() {
    for url in [
        "postgres://ops:secret@127.0.0.1:1/app",
        "postgres://ops:secret@127.0.0.1:1/app?password=secret&sslmode=disable",
        "postgres://ops:secret@127.0.0.1:none/app",
        "postgres://ops:secret@[::1/app",
        "postgres://ops:secret@127.0.0.1:1/app?nonsense=secret",
        "postgres://ops:sec%72et/@127.0.0.1:1/app",
        "postgres://ops:a@secret@127.0.0.1:none/app",
        "postgres://127.0.0.1:none/app?user=ops&password=secret",
    ] {
        let place = Place::new().with_env("DATABASE_URL", url);
        for args in
            [&["config", "show"][..], &["config", "show", "--json"], &["jobs", "list"], &["jobs", "list", "--json"]]
        {
            let ran = place.run(args);
            assert!(!ran.out.contains("secret") && !ran.err.contains("secret"), "{url} {args:?}: {ran:?}");
            assert!(!ran.out.contains("sec%72et") && !ran.err.contains("sec%72et"), "{url} {args:?}: {ran:?}");
        }
    }
}
