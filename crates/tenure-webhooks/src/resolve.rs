//! From a name to addresses.
//!
//! A trait, so that a test can change its answers, and an operator can ask a resolver of their own. What it says is never
//! trusted: every address is judged by the guard, and the port is the one of the URL.

use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;

/// Finds the addresses of a name.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of `host`, in the order to try them. None, or an error, is a failed delivery.
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The operating system's resolver. It has no deadline of its own: a lookup that is given up goes on in a thread of the
/// runtime's pool until the system gives up too.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}
