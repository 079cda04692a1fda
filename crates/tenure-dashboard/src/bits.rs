//! Small pieces of markup that many pages have. Whatever comes from outside goes through [`escaped`].

use std::fmt;
use std::time::Duration;

use askama::filters::HtmlSafe;
use tenure_core::gate::{Admit, Why};
use tenure_core::journal::JournalEvent;
use tenure_core::run::Part;
use tenure_core::text::is_deceptive;
use tenure_core::{JobId, Json, State, Timestamp};
use tenure_server::gate_words::closed_text;
use tenure_server::{moment, pretty};
use tenure_store::gate::GateRecord;
use tenure_store::record::JobSummary;

/// Markup that is written as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Markup(pub(crate) String);

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

/// Text that cannot be taken for markup, inside and outside of attributes.
pub(crate) fn escaped(text: impl fmt::Display) -> String {
    let mut safe = String::new();
    for c in text.to_string().chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            // Controls, marks of the order of writing, and characters without width are written out.
            c if is_deceptive(c) => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
    }
    safe
}

/// A word for a state, with its colour. Words are ours.
pub(crate) fn badge(word: &str) -> Markup {
    Markup(format!("<span class=\"badge is-{0}\">{0}</span>", escaped(word)))
}

/// `2026-11-15 09:30:00 UTC`: a moment with its zone, as a person reads it.
pub(crate) fn moment_text(at: &Timestamp) -> String {
    let text = moment::absolute(*at);
    format!("{} UTC", text.trim_end_matches('Z'))
}

/// `3m ago`, with the moment itself behind it.
pub(crate) fn ago(at: &Timestamp, now: &Timestamp) -> Markup {
    if *at == Timestamp::MAX {
        return Markup("never".to_owned());
    }
    let (date, absolute, relative) = (escaped(at), moment_text(at), moment::relative(*at, *now));
    Markup(format!("<time datetime=\"{date}\" title=\"{absolute}\">{relative}</time>"))
}

/// The same of something that may not have happened.
pub(crate) fn ago_or(at: &Option<Timestamp>, now: &Timestamp, or: &str) -> Markup {
    at.as_ref().map_or_else(|| Markup(format!("<span class=\"dim\">{}</span>", escaped(or))), |at| ago(at, now))
}

/// `11-15 14:03:20.512`, with the moment itself and its zone behind it. What stands above such times names the zone.
pub(crate) fn clock(at: &Timestamp) -> Markup {
    let text = at.to_string();
    let short = text.get(5..).unwrap_or(&text).trim_end_matches('Z').replace('T', " ");
    let short: String = short.chars().take(18).collect();
    Markup(format!("<time datetime=\"{0}\" title=\"{1}\">{2}</time>", escaped(&text), moment_text(at), short))
}

/// `1m 20s`.
pub(crate) fn span(time: &Duration) -> String {
    moment::span(*time)
}

/// A whole number of any size; templates hand them over as they have them.
pub(crate) trait Number {
    fn get(&self) -> u64;
}

impl Number for u64 {
    fn get(&self) -> u64 {
        *self
    }
}

impl Number for u32 {
    fn get(&self) -> u64 {
        u64::from(*self)
    }
}

impl Number for u16 {
    fn get(&self) -> u64 {
        u64::from(*self)
    }
}

impl Number for usize {
    fn get(&self) -> u64 {
        *self as u64
    }
}

impl<N: Number> Number for &N {
    fn get(&self) -> u64 {
        (*self).get()
    }
}

/// `12,345`.
pub(crate) fn count(number: impl Number) -> String {
    let digits = number.get().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `3 jobs`, `1 job`.
pub(crate) fn many(number: impl Number, one: &str) -> String {
    let number = number.get();
    match (number, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{} {stem}ies", count(number)),
        (_, None) => format!("{} {one}s", count(number)),
    }
}

/// The end of an id, which tells jobs apart, with a link to the job.
pub(crate) fn job_link(job: &JobId) -> Markup {
    let id = job.to_string();
    Markup(format!("<a class=\"id\" href=\"/jobs/{id}\" title=\"{id}\">…{}</a>", short(&id)))
}

/// The end of an id, which tells things apart.
pub(crate) fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(12)..).unwrap_or(id)
}

/// A JSON document, indented and otherwise as it was written.
pub(crate) fn json(document: &Json) -> Markup {
    Markup(format!("<pre class=\"json\" tabindex=\"0\">{}</pre>", escaped(pretty::indent(document.as_str()))))
}

/// When a job that has not ended is or was due.
pub(crate) fn due(job: &JobSummary, now: &Timestamp) -> Markup {
    match job.state {
        State::Waiting => Markup("<span class=\"dim\">when it is opened</span>".to_owned()),
        _ => ago(&job.run_at, now),
    }
}

/// A word of programs as the beginning of a sentence.
pub(crate) fn sentence(word: &str) -> String {
    let text = word.replace('_', " ");
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The colour of what happened.
pub(crate) fn tone(event: &JournalEvent) -> &'static str {
    match event {
        JournalEvent::GateTripped
        | JournalEvent::Refused
        | JournalEvent::KeyRevoked
        | JournalEvent::EndpointDisabled => "failed",
        JournalEvent::GatePaused | JournalEvent::QueuePaused | JournalEvent::SchedulePaused => "retry",
        JournalEvent::GateHealed | JournalEvent::GateReset | JournalEvent::GateResumed | JournalEvent::QueueResumed => {
            "succeeded"
        }
        event => event.as_str(),
    }
}

/// What a gate lets through now.
pub(crate) fn gate_now(gate: &GateRecord) -> Markup {
    let (word, text) = match gate.admit {
        Admit::Open(u32::MAX) => ("open-gate", "open".to_owned()),
        Admit::Open(jobs) => ("open-gate", format!("open, {jobs} free")),
        Admit::Closed { why, .. } => {
            let word = match why {
                Why::Open => "open",
                Why::Probing => "half-open",
                Why::Paused | Why::Held => "paused",
                Why::Full | Why::Rate => "busy",
            };
            (word, closed_text(gate).unwrap_or_default())
        }
    };
    Markup(format!("<span class=\"badge is-{word}\">{}</span>", escaped(text)))
}

/// What a job is of its run.
pub(crate) fn part(part: &Part) -> String {
    match part {
        Part::Item(_) => "one of its items".to_owned(),
        Part::Page { partition, offset, .. } => format!("partition {partition}, page at {offset}"),
        Part::Consolidate(_) => "its consolidate".to_owned(),
    }
}

/// The beginning of a text.
pub(crate) fn cut(text: impl fmt::Display, chars: usize) -> String {
    let text = text.to_string();
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The same of a text that may be none.
pub(crate) fn indented(text: &str) -> String {
    pretty::indent(text)
}

/// The message of an error.
pub(crate) fn error(document: &Json) -> String {
    pretty::error_text(document)
}

/// Text as a part of a query or of a path.
pub(crate) fn encoded(text: impl fmt::Display) -> String {
    let mut safe = String::new();
    for byte in text.to_string().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => safe.push(char::from(byte)),
            _ => safe.push_str(&format!("%{byte:02X}")),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        let text = "<script>alert(1)</script>\" onload='x' & \u{202e}gnp.exe\u{7}";
        let safe = escaped(text);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{202e}', '\u{7}']), "{safe}");
        assert!(safe.starts_with("&lt;script&gt;") && safe.contains("\\u{202e}gnp.exe\\u{7}"), "{safe}");
        assert_eq!(escaped("a\u{200b}b\u{feff}\nc"), "a\\u{200b}b\\u{feff}\nc");
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0_u64, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        assert_eq!(many(1_u64, "job"), "1 job");
        assert_eq!(many(2_u64, "job"), "2 jobs");
        assert_eq!(many(3_u64, "entry"), "3 entries");
    }

    #[test]
    fn names_survive_a_path() {
        assert_eq!(encoded("source:ebay/uk ü"), "source%3Aebay%2Fuk%20%C3%BC");
    }
}
