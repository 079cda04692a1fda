//! One JSON line as a job: every member checked, every refusal with the member's name.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tenure_core::failure::cut;
use tenure_core::new_job::Due;
use tenure_core::{Invalid, JobId, Json, Priority, Timestamp, duration};

use super::draft::{Draft, max_attempts, policy};

/// Every member a line may have.
pub const FIELDS: [&str; 18] = [
    "kind",
    "payload",
    "queue",
    "priority",
    "delay",
    "delay_ms",
    "at",
    "run_at",
    "max_attempts",
    "backoff",
    "unique",
    "unique_policy",
    "idempotency_key",
    "tenant",
    "gate",
    "trace",
    "callback_url",
    "id",
];

/// What is wrong with a line. Holds no payload.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The member, where it is one.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl BadLine {
    /// Something wrong with all of it.
    pub fn new(message: impl Into<String>) -> Self {
        Self { field: None, message: message.into() }
    }

    /// Something wrong with one member.
    pub fn at(field: &str, message: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), message: message.into() }
    }
}

impl From<Invalid> for BadLine {
    fn from(invalid: Invalid) -> Self {
        let message = without_payload(&invalid);
        Self::at(invalid.field, message)
    }
}

/// The sentence of a refusal, without the value where that is a job's data.
pub fn without_payload(invalid: &Invalid) -> String {
    if ["payload", "result", "usage", "error", "details"].contains(&invalid.field) {
        return format!("{} is refused: {}", invalid.field, invalid.limit);
    }
    invalid.to_string()
}

/// Reads one line. What it does not say is left open.
pub fn read(line: &str) -> Result<Draft, BadLine> {
    if !line.trim_start().starts_with('{') {
        return Err(BadLine::new("a line is one JSON object such as {\"kind\": \"invoice.send\"}"));
    }
    let mut draft = Draft::default();
    let mut delay_given = false;
    for (field, value) in members(line)? {
        let raw = value.get();
        // A member that is null is a member left out; a payload may well be null.
        if raw == "null" && field != "payload" && FIELDS.contains(&field.as_str()) {
            continue;
        }
        match field.as_str() {
            "kind" => draft.kind = Some(text("kind", raw)?.parse()?),
            "payload" => draft.payload = Some(Json::parse("payload", raw)?),
            "queue" => draft.queue = Some(text("queue", raw)?.parse()?),
            "priority" => draft.priority = Some(priority(raw)?),
            "delay" | "delay_ms" | "at" | "run_at" if std::mem::replace(&mut delay_given, true) => {
                return Err(BadLine::at(
                    &field,
                    "a job has a delay or a time, not both: `delay` (or `delay_ms`) or `at` (or `run_at`)",
                ));
            }
            "delay" => draft.due = Some(Due::After(duration::parse("delay", &text("delay", raw)?)?)),
            "delay_ms" => draft.due = Some(Due::After(millis("delay_ms", raw)?)),
            "at" => draft.due = Some(Due::At(Timestamp::parse("at", &text("at", raw)?)?)),
            "run_at" => draft.due = Some(Due::At(Timestamp::parse("run_at", &text("run_at", raw)?)?)),
            "max_attempts" => draft.max_attempts = Some(max_attempts(raw)?),
            "gate" => draft.gate = Some(text("gate", raw)?.parse()?),
            "backoff" => draft.backoff = Some(text("backoff", raw)?.parse()?),
            "unique" => draft.unique = Some(text("unique", raw)?),
            "unique_policy" => draft.unique_policy = Some(policy(&text("unique_policy", raw)?)?),
            "idempotency_key" => draft.idempotency_key = Some(text("idempotency_key", raw)?),
            "tenant" => draft.tenant = Some(text("tenant", raw)?.parse()?),
            "trace" => draft.trace = Some(text("trace", raw)?),
            "callback_url" => draft.callback_url = Some(text("callback_url", raw)?),
            "id" => draft.id = Some(text("id", raw)?.parse::<JobId>()?),
            _ => return Err(BadLine::at(&field, "no job has such a member")),
        }
    }
    if draft.kind.is_none() {
        return Err(BadLine::at("kind", "`kind` is missing"));
    }
    if draft.unique_policy.is_some() && draft.unique.is_none() {
        return Err(BadLine::at("unique_policy", "`unique_policy` needs a key: add `unique`"));
    }
    Ok(draft)
}

/// In JSON a priority is a number.
fn priority(raw: &str) -> Result<Priority, Invalid> {
    let refuse = |_| Invalid::new("priority", raw, "priorities are 0 (critical) to 3 (low)");
    Priority::new(raw.parse().map_err(refuse)?)
}

fn millis(field: &'static str, raw: &str) -> Result<Duration, BadLine> {
    let millis = raw.parse().map_err(|_| Invalid::new(field, raw, "it is a whole number of milliseconds"))?;
    Ok(Duration::from_millis(millis))
}

fn text(field: &'static str, raw: &str) -> Result<String, BadLine> {
    serde_json::from_str(raw).map_err(|_| Invalid::new(field, raw, "it must be a string in quotes").into())
}

/// The members of an object in their order, values as they were written, so that a large number is not rounded.
fn members(line: &str) -> Result<Vec<(String, Box<RawValue>)>, BadLine> {
    let mut reader = serde_json::Deserializer::from_str(line);
    let unknown = Cell::new(None);
    let members = reader.deserialize_map(Members { unknown: &unknown });
    if let Some(field) = unknown.take() {
        let field = cut(&field, 100);
        let message = format!("the member `{field}` is unknown; members are {}", FIELDS.join(", "));
        return Err(BadLine::at(&field, message));
    }
    members.and_then(|members| reader.end().map(|()| members)).map_err(|error| {
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        BadLine::new(format!("it is not a JSON object: {what} (at byte {})", error.column()))
    })
}

/// Stops at the first member that no job has: whoever sends a million of them is not heard to the end.
struct Members<'u> {
    unknown: &'u Cell<Option<String>>,
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Vec<(String, Box<RawValue>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members: Self::Value = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if !FIELDS.contains(&name.as_str()) {
                self.unknown.set(Some(name));
                return Err(serde::de::Error::custom("an unknown member"));
            }
            let value = map.next_value::<Box<RawValue>>()?;
            // Two values for one name: whichever were taken, somebody would be surprised.
            if members.iter().any(|(known, _)| *known == name) {
                return Err(serde::de::Error::custom(format_args!("the member `{name}` is there twice")));
            }
            members.push((name, value));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line_says_everything() {
        let draft = read(
            r#"{"kind":"k","payload":{"n":12345678901234567890},"queue":"q","priority":0,"delay":"5m","max_attempts":9,
                "backoff":"fixed 5m","unique":"u","unique_policy":"window:10m","idempotency_key":"i","tenant":"t",
                "trace":"00-1","id":"01933c5e-7b5a-7000-8000-000000000001"}"#,
        );
        let job = draft.unwrap().into_job("01933c5e-7b5a-7000-8000-000000000002".parse().unwrap()).unwrap();
        assert_eq!(job.payload.as_str(), r#"{"n":12345678901234567890}"#);
        assert_eq!((job.rules.max_attempts, job.rules.max_losses), (9, 12));
        assert_eq!(job.due, Due::After(std::time::Duration::from_secs(300)));
    }

    #[test]
    fn a_member_that_is_null_is_left_out() {
        let draft =
            read(r#"{"kind":"k","payload":null,"queue":null,"delay":null,"at":"2030-01-01T00:00:00Z"}"#).unwrap();
        assert!(draft.queue.is_none() && draft.payload == Some(Json::null()) && draft.due.is_some());
    }

    #[test]
    fn bad_lines_name_their_member_and_hide_payloads() {
        for (line, field, part) in [
            ("", None, "one JSON object"),
            (r#""secret""#, None, "one JSON object"),
            (r#"{"kind":"k""#, None, "not a JSON object"),
            (r#"{"kind":"k"} {"#, None, "not a JSON object"),
            (r#"{"kind":"k","kind":"l"}"#, None, "`kind` is there twice"),
            ("{}", Some("kind"), "missing"),
            (r#"{"kind":"a b"}"#, Some("kind"), "`a b`"),
            (r#"{"kind":7}"#, Some("kind"), "`7`"),
            (r#"{"kind":"k","prio":1}"#, Some("prio"), "priority"),
            (r#"{"kind":"k","priority":4}"#, Some("priority"), "`4`"),
            (r#"{"kind":"k","priority":"1"}"#, Some("priority"), "0 (critical)"),
            (r#"{"kind":"k","priority":1.5}"#, Some("priority"), "`1.5`"),
            (r#"{"kind":"k","delay":5}"#, Some("delay"), "string"),
            (r#"{"kind":"k","delay":"soon"}"#, Some("delay"), "`soon`"),
            (r#"{"kind":"k","delay":"1s","at":"2030-01-01T00:00:00Z"}"#, Some("at"), "not both"),
            (r#"{"kind":"k","delay_ms":-1}"#, Some("delay_ms"), "`-1`"),
            (r#"{"kind":"k","delay_ms":1,"run_at":"2030-01-01T00:00:00Z"}"#, Some("run_at"), "not both"),
            (r#"{"kind":"k","at":"tomorrow"}"#, Some("at"), "`tomorrow`"),
            (r#"{"kind":"k","max_attempts":0}"#, Some("max_attempts"), "`0`"),
            (r#"{"kind":"k","backoff":"often"}"#, Some("backoff"), "`often`"),
            (r#"{"kind":"k","unique":"u","unique_policy":"always"}"#, Some("unique_policy"), "`always`"),
            (r#"{"kind":"k","unique_policy":"forever"}"#, Some("unique_policy"), "unique"),
            (r#"{"kind":"k","id":"7"}"#, Some("id"), "`7`"),
            (r#"{"kind":"k","payload":"secret\u0000"}"#, Some("payload"), "NUL"),
            (r#"{"kind":"k","payload":[1e999]}"#, Some("payload"), "64-bit"),
        ] {
            let bad = read(line).unwrap_err();
            assert_eq!(bad.field.as_deref(), field, "{line}: {bad:?}");
            assert!(bad.message.contains(part) && !bad.message.contains("secret"), "{line}: {}", bad.message);
        }
    }
}
