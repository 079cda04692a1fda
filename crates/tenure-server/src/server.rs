//! A server: bound, served, stopped.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use tenure_core::Invalid;
use tenure_store::IntoStore;
use tokio::net::TcpListener;

use crate::app::App;
use crate::options::Options;
use crate::{accept, api};

/// The API on a socket.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: App,
    pages: Option<Router>,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// What it is to be cannot be.
    #[error(transparent)]
    Options(Invalid),
    /// The address is somebody else's, or not this machine's.
    #[error("{0} cannot be listened on")]
    Address(SocketAddr, #[source] io::Error),
}

impl Server {
    /// Binds the socket, inside a runtime; nobody is answered before [`run_until`](Self::run_until).
    pub fn bind(store: impl IntoStore, options: Options) -> Result<Self, BindError> {
        options.check().map_err(BindError::Options)?;
        let refused = |error| BindError::Address(options.listen, error);
        let listener = accept::listen(options.listen).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address, app: App::new(store.into_store(), options), pages: None })
    }

    /// Serves these pages beside the API, wherever it has no path.
    #[must_use]
    pub fn with_pages(mut self, pages: impl FnOnce(App) -> Router) -> Self {
        self.pages = Some(pages(self.app.clone()));
        self
    }

    /// Where it listens, also when any port was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is ready; requests that are under way then have the grace period to end.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        let (options, store, keyring) = (self.app.options.clone(), self.app.store.clone(), self.app.keyring.clone());
        let noting = keyring.note_uses(store.clone());
        let stopping = self.app.stopping.clone();
        let stop = async {
            stop.await;
            // Those who wait for work are answered at once.
            stopping.send_replace(true);
        };
        let serving = accept::serve(self.listener, api::router(&self.app, self.pages), &options, stop);
        tokio::select! {
            () = serving => {}
            never = noting => match never {},
        }
        keyring.note(&*store).await;
    }
}
