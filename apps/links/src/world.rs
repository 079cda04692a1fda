//! The simulated web: one forward proxy that plays every domain there is. What a domain does is told by its name, or by
//! whoever sets it; a domain that nobody knows has good pages.

mod manner;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use kit::traffic::Count;
use kit::{Site, Traffic, Valve};

use crate::bookmarks::write::Writer;

pub use manner::Manner;

/// The key of all calls.
const TOTAL: &str = "calls";

/// The web, open until it is dropped.
#[derive(Debug)]
pub struct World {
    site: Site,
    desk: Desk,
}

#[derive(Debug, Clone)]
struct Desk {
    manners: Arc<Mutex<BTreeMap<String, Manner>>>,
    total: Traffic,
    domains: Traffic,
    pages: Traffic,
    valve: Valve,
    hang: Valve,
}

impl World {
    /// Opens it on a free port.
    pub async fn open() -> std::io::Result<Self> {
        Self::open_at((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Opens it at an address.
    pub async fn open_at(address: SocketAddr) -> std::io::Result<Self> {
        let desk = Desk {
            manners: Arc::default(),
            total: Traffic::default(),
            domains: Traffic::default(),
            pages: Traffic::default(),
            valve: Valve::opened(),
            hang: Valve::shut(),
        };
        let router = Router::new().fallback(answer).with_state(desk.clone());
        Ok(Self { site: Site::open_at(address, router).await?, desk })
    }

    /// Where the proxy listens.
    pub fn proxy(&self) -> SocketAddr {
        self.site.address()
    }

    /// What a domain does from now on.
    pub fn set(&self, domain: &str, manner: Manner) {
        self.desk.manners.lock().unwrap_or_else(PoisonError::into_inner).insert(domain.to_owned(), manner);
    }

    /// Calls of all domains, under one key.
    pub fn total(&self) -> Count {
        self.desk.total.of(TOTAL)
    }

    /// Calls by domain, those for its robots.txt among them.
    pub fn domains(&self) -> &Traffic {
        &self.desk.domains
    }

    /// Calls for pages, by address.
    pub fn pages(&self) -> &Traffic {
        &self.desk.pages
    }

    /// Shut, no page is answered.
    pub fn valve(&self) -> &Valve {
        &self.desk.valve
    }

    /// Shut as it is, pages that hang are not answered.
    pub fn hang(&self) -> &Valve {
        &self.desk.hang
    }
}

/// An export with a link to each manner of site, and to `good` sites that are well.
pub fn bookmarks(good: u32) -> String {
    let mut file = Writer::new();
    let at = Some(1_700_000_000);
    file.open_folder("Bookmarks bar", true);
    for manner in Manner::ALL {
        file.link(&format!("http://{}/", manner.domain()), manner.says(), at, None);
    }
    file.open_folder("Reading & listening", false);
    for n in 0..good {
        file.link(&format!("http://site-{}.example/{n}?utm_source=mail#top", n % 7), &format!("Page {n}"), at, None);
    }
    file.close_folder();
    file.link("http://site-0.example/0", "The first of them, once more", at, None);
    file.link("javascript:alert(1)", "No link", at, None);
    file.close_folder();
    file.finish()
}

async fn answer(State(desk): State<Desk>, request: Request) -> Response {
    let uri = request.uri();
    // A proxy is asked for whole addresses.
    let Some(domain) = uri.host().map(str::to_owned) else {
        return (axum::http::StatusCode::BAD_REQUEST, "this is a proxy: ask it for a whole address").into_response();
    };
    let _visits = (desk.total.enter(TOTAL), desk.domains.enter(domain.as_str()));
    let named = desk.manners.lock().unwrap_or_else(PoisonError::into_inner).get(&domain).copied();
    let manner = named.unwrap_or_else(|| Manner::of(&domain));
    if uri.path() == "/robots.txt" {
        return manner.robots();
    }
    let address = uri.to_string();
    let _reader = desk.pages.enter(address.as_str());
    desk.valve.pass().await;
    if manner == Manner::Hanging {
        desk.hang.pass().await;
    }
    manner.page(&domain, uri.path(), desk.pages.of(&address).calls)
}
