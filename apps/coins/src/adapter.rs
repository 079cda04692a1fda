//! From a source's answer to what all sources have in common: one file for each shape.
//!
//! An adapter knows two things: which page to ask for, and how to read what comes. It calls nobody, so it can be wrong
//! about nothing but texts. A listing that makes no sense is left out and counted; a page that makes none is refused.

mod auction;
mod market;
mod money;
mod pricelist;

use serde::de::DeserializeOwned;
use tenure::Fail;
use tenure::core::failure::cut;

use crate::intake::Intake;
use crate::point::Found;
use crate::source::Shape;

/// Most pages that are asked for about one coin.
pub const PAGES_MAX: u32 = 20;
/// Most listings of one page.
pub const LISTINGS_MAX: usize = 1_000;
/// How much of a reason is told.
const WHY_BYTES_MAX: usize = 200;

/// One page of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// What it lists.
    pub found: Vec<Found>,
    /// Listings that were left out because they make no sense.
    pub skipped: u32,
    /// What is wrong with the first of them.
    pub why: Option<String>,
    /// What to ask for to see the page behind it, if there is one.
    pub next: Option<u32>,
}

impl Shape {
    /// The path and query of a page about this coin: 1, then what the page before said.
    pub fn path(self, intake: &Intake, page: u32) -> String {
        let query = |first: &str, page_is: &str| {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair(first, &format!("{} {}", intake.series, intake.denomination).trim().to_lowercase());
            query.append_pair("year", &intake.year.to_string()).append_pair("mint", &intake.mintmark);
            query.append_pair(page_is, &page.to_string()).finish()
        };
        match self {
            Self::Auction => format!("/lots?{}", query("search", "page")),
            Self::Market => format!("/api/offers?{}", query("q", "cursor")),
            Self::Pricelist => format!("/bids.csv?{}", query("coin", "page")),
        }
    }

    /// Reads a page. What makes no sense now will make none later: permanent.
    pub fn read(self, body: &[u8]) -> Result<Batch, Fail> {
        let batch = match self {
            Self::Auction => auction::read(body),
            Self::Market => market::read(body),
            Self::Pricelist => pricelist::read(body),
        };
        let batch = batch.map_err(|why| self.makes_no_sense(&why))?;
        let listed = batch.found.len() + batch.skipped as usize;
        if listed > LISTINGS_MAX {
            return Err(Fail::permanent(format!("{listed} listings in one page: at most {LISTINGS_MAX} are taken")));
        }
        Ok(batch)
    }

    /// The end of an attempt that learned nothing from an answer.
    pub fn makes_no_sense(self, why: &str) -> Fail {
        Fail::permanent(format!("the {} makes no sense: {}", self.as_str(), cut(why, WHY_BYTES_MAX)))
    }
}

impl Batch {
    /// Takes the listings that can be stored and counts the rest; each is numbered as people find it in the page.
    fn of(listings: impl Iterator<Item = (usize, Result<Found, String>)>, next: Option<u32>) -> Self {
        let mut batch = Self { next, ..Self::default() };
        for (number, listing) in listings {
            let checked = listing.and_then(|found| match found.check() {
                Ok(()) => Ok(found),
                Err(invalid) => Err(invalid.to_string()),
            });
            match checked {
                Ok(found) => batch.found.push(found),
                Err(why) => {
                    batch.skipped += 1;
                    batch.why.get_or_insert_with(|| cut(&format!("number {number}: {why}"), WHY_BYTES_MAX));
                }
            }
        }
        batch
    }
}

/// Reads each value of a list by itself, so that one that is different spoils no other.
fn each<T: DeserializeOwned>(
    values: Vec<serde_json::Value>,
    read: impl Fn(T) -> Result<Found, String>,
) -> impl Iterator<Item = (usize, Result<Found, String>)> {
    let one = move |value| serde_json::from_value(value).map_err(|error| error.to_string()).and_then(&read);
    (1..).zip(values.into_iter().map(one))
}
