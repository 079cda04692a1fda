//! One request to one receiver, within a deadline and a number of bytes.
//!
//! Each call is a connection of its own: nothing is pooled, no proxy is asked, no redirect is followed, no session is
//! resumed, so what one endpoint did has no bearing on the next. The order is the point:
//!
//! ```text
//!   resolve ──► judge all addresses ──► connect to one ──► judge the peer ──► TLS ──► request ──► head ──► body
//!   └──────────────────────────────── one deadline, the body included ──────────────────────────────────────┘
//! ```
//!
//! The addresses that were judged are the ones connected to: the name is not looked up a second time. The peer is asked
//! of the socket before the first byte, because a kernel may connect elsewhere than it was told (`0.0.0.0` is loopback).
//! Of the answer at most `response_bytes_max` of the body are read, as they come: nothing is decompressed. A receiver
//! that floods us before that (endless interim answers, one-byte chunks) meets an allowance for the whole connection.

mod error;
mod exchange;
mod tls;
mod wire;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
pub use hyper::Method;
use hyper::header;
pub use hyper::header::{HeaderName, HeaderValue};
use tenure_core::{Invalid, duration};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::Host;

use crate::guard::{Guard, Target};
use crate::resolve::Resolve;
use crate::sent::{Answer, Sent};

pub use error::{SendError, Stage};
pub use exchange::is_reserved;
pub use tls::Roots;

/// Most addresses of a name that are tried, one after the other.
const ADDRESSES_MAX: usize = 8;
/// Longest deadline of all.
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// Most headers that can be allowed; each takes memory before it comes.
const HEADERS_MAX: usize = 1_000;
/// Smallest allowance for a head; the HTTP library reads no less at once.
const HEADER_BYTES_MIN: usize = 8_192;

/// Limits of one request.
#[derive(Debug, Clone)]
pub struct SendOptions {
    /// For everything, from the lookup to the last byte of the body that is read.
    pub timeout: Duration,
    /// For each address that is tried.
    pub connect_timeout: Duration,
    /// How much of the answer's body is read.
    pub response_bytes_max: usize,
    /// Largest head of an answer, 8 KiB at least.
    pub header_bytes_max: usize,
    /// Most headers of an answer.
    pub headers_max: usize,
    /// Whose certificates are trusted.
    pub roots: Roots,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            response_bytes_max: 16 << 10,
            header_bytes_max: 32 << 10,
            headers_max: 100,
            roots: Roots::System,
        }
    }
}

impl SendOptions {
    fn check(&self) -> Result<(), Invalid> {
        for (field, wait) in [("timeout", self.timeout), ("connect_timeout", self.connect_timeout)] {
            if wait.is_zero() || wait > TIMEOUT_MAX {
                return Err(Invalid::new(
                    field,
                    duration::format(wait),
                    "it is longer than nothing and an hour at most",
                ));
            }
        }
        if !(1..=HEADERS_MAX).contains(&self.headers_max) {
            return Err(Invalid::new("headers_max", self.headers_max, format!("it is 1 to {HEADERS_MAX}")));
        }
        if self.header_bytes_max < HEADER_BYTES_MIN {
            let limit = format!("it is at least {HEADER_BYTES_MIN} bytes");
            return Err(Invalid::new("header_bytes_max", self.header_bytes_max, limit));
        }
        Ok(())
    }

    /// Most bytes read from one connection, whatever they are: the head and what was read ahead of it, and the body with
    /// the framing of small chunks.
    fn wire_bytes_max(&self) -> usize {
        self.header_bytes_max.saturating_mul(2).saturating_add(self.response_bytes_max.saturating_mul(8))
    }
}

/// Sends webhooks. Clones share everything.
#[derive(Clone)]
pub struct Sender(Arc<Inner>);

struct Inner {
    guard: Guard,
    resolver: Box<dyn Resolve>,
    options: SendOptions,
    /// None where no certificate is trusted.
    tls: Option<TlsConnector>,
}

impl Sender {
    /// Refuses options that make no sense; reads the system's certificates.
    pub fn new(guard: Guard, resolver: impl Resolve + 'static, options: SendOptions) -> Result<Self, Invalid> {
        options.check()?;
        let tls = tls::connector(&options.roots)?;
        Ok(Self(Arc::new(Inner { guard, resolver: Box::new(resolver), options, tls })))
    }

    /// The guard that endpoints are checked by when they are registered.
    pub fn guard(&self) -> &Guard {
        &self.0.guard
    }

    /// Posts `body` with these headers, and answers what the receiver said, whatever its status.
    ///
    /// `content-type` is JSON unless given. Headers that belong to the connection (`host`, `content-length`, `connection`
    /// and their like) are ours: given ones are ignored. Dropping the future closes the connection.
    pub async fn send(
        &self,
        target: &Target,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Sent, SendError> {
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let headers: Vec<_> = std::iter::once(json).chain(headers.iter().cloned()).collect();
        let timeout = self.0.options.timeout;
        let answer = self.request(target, Outgoing { method: Method::POST, headers: &headers, body, timeout }).await?;
        Ok(Sent::new(&answer, SystemTime::now()))
    }

    /// Sends any request, within its own timeout or the sender's, whichever is shorter. The rules of [`send`](Self::send)
    /// hold: one connection, judged addresses, no redirect, a bounded answer, and our own headers for the connection.
    pub async fn request(&self, target: &Target, outgoing: Outgoing<'_>) -> Result<Answer, SendError> {
        let begun = Instant::now();
        let timeout = outgoing.timeout.min(self.0.options.timeout);
        let call = Call { inner: &self.0, target, deadline: begun + timeout };
        let request = exchange::request(target, outgoing.method, outgoing.headers, outgoing.body);
        let stream = call.connect().await?;
        let mut answer = if target.is_https() {
            call.exchange(call.encrypt(stream).await?, request).await?
        } else {
            call.exchange(stream, request).await?
        };
        answer.took = begun.elapsed();
        Ok(answer)
    }
}

/// A request of any method.
pub struct Outgoing<'a> {
    /// Its method.
    pub method: Method,
    /// Its headers; [reserved](is_reserved) ones are ignored.
    pub headers: &'a [(HeaderName, HeaderValue)],
    /// Its body, perhaps empty.
    pub body: Bytes,
    /// For everything, from the lookup to the last byte of the answer that is read.
    pub timeout: Duration,
}

/// One call: what its steps share.
struct Call<'a> {
    inner: &'a Inner,
    target: &'a Target,
    deadline: Instant,
}

impl Call<'_> {
    /// A connection to an address that was judged, and whose peer was.
    async fn connect(&self) -> Result<TcpStream, SendError> {
        let addresses = self.addresses().await?;
        let mut last = self.unreachable(Stage::Resolve, &"it has no address");
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            let until = self.deadline.min(Instant::now() + self.inner.options.connect_timeout);
            match timeout_at(until, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let peer = stream.peer_addr().map_err(|error| self.unreachable(Stage::Connect, &error))?;
                    self.judge(&[peer.ip()])?;
                    return Ok(stream);
                }
                Ok(Err(error)) => last = self.unreachable(Stage::Connect, &error),
                Err(_) => last = self.timed_out(Stage::Connect, None),
            }
            if Instant::now() >= self.deadline {
                break;
            }
        }
        Err(last)
    }

    /// Where to connect: all of them judged, mapped ones unwrapped, the port our own.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, SendError> {
        let refused = |why| SendError::Refused { host: self.host(), why };
        self.inner.guard.check_target(self.target).map_err(refused)?;
        let found: Vec<IpAddr> = match self.target.host() {
            Host::Ipv4(address) => vec![(*address).into()],
            Host::Ipv6(address) => vec![(*address).into()],
            Host::Domain(name) => {
                let lookup = timeout_at(self.deadline, self.inner.resolver.addresses(name, self.target.port())).await;
                let found = lookup.map_err(|_| self.timed_out(Stage::Resolve, None))?;
                let found = found.map_err(|error| self.unreachable(Stage::Resolve, &error))?;
                found.into_iter().map(|address| address.ip()).collect()
            }
        };
        self.judge(&found)?;
        Ok(found.into_iter().map(|address| SocketAddr::new(address.to_canonical(), self.target.port())).collect())
    }

    fn judge(&self, addresses: &[IpAddr]) -> Result<(), SendError> {
        let refused = |why| SendError::Refused { host: self.host(), why };
        self.inner.guard.check_addresses(addresses).map_err(refused)
    }

    fn host(&self) -> String {
        self.target.host().to_string()
    }

    fn unreachable(&self, stage: Stage, why: &dyn ToString) -> SendError {
        SendError::Unreachable { host: self.host(), stage, why: why.to_string() }
    }

    fn timed_out(&self, stage: Stage, status: Option<u16>) -> SendError {
        SendError::TimedOut { host: self.host(), stage, status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::SystemResolver;

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let fine = || SendOptions { roots: Roots::Only(Vec::new()), ..SendOptions::default() };
        assert!(Sender::new(Guard::default(), SystemResolver, fine()).is_ok());
        for (options, field) in [
            (SendOptions { timeout: Duration::ZERO, ..fine() }, "timeout"),
            (SendOptions { timeout: Duration::MAX, ..fine() }, "timeout"),
            (SendOptions { connect_timeout: Duration::ZERO, ..fine() }, "connect_timeout"),
            (SendOptions { header_bytes_max: 8_191, ..fine() }, "header_bytes_max"),
            (SendOptions { headers_max: 0, ..fine() }, "headers_max"),
            (SendOptions { headers_max: usize::MAX, ..fine() }, "headers_max"),
        ] {
            let Err(refused) = Sender::new(Guard::default(), SystemResolver, options) else {
                panic!("{field} was taken")
            };
            assert_eq!(refused.field, field);
        }
    }
}
