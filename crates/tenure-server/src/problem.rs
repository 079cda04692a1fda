//! Everything that can go wrong, as `application/problem+json` (RFC 9457) with a code that never changes.
//!
//! Each code has a page: its `type` is the path of a paragraph that the server itself serves, and docs/API.md lists them
//! all. A problem never holds a payload, a key or another tenant's anything.

use std::error::Error;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tenure_core::Invalid;
use tenure_store::StoreError;
use tenure_webhooks::EndpointError;
use utoipa::ToSchema;

use crate::new_job::BadLine;
use crate::new_job::line::without_payload;

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The word, for ever.
    pub word: &'static str,
    /// The status it comes with.
    pub status: u16,
    /// One line.
    pub title: &'static str,
    /// A paragraph: when it happens and what to do.
    pub about: &'static str,
}

macro_rules! codes {
    ($($constant:ident = $word:literal $status:literal $title:literal $about:literal;)*) => {
        $(#[doc = $title] pub const $constant: Code = Code { word: $word, status: $status, title: $title, about: $about };)*
        /// Every code, in the order of its status.
        pub const CODES: &[Code] = &[$($constant),*];
    };
}

codes! {
    MALFORMED = "malformed" 400 "The request cannot be read"
        "The body is not a JSON object, or the query is none. `detail` says where it stops making sense. Sending the same again does not help.";
    UNAUTHORIZED = "unauthorized" 401 "There is no good key"
        "The header `Authorization: Bearer KEY` is missing, or the key is mistyped, unknown, expired or revoked; which of them is not told. `tenure keys list` shows the keys that are good.";
    UNKNOWN_WORKER = "unknown_worker" 401 "The worker is not known"
        "The header `Tenure-Worker` is missing or is no token that this store gave out. The worker drops what it holds and registers again.";
    FORBIDDEN = "forbidden" 403 "The key does not allow this"
        "The key is good but has not the scope that `detail` names, or belongs to a tenant and asks for what is the operators'.";
    NOT_FOUND = "not_found" 404 "It is not known here"
        "There is no such thing, or it is another tenant's: nobody is told which.";
    METHOD_NOT_ALLOWED = "method_not_allowed" 405 "The path does not take this method"
        "The path is right, the method is not. `Allow` lists those that are.";
    TIMEOUT = "timeout" 408 "The body came too slowly"
        "The body of a request has to arrive whole within 20 seconds, and one above 64 KiB brings 64 KiB every 5 seconds. Nothing was done.";
    CONFLICT = "conflict" 409 "Its state does not allow this"
        "It is there, but where it stands this cannot be done: a job that has ended cannot be canceled, one that runs cannot be requeued, an idempotency key was used for another body. `detail` says what stands in the way.";
    LIMIT_REACHED = "limit_reached" 409 "The tenant has as many as it may"
        "A tenant has at most 1,000 schedules, 10,000 open runs, 200 usable keys, 20 webhook endpoints and 1,000 sessions. Nothing was stored. `detail` names the limit and the way below it.";
    WEBHOOKS_OFF = "webhooks_off" 409 "Webhooks are not set up"
        "The server has no key to seal the secrets of endpoints with. Its operator makes one with `tenure webhooks key` and sets `webhook_keys`.";
    LEASE_LOST = "lease_lost" 409 "The lease no longer holds the job"
        "A worker reported or renewed under a lease that is gone: it ran out and somebody else has the job, the job was canceled by force, or it ended otherwise. Nothing was changed. The worker drops its result.";
    TOO_LARGE = "too_large" 413 "The body is too large"
        "A body has at most 8 MiB. Keep large data elsewhere and put its address into the payload.";
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type" 415 "The body is no JSON"
        "A request with a body has the header `Content-Type: application/json`.";
    INVALID = "invalid" 422 "A value is refused"
        "The request could be read, but one of its values cannot be accepted. `field` names it, `detail` says what would be. Nothing was done.";
    FULL = "full" 429 "The queue is full"
        "As many jobs are pending as the quota of the queue, or of the tenant in it, allows. Nothing was stored. Come again when some are claimed; `Retry-After` says when to try.";
    INTERNAL = "internal" 500 "The server made a mistake"
        "What it was is in the server's log. Please report it.";
    UNAVAILABLE = "unavailable" 503 "The store does not answer"
        "Whether something happened is unknown: send the same again, with the same id or `Idempotency-Key`. `Retry-After` says when.";
    BUSY = "busy" 503 "Busy: try again in a moment"
        "Another transaction is ending this attempt, the server holds as many bodies as fit into its memory, or this caller holds its whole share of it. Send the same request again in a moment.";
}

/// The answer to a request that was not done.
#[derive(Debug)]
pub struct Problem(Box<Report>);

#[derive(Debug)]
struct Report {
    code: Code,
    detail: String,
    field: Option<String>,
    retry_after: Option<u32>,
    /// Whether the store failed at it.
    of_store: bool,
}

/// Marks an answer whose cause is the store, by the code of the problem.
#[derive(Debug, Clone, Copy)]
pub struct FromStore(pub(crate) &'static str);

/// A problem as it is sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// The path of a paragraph about this code.
    r#type: String,
    title: &'static str,
    status: u16,
    /// The word for programs.
    code: &'static str,
    /// The sentence for people.
    detail: String,
    /// The member, parameter or header that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let retry_after = matches!(code.word, "full" | "unavailable" | "busy").then_some(1);
        Self(Box::new(Report { code, detail: detail.into(), field: None, retry_after, of_store: false }))
    }

    /// A value that is refused.
    pub fn invalid(field: &str, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(INVALID, detail);
        problem.0.field = Some(field.to_owned());
        problem
    }

    /// A mistake of ours: logged, and told without what it was.
    pub fn internal(what: &str, error: &dyn Error) -> Self {
        tracing::error!(error = %error, "{what}");
        Self::new(INTERNAL, "the server could not do this; its log says why")
    }

    /// The same, about a part of something larger.
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        self.0.detail = format!("{place}: {}", self.0.detail);
        self.0.field = self.0.field.map(|field| format!("{place}.{field}"));
        self
    }

    fn of_store(mut self) -> Self {
        self.0.of_store = true;
        self
    }

    /// What kind it is.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The sentence for people.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Goes into the extensions of an answer where the store failed, so that the figures tell of it.
    pub fn mark(&self) -> Option<FromStore> {
        self.0.of_store.then_some(FromStore(self.0.code.word))
    }
}

impl Code {
    /// The path of its paragraph.
    pub fn path(&self) -> String {
        format!("/v1/problems/{}", self.word)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::LeaseLost(_) => LEASE_LOST,
            StoreError::OffsetMismatch { .. } | StoreError::Conflict(_) => CONFLICT,
            StoreError::NotFound(_) => NOT_FOUND,
            StoreError::Full(_) => {
                // The way to raise a quota is the operators'.
                let said = error.to_string();
                let detail = said.split(", or raise it").next().unwrap_or_default().to_owned();
                return Self::new(FULL, detail);
            }
            StoreError::Limit(_) => LIMIT_REACHED,
            StoreError::Invalid(invalid) => return Self::from(invalid.clone()),
            StoreError::Unavailable(..) => {
                tracing::warn!(error = %error, "the store does not answer");
                let detail = "the store does not answer; whether it happened is unknown";
                return Self::new(UNAVAILABLE, detail).of_store();
            }
            _ => return Self::internal("the store made no sense", &error).of_store(),
        };
        Self::new(code, error.to_string())
    }
}

impl From<EndpointError> for Problem {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Store(error) => error.into(),
            EndpointError::Refused(refused) => Self::invalid("url", refused.to_string()),
            _ => Self::new(WEBHOOKS_OFF, error.to_string()),
        }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid.field, without_payload(&invalid))
    }
}

impl From<BadLine> for Problem {
    fn from(bad: BadLine) -> Self {
        match bad.field {
            Some(field) => Self::invalid(&field, bad.message),
            None => Self::new(MALFORMED, bad.message),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mark = self.mark();
        let Report { code, detail, field, retry_after, .. } = *self.0;
        let body =
            ProblemBody { r#type: code.path(), title: code.title, status: code.status, code: code.word, detail, field };
        let status = StatusCode::from_u16(code.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = serde_json::to_string(&body).unwrap_or_default();
        let mut response = (status, text).into_response();
        mark.map(|mark| response.extensions_mut().insert(mark));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if code.status == 401 {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tenure\""));
        }
        response
    }
}
