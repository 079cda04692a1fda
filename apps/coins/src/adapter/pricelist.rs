//! A dealer's list of bids, as CSV with semicolons and decimal commas. Nothing has a name or a URL.
//!
//! ```text
//! coin;bid;currency;date
//! Morgan Dollar 1921-D;175,00;USD;2026-11-02
//! ```

use super::{Batch, money};
use crate::point::{Found, PriceKind};

const HEADER: &str = "coin;bid;currency;date";

pub(super) fn read(body: &[u8]) -> Result<Batch, String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    if lines.next().map(str::trim) != Some(HEADER) {
        return Err(format!("its first line is not `{HEADER}`"));
    }
    let rows = (2..).zip(lines).filter(|(_, line)| !line.trim().is_empty());
    Ok(Batch::of(rows.map(|(number, line)| (number, bid(line))), None))
}

fn bid(line: &str) -> Result<Found, String> {
    let fields: Vec<&str> = line.split(';').map(str::trim).collect();
    let [title, bid, currency, day] = fields[..] else {
        return Err(format!("{} fields instead of 4", fields.len()));
    };
    Ok(Found {
        external_id: None,
        url: String::new(),
        title: title.to_owned(),
        cents: money::cents(bid, ',', '.')?,
        currency: currency.to_owned(),
        day: day.to_owned(),
        kind: PriceKind::Bid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_a_bid() {
        let batch = read("coin;bid;currency;date\r\nMorgan 1921-D;1.175,50;USD;2026-11-02\r\n\r\n".as_bytes()).unwrap();
        let [bid] = batch.found.try_into().unwrap();
        assert_eq!((bid.cents, bid.kind, bid.url.as_str()), (117_550, PriceKind::Bid, ""));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(read(b"bid;coin\n").is_err());
    }

    #[test]
    fn a_line_that_makes_no_sense_is_left_out_and_counted() {
        let list = b"coin;bid;currency;date\n\na;cheap;USD;2026-11-02\na;1,00\nb;1,00;USD;2026-11-02\n";
        let batch = read(list).unwrap();
        assert_eq!((batch.found.len(), batch.skipped), (1, 2));
        assert_eq!(batch.why.unwrap(), "number 3: `cheap` is no price such as 189,50");
    }
}
