//! Dead letters that died of the same thing.
//!
//! The same thing is the same kind and the same error: its `code` where it has one, else the first line of its message
//! without what differs from job to job. `user 42 not found` and `user 43 not found` are both `user <n> not found`.

use std::collections::HashMap;

use tenure_core::name::{KindName, QueueName};
use tenure_core::{JobId, Json, State, Timestamp};
use tenure_store::record::{JobFilter, JobSummary, Sight};
use tenure_store::{JobStore, StoreError};

/// Characters of a message that count: what comes after them is an address, a dump, a trace.
const MESSAGE_CHARS_MAX: usize = 200;
/// Shorter words of hexadecimal digits are words (`dead`, `cafe`), longer ones are ids and hashes.
const HEX_CHARS_MIN: usize = 8;

/// What a group died of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The error's own code.
    Code(String),
    /// Its message, without what differs from job to job.
    Message(String),
    /// Nobody said.
    Unknown,
}

/// Dead letters of one kind and cause.
#[derive(Debug, Clone)]
pub struct Group {
    /// Of which kind.
    pub kind: KindName,
    /// What they died of.
    pub cause: Cause,
    /// How many.
    pub count: u64,
    /// When the first of them died.
    pub first: Option<Timestamp>,
    /// When the last of them died.
    pub last: Option<Timestamp>,
    /// The newest of them.
    pub example: JobId,
    /// What the newest one's error says, as it is.
    pub message: String,
}

/// Groups as they are found.
#[derive(Default)]
pub struct Groups(HashMap<(KindName, Cause), Group>);

impl Groups {
    /// Adds a job to its group. Newest jobs come first.
    pub fn add(&mut self, job: &JobSummary) {
        let cause = Cause::of(job.error.as_ref());
        let group = self.0.entry((job.kind.clone(), cause.clone())).or_insert_with(|| Group {
            kind: job.kind.clone(),
            cause,
            count: 0,
            first: None,
            last: None,
            example: job.id,
            message: job.error.as_ref().map(error_text).unwrap_or_default(),
        });
        group.count += 1;
        group.first = group.first.into_iter().chain(job.finished_at).min();
        group.last = group.last.into_iter().chain(job.finished_at).max();
    }

    /// The largest first.
    pub fn sorted(self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.0.into_values().collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.kind, &a.cause).cmp(&(&b.kind, &b.cause))));
        groups
    }
}

/// The groups of the newest dead letters.
#[derive(Debug, Clone)]
pub struct Grouped {
    /// The largest first.
    pub groups: Vec<Group>,
    /// Dead letters that were looked at, the newest first.
    pub looked_at: u64,
    /// Whether that was all of them.
    pub complete: bool,
}

/// Dead letters looked at, and read at once.
const GROUPED_MAX: u64 = 10_000;
const PAGE: u32 = 1_000;

/// Groups dead letters by what killed them, the newest ten thousand.
pub async fn group(
    store: &dyn JobStore,
    sight: Sight,
    queue: Option<QueueName>,
    kind: Option<KindName>,
) -> Result<Grouped, StoreError> {
    let mut filter = JobFilter { sight, state: Some(State::Dead), queue, kind, limit: PAGE, ..JobFilter::default() };
    let (mut groups, mut looked_at, mut complete) = (Groups::default(), 0, false);
    while looked_at < GROUPED_MAX && !complete {
        let page = store.list_jobs(&filter).await?;
        page.iter().for_each(|job| groups.add(job));
        looked_at += page.len() as u64;
        complete = page.len() < PAGE as usize;
        filter.before = page.last().map(|job| job.id);
    }
    Ok(Grouped { groups: groups.sorted(), looked_at, complete })
}

impl Group {
    /// Its name.
    pub fn key(&self) -> String {
        key(&self.kind, &self.cause)
    }
}

/// The group's name on the command line: it is the same wherever and whenever it is computed.
pub fn key(kind: &KindName, cause: &Cause) -> String {
    let (tag, text) = match cause {
        Cause::Code(code) => ("code", code.as_str()),
        Cause::Message(message) => ("message", message.as_str()),
        Cause::Unknown => ("unknown", ""),
    };
    // FNV-1a: short, well known, and the same in every version of this program.
    let bytes = [kind.as_str(), tag, text].join("\0").into_bytes();
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// Reads what [`key`] writes.
pub fn parse_key(text: &str) -> Result<String, String> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match text.len() == 8 && text.bytes().all(hex) {
        true => Ok(text.to_owned()),
        false => Err("a group is 8 hexadecimal digits, as `tenure dead list` prints it".to_owned()),
    }
}

impl Cause {
    /// What an error says.
    pub fn of(error: Option<&Json>) -> Self {
        let Some(error) = error else { return Self::Unknown };
        if let Ok(serde_json::Value::Object(members)) = serde_json::from_str(error.as_str()) {
            match members.get("code") {
                Some(serde_json::Value::String(code)) if !code.is_empty() => return Self::Code(code.clone()),
                Some(serde_json::Value::Number(code)) => return Self::Code(code.to_string()),
                _ => {}
            }
        }
        let message = general(&error_text(error));
        if message.is_empty() { Self::Unknown } else { Self::Message(message) }
    }
}

/// What an error says to a person: its `message` where it has one, its text otherwise.
pub fn error_text(error: &Json) -> String {
    match serde_json::from_str(error.as_str()) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Object(members)) => match members.get("message") {
            Some(serde_json::Value::String(text)) => text.clone(),
            _ => error.to_string(),
        },
        _ => error.to_string(),
    }
}

/// A message without what differs from job to job: numbers, uuids, hashes, and whatever is in quotes.
fn general(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.chars().take(MESSAGE_CHARS_MAX).collect();
    let mut text = String::new();
    let mut rest = line.as_str();
    while let Some(c) = rest.chars().next() {
        let (written, taken) = match c {
            '"' | '`' | '\'' => match closing(&text, rest, c) {
                // The name of a member, where the whole error is a JSON object.
                Some(end) if line.starts_with('{') && rest[end..].starts_with(':') => (rest[..end].to_owned(), end),
                Some(end) => (format!("{c}…{c}"), end),
                None => (c.to_string(), c.len_utf8()),
            },
            _ if c.is_alphanumeric() => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').unwrap_or(rest.len());
                word(rest, end)
            }
            _ => (c.to_string(), c.len_utf8()),
        };
        text.push_str(&written);
        rest = &rest[taken..];
    }
    text
}

/// Where a quoted part ends. An apostrophe inside of a word (`can't`) quotes nothing.
fn closing(before: &str, rest: &str, quote: char) -> Option<usize> {
    if quote == '\'' && before.ends_with(char::is_alphanumeric) {
        return None;
    }
    let ends = |at: &usize| quote != '\'' || !rest[at + 1..].starts_with(char::is_alphanumeric);
    let at = rest.match_indices(quote).map(|(at, _)| at).filter(|at| *at > 0).find(ends)?;
    Some(at + quote.len_utf8())
}

/// A word in general, and how much of `rest` it was.
fn word(rest: &str, end: usize) -> (String, usize) {
    let text = &rest[..end];
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split('-').collect();
    if parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| hex(part)) {
        return ("<uuid>".to_owned(), end);
    }
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    if text.len() >= HEX_CHARS_MIN && hex(text) && digits && letters {
        return ("<hex>".to_owned(), end);
    }
    let mut written = String::new();
    let mut at = 0;
    while at < end {
        let tail = &rest[at..];
        let number = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if number > 0 {
            written.push_str("<n>");
            at += number;
            // A fraction, or the next part of an address, belongs to it; it may go on behind the word.
            while let Some(more) = rest[at..].strip_prefix(['.', ',']) {
                let digits = more.len() - more.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                if digits == 0 {
                    break;
                }
                at += 1 + digits;
            }
        } else {
            let c = tail.chars().next().unwrap_or_default();
            written.push(c);
            at += c.len_utf8();
        }
    }
    (written, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_differ_only_in_their_values_are_one() {
        for (message, expected) in [
            ("user 42 not found", "user <n> not found"),
            ("user 43 not found", "user <n> not found"),
            ("job 01933c5e-7b5a-7000-8000-000000000001 timed out after 1.5s", "job <uuid> timed out after <n>s"),
            ("connect 10.0.0.7:5432: refused", "connect <n>:<n>: refused"),
            ("no mailbox 'a@b.org' on \"mx 1\"", "no mailbox '…' on \"…\""),
            ("can't read user's file `x`", "can't read user's file `…`"),
            ("'it's' is odd", "'…' is odd"),
            ("blob 9f86d081884c7d65 is gone", "blob <hex> is gone"),
            ("dead cafe", "dead cafe"),
            ("key_17 of v2-beta3", "key_<n> of v<n>-beta<n>"),
            ("an unclosed \"quote 7", "an unclosed \"quote <n>"),
            ("  first line 1\nsecond line", "first line <n>"),
            ("größe 3 überschritten…", "größe <n> überschritten…"),
            (r#"{"status":7,"why":"x"}"#, r#"{"status":<n>,"why":"…"}"#),
            ("1,000 of 2,500.", "<n> of <n>."),
            ("", ""),
        ] {
            assert_eq!(general(message), expected, "{message}");
        }
        assert_eq!(general(&"x".repeat(10_000)).len(), MESSAGE_CHARS_MAX);
    }

    #[test]
    fn a_code_is_the_cause_whatever_the_message_says() {
        let cause = |json: &str| Cause::of(Some(&Json::parse("error", json).unwrap()));
        assert_eq!(cause(r#"{"code":"timeout","message":"after 7s"}"#), Cause::Code("timeout".into()));
        assert_eq!(cause(r#"{"code":404}"#), Cause::Code("404".into()));
        assert_eq!(cause(r#"{"code":"","message":"a 1"}"#), Cause::Message("a <n>".into()));
        assert_eq!(cause(r#""text 7""#), Cause::Message("text <n>".into()));
        assert_eq!(Cause::of(None), Cause::Unknown);
    }

    #[test]
    fn a_key_never_changes() {
        let kind = KindName::new("mail.send").unwrap();
        let keys =
            [Cause::Code("a".into()), Cause::Message("a".into()), Cause::Unknown].map(|cause| key(&kind, &cause));
        assert_eq!(keys, ["3409566c", "a3a1f6e5", "c219ef85"]);
        for key in keys {
            assert_eq!(parse_key(&key), Ok(key));
        }
    }
}
