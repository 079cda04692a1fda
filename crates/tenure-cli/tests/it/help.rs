//! Help of every command: it is there, and it shows how.

use crate::place::Place;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["demo"],
    &["worker"],
    &["enqueue"],
    &["jobs"],
    &["jobs", "list"],
    &["jobs", "show"],
    &["jobs", "cancel"],
    &["jobs", "requeue"],
    &["jobs", "run"],
    &["jobs", "watch"],
    &["dead"],
    &["dead", "list"],
    &["dead", "requeue"],
    &["operations"],
    &["operations", "list"],
    &["operations", "show"],
    &["operations", "start"],
    &["operations", "cancel"],
    &["queues"],
    &["queues", "list"],
    &["queues", "pause"],
    &["queues", "resume"],
    &["queues", "set"],
    &["gates"],
    &["gates", "list"],
    &["gates", "show"],
    &["gates", "set"],
    &["gates", "apply"],
    &["gates", "pause"],
    &["gates", "resume"],
    &["gates", "trip"],
    &["gates", "reset"],
    &["schedules"],
    &["schedules", "list"],
    &["schedules", "show"],
    &["schedules", "set"],
    &["schedules", "apply"],
    &["schedules", "next"],
    &["schedules", "run"],
    &["schedules", "pause"],
    &["schedules", "resume"],
    &["schedules", "remove"],
    &["runs"],
    &["runs", "list"],
    &["runs", "show"],
    &["runs", "watch"],
    &["runs", "cancel"],
    &["partitions"],
    &["partitions", "list"],
    &["partitions", "resume"],
    &["partitions", "reset"],
    &["workers"],
    &["workers", "list"],
    &["workers", "quiet"],
    &["workers", "stop"],
    &["workers", "resume"],
    &["tenants"],
    &["tenants", "list"],
    &["tenants", "create"],
    &["tenants", "set"],
    &["keys"],
    &["keys", "create"],
    &["keys", "list"],
    &["keys", "rotate"],
    &["keys", "revoke"],
    &["webhooks"],
    &["webhooks", "create"],
    &["webhooks", "list"],
    &["webhooks", "set"],
    &["webhooks", "enable"],
    &["webhooks", "disable"],
    &["webhooks", "rotate"],
    &["webhooks", "ping"],
    &["webhooks", "remove"],
    &["webhooks", "deliveries"],
    &["webhooks", "show"],
    &["webhooks", "resend"],
    &["webhooks", "listen"],
    &["webhooks", "key"],
    &["server"],
    &["dev"],
    &["stats"],
    &["usage"],
    &["audit"],
    &["audit", "verify"],
    &["audit", "anchor"],
    &["audit", "tail"],
    &["audit", "list"],
    &["migrate"],
    &["migrate", "up"],
    &["migrate", "status"],
    &["migrate", "dry-run"],
    &["migrate", "rehome"],
    &["config"],
    &["config", "show"],
    &["bench"],
    &["completions"],
    &["help"],
    &["version"],
];

#[test]
fn every_help_shows_examples() {
    let place = Place::new();
    for command in COMMANDS {
        let ran = place.run(&[command, &["--help"][..]].concat());
        assert_eq!(ran.code, 0, "{command:?}");
        assert!(ran.out.contains("Examples:\n  tenure "), "{command:?}: {}", ran.out);
        assert!(ran.out.lines().all(|line| line.chars().count() <= 120), "{command:?} is too wide: {}", ran.out);
    }
}

#[test]
fn the_first_help_tells_exit_codes_and_precedence() {
    let ran = Place::new().run(&["--help"]);
    for part in ["Exit codes:", "flag > environment > tenure.toml > default", "DATABASE_URL"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

#[test]
fn every_command_is_in_the_list_above() {
    let place = Place::new();
    for command in COMMANDS {
        let ran = place.run(&[command, &["--help"][..]].concat());
        let listed =
            ran.out.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        for line in listed {
            let name = line.split_whitespace().next().unwrap();
            let full = [command, &[name][..]].concat();
            assert!(COMMANDS.contains(&full.as_slice()), "{full:?} has no help test");
        }
    }
}

#[test]
fn no_arguments_is_a_usage_error_with_the_help() {
    let ran = Place::new().run(&[]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("Commands:"), "{}", ran.err);
}
