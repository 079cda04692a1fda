//! [`Sent`]: what is kept of a receiver's answer.
//!
//! It goes into the delivery log, where the endpoint's owner reads it: enough to see what the receiver complained about,
//! nothing that would serve to read pages through us. Text that a database cannot hold is replaced.

use std::time::{Duration, SystemTime};

use hyper::HeaderMap;
use hyper::header::{self, HeaderName};

/// No receiver puts us off for longer than this.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// Headers that are kept; cookies and their like are nobody's business.
const KEPT: [HeaderName; 4] = [header::CONTENT_TYPE, header::DATE, header::SERVER, header::RETRY_AFTER];
/// Longest value of a header that is kept, in characters.
const VALUE_CHARS_MAX: usize = 200;

/// An answer, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// 200, 301, 410, …
    pub status: u16,
    /// For how long it wants to be left alone: an hour at most, and nothing where the header made no sense.
    pub retry_after: Option<Duration>,
    /// `content-type`, `date`, `server` and `retry-after`, as far as they came.
    pub headers: Vec<(&'static str, String)>,
    /// The beginning of its body as text, undecoded.
    pub body_start: String,
    /// Whether the body went on, or may have.
    pub truncated: bool,
    /// Bytes that were read for it, head and framing included.
    pub read_bytes: usize,
    /// From the lookup of the name to the last byte read.
    pub took: Duration,
}

/// An answer as it came, whatever its status: the head, and the beginning of the body.
#[derive(Debug, Clone)]
pub struct Answer {
    /// 200, 301, 410, …
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of its body, undecoded.
    pub body: Vec<u8>,
    /// Whether the body went on, or may have.
    pub truncated: bool,
    /// Bytes that were read for it, head and framing included.
    pub read_bytes: usize,
    /// From the lookup of the name to the last byte read.
    pub took: Duration,
}

impl Answer {
    /// For how long it wants to be left alone: an hour at most, and nothing where the header made no sense.
    pub fn retry_after(&self, now: SystemTime) -> Option<Duration> {
        self.headers
            .get(header::RETRY_AFTER)
            .and_then(|value| retry_after(&String::from_utf8_lossy(value.as_bytes()), now))
    }
}

impl Sent {
    pub(crate) fn new(answer: &Answer, now: SystemTime) -> Self {
        let value = |name: &HeaderName| answer.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let kept = ["content-type", "date", "server", "retry-after"].into_iter().zip(&KEPT);
        Self {
            status: answer.status,
            retry_after: answer.retry_after(now),
            headers: kept.filter_map(|(shown, name)| Some((shown, shorten(&value(name)?)))).collect(),
            body_start: printable(&String::from_utf8_lossy(&answer.body)),
            truncated: answer.truncated,
            read_bytes: answer.read_bytes,
            took: answer.took,
        }
    }
}

/// Reads `Retry-After`: whole seconds, or a date. A date that is over means now.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit are a very long time.
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

fn shorten(value: &str) -> String {
    printable(value).chars().take(VALUE_CHARS_MAX).collect()
}

/// Replaces control characters; line breaks and tabs may stay.
fn printable(text: &str) -> String {
    let safe = |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_an_hour_at_most() {
        let now = at(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
        for (value, seconds) in [
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("0", Some(0)),
            ("86400", Some(3_600)),
            ("99999999999999999999999999", Some(3_600)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(120)),
            ("Sunday, 06-Nov-94 08:51:37 GMT", Some(120)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("Sat, 06 Nov 2094 08:49:00 GMT", Some(3_600)),
            ("", None),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("soon", None),
            ("٣", None),
        ] {
            assert_eq!(retry_after(value, now), seconds.map(Duration::from_secs), "{value:?}");
        }
    }

    fn answer(headers: HeaderMap, body: &[u8]) -> Answer {
        Answer { status: 500, headers, body: body.to_vec(), truncated: false, read_bytes: 0, took: Duration::ZERO }
    }

    #[test]
    fn only_a_few_headers_are_kept_and_all_text_can_be_stored() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("set-cookie", "s=1"), ("server", "old\u{fc}"), ("content-type", "text/plain")] {
            headers.insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        let sent = Sent::new(&answer(headers, b"a\0b\x1b[31m\xff\n\tc"), at(0));
        assert_eq!(sent.headers, [("content-type", "text/plain".to_owned()), ("server", "oldü".to_owned())]);
        assert_eq!(sent.body_start, "a\u{fffd}b\u{fffd}[31m\u{fffd}\n\tc");
    }

    #[test]
    fn long_values_of_headers_are_cut() {
        let mut headers = HeaderMap::new();
        headers.insert("server", "x".repeat(5_000).parse().unwrap());
        assert_eq!(Sent::new(&answer(headers, b""), at(0)).headers[0].1.len(), VALUE_CHARS_MAX);
    }
}
