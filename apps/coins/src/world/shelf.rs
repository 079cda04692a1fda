//! [`Shelf`]: what a source has, how it tells it, and what goes wrong next.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;

use crate::intake::Intake;
use crate::source::Shape;

/// Listings on one page of an auction house or a market place.
const PAGE: usize = 4;

/// Listings and faults to come.
#[derive(Debug, Default)]
pub struct Shelf {
    listings: Mutex<Vec<Listing>>,
    faults: Mutex<VecDeque<Fault>>,
    delay: Mutex<Duration>,
}

/// One listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// How it is told.
    pub shape: Shape,
    /// The year it is found by.
    pub year: u16,
    /// Its name, where it has one.
    pub id: Option<String>,
    /// What it is called.
    pub title: String,
    /// Its price.
    pub cents: i64,
    /// The day of it.
    pub day: &'static str,
    /// Where it is.
    pub url: String,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This status and nothing else.
    Status(u16),
    /// Too many calls: come again after so many seconds.
    TooMany {
        /// The `Retry-After`.
        seconds: u32,
    },
    /// A page for people.
    Nonsense,
    /// A page of two megabytes.
    Endless,
}

impl Listing {
    /// What a source of this shape has about these coins: fair prices that differ, one listing twice with another query
    /// behind its URL, one about a coin like it, and one absurd price.
    pub fn about(shape: Shape, coins: &[Intake]) -> Vec<Self> {
        coins.iter().zip(0_i64..).flat_map(|(coin, number)| Self::about_one(shape, coin, number)).collect()
    }

    /// The fair price of the coin with this number, in cents.
    pub const fn fair_cents(number: i64) -> i64 {
        15_000 + 1_700 * number
    }

    fn about_one(shape: Shape, coin: &Intake, number: i64) -> Vec<Self> {
        let fair = Self::fair_cents(number);
        let mark = if coin.mintmark.is_empty() { String::new() } else { format!("-{}", coin.mintmark) };
        let name = format!("{}{mark} {} {}", coin.year, coin.series, coin.denomination);
        let listing = |at: usize, title: &str, cents: i64| {
            let lot = format!("{shape:?}-{}-{at}", coin.id).to_lowercase();
            Self {
                shape,
                year: coin.year,
                id: matches!(shape, Shape::Auction).then(|| lot.clone()),
                title: title.to_owned(),
                cents,
                day: ["2026-10-30", "2026-11-02", "2026-11-05"][at % 3],
                url: format!("https://{}.example/i/{lot}", shape.as_str()),
            }
        };
        let percent = |cents: i64, percent: i64| cents * percent / 100;
        match shape {
            Shape::Auction => vec![
                listing(0, &name, percent(fair, 98)),
                listing(1, &format!("{name} MS63"), fair),
                listing(2, &name, percent(fair, 103)),
                listing(3, &name, percent(fair, 97)),
                listing(4, &format!("{} {} toned", coin.year, coin.series), percent(fair, 130)),
                listing(5, &format!("LOT of ten: {name}"), fair * 10),
            ],
            Shape::Market => {
                let once = listing(0, &name, percent(fair, 112));
                let again = Self { url: format!("{}?utm_source=feed", once.url), ..once.clone() };
                let shouted = Self { title: once.title.to_uppercase(), ..once.clone() };
                let rest = [
                    listing(1, &name, percent(fair, 109)),
                    listing(2, &format!("{name} rare!!"), fair * 40),
                    listing(3, "Some other coin", percent(fair, 20)),
                ];
                [once, again, shouted].into_iter().chain(rest).collect()
            }
            Shape::Pricelist => vec![listing(0, &name, percent(fair, 90)), listing(1, &name, percent(fair, 92))],
        }
    }
}

impl Shelf {
    /// A shelf with these.
    pub fn new(listings: Vec<Listing>) -> Self {
        Self { listings: Mutex::new(listings), ..Self::default() }
    }

    /// What goes wrong with the next calls, one each.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        locked(&self.faults).extend(faults);
    }

    /// Changes what is there.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Listing>)) {
        change(&mut locked(&self.listings));
    }

    /// Lets each answer take so long.
    pub fn slow_down(&self, by: Duration) {
        *locked(&self.delay) = by;
    }

    pub(super) fn delay(&self) -> Duration {
        *locked(&self.delay)
    }

    pub(super) fn shape(&self) -> Shape {
        locked(&self.listings).first().map_or(Shape::Auction, |listing| listing.shape)
    }

    pub(super) fn next_fault(&self) -> Option<Fault> {
        locked(&self.faults).pop_front()
    }

    /// A page about a year, with its content type. An auction house counts pages; a market place's cursor is the number of
    /// the first offer on it.
    pub(super) fn page(&self, shape: Shape, year: u16, page: u32) -> (&'static str, String) {
        let listings = locked(&self.listings);
        let all: Vec<&Listing> = listings.iter().filter(|listing| listing.year == year).collect();
        let pages = u32::try_from(all.len().div_ceil(PAGE)).unwrap_or(u32::MAX).max(1);
        let before = page.saturating_sub(1) as usize;
        let begin = match shape {
            Shape::Market => before,
            Shape::Auction | Shape::Pricelist => before.saturating_mul(PAGE),
        };
        let begin = begin.min(all.len());
        let end = all.len().min(begin + PAGE);
        let here = &all[begin..end];
        match shape {
            Shape::Auction => {
                let lots: Vec<_> = here.iter().map(|listing| listing.lot()).collect();
                ("application/json", json!({ "page": page, "pages": pages, "lots": lots }).to_string())
            }
            Shape::Market => {
                let offers: Vec<_> = here.iter().map(|listing| listing.offer()).collect();
                let next = (end < all.len()).then_some(end + 1);
                ("application/json", json!({ "results": { "offers": offers }, "next": next }).to_string())
            }
            Shape::Pricelist => {
                let mut list = String::from("coin;bid;currency;date\n");
                for listing in all {
                    let Listing { title, cents, day, .. } = listing;
                    // Writing to a text cannot fail.
                    let _written = writeln!(list, "{title};{},{:02};USD;{day}", cents / 100, cents % 100);
                }
                ("text/csv", list)
            }
        }
    }
}

impl Listing {
    fn lot(&self) -> serde_json::Value {
        let Self { id, title, cents, day, url, .. } = self;
        let hammer = format!("{}.{:02}", cents / 100, cents % 100);
        let closed = format!("{day}T18:30:00Z");
        json!({ "lot": id, "title": title, "hammer": hammer, "currency": "USD", "closed": closed, "href": url })
    }

    fn offer(&self) -> serde_json::Value {
        let Self { id, title, cents, day, url, .. } = self;
        let price = json!({ "minor": cents, "currency": "USD" });
        json!({ "item_id": id, "name": title, "price": price, "listed": day, "link": url })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
