//! A server: bound, served, stopped.

use std::net::SocketAddr;

use tenure_store::{IntoStore, StoreError};
use tokio::net::TcpListener;

use crate::app::App;
use crate::options::Options;
use crate::{accept, api};

/// The API on a socket.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: App,
}

impl Server {
    /// Binds the socket; nobody is answered before [`run_until`](Self::run_until).
    pub async fn bind(store: impl IntoStore, options: Options) -> Result<Self, StoreError> {
        options.check()?;
        let refused = |error: std::io::Error| {
            StoreError::Unavailable(format!("{} cannot be listened on: {error}", options.listen), Some(Box::new(error)))
        };
        let listener = accept::listen(options.listen).map_err(refused)?;
        let address = listener.local_addr().map_err(StoreError::unavailable)?;
        Ok(Self { listener, address, app: App::new(store.into_store(), options) })
    }

    /// Where it listens, also when any port was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is ready; requests that are under way then have the grace period to end.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        let options = self.app.options.clone();
        let noting = self.app.keyring.note_uses(self.app.store.clone());
        let stopping = self.app.stopping.clone();
        let stop = async {
            stop.await;
            // Those who wait for work are answered at once.
            stopping.send_replace(true);
        };
        let serving = accept::serve(self.listener, api::router(self.app), &options, stop);
        tokio::select! {
            () = serving => {}
            never = noting => match never {},
        }
    }
}
