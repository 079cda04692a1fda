//! Names of hosts become addresses here, and only here: what the guard refuses is never connected to.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tenure::webhooks::Guard;

/// Asks the system, then the guard.
pub(super) struct GuardedResolver(pub(super) Guard);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
            guard.check_addresses(&addresses)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
