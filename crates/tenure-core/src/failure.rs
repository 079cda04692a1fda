//! What is kept of a failed attempt: `{"class", "code", "message", "causes", "details"}`, cut to what a store keeps.

use crate::classify::Class;
use crate::id::LeaseNo;
use crate::json::{Json, quote};

/// Longest code, in bytes.
const CODE_BYTES_MAX: usize = 200;
/// Most causes.
const CAUSES_MAX: usize = 8;

/// What went wrong, as somebody told it.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'f> {
    /// What it means.
    pub class: Class,
    /// A word for programs.
    pub code: Option<&'f str>,
    /// A sentence for people.
    pub message: &'f str,
    /// What lies below it, the nearest first.
    pub causes: &'f [String],
    /// Whatever else belongs to it.
    pub details: Option<&'f Json>,
}

impl Failure<'_> {
    /// At most about `bytes` of JSON: sentences are cut with a mark, details that are too large are left out.
    pub fn to_json(&self, bytes: usize) -> Json {
        let mut text = format!("{{\"class\":\"{}\"", self.class.as_str());
        if let Some(code) = self.code {
            text += &format!(",\"code\":{}", quote(&cut(code, CODE_BYTES_MAX)));
        }
        let left = bytes.saturating_sub(text.len());
        let message = quote(&cut(self.message, left / 4));
        text += &format!(",\"message\":{message}");
        if !self.causes.is_empty() {
            let each = left / 4 / self.causes.len().min(CAUSES_MAX);
            let causes: Vec<String> =
                self.causes.iter().take(CAUSES_MAX).map(|cause| quote(&cut(cause, each))).collect();
            text += &format!(",\"causes\":[{}]", causes.join(","));
        }
        match self.details {
            Some(details) if text.len() + details.bytes() + 20 <= bytes => {
                text += &format!(",\"details\":{details}");
            }
            Some(_) => text += ",\"details\":\"too large to keep\"",
            None => {}
        }
        text.push('}');
        Json::from_store(text)
    }
}

/// The error of an attempt whose lease expired without a report, the same on every store. `worker` is the name of the
/// worker that held the lease, or its number where the name is unknown.
pub fn lease_lost(lease: LeaseNo, worker: &str) -> Json {
    let message = quote(&format!("lease {lease} of worker {worker} expired without a report"));
    Json::from_store(format!("{{\"code\":\"lease_lost\",\"message\":{message}}}"))
}

/// At most `bytes` of a text, with a mark where it was cut. Quoting may make it longer, at most sixfold: control
/// characters are replaced first.
pub fn cut(text: &str, bytes: usize) -> String {
    let mut kept = String::with_capacity(text.len().min(bytes));
    for c in text.chars() {
        if kept.len() + c.len_utf8() > bytes {
            kept.push('…');
            break;
        }
        kept.push(if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_told_fits_and_is_json() {
        let details = Json::from_store(format!("\"{}\"", "x".repeat(9_000)));
        let causes = vec!["\u{1}\"".repeat(5_000); 20];
        let failure = Failure {
            class: Class::Transient,
            code: Some(&"c".repeat(500)),
            message: &"ü\0\n".repeat(10_000),
            causes: &causes,
            details: Some(&details),
        };
        let json = failure.to_json(8 << 10);
        assert!(json.as_str().len() <= 8 << 10, "{}", json.as_str().len());
        Json::parse("error", json.as_str()).unwrap();
        assert!(json.as_str().contains("too large to keep"), "{json}");
    }
}
