//! The dashboard of the demo: on this machine, without keys, for as long as the demo lasts.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tenure_server::options::PORT;
use tenure_server::{Auth, Options, Server};
use tenure_store::Store;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The dashboard, served.
pub(super) struct Dashboard {
    pub(super) url: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Dashboard {
    /// Serves it on the usual port, or on any that is free when somebody has that one; `None` when there is none.
    pub(super) fn open(store: &Arc<dyn Store>) -> Option<Self> {
        let bind = |port| {
            let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            Server::bind(store, Options { listen, auth: Auth::Open, ..Options::default() })
        };
        let server = bind(PORT).or_else(|_| bind(0)).ok()?.with_pages(tenure_dashboard::router);
        let url = format!("http://{}", server.address());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(server.run_until(async move {
            let _ = stopped.await;
        }));
        Some(Self { url, stop, served })
    }

    /// Closes it, and waits for whoever is being answered.
    pub(super) async fn close(self) {
        // Nobody listens when it has ended by itself; either way it is over.
        let _ = self.stop.send(());
        let _ = self.served.await;
    }
}
