//! [`Site`]: a web site of the simulated world, on a port of this machine.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::middleware::map_response;
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A site that answers until it is dropped.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Site {
    /// Opens it on a free port.
    pub async fn open(router: Router) -> std::io::Result<Self> {
        Self::open_at((Ipv4Addr::LOCALHOST, 0).into(), router).await
    }

    /// Opens it at an address: for a site that goes away and comes back.
    pub async fn open_at(address: SocketAddr, router: Router) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        // One call, one connection: a site that is closed is gone for those who had called it before, too.
        let router = router.layer(map_response(say_goodbye));
        let serving = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(error = %error, "a site of the simulated world is gone");
            }
        });
        Ok(Self { address, serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Takes it down and waits until its port is free; who calls it from now on is refused.
    pub async fn close(mut self) {
        self.serving.abort();
        // Canceled, as it was just told to be.
        let _over = (&mut self.serving).await;
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn say_goodbye(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
