//! The error codes of the product: each has one class, and the library's table of this product says which.
//!
//! A handler answers with a [`Refusal`]; its code goes to the worker, the table decides whether the job is tried again
//! (`retryable`) or has failed for good. There is no second list: what is asked here is what the worker asks.

use std::fmt;

use tenure::core::classify::Fault;
use tenure::{Class, Fail, Invalid, preset};

/// What went wrong, in one word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The database cannot be reached.
    DbUnavailable,
    /// The broker cannot be reached.
    QueueUnavailable,
    /// A webhook's receiver could not be reached, or hung up.
    HttpException,
    /// A webhook's receiver did not answer in time.
    WebhookTimeout,
    /// A webhook's receiver answered with something else than 2xx.
    WebhookNon2xx,
    /// The snapshot is not SEALED.
    SnapshotNotReady,
    /// The rule package is not PUBLISHED.
    RulePkgNotPublished,
    /// An input is malformed.
    ValidationError,
    /// A rule compares what cannot be compared.
    RuleTypeError,
    /// An input or a passport is larger than allowed, and will be the next time.
    PayloadTooLarge,
    /// There is no key of that id to sign with.
    SigningKeyMissing,
    /// The text does not fit into the QR code.
    QrEncodeFailed,
    /// A webhook's receiver says that it is gone for good, or its endpoint is disabled.
    EndpointGone,
}

/// Why something was not done: a code for programs, a sentence for people.
///
/// It is no [`std::error::Error`]: as one, `?` in a handler would turn it into an error without its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which code.
    pub code: Code,
    /// What was refused, where, and the way out.
    pub message: String,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 13] = [
        Self::DbUnavailable,
        Self::QueueUnavailable,
        Self::HttpException,
        Self::WebhookTimeout,
        Self::WebhookNon2xx,
        Self::SnapshotNotReady,
        Self::RulePkgNotPublished,
        Self::ValidationError,
        Self::RuleTypeError,
        Self::PayloadTooLarge,
        Self::SigningKeyMissing,
        Self::QrEncodeFailed,
        Self::EndpointGone,
    ];

    /// The word, as it stands in a job's last error.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DbUnavailable => "DB_UNAVAILABLE",
            Self::QueueUnavailable => "QUEUE_UNAVAILABLE",
            Self::HttpException => "HttpException",
            Self::WebhookTimeout => "WebhookTimeout",
            Self::WebhookNon2xx => "WebhookNon2xx",
            Self::SnapshotNotReady => "SNAPSHOT_NOT_READY",
            Self::RulePkgNotPublished => "RULE_PKG_NOT_PUBLISHED",
            Self::ValidationError => "VALIDATION_ERROR",
            Self::RuleTypeError => "RULE_TYPE_ERROR",
            Self::PayloadTooLarge => "PAYLOAD_TOO_LARGE",
            Self::SigningKeyMissing => "SIGNING_KEY_MISSING",
            Self::QrEncodeFailed => "QREncodeFailed",
            Self::EndpointGone => "ENDPOINT_GONE",
        }
    }

    /// The code of this word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }

    /// What it means for a job, by the table of the preset.
    pub fn class(self) -> Class {
        preset::PASSPORT.classification.classify(&Fault::Code(self.as_str()), 1).class
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Refusal {
    /// Refuses with this code and sentence.
    pub fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// A malformed input.
    pub fn invalid(message: impl fmt::Display) -> Self {
        Self::new(Code::ValidationError, message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid)
    }
}

impl From<Refusal> for Fail {
    fn from(refusal: Refusal) -> Self {
        Self::code(refusal.code.as_str(), refusal.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: S4.21 S4.22 S4.23 S4.24 S4.25
    #[test]
    fn the_retryable_list_is_transient() {
        for word in ["DB_UNAVAILABLE", "QUEUE_UNAVAILABLE", "HttpException", "WebhookTimeout", "WebhookNon2xx"] {
            assert_eq!(Code::parse(word).map(Code::class), Some(Class::Transient), "{word}");
        }
    }

    /// Shows: S4.26 S4.27 S4.28 S4.29 S4.30 S4.31
    #[test]
    fn the_non_retryable_list_is_permanent() {
        for word in [
            "SNAPSHOT_NOT_READY",
            "RULE_PKG_NOT_PUBLISHED",
            "VALIDATION_ERROR",
            "RULE_TYPE_ERROR",
            "PAYLOAD_TOO_LARGE",
            "SIGNING_KEY_MISSING",
            "QREncodeFailed",
            "ENDPOINT_GONE",
        ] {
            assert_eq!(Code::parse(word).map(Code::class), Some(Class::Permanent), "{word}");
        }
    }

    #[test]
    fn words_are_their_own_inverse_and_the_lists_hold_all_of_them() {
        for (i, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(Code::parse(code.as_str()), Some(code));
            assert!(!Code::ALL[..i].contains(&code), "{code} is listed twice");
        }
        assert_eq!(Code::parse("validation_error"), None);
    }

    #[test]
    fn every_code_of_the_librarys_table_is_known_here() {
        for rule in preset::PASSPORT.classification.rules.iter() {
            if let tenure::Pattern::Code(word) = &rule.matches {
                assert!(Code::parse(word).is_some(), "{word}");
            }
        }
    }
}
