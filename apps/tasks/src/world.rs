//! The simulated outside: a library of documents, and the API that is told how tasks end. One site, with the faults that a
//! test or a story asks for.

pub mod api;
pub mod library;

use std::net::SocketAddr;

use axum::Router;
use kit::Site;
use tenure::webhooks::Secret;

pub use api::Api;
pub use library::Library;

/// The outside, open until it is dropped.
#[derive(Debug)]
pub struct World {
    site: Site,
    /// What tasks fetch.
    pub library: Library,
    /// Who is told.
    pub api: Api,
}

impl World {
    /// Opens it on a free port. The API believes what is signed with this secret.
    pub async fn open(secret: &Secret) -> std::io::Result<Self> {
        Self::open_at(([127, 0, 0, 1], 0).into(), secret).await
    }

    /// Opens it at an address.
    pub async fn open_at(address: SocketAddr, secret: &Secret) -> std::io::Result<Self> {
        let (library, api) = (Library::default(), Api::new(secret.clone()));
        let router = Router::new().merge(library.router()).merge(api.router());
        Ok(Self { site: Site::open_at(address, router).await?, library, api })
    }

    /// Where a document is.
    pub fn document(&self, name: &str) -> String {
        format!("{}/documents/{name}", self.site.url())
    }

    /// Where the API is told.
    pub fn callback(&self) -> String {
        format!("{}/callbacks", self.site.url())
    }
}
