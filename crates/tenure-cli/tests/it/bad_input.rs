//! Bad input fails well: exit code 2, and a message with what was wrong, its value and what would do.

use crate::place::Place;

/// Arguments, and what the message must contain.
const CASES: &[(&[&str], &[&str])] = &[
    (&["enqueue"], &["KIND"]),
    (&["enqueue", "a b"], &["KIND", "'a b'", "a name is 1 to 100"]),
    (&["enqueue", ""], &["KIND", "a name is"]),
    (&["enqueue", "k", "{secret"], &["payload", "not JSON", "at byte", "Quote it for the shell"]),
    (&["enqueue", "k", "\"secret\\u0000\""], &["payload", "NUL"]),
    (&["enqueue", "k", "--priority=7"], &["--priority", "'7'", "critical, high, normal or low, or 0 to 3"]),
    (&["enqueue", "k", "--priority=urgent"], &["--priority", "'urgent'", "(0 is critical)"]),
    (&["enqueue", "k", "--priority", "-1"], &["--priority", "'-1'"]),
    (&["enqueue", "k", "--queue=a'b"], &["--queue", "a'b", "a name is"]),
    (&["enqueue", "k", "--delay=soon"], &["--delay", "'soon'", "a whole number with ms, s, m, h or d"]),
    (&["enqueue", "k", "--delay=5"], &["--delay", "'5'"]),
    (&["enqueue", "k", "--delay=99999999999d"], &["--delay", "365000d"]),
    (&["enqueue", "k", "--at=tomorrow"], &["--at", "'tomorrow'", "RFC 3339"]),
    (&["enqueue", "k", "--at=2030-01-01T00:00:00Z", "--delay=1s"], &["--at", "--delay", "cannot be used with"]),
    (&["enqueue", "k", "--max-attempts=0"], &["--max-attempts", "'0'", "1 to 1000"]),
    (&["enqueue", "k", "--max-attempts=70000"], &["--max-attempts", "'70000'", "1 to 1000"]),
    (&["enqueue", "k", "--backoff=often"], &["--backoff", "'often'", "fixed 5m"]),
    (&["enqueue", "k", "--unique="], &["unique key", "1 to 500 bytes"]),
    (&["enqueue", "k", "--unique=u", "--unique-policy=always"], &["--unique-policy", "'always'", "while_active"]),
    (&["enqueue", "k", "--unique=u", "--unique-policy=window:0s"], &["unique window", "`0s`", "longer than zero"]),
    (&["enqueue", "k", "--unique-policy=forever"], &["--unique-policy", "--unique KEY"]),
    (&["enqueue", "k", "--idempotency-key="], &["idempotency key", "1 to 500 bytes"]),
    (&["enqueue", "k", "--trace=a\nb"], &["trace", "`a\\nb`", "control characters"]),
    (&["enqueue", "k", "--tenant=a b"], &["--tenant", "'a b'"]),
    (&["enqueue", "k", "--id=7"], &["--id", "'7'", "uuid"]),
    (&["enqueue", "k", "--id=7f1d3c1e-55c5-4ac5-a5ac-8d3f4e5b6c7d"], &["id", "7f1d3c1e", "version 7"]),
    (&["enqueue", "k", "--id=01933c5e-7b5a-7000-8000-000000000001"], &["id", "01933c5e", "within a day"]),
    (&["enqueue", "k", "--file=x"], &["KIND", "--file", "cannot be used with"]),
    (&["enqueue", "--file=missing.jsonl"], &["missing.jsonl", "cannot be read"]),
    (&["jobs", "show", "7"], &["ID", "'7'", "a job id is a uuid"]),
    (&["jobs", "list", "--state=done"], &["--state", "'done'", "queued, retryable, running"]),
    (&["jobs", "list", "--limit=0"], &["--limit", "'0'", "1 to 1000"]),
    (&["jobs", "list", "--recent=1001"], &["'1001'", "1 to 1000"]),
    (&["jobs", "list", "--stuck=long"], &["--stuck", "'long'"]),
    (&["jobs", "list", "--before=x"], &["--before", "'x'"]),
    (&["jobs", "requeue"], &["ID"]),
    (&["jobs", "requeue", "--state=running"], &["--state", "'running'", "only failed, dead and canceled"]),
    (&["jobs", "requeue", "--queue=mail"], &["--state"]),
    (&["jobs", "cancel", "01933c5e-7b5a-7000-8000-000000000001", "--reason="], &["--reason", "1 to 500 bytes"]),
    (&["dead", "list", "--limit=0"], &["--limit", "'0'", "1 to 10000000"]),
    (&["dead", "requeue"], &["ID", "--all"]),
    (&["dead", "requeue", "--group=x"], &["--group", "'x'", "8 hexadecimal digits"]),
    (&["dead", "requeue", "--group=4f1c2a9e", "--all"], &["--group", "--all", "cannot be used with"]),
    (&["dead", "requeue", "01933c5e-7b5a-7000-8000-000000000001", "--all"], &["--all", "cannot be used with"]),
    (&["jobs", "watch", "7"], &["ID", "'7'", "a job id is a uuid"]),
    (&["jobs", "watch", "--every=1ms"], &["--every", "'1ms'", "100ms to 1h"]),
    (&["jobs", "watch", "--timeout=soon"], &["--timeout", "'soon'"]),
    (&["jobs", "watch", "--timeout=1s"], &["--timeout", "--until-idle"]),
    (&["jobs", "watch", "01933c5e-7b5a-7000-8000-000000000001", "--until-idle"], &["cannot be used with"]),
    (&["stats", "--within=8d"], &["--within", "'8d'", "at most 7d"]),
    (&["stats", "--within=0s"], &["--within", "'0s'", "more than nothing"]),
    (&["jobs", "lst"], &["lst", "list"]),
    (&["queues", "set", "mail", "--lease-ttl=0s"], &["lease_ttl", "`0s`", "1s to 1d"]),
    (&["queues", "set", "mail", "--lease-ttl=2d"], &["lease_ttl", "`2d`", "1s to 1d"]),
    (&["gates", "set", "domain:*"], &["say what changes", "--rate"]),
    (&["gates", "set", "a*b", "--concurrency=1"], &["GATE", "'a*b'", "domain:*"]),
    (&["gates", "set", "a", "--rate=fast"], &["--rate", "'fast'", "50/s"]),
    (&["gates", "set", "a", "--concurrency=0"], &["concurrency", "`0`", "pause the gate"]),
    (&["gates", "set", "a", "--rate=5/s", "--burst=1", "--cost=2"], &["cost", "`2`", "never pass"]),
    (&["gates", "set", "a", "--breaker=5"], &["--breaker", "'5'", "5:5m"]),
    (&["gates", "pause", "a", "--for=soon"], &["--for", "'soon'", "90s"]),
    (&["enqueue", "noop", "--gate=a b"], &["--gate", "'a b'"]),
    (&["queues", "pause", "a b"], &["QUEUE", "'a b'"]),
    (&["audit", "verify", "--anchor=1:2:3"], &["--anchor", "'1:2:3'", "SEAL:ROWS:HASH"]),
    (&["--database=mysql://u:secret@h/db", "config"], &["--database", "`mysql:…`", "postgres://"]),
    (&["--database=host=h password=secret", "config"], &["--database", "postgres://"]),
    (&["--database=:memory:", "config"], &["--database", ":memory:", "name a file"]),
    (&["--database=a.db", "--data-dir=d", "config"], &["--database", "--data-dir", "cannot be used with"]),
    (&["--data-dir=", "config"], &["--data-dir", "directory"]),
    (&["--data-dir=~/x", "config"], &["--data-dir", "`~/x`", "only a shell knows ~"]),
    (&["config", "show", "--grace=soon"], &["--grace", "`soon`", "such as 90s"]),
    (&["config", "show", "--log=xml"], &["--log", "`xml`", "it is human or json"]),
    (&["config", "hide"], &["hide"]),
    (&["completions"], &["SHELL"]),
    (&["completions", "dos"], &["'dos'", "bash"]),
    (&["audit", "tail", "--limit=0"], &["--limit", "'0'", "1 to 1000"]),
    (&["--config=missing.toml", "config"], &["missing.toml", "cannot be read"]),
    (&["--colour", "config"], &["--colour"]),
];

#[test]
fn each_bad_argument_is_refused_by_name_and_value() {
    let place = Place::new();
    for (args, parts) in CASES {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {ran:?}");
        assert!(ran.err.starts_with("error: "), "{args:?}: {}", ran.err);
        for part in *parts {
            assert!(ran.err.contains(part), "{args:?}: `{part}` is missing in: {}", ran.err);
        }
        assert!(!ran.err.contains("secret"), "{args:?} tells a secret: {}", ran.err);
    }
    assert!(!place.path(".local").exists(), "a refused command leaves nothing behind");
}

#[test]
fn each_bad_argument_is_one_json_object_for_programs() {
    let place = Place::new();
    for (args, _) in CASES {
        let ran = place.run(&[args, &["--json"][..]].concat());
        let error = ran.error();
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(error["code"].is_string() && !error["message"].as_str().unwrap().is_empty(), "{args:?}: {error}");
        assert!(!ran.err.contains("secret"), "{args:?}: {}", ran.err);
    }
}

#[test]
fn each_bad_variable_is_refused_by_name() {
    for (name, value, part) in [
        ("TENURE_DATABASE_URL", "mysql://u:secret@h/db", "`mysql:…`"),
        ("DATABASE_URL", "redis://secret@h", "`redis:…`"),
        ("TENURE_DATA_DIR", "~/jobs", "`~/jobs`"),
        ("TENURE_TENANT", "a b", "`a b`"),
        ("TENURE_ACTOR", "a\nb", "`a\\nb`"),
        ("TENURE_CONFIG", "missing.toml", "cannot be read"),
        ("TENURE_WORKER_ID", "a b", "`a b`"),
        ("WORKER_ID", "a b", "a name is"),
        ("TENURE_LOG", "xml", "it is human or json"),
        ("TENURE_LOG_LEVEL", "loud", "off, error, warn, info, debug or trace"),
        ("TENURE_RETENTION", "0s", "at least 1s"),
        ("TENURE_RETENTION", "a week", "such as 90s"),
        ("TENURE_GRACE", "2d", "it is 0s to 1d"),
    ] {
        let ran = Place::new().with_env(name, value).run(&["config", "show"]);
        assert_eq!(ran.code, 2, "{name}: {ran:?}");
        let named = ran.err.contains(name) || ran.err.contains(value);
        assert!(named && ran.err.contains(part) && !ran.err.contains("secret"), "{name}: {}", ran.err);
    }
}

#[test]
fn each_bad_line_of_the_settings_file_is_refused_by_line_and_key() {
    for (text, parts) in [
        ("\ndatabse = \"x.db\"", ["tenure.toml line 2", "`databse`", "database, data_dir, pooler, direct_database"]),
        ("tenant = 7", ["tenure.toml line 1", "`tenant`", "a string in quotes"]),
        ("tenant = \"a b\"", ["tenure.toml line 1", "`a b`", "a name is"]),
        ("actor = \"x\"\ntenant = acme", ["tenure.toml line 2", "not TOML", ""]),
        ("database = \"mysql://u:secret@h/db\"", ["tenure.toml line 1, database", "`mysql:…`", "postgres://"]),
        ("log = \"xml\"", ["tenure.toml line 1, log", "`xml`", "it is human or json"]),
        ("\ngrace = \"soon\"", ["tenure.toml line 2, grace", "`soon`", "such as 90s"]),
        ("grace = 30", ["tenure.toml line 1", "`grace`", "a string in quotes"]),
        ("[server]\nport = 1", ["tenure.toml line 1", "`server`", "keys are"]),
    ] {
        let place = Place::new();
        place.write("tenure.toml", text);
        let ran = place.run(&["config", "show"]);
        assert_eq!(ran.code, 2, "{text}: {ran:?}");
        assert!(parts.iter().all(|part| ran.err.contains(part)) && !ran.err.contains("secret"), "{text}: {}", ran.err);
    }
}

#[test]
fn unknown_jobs_are_a_sentence_and_exit_code_1() {
    let place = Place::new();
    let unknown = "01933c5e-7b5a-7000-8000-000000000001";
    for command in ["show", "cancel", "requeue"] {
        let ran = place.run(&["jobs", command, unknown]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{command}");
        assert!(ran.err.contains(unknown) && ran.err.contains("not known"), "{command}: {}", ran.err);
    }
}
