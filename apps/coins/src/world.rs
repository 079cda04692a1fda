//! The simulated outside: an auction house, a market place and a dealer, each a web site with a shelf of listings and with
//! faults that come when they are told to.

mod shelf;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use kit::{BoxError, Site, Traffic, Valve};
use serde::Deserialize;

use crate::intake::Intake;
use crate::source::{Shape, Source};

pub use shelf::{Fault, Listing, Shelf};

/// The coins that the simulated sources have something about, and nobody else.
pub fn coins() -> Vec<Intake> {
    let coin = |(number, year, mintmark): (u8, u16, &str)| Intake {
        id: format!("c{number}"),
        year,
        mintmark: mintmark.to_owned(),
        denomination: "dollar".to_owned(),
        series: "Morgan".to_owned(),
        title: format!("{year}-{mintmark} Morgan"),
    };
    [(1, 1921, "D"), (2, 1889, "CC"), (3, 1895, "S"), (4, 1902, "O")].map(coin).into()
}

/// The first of them: 1921-D.
pub fn morgan() -> Intake {
    coins().swap_remove(0)
}

/// The three sources.
pub struct World {
    /// What was sold.
    pub auction: Feed,
    /// What is asked.
    pub market: Feed,
    /// What is bid.
    pub pricelist: Feed,
}

/// One source: its site, and what it has.
pub struct Feed {
    /// Where it is, for as long as it is open.
    pub site: Site,
    /// What it has, and what goes wrong next.
    pub shelf: Arc<Shelf>,
    /// Its calls, all under one key.
    pub traffic: Traffic,
    /// Shut, nobody is answered.
    pub valve: Valve,
}

#[derive(Clone)]
struct Desk {
    shape: Shape,
    shelf: Arc<Shelf>,
    traffic: Traffic,
    valve: Valve,
}

impl World {
    /// Opens all three, with listings about these coins.
    pub async fn open(coins: &[Intake]) -> Result<Self, BoxError> {
        let open = async |shape| Feed::open(shape, Listing::about(shape, coins)).await;
        Ok(Self {
            auction: open(Shape::Auction).await?,
            market: open(Shape::Market).await?,
            pricelist: open(Shape::Pricelist).await?,
        })
    }

    /// Lets each answer of theirs take so long.
    pub fn slow_down(&self, by: Duration) {
        self.feeds().iter().for_each(|(_, feed)| feed.shelf.slow_down(by));
    }

    /// All three, by name.
    pub fn feeds(&self) -> [(&'static str, &Feed); 3] {
        [("bazaar", &self.market), ("dealer", &self.pricelist), ("hammer", &self.auction)]
    }

    /// All three as sources, with this limit.
    pub fn sources(&self, rate_limit_per_minute: u32) -> Vec<Source> {
        let source = |(id, feed): (&str, &Feed)| feed.source(id, rate_limit_per_minute);
        self.feeds().into_iter().map(source).collect()
    }
}

impl Feed {
    /// The only key of its traffic.
    pub const CALLS: &str = "calls";

    /// Opens one on a free port.
    pub async fn open(shape: Shape, listings: Vec<Listing>) -> Result<Self, BoxError> {
        let (shelf, traffic, valve) = (Arc::new(Shelf::new(listings)), Traffic::default(), Valve::opened());
        let desk = Desk { shape, shelf: Arc::clone(&shelf), traffic: traffic.clone(), valve: valve.clone() };
        let site = Site::open(Router::new().fallback(answer).with_state(desk)).await?;
        Ok(Self { site, shelf, traffic, valve })
    }

    /// How often it was called.
    pub fn calls(&self) -> u64 {
        self.traffic.calls()
    }

    /// It as a source.
    pub fn source(&self, id: &str, rate_limit_per_minute: u32) -> Source {
        let shape = self.shelf.shape();
        Source { id: id.to_owned(), shape, base_url: self.site.url(), enabled: true, rate_limit_per_minute }
    }
}

/// What every call says.
#[derive(Deserialize)]
struct Asked {
    year: u16,
    #[serde(default = "first", alias = "cursor")]
    page: u32,
}

/// More than anybody reads.
const ENDLESS_BYTES: usize = 2 << 20;

const fn first() -> u32 {
    1
}

async fn answer(State(desk): State<Desk>, Query(asked): Query<Asked>) -> (StatusCode, HeaderMap, String) {
    let _visit = desk.traffic.enter(Feed::CALLS);
    desk.valve.pass().await;
    tokio::time::sleep(desk.shelf.delay()).await;
    let mut headers = HeaderMap::new();
    let status = match desk.shelf.next_fault() {
        Some(Fault::Status(status)) => StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        Some(Fault::TooMany { seconds }) => {
            headers.insert(RETRY_AFTER, seconds.into());
            StatusCode::TOO_MANY_REQUESTS
        }
        Some(Fault::Nonsense) => return (StatusCode::OK, headers, "<html>welcome</html>".to_owned()),
        Some(Fault::Endless) => return (StatusCode::OK, headers, " ".repeat(ENDLESS_BYTES)),
        None => {
            let (kind, body) = desk.shelf.page(desk.shape, asked.year, asked.page);
            headers.insert(CONTENT_TYPE, axum::http::HeaderValue::from_static(kind));
            return (StatusCode::OK, headers, body);
        }
    };
    (status, headers, String::new())
}
