//! `http`: one request with a timeout; the class of the answer decides what becomes of the job.
//!
//! 2xx is success, and status and body are kept as the result. 429 and 5xx, timeouts and lost connections are tried
//! again (a `Retry-After` in seconds is honoured, up to an hour); other 4xx and redirects are permanent. The receiver gets the job's id as
//! `Idempotency-Key`, and the fence, which grows with every attempt: it can refuse an older one.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_core::duration;
use tenure_worker::{Ctx, Fail, Job, Returned, State};

pub(super) const PAYLOAD: &str =
    r#"{"url": "https://…", "method": "POST", "headers": {}, "body": …, "timeout": "30s"}"#;

/// More of a body is not kept.
const BODY_BYTES_MAX: usize = 16 << 10;
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Http {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Text is sent as it is, anything else as JSON.
    #[serde(default)]
    body: Option<Value>,
    #[serde(default)]
    timeout: Option<String>,
}

impl Job for Http {
    const KIND: &'static str = "http";
}

/// One client for all jobs: connections are kept. Nothing is followed, so a job asks who it was told to ask.
pub(super) fn client() -> Result<Client, reqwest::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // Somebody else in this process may have chosen one before.
    let _ = Arc::unwrap_or_clone(provider).install_default();
    let name = concat!("tenure/", env!("CARGO_PKG_VERSION"));
    Client::builder().redirect(reqwest::redirect::Policy::none()).user_agent(name).build()
}

pub(super) async fn http(job: Http, State(client): State<Client>, ctx: Ctx) -> Result<Returned<Value>, Fail> {
    let timeout = match &job.timeout {
        Some(text) => duration::parse("timeout", text).map_err(Fail::permanent)?,
        None => TIMEOUT_DEFAULT,
    };
    let method = job.method.as_deref().unwrap_or(if job.body.is_some() { "POST" } else { "GET" });
    let method =
        Method::from_bytes(method.as_bytes()).map_err(|_| Fail::permanent(format!("{method:?} is no HTTP method")))?;
    let mut request = client.request(method, &job.url).timeout(timeout);
    request = request
        .header("Idempotency-Key", ctx.job_id().to_string())
        .header("Tenure-Job", ctx.job_id().to_string())
        .header("Tenure-Attempt", ctx.attempt().to_string())
        .header("Tenure-Fence", ctx.fence().to_string());
    for (name, value) in &job.headers {
        request = request.header(name, value);
    }
    request = match &job.body {
        Some(Value::String(text)) => request.body(text.clone()),
        Some(other) => request.header(header::CONTENT_TYPE, "application/json").body(other.to_string()),
        None => request,
    };
    tokio::select! {
        answer = request.send() => judge(answer.map_err(|error| unsent(&error))?, &ctx).await,
        _ = ctx.stopped() => ctx.check().map(|()| Returned(Value::Null)),
    }
}

async fn judge(mut response: Response, ctx: &Ctx) -> Result<Returned<Value>, Fail> {
    let (status, retry_after) = (response.status(), retry_after(&response));
    let mut body = Vec::new();
    while body.len() < BODY_BYTES_MAX {
        match response.chunk().await.map_err(|error| unsent(&error))? {
            Some(chunk) => body.extend_from_slice(&chunk[..chunk.len().min(BODY_BYTES_MAX - body.len())]),
            None => break,
        }
    }
    let body = String::from_utf8_lossy(&body).replace('\0', "\u{fffd}");
    if status.is_success() {
        return Ok(Returned(json!({ "status": status.as_u16(), "body": body })));
    }
    let first_line = body.lines().next().unwrap_or_default();
    let message = format!("{status}{}{first_line}", if first_line.is_empty() { "" } else { ": " });
    if status.is_redirection() {
        return Err(Fail::permanent(format!("{message}: redirects are not followed")));
    }
    let fail = Fail::http_status(status.as_u16(), message);
    Err(match retry_after {
        Some(delay) => {
            // Whoever asked for silence gets it from everybody.
            ctx.gate().hold(delay);
            fail.retry_in(delay)
        }
        None => fail,
    })
}

fn retry_after(response: &Response) -> Option<Duration> {
    if !matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// No answer. The URL's query may hold secrets, so it is not repeated.
fn unsent(error: &reqwest::Error) -> Fail {
    let mut text = error.to_string();
    if let Some(url) = error.url() {
        text = text.replace(url.as_str(), &url.origin().ascii_serialization());
    }
    let mut cause = error.source();
    while let Some(below) = cause {
        text = format!("{text}: {below}");
        cause = below.source();
    }
    match error {
        error if error.is_builder() => Fail::permanent(text),
        error if error.is_timeout() => Fail::timeout(text),
        _ => Fail::connection(text),
    }
}
