//! An auction house: lots that were sold, as JSON, page by page. Every lot has a name.
//!
//! ```json
//! {"page": 1, "pages": 2, "lots": [{"lot": "L-7", "title": "1921-D Morgan Dollar", "hammer": "189.50",
//!   "currency": "USD", "closed": "2026-11-02T18:30:00Z", "href": "https://hammer.example/lots/7?ref=feed"}]}
//! ```

use serde::Deserialize;

use super::{Batch, each, money};
use crate::point::{Found, PriceKind};

#[derive(Deserialize)]
struct Page {
    page: u32,
    pages: u32,
    lots: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Lot {
    lot: String,
    title: String,
    hammer: String,
    currency: String,
    closed: String,
    href: String,
}

pub(super) fn read(body: &[u8]) -> Result<Batch, String> {
    let page: Page = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let next = (page.page < page.pages).then(|| page.page + 1);
    Ok(Batch::of(each(page.lots, sold), next))
}

fn sold(lot: Lot) -> Result<Found, String> {
    Ok(Found {
        external_id: Some(lot.lot),
        url: lot.href,
        title: lot.title,
        cents: money::cents(&lot.hammer, '.', ',')?,
        currency: lot.currency,
        day: lot.closed.get(..10).unwrap_or(&lot.closed).to_owned(),
        kind: PriceKind::Sold,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lot_is_read_as_sold() {
        let body = br#"{"page": 1, "pages": 2, "lots": [{"lot": "L-7", "title": "1921-D Morgan", "hammer": "1,189.50",
            "currency": "USD", "closed": "2026-11-02T18:30:00Z", "href": "https://h.example/7", "bids": 12}]}"#;
        let batch = read(body).unwrap();
        assert_eq!((batch.next, batch.skipped), (Some(2), 0));
        let [lot] = batch.found.try_into().unwrap();
        assert_eq!((lot.external_id.as_deref(), lot.cents, lot.day.as_str()), (Some("L-7"), 118_950, "2026-11-02"));
        assert_eq!(lot.kind, PriceKind::Sold);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(read(b"<html>").is_err());
        assert!(read(br#"{"page": 1, "pages": 1}"#).is_err());
    }

    #[test]
    fn a_lot_that_makes_no_sense_is_left_out_and_counted() {
        let body = br#"{"page": 1, "pages": 1, "lots": [{"lot": 7},
            {"lot": "1", "title": "", "hammer": "1.00", "currency": "USD", "closed": "soon", "href": ""},
            {"lot": "2", "title": "", "hammer": "1.00", "currency": "USD", "closed": "2026-11-02", "href": ""}]}"#;
        let batch = read(body).unwrap();
        assert_eq!((batch.found.len(), batch.skipped, batch.next), (1, 2, None));
        let why = batch.why.unwrap();
        assert!(why.starts_with("number 1: invalid type: integer `7`"), "{why}");
    }
}
