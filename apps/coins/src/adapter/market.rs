//! A market place: what sellers ask, as nested JSON with prices in cents. Sellers may leave out the name of their offer,
//! and the same offer comes again with other parameters behind its URL.
//!
//! ```json
//! {"results": {"offers": [{"item_id": null, "name": "Morgan Dollar 1921-D", "price": {"minor": 21000, "currency": "USD"},
//!   "listed": "2026-11-02", "link": "https://bazaar.example/i/9?utm_source=feed"}]}, "next": 5}
//! ```
//!
//! `next` is the cursor that the page behind is asked for by; what its number means is the market's own affair.

use serde::Deserialize;

use super::{Batch, each};
use crate::point::{Found, PriceKind};

#[derive(Deserialize)]
struct Page {
    results: Results,
    next: Option<u32>,
}

#[derive(Deserialize)]
struct Results {
    offers: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Offer {
    item_id: Option<String>,
    name: String,
    price: Price,
    listed: String,
    link: String,
}

#[derive(Deserialize)]
struct Price {
    minor: i64,
    currency: String,
}

pub(super) fn read(body: &[u8]) -> Result<Batch, String> {
    let page: Page = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(Batch::of(each(page.results.offers, asked), page.next))
}

fn asked(offer: Offer) -> Result<Found, String> {
    Ok(Found {
        external_id: offer.item_id.filter(|id| !id.trim().is_empty()),
        url: offer.link,
        title: offer.name,
        cents: offer.price.minor,
        currency: offer.price.currency,
        day: offer.listed,
        kind: PriceKind::Ask,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_as_asked() {
        let body = br#"{"results": {"offers": [{"item_id": " ", "name": "Morgan", "price": {"minor": 21000,
            "currency": "USD"}, "listed": "2026-11-02", "link": "https://b.example/9?a=1"}]}, "next": 41}"#;
        let batch = read(body).unwrap();
        assert_eq!(batch.next, Some(41), "the cursor is the market's");
        assert_eq!((batch.found[0].external_id.as_deref(), batch.found[0].cents), (None, 21_000));
        assert_eq!(batch.found[0].kind, PriceKind::Ask);
    }

    #[test]
    fn nonsense_is_refused() {
        for body in [&b"[]"[..], br#"{"results": {}, "next": null}"#] {
            assert!(read(body).is_err());
        }
    }

    #[test]
    fn an_offer_that_makes_no_sense_is_left_out_and_counted() {
        let free = br#"{"results": {"offers": [{"item_id": null, "name": "", "price": {"minor": 0, "currency": "USD"},
            "listed": "2026-11-02", "link": ""}, {}]}, "next": null}"#;
        let batch = read(free).unwrap();
        assert_eq!((batch.found.len(), batch.skipped), (0, 2));
        assert!(batch.why.unwrap().starts_with("number 1: price `0` is refused"));
    }
}
