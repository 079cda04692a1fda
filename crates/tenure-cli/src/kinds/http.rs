//! `http`: one request with a timeout; the class of the answer decides the outcome of the job.
//!
//! The kind is off unless an operator lists the hosts that jobs may call (`http_allow`): a payload belongs to a tenant,
//! and the worker stands inside of a network. The guard of webhooks decides what is called: it judges the addresses that
//! are connected to, follows no redirect, and bounds time and bytes.
//!
//! 2xx is success, and status and body are kept as the result. 429 and 5xx, timeouts and lost connections are tried
//! again (a `Retry-After` is honoured, up to an hour); other 4xx, redirects and hosts that are not listed are permanent. The receiver
//! gets the job's id as `Idempotency-Key`, and the fence, which grows with every attempt: it can refuse an older one.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_core::{Invalid, duration};
use tenure_webhooks::send::{HeaderName, HeaderValue, Method};
use tenure_webhooks::{Answer, Guard, Outgoing, Refused, SendError, SendOptions, Sender, SystemResolver, is_reserved};
use tenure_worker::{Ctx, Fail, Job, Returned, State};

pub(super) const PAYLOAD: &str =
    r#"{"url": "https://…", "method": "POST", "headers": {}, "body": …, "timeout": "30s"}"#;

/// Bytes of an answer's body that are kept.
const BODY_BYTES_MAX: usize = 16 << 10;
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
const METHODS: [Method; 6] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD];
/// Headers of a payload, and the bytes of their names and values together.
const HEADERS_MAX: usize = 50;
const HEADER_BYTES_MAX: usize = 16 << 10;

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

/// The sender of all `http` jobs of a worker.
pub(super) fn sender(guard: Guard) -> Result<Sender, Invalid> {
    let options = SendOptions { timeout: TIMEOUT_MAX, response_bytes_max: BODY_BYTES_MAX, ..SendOptions::default() };
    Sender::new(guard, SystemResolver, options)
}

pub(super) async fn http(job: Http, State(sender): State<Sender>, ctx: Ctx) -> Result<Returned<Value>, Fail> {
    let target = sender.guard().check_url(&job.url).map_err(|refused_url| refused(&refused_url))?;
    let headers = headers(&job, &ctx)?;
    let body = match &job.body {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let outgoing = Outgoing { method: method(&job)?, headers: &headers, body: body.into(), timeout: timeout(&job)? };
    tokio::select! {
        answer = sender.request(&target, outgoing) => match answer {
            Ok(answer) => judge(&answer, &ctx),
            Err(error) => Err(unsent(error)),
        },
        _ = ctx.stopped() => ctx.check().map(|()| Returned(Value::Null)),
    }
}

fn timeout(job: &Http) -> Result<Duration, Fail> {
    let Some(text) = &job.timeout else { return Ok(TIMEOUT_DEFAULT) };
    match duration::parse("timeout", text).map_err(Fail::permanent)? {
        timeout if timeout.is_zero() || timeout > TIMEOUT_MAX => {
            Err(Fail::permanent(Invalid::new("timeout", text, "it is longer than 0s and 1h at most")))
        }
        timeout => Ok(timeout),
    }
}

fn method(job: &Http) -> Result<Method, Fail> {
    let name = job.method.as_deref().unwrap_or(if job.body.is_some() { "POST" } else { "GET" });
    METHODS.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let known: Vec<&str> = METHODS.iter().map(Method::as_str).collect();
        Fail::permanent(Invalid::new("method", name, format!("it is one of {}", known.join(", "))))
    })
}

/// The headers of the payload, checked, and those of the attempt.
fn headers(job: &Http, ctx: &Ctx) -> Result<Vec<(HeaderName, HeaderValue)>, Fail> {
    let bytes: usize = job.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if job.headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        let found = format!("{} of {bytes} bytes", job.headers.len());
        let limit = format!("at most {HEADERS_MAX} headers of {HEADER_BYTES_MAX} bytes together are sent");
        return Err(Fail::permanent(Invalid::new("headers", found, limit)));
    }
    let own = [
        ("idempotency-key", ctx.job_id().to_string()),
        ("tenure-job", ctx.job_id().to_string()),
        ("tenure-attempt", ctx.attempt().to_string()),
        ("tenure-fence", ctx.fence().to_string()),
    ];
    let mut headers = Vec::new();
    for (name, value) in own {
        let value = HeaderValue::try_from(value).map_err(Fail::permanent)?;
        headers.push((HeaderName::from_static(name), value));
    }
    if job.body.as_ref().is_some_and(|body| !body.is_string()) {
        headers.push((HeaderName::from_static("content-type"), HeaderValue::from_static("application/json")));
    }
    for (name, value) in &job.headers {
        let refuse = |limit: &str| Fail::permanent(Invalid::new("header", name.as_str(), limit));
        let header = HeaderName::try_from(name).map_err(|_| refuse("it is a name of an HTTP header"))?;
        if is_reserved(&header) || own_name(&header) {
            return Err(refuse("the worker sets the headers of the connection, of proxies and of the attempt itself"));
        }
        let value = HeaderValue::try_from(value).map_err(|_| refuse("its value is printable text in one line"))?;
        headers.push((header, value));
    }
    Ok(headers)
}

/// Headers that tell the receiver which attempt this is.
fn own_name(name: &HeaderName) -> bool {
    name.as_str() == "idempotency-key" || name.as_str().starts_with("tenure-")
}

fn judge(answer: &Answer, ctx: &Ctx) -> Result<Returned<Value>, Fail> {
    let status = answer.status;
    let body = String::from_utf8_lossy(&answer.body).replace('\0', "\u{fffd}");
    if (200..300).contains(&status) {
        return Ok(Returned(json!({ "status": status, "body": body })));
    }
    let first_line = body.lines().next().unwrap_or_default();
    let message = format!("{status}{}{first_line}", if first_line.is_empty() { "" } else { ": " });
    if (300..400).contains(&status) {
        return Err(Fail::permanent(format!("{message}: redirects are not followed")));
    }
    let fail = Fail::http_status(status, message);
    let retry_after = answer.retry_after(SystemTime::now()).filter(|_| matches!(status, 429 | 503));
    Err(match retry_after {
        Some(delay) => {
            // All jobs behind the same gate wait for as long as the receiver asks.
            ctx.gate().hold(delay);
            fail.retry_in(delay)
        }
        None => fail,
    })
}

fn refused(refused: &Refused) -> Fail {
    let hint = match refused {
        Refused::NotListed { .. } | Refused::Name { .. } | Refused::Address { .. } => ": http_allow lists them",
        _ => "",
    };
    Fail::permanent(format!("{refused}{hint}"))
}

/// A request without an answer. The texts name the host and never path, query or headers.
fn unsent(error: SendError) -> Fail {
    match error {
        SendError::TimedOut { .. } => Fail::timeout(error),
        _ => Fail::connection(error),
    }
}
