//! [`Found`]: a price as a source told it, and the row it becomes for a coin.
//!
//! # How well it matches
//! A listing is about the coin or only about one like it. Its `match_strength` says how sure we are, 0 to 100:
//!
//! | sign in the listing's title | points |
//! |---|---|
//! | the year | 40 |
//! | the mintmark, alone or behind the year: `1921-D`, `1921D`, `1921 D`; where the coin has none, that no other is there | 20 |
//! | the denomination | 20 |
//! | every word of the series; granted where the coin has none | 20 |

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tenure::core::Invalid;
use tenure::core::dedupe::{Day, DedupeKey, Parts};
use tenure::sink::{Row, Sink, Type};
use tenure::{Timestamp, row};

use crate::intake::Intake;

/// Longest title and URL of a listing.
const TEXT_BYTES_MAX: usize = 2_000;

/// One listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// What the source calls it, if it calls it something.
    pub external_id: Option<String>,
    /// Where it is; may be empty.
    pub url: String,
    /// What it is called.
    pub title: String,
    /// The price.
    pub cents: i64,
    /// Such as `USD`.
    pub currency: String,
    /// The day of the price, `YYYY-MM-DD`.
    pub day: String,
    /// What kind of price.
    pub kind: PriceKind,
}

/// What a price means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PriceKind {
    /// Somebody paid it.
    Sold,
    /// Somebody wants it.
    Ask,
    /// Somebody would pay it.
    Bid,
}

impl PriceKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Sold, Self::Ask, Self::Bid];

    /// The word in tables and keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sold => "sold",
            Self::Ask => "ask",
            Self::Bid => "bid",
        }
    }
}

impl FromStr for PriceKind {
    type Err = Invalid;

    fn from_str(word: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| Invalid::new("kind", word, "it is sold, ask or bid"))
    }
}

impl Found {
    /// Refuses what could not be stored, or not be known again.
    pub fn check(&self) -> Result<(), Invalid> {
        Day::parse(&self.day)?;
        self.dedupe_key()?;
        for (field, text) in [("title", &self.title), ("url", &self.url)] {
            if text.len() > TEXT_BYTES_MAX || text.contains('\0') {
                return Err(Invalid::new(field, text, format!("it has at most {TEXT_BYTES_MAX} bytes and no NUL")));
            }
        }
        if self.currency.len() != 3 || !self.currency.bytes().all(|b| b.is_ascii_alphabetic()) {
            return Err(Invalid::new("currency", &self.currency, "it is three letters, such as USD"));
        }
        if self.cents <= 0 {
            return Err(Invalid::new("price", self.cents, "it is more than nothing, in whole cents"));
        }
        Ok(())
    }

    /// `ext_<id>` where the source names its things, else `hash_<16 digits>` of URL, title, cents, day and kind.
    pub fn dedupe_key(&self) -> Result<DedupeKey, Invalid> {
        match &self.external_id {
            Some(id) => DedupeKey::external(id),
            None => DedupeKey::hashed(&Parts {
                url: &self.url,
                title: &self.title,
                cents: self.cents,
                day: Day::parse(&self.day)?,
                kind: self.kind.as_str(),
                currency: None,
            }),
        }
    }

    /// Its row for this coin.
    pub fn row(&self, intake: &Intake, source: &str, seen_at: Timestamp) -> Result<Row, Invalid> {
        Ok(row![
            intake.id.as_str(),
            source,
            self.dedupe_key()?,
            self.kind.as_str(),
            self.cents,
            self.currency.as_str(),
            self.day.as_str(),
            self.title.as_str(),
            self.url.as_str(),
            seen_at,
            strength(&self.title, intake)
        ])
    }
}

/// Where rows go: the stronger match stays.
pub fn sink() -> Result<Sink, Invalid> {
    Sink::table("coin_price_point")
        .key("intake_id", Type::Text)
        .key("source_id", Type::Text)
        .key("dedupe_key", Type::Text)
        .value("kind", Type::Text)
        .value("cents", Type::Int)
        .value("currency", Type::Text)
        .value("day", Type::Text)
        .value("title", Type::Text)
        .value("url", Type::Text)
        .value("seen_at", Type::Time)
        .keep_stronger("match_strength")
}

/// How sure it is that a listing is about this coin.
pub fn strength(title: &str, intake: &Intake) -> u32 {
    let words: Vec<String> =
        title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_uppercase).collect();
    let has = |wanted: &str| wanted.split_whitespace().all(|word| words.contains(&word.to_uppercase()));
    let (year, mark) = (intake.year.to_string(), intake.mintmark.to_uppercase());
    // `1921D` is one word and says both.
    let joined = |mark: &str| words.contains(&format!("{year}{mark}"));
    let mintmarks = ["D", "S", "O", "CC", "W"];
    let has_mark = match mark.is_empty() {
        true => !mintmarks.iter().any(|other| has(other) || joined(other)),
        false => has(&mark) || joined(&mark),
    };
    let has_year = has(&year) || mintmarks.iter().any(|other| joined(other)) || joined(&mark);
    let signs = [(has_year, 40), (has_mark, 20), (has(&intake.denomination), 20), (has(&intake.series), 20)];
    signs.into_iter().filter(|(holds, _)| *holds).map(|(_, points)| points).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::morgan;

    fn found(external_id: Option<&str>) -> Found {
        Found {
            external_id: external_id.map(str::to_owned),
            url: "https://Shop.example/Lot/7?ref=mail#top".into(),
            title: "  1921-D   MORGAN Dollar ".into(),
            cents: 18_950,
            currency: "USD".into(),
            day: "2026-11-02".into(),
            kind: PriceKind::Sold,
        }
    }

    /// Shows: S0.19
    #[test]
    fn a_thing_that_its_source_names_is_known_by_that_name() {
        assert_eq!(found(Some("264718")).dedupe_key().unwrap().as_str(), "ext_264718");
    }

    /// Shows: S0.20 S0.21 S0.22 S0.23
    #[test]
    fn any_other_is_known_by_its_looks() {
        let key = |change: &dyn Fn(&mut Found)| {
            let mut other = found(None);
            change(&mut other);
            other.dedupe_key().unwrap().as_str().to_owned()
        };
        let same = key(&|_| {});
        assert!(same.starts_with("hash_") && same.len() == "hash_".len() + 16, "{same}");
        // Query, fragment, case and white space make no other thing of it.
        assert_eq!(key(&|it| it.url = "https://shop.example/Lot/7".into()), same);
        assert_eq!(key(&|it| it.title = "1921-d morgan dollar".into()), same);
        // Price, day and kind do, and so does another path.
        assert_ne!(key(&|it| it.cents += 1), same);
        assert_ne!(key(&|it| it.day = "2026-11-03".into()), same);
        assert_ne!(key(&|it| it.kind = PriceKind::Ask), same);
        assert_ne!(key(&|it| it.url = "https://shop.example/Lot/8".into()), same);
    }

    #[test]
    fn what_could_not_be_stored_or_known_again_is_refused_by_its_name() {
        let refused = |change: &dyn Fn(&mut Found)| {
            let mut listing = found(None);
            change(&mut listing);
            listing.check().unwrap_err().field
        };
        assert_eq!(refused(&|it| it.day = "soon".into()), "day");
        assert_eq!(refused(&|it| it.external_id = Some("x".repeat(501))), "external id");
        assert_eq!(refused(&|it| it.url = "nowhere".into()), "url");
        assert_eq!(refused(&|it| it.title = "a\0b".into()), "title");
        assert_eq!(refused(&|it| it.title = "x".repeat(2_001)), "title");
        assert_eq!(refused(&|it| it.currency = "$".into()), "currency");
        assert_eq!(refused(&|it| it.cents = 0), "price");
        found(None).check().unwrap();
    }

    /// Shows: S0.18
    #[test]
    fn a_price_is_sold_asked_or_bid_and_nothing_else() {
        for kind in PriceKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("lent".parse::<PriceKind>().unwrap_err().field, "kind");
    }

    #[test]
    fn a_listing_about_another_coin_matches_less() {
        let mine = morgan();
        for (title, expected) in [
            ("1921-D Morgan Dollar", 100),
            ("1921D morgan silver dollar", 100),
            ("1921 D Morgan Dollar MS63", 100),
            ("1921-S Morgan Dollar", 80),
            ("1921 Morgan Dollar", 80),
            ("1920-D Morgan Dollar", 60),
            ("1921-D Peace Dollar", 80),
            ("1921-D Morgan", 80),
            ("Lincoln cent", 0),
        ] {
            assert_eq!(strength(title, &mine), expected, "{title}");
        }
        let plain = Intake { mintmark: String::new(), series: String::new(), ..morgan() };
        assert_eq!(strength("1921 Dollar", &plain), 100);
        assert_eq!(strength("1921-S Dollar", &plain), 80);
    }
}
