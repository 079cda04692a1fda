//! `tenure.toml`: a few keys, each checked; anything else is an error that names file, line and key.

use std::path::{Path, PathBuf};

use tenure_core::gate::{GateRule, Pattern};
use toml::de::{DeTable, DeValue};

use super::keys::boolean_text;
use super::{FileSchedule, Origin, Setting};
use crate::failure::Failure;

/// Keys of [`KEYS`] that are yes or no.
const BOOLEANS: [&str; 1] = ["webhook_http"];
/// Every key whose value is text, or yes or no.
const KEYS: [&str; 18] = [
    "database",
    "data_dir",
    "pooler",
    "direct_database",
    "tenant",
    "actor",
    "worker_id",
    "log",
    "log_level",
    "retention",
    "grace",
    "listen",
    "webhook_keys",
    "webhook_allow",
    "webhook_http",
    "webhook_ports",
    "http_allow",
    "http_ports",
];
/// The keys that are tables.
const GATES: &str = "gates";
const SCHEDULES: &str = "schedules";
const RABBITMQ: &str = "rabbitmq";
const TELEMETRY: &str = "telemetry";

/// A settings file that was read and whose keys are known.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    entries: Vec<Setting<String>>,
    /// What gates allow.
    pub(crate) gates: Vec<(Pattern, GateRule)>,
    /// What is asked for again and again.
    pub(crate) schedules: Vec<FileSchedule>,
}

impl SettingsFile {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        Self::parse(path, &text)
    }

    /// What the file says about `key`.
    pub(crate) fn get(&self, key: &str) -> Option<Setting<String>> {
        let says = |entry: &&Setting<String>| matches!(&entry.origin, Origin::File { key: k, .. } if *k == key);
        self.entries.iter().find(says).cloned()
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let line_at = |at: usize| text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
        let refuse = |at: usize, why: String| {
            Failure::usage("settings", format!("{} line {}: {why}", path.display(), line_at(at)))
        };
        let table = DeTable::parse(text).map_err(|error| {
            refuse(error.span().map_or(0, |span| span.start), format!("it is not TOML: {}", one_line(error.message())))
        })?;
        let (mut entries, mut gates, mut schedules) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in table.get_ref() {
            match (name.get_ref().as_ref(), value.get_ref()) {
                (GATES, DeValue::Table(rules)) => {
                    gates = super::gates::read(rules).map_err(|(at, why)| refuse(at, why))?;
                    continue;
                }
                (SCHEDULES, DeValue::Table(named)) => {
                    schedules = super::schedules::read(named).map_err(|(at, why)| refuse(at, why))?;
                    continue;
                }
                (table @ (RABBITMQ | TELEMETRY), DeValue::Table(keys)) => {
                    let read = if table == RABBITMQ { super::rabbitmq::read } else { super::telemetry::read };
                    for (at, key, value) in read(keys).map_err(|(at, why)| refuse(at, why))? {
                        let origin = Origin::File { path: path.to_owned(), line: line_at(at), key };
                        entries.push(Setting { value, origin });
                    }
                    continue;
                }
                _ => {}
            }
            let Some(key) = KEYS.into_iter().find(|key| *key == name.get_ref().as_ref()) else {
                let why = format!(
                    "the key `{}` is unknown; keys are {} and the tables {GATES}, {SCHEDULES}, {RABBITMQ} and {TELEMETRY}",
                    name.get_ref(),
                    KEYS.join(", ")
                );
                return Err(refuse(name.span().start, why));
            };
            let is_boolean = BOOLEANS.contains(&key);
            let text = match value.get_ref() {
                value if is_boolean => boolean_text(value),
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            };
            let Some(value) = text else {
                let kind = value.get_ref().type_str();
                let wanted = if is_boolean { "true or false" } else { "a string in quotes" };
                let why = format!("`{key}` is {} {kind}; it must be {wanted}", article(kind));
                return Err(refuse(value.span().start, why));
            };
            let origin = Origin::File { path: path.to_owned(), line: line_at(name.span().start), key };
            entries.push(Setting { value, origin });
        }
        Ok(Self { path: path.to_owned(), entries, gates, schedules })
    }
}

/// A settings file that is there or was named, and cannot be read.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage("settings", format!("the settings file {} cannot be read", path.display())).caused_by(error)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_line() {
        let file = SettingsFile::parse(Path::new("t.toml"), "# here\n\ntenant = \"acme\"\n").unwrap();
        let tenant = file.get("tenant").unwrap();
        assert_eq!((tenant.value.as_str(), tenant.origin.to_string().as_str()), ("acme", "t.toml line 3, tenant"));
        assert!(file.get("database").is_none());
    }

    #[test]
    fn schedules_are_read_and_refused_with_their_line() {
        let text =
            "[schedules.nightly]\ncron = \"0 3 * * *\"\nkind = \"report\"\nzone = \"Europe/Berlin\"\npriority = 1\n";
        let file = SettingsFile::parse(Path::new("t.toml"), text).unwrap();
        let request = file.schedules[0].clone().request(None, tenure_store::operate::Word::default());
        assert_eq!((request.name.as_str(), request.timing.zone.name()), ("nightly", "Europe/Berlin"));
        assert_eq!((request.template.kind.as_str(), request.template.priority.get()), ("report", 1));
        for (text, parts) in [
            ("[schedules.\"a b\"]\ncron = \"@daily\"", ["line 1", "`a b`", "a name is"]),
            ("[schedules.a]\nkind = \"k\"", ["line 1", "schedule a", "no `cron`"]),
            ("[schedules.a]\ncron = \"@daily\"", ["line 1", "schedule a", "no `kind`"]),
            ("[schedules.a]\ncron = \"60 * * * *\"\nkind = \"k\"", ["line 2", "cron minute", "`60`"]),
            (
                "[schedules.a]\ncron = \"@daily\"\nkind = \"k\"\nzone = \"Berlin\"",
                ["line 4", "`Berlin`", "Europe/Berlin"],
            ),
            ("[schedules.a]\ncron = \"@daily\"\nkind = \"k\"\npriority = 4", ["line 4", "priority", "0 (critical)"]),
            (
                "[schedules.a]\ncron = \"@daily\"\nkind = \"k\"\nmax_attempts = \"2\"",
                ["line 4", "`max_attempts`", "without quotes"],
            ),
            (
                "[schedules.a]\ncron = \"@daily\"\nkind = \"k\"\nmax_attempts = 0",
                ["line 1", "max_attempts", "1 to 1000"],
            ),
            ("[schedules.a]\nevery = \"1m\"", ["line 2", "`every`", "cron, kind"]),
            ("[schedules]\na = 2", ["line 2", "`schedules.a`", "[schedules.\"a\"]"]),
        ] {
            let refused = SettingsFile::parse(Path::new("t.toml"), text).unwrap_err().in_one_line();
            assert!(parts.iter().all(|part| refused.contains(part)), "{text}: {refused}");
        }
    }

    #[test]
    fn a_broker_is_read_and_refused_with_its_line() {
        let text = "actor = \"ops\"\n[rabbitmq]\nurl = \"amqp://broker\"\npublish = true\n";
        let file = SettingsFile::parse(Path::new("t.toml"), text).unwrap();
        let publish = file.get("rabbitmq.publish").unwrap();
        assert_eq!(
            (publish.value.as_str(), publish.origin.to_string().as_str()),
            ("true", "t.toml line 4, rabbitmq.publish")
        );
        for (text, parts) in [
            ("[rabbitmq]\nhost = \"broker\"", ["line 2", "`host`", "url, exchange"]),
            ("[rabbitmq]\nurl = 7", ["line 2", "`rabbitmq.url`", "in quotes"]),
            ("[rabbitmq]\npublish = 1", ["line 2", "`rabbitmq.publish`", "true or false"]),
            ("rabbitmq = \"amqp://broker\"", ["line 1", "`rabbitmq`", "tables"]),
        ] {
            let refused = SettingsFile::parse(Path::new("t.toml"), text).unwrap_err().in_one_line();
            assert!(parts.iter().all(|part| refused.contains(part)), "{text}: {refused}");
        }
    }

    #[test]
    fn rules_of_gates_are_read_and_refused_with_their_line() {
        let text = "actor = \"ops\"\n[gates.\"source:*\"]\npreset = \"source\"\nrate = \"60/m\"\n[gates.\"domain:*\"]\nconcurrency = 3\n";
        let file = SettingsFile::parse(Path::new("t.toml"), text).unwrap();
        let rule =
            |pattern: &str| file.gates.iter().find(|(p, _)| p.as_str() == pattern).map(|(_, rule)| rule).unwrap();
        assert_eq!(rule("domain:*"), &GateRule { concurrency: Some(3), ..GateRule::default() });
        assert_eq!(rule("source:*").rate.unwrap().to_string(), "60/m");
        assert_eq!(rule("source:*").breaker.unwrap().to_string(), "5:5m");
        for (text, parts) in [
            ("[gates.\"a*b\"]\nconcurrency = 1", ["line 1", "`a*b`", "domain:*"]),
            ("[gates.a]\nspeed = 1", ["line 2", "`speed`", "concurrency"]),
            ("[gates.a]\nconcurrency = 0", ["line 2", "`0`", "pause the gate"]),
            ("[gates.a]\nconcurrency = \"2\"", ["line 2", "`concurrency`", "without quotes"]),
            ("[gates.a]\nrate = \"fast\"", ["line 2", "`fast`", "50/s"]),
            ("[gates.a]\nbreaker = \"5\"", ["line 2", "`5`", "5:5m"]),
            ("[gates.a]\nburst = 5", ["line 2", "`burst`", "`rate`"]),
            ("[gates]\na = 2", ["line 2", "`gates.a`", "[gates.\"a\"]"]),
        ] {
            let failure = SettingsFile::parse(Path::new("t.toml"), text).unwrap_err().in_one_line();
            assert!(parts.iter().all(|part| failure.contains(part)), "{text}: {failure}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_line() {
        for (text, parts) in [
            ("\ndatabse = \"x\"", ["line 2", "`databse`", "database, data_dir"]),
            ("tenant = 7", ["line 1", "`tenant`", "an integer"]),
            ("tenant = [\"a\"]", ["line 1", "`tenant`", "an array"]),
            ("[database]\nurl = \"x\"", ["line 1", "`database`", "a table"]),
            ("tenant = \"a\"\ntenant = \"b\"", ["line 2", "not TOML", "duplicate"]),
            ("actor = \"ops\"\ntenant = ", ["line 2", "not TOML", ""]),
        ] {
            let refused = SettingsFile::parse(Path::new("t.toml"), text).unwrap_err();
            let message = refused.message();
            assert!(message.starts_with("t.toml ") && parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }
}
