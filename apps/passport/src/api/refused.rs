//! [`Refused`]: why a call was not answered, as HTTP.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tenure::{Fail, Invalid};

use crate::code::{Code, Refusal};
use crate::halt::Halt;

/// What the caller hears.
#[derive(Debug)]
pub struct Refused {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refused {
    /// There is no such thing, or it is another tenant's: nobody learns which.
    pub fn unknown(what: &str, id: &dyn std::fmt::Display) -> Self {
        Self { status: StatusCode::NOT_FOUND, code: "NOT_FOUND", message: format!("{what} `{id}` is not known here") }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.code {
            Code::DbUnavailable | Code::QueueUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::SnapshotNotReady | Code::RulePkgNotPublished | Code::EndpointGone => StatusCode::CONFLICT,
            Code::HttpException | Code::WebhookTimeout | Code::WebhookNon2xx => StatusCode::BAD_GATEWAY,
            Code::SigningKeyMissing => StatusCode::INTERNAL_SERVER_ERROR,
            Code::ValidationError | Code::RuleTypeError | Code::QrEncodeFailed => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self { status, code: refusal.code.as_str(), message: refusal.message }
    }
}

impl From<Invalid> for Refused {
    fn from(invalid: Invalid) -> Self {
        Refusal::from(invalid).into()
    }
}

impl From<Halt> for Refused {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Refused(refusal) => refusal.into(),
            Halt::Answered(fail) => fail.into(),
        }
    }
}

impl From<Fail> for Refused {
    fn from(fail: Fail) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, code: "INTERNAL", message: fail.to_string() }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(json!({"code": self.code, "message": self.message}))).into_response()
    }
}
