//! What a command says when it did not do what was asked: one sentence, its causes, and what to do next.

use std::error::Error;
use std::io::Write;

use serde_json::{Value, json};
use tenure_core::Invalid;
use tenure_core::text::printable_json;
use tenure_server::new_job::line::without_payload;
use tenure_store::StoreError;

use crate::terminal;

/// Exit codes; the list people read is in `tenure --help`.
pub(crate) mod exit {
    pub(crate) const DONE: u8 = 0;
    pub(crate) const REFUSED: u8 = 1;
    pub(crate) const USAGE: u8 = 2;
    pub(crate) const STORE: u8 = 3;
}

/// A command that failed. Never holds a payload or a password.
#[derive(Debug)]
pub(crate) struct Failure(Box<Report>);

/// What a failure says; boxed, because every function carries it in its `Result`.
#[derive(Debug)]
struct Report {
    code: &'static str,
    exit: u8,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    details: Option<Value>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, exit: u8, message: impl Into<String>) -> Self {
        let report = Report { code, exit, message: message.into(), causes: Vec::new(), hint: None, details: None };
        Self(Box::new(report))
    }

    /// Bad input or bad settings.
    pub(crate) fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, exit::USAGE, message)
    }

    /// What to do next, unless it is known already.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint.get_or_insert(hint.into());
        self
    }

    /// More members for the JSON error.
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// The causes below the sentence, each once.
    pub(crate) fn caused_by(mut self, error: &dyn Error) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            let text = error.to_string();
            if !self.0.message.contains(&text) && !self.0.causes.iter().any(|known| known.contains(&text)) {
                self.0.causes.push(text);
            }
            cause = error.source();
        }
        self
    }

    /// Puts `context` before the sentence.
    pub(crate) fn within(mut self, context: &str) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    pub(crate) fn exit(&self) -> u8 {
        self.0.exit
    }

    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// The sentence and its causes, for a log.
    pub(crate) fn in_one_line(&self) -> String {
        let causes = self.0.causes.iter().map(|cause| format!(": {cause}"));
        std::iter::once(self.0.message.clone()).chain(causes).collect()
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Writes it to stderr. A closed stderr is ignored: there is nobody to tell.
    pub(crate) fn print(&self, json: bool) {
        let mut stderr = std::io::stderr().lock();
        let _ = if json {
            writeln!(stderr, "{}", printable_json(&self.to_json().to_string()))
        } else {
            let causes: String = self.0.causes.iter().map(|cause| format!("\n  caused by: {cause}")).collect();
            let hint = self.0.hint.iter().map(|hint| format!("\n\n{hint}")).collect::<String>();
            let text = format!("error: {}{causes}{hint}", self.0.message);
            writeln!(stderr, "{}", terminal::shown(&text, false))
        };
    }

    fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.0.code, "message": self.0.message });
        if !self.0.causes.is_empty() {
            error["causes"] = json!(self.0.causes);
        }
        if let Some(hint) = &self.0.hint {
            error["hint"] = json!(hint);
        }
        if let Some(Value::Object(details)) = &self.0.details {
            for (key, value) in details {
                error[key] = value.clone();
            }
        }
        json!({ "error": error })
    }
}

/// Tells on standard error what the user should know, and goes on.
pub(crate) fn warn(text: &str, json: bool) {
    let mut stderr = std::io::stderr().lock();
    // A closed stderr is ignored, as for a failure.
    let _ = match json {
        true => writeln!(stderr, "{}", printable_json(&json!({ "warning": { "message": text } }).to_string())),
        false => writeln!(stderr, "warning: {}", terminal::shown(text, false)),
    };
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (code, exit) = match &error {
            StoreError::LeaseLost(_) => ("lease_lost", exit::REFUSED),
            StoreError::NotFound(_) => ("not_found", exit::REFUSED),
            StoreError::Conflict(_) => ("conflict", exit::REFUSED),
            StoreError::Full(_) => ("full", exit::REFUSED),
            StoreError::Limit(_) => ("limit_reached", exit::REFUSED),
            StoreError::Invalid(invalid) => return Self::from(invalid.clone()),
            StoreError::Schema(_) => ("schema", exit::STORE),
            StoreError::Unavailable(..) => ("unavailable", exit::STORE),
            StoreError::Corrupt(_) => ("corrupt", exit::STORE),
            // The enum may grow; whatever comes is not the caller's fault.
            _ => ("store", exit::STORE),
        };
        Self::new(code, exit, error.to_string()).caused_by(&error)
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::usage("invalid", without_payload(&invalid)).details(json!({ "field": invalid.field }))
    }
}

impl From<getrandom::Error> for Failure {
    fn from(error: getrandom::Error) -> Self {
        Self::new("random", exit::STORE, "the machine has no random bits").caused_by(&error)
    }
}
