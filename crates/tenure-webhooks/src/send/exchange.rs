//! The request, and as much of its answer as is wanted.

use std::error::Error;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout_at;

use super::Call;
use super::error::{SendError, Stage};
use super::wire::{Metered, TooMuch};
use crate::guard::Target;
use crate::sent::Answer;

/// Headers that say how this connection is used, which nobody else decides.
const OURS: [HeaderName; 13] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::ACCEPT_ENCODING,
    header::USER_AGENT,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("keep-alive"),
];

/// Whether a header belongs to the connection or names a proxy. Only the sender sets these.
pub fn is_reserved(name: &HeaderName) -> bool {
    let is_forwarding = ["forwarded", "x-forwarded-", "x-real-ip", "proxy-", "via"];
    OURS.contains(name) || is_forwarding.iter().any(|start| name.as_str().starts_with(start))
}

/// The request as it goes out.
pub(super) fn request(
    target: &Target,
    method: Method,
    given: &[(HeaderName, HeaderValue)],
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    // Both were parsed as such when the URL was checked.
    *request.uri_mut() = target.path_and_query().parse().unwrap_or_default();
    let headers = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(target.authority()) {
        headers.insert(header::HOST, host);
    }
    for (name, value) in given.iter().filter(|(name, _)| !OURS.contains(name)) {
        headers.insert(name, value.clone());
    }
    let agent = concat!("tenure/", env!("CARGO_PKG_VERSION"));
    for (name, value) in
        [(header::USER_AGENT, agent), (header::ACCEPT_ENCODING, "identity"), (header::CONNECTION, "close")]
    {
        headers.insert(name, HeaderValue::from_static(value));
    }
    request
}

impl Call<'_> {
    /// Sends the request and reads the answer. The connection lives in this future and ends with it.
    pub(super) async fn exchange<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<Answer, SendError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let options = &self.inner.options;
        let stream = Metered::new(stream, options.wire_bytes_max());
        let count = stream.count();
        let (mut requests, connection) = http1::Builder::new()
            .max_buf_size(options.header_bytes_max)
            .max_header_size(options.header_bytes_max)
            .max_headers(options.headers_max)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.failed(&error, None))?;
        let mut connection = pin!(connection);
        let mut answer = pin!(async {
            let head = timeout_at(self.deadline, requests.send_request(request)).await;
            let head = head.map_err(|_| self.timed_out(Stage::Head, None))?;
            self.read(head.map_err(|error| self.failed(&error, None))?).await
        });
        let mut answered = tokio::select! {
            biased;
            answer = &mut answer => answer?,
            // It may end first, with the whole answer read: what is wrong with it the answer says too.
            _ = &mut connection => answer.await?,
        };
        answered.read_bytes = count.load(Ordering::Relaxed);
        Ok(answered)
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, SendError> {
        let max = self.inner.options.response_bytes_max;
        let (head, mut body) = response.into_parts();
        let status = head.status.as_u16();
        let mut start = Vec::new();
        let mut truncated = false;
        while !body.is_end_stream() {
            // Not one byte more than wanted is waited for: who drips after it cannot hold us.
            if start.len() >= max {
                truncated = true;
                break;
            }
            let frame = timeout_at(self.deadline, body.frame()).await;
            let Some(frame) = frame.map_err(|_| self.timed_out(Stage::Body, Some(status)))? else { break };
            let frame = frame.map_err(|error| self.failed(&error, Some(status)))?;
            if let Ok(data) = frame.into_data() {
                let wanted = data.len().min(max - start.len());
                truncated |= wanted < data.len();
                start.extend_from_slice(&data[..wanted]);
            }
        }
        let (headers, took) = (head.headers, Duration::ZERO);
        Ok(Answer { status, headers, body: start, truncated, read_bytes: 0, took })
    }

    /// What an error of the HTTP library means for the caller.
    fn failed(&self, error: &hyper::Error, status: Option<u16>) -> SendError {
        let why = chain(error);
        let too_much = causes(error).any(|cause| cause.downcast_ref().is_some_and(is_too_much));
        if status.is_some() || error.is_parse() || too_much {
            return SendError::Unreadable { host: self.host(), status, why };
        }
        self.unreachable(Stage::Head, &why)
    }
}

fn is_too_much(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TooMuch>())
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// An error and its causes in one line; a cause that only repeats is left out.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut told: Vec<String> = Vec::new();
    for cause in causes(error).map(ToString::to_string) {
        if !told.iter().any(|before| before.contains(&cause)) {
            told.push(cause);
        }
    }
    told.join(": ")
}
