//! What can be set about a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::Invalid;
use tenure_store::Waker;
use tenure_webhooks::Endpoints;

/// The port where nobody says otherwise.
pub const PORT: u16 = 7400;

/// What a server needs to know. Everything has a default.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether callers need keys.
    pub auth: Auth,
    /// Connections at once. Further ones take the places of idle ones, or wait.
    pub connections_max: usize,
    /// How long a connection may take to send the head of a request, also the next one, and to read on in an answer.
    pub head_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// How long a body larger than 64 KiB, or of unknown length, may take for its next 64 KiB.
    pub body_stall: Duration,
    /// Largest body, in bytes.
    pub body_bytes_max: usize,
    /// Bodies in memory at once, in bytes, over all connections; small ones have a quarter of it beside. One tenant,
    /// operator's key, or address without a key holds a quarter at most.
    pub bodies_bytes_max: usize,
    /// How long requests may take to end when the server stops.
    pub grace: Duration,
    /// How often a claim that waits looks when nobody wakes it.
    pub poll_every: Duration,
    /// Who wakes claims that wait, besides the store, and is told of new jobs.
    pub waker: Option<Arc<dyn Waker>>,
    /// Whether the server is ready only while the waker is there.
    pub waker_required: bool,
    /// How webhook endpoints are made: where they may lead, and what seals their secrets.
    pub webhooks: Endpoints,
}

/// Whether callers need keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// Every request has a key.
    Keys,
    /// Everybody may do everything: for development, on loopback only.
    Open,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            auth: Auth::Keys,
            connections_max: 10_000,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(20),
            body_stall: Duration::from_secs(5),
            body_bytes_max: 8 << 20,
            bodies_bytes_max: 256 << 20,
            grace: Duration::from_secs(10),
            poll_every: Duration::from_secs(1),
            waker: None,
            waker_required: false,
            webhooks: Endpoints::default(),
        }
    }
}

impl Options {
    /// Refuses to be open to others than this machine.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.auth == Auth::Open && !self.listen.ip().is_loopback() {
            let limit = "without keys it listens on this machine only: 127.0.0.1 or [::1]; make a key with `tenure keys create`";
            return Err(Invalid::new("listen", self.listen, limit));
        }
        if self.body_bytes_max == 0 || self.bodies_bytes_max < self.body_bytes_max {
            let limit = "it is more than nothing, and not more than all bodies together";
            return Err(Invalid::new("body_bytes_max", self.body_bytes_max, limit));
        }
        if self.waker_required && self.waker.is_none() {
            return Err(Invalid::new("waker_required", true, "there is no waker to wait for"));
        }
        Ok(())
    }
}
