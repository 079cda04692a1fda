//! What is shown once: the text of a new key, the secret of an endpoint.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use crate::frame::{self, Bare};

#[derive(Template)]
#[template(path = "secret.html")]
struct Secret {
    bare: Bare,
    what: &'static str,
    text: String,
    about: &'static str,
    back: String,
}

/// The page for an answer that has a secret in it; `None` when it has none.
pub(crate) fn shown_once(answer: &Value, back: &str) -> Option<Response> {
    let (what, text, about) = match (answer["key"].as_str(), answer["secret"].as_str()) {
        (Some(key), _) => ("A new key", key, "It is sent as Authorization: Bearer … and stored nowhere: copy it now."),
        (None, Some(secret)) => (
            "The endpoint's secret",
            secret,
            "Its receiver checks signatures with it. It is not shown again: copy it now.",
        ),
        (None, None) => return None,
    };
    let page = Secret { bare: Bare::new(what), what, text: text.to_owned(), about, back: back.to_owned() };
    Some(frame::html(StatusCode::OK, &page))
}
