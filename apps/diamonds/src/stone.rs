//! A stone as the supplier tells it.
//!
//! ```json
//! {
//!   "supplier_stone_id": "stone-00000042", "offer_id": "offer-00000042-0",
//!   "origin": "natural", "shape": "round", "carat_points": 101, "colour": "G", "clarity": "VS1", "cut": "excellent",
//!   "price_cents": 512300, "available": true, "changed_at": "2026-01-01T00:00:00Z"
//! }
//! ```
//!
//! `supplier_stone_id` is the stone, for good, and the key of every table; `offer_id` is what it is sold under, and
//! becomes another one with a new price. Weight is in points, a hundredth of a carat, and prices are in cents: both are
//! whole numbers. Fields that we do not know are not read, a supplier adds some every year; words that we do not know, such
//! as a new shape, are refused: nobody has said what such a stone costs.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use tenure::{Invalid, Timestamp};

use crate::fields::Fields;
use crate::grade::{Clarity, Colour, Cut, Origin, Shape};
use crate::price_range::PRICE_CENTS_MAX;

/// Longest id of a stone or an offer.
pub const ID_BYTES_MAX: usize = 100;
/// Heaviest stone: a thousand carats.
pub const CARAT_POINTS_MAX: u32 = 100_000;

/// One stone on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stone {
    /// The stone, whatever it costs.
    pub supplier_stone_id: String,
    /// What it is sold under just now.
    pub offer_id: String,
    /// Natural or grown.
    pub origin: Origin,
    /// Its outline.
    pub shape: Shape,
    /// Its weight in hundredths of a carat.
    pub carat_points: u32,
    /// Its colour.
    pub colour: Colour,
    /// Its clarity.
    pub clarity: Clarity,
    /// Its cut.
    pub cut: Cut,
    /// What the supplier asks, in cents; never zero.
    pub price_cents: u64,
    /// Whether it can be bought now. One that cannot is on hold for somebody, and still listed.
    pub available: bool,
    /// When anything of this last changed.
    pub changed_at: Timestamp,
}

impl Stone {
    /// Reads one, and refuses what is missing, of the wrong kind or out of its limits.
    pub fn from_json(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of("stone", value)?;
        let points = fields.whole("carat_points", 1..=u64::from(CARAT_POINTS_MAX))?;
        Ok(Self {
            supplier_stone_id: fields.text("supplier_stone_id", ID_BYTES_MAX)?.to_owned(),
            offer_id: fields.text("offer_id", ID_BYTES_MAX)?.to_owned(),
            origin: fields.word("origin", Origin::WORDS, Origin::parse)?,
            shape: fields.word("shape", Shape::WORDS, Shape::parse)?,
            carat_points: u32::try_from(points).unwrap_or(CARAT_POINTS_MAX), // within its limits, so it fits
            colour: fields.word("colour", Colour::WORDS, Colour::parse)?,
            clarity: fields.word("clarity", Clarity::WORDS, Clarity::parse)?,
            cut: fields.word("cut", Cut::WORDS, Cut::parse)?,
            price_cents: fields.whole("price_cents", 1..=PRICE_CENTS_MAX)?,
            available: fields.flag("available")?,
            changed_at: fields.time("changed_at")?,
        })
    }

    /// The JSON that [`Stone::from_json`] reads.
    pub fn to_json(&self) -> Value {
        json!({
            "supplier_stone_id": self.supplier_stone_id,
            "offer_id": self.offer_id,
            "origin": self.origin.as_str(),
            "shape": self.shape.as_str(),
            "carat_points": self.carat_points,
            "colour": self.colour.as_str(),
            "clarity": self.clarity.as_str(),
            "cut": self.cut.as_str(),
            "price_cents": self.price_cents,
            "available": self.available,
            "changed_at": self.changed_at.to_string(),
        })
    }
}

impl Serialize for Stone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Value {
        json!({
            "supplier_stone_id": "stone-00000042", "offer_id": "offer-00000042-0", "origin": "natural",
            "shape": "round", "carat_points": 101, "colour": "G", "clarity": "VS1", "cut": "excellent",
            "price_cents": 512_300, "available": true, "changed_at": "2026-01-01T00:00:00Z",
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut told = told();
        told[field] = value;
        told
    }

    #[test]
    fn a_stone_is_read_as_it_is_written() {
        let stone = Stone::from_json(&told()).unwrap();
        assert_eq!((stone.price_cents, stone.carat_points, stone.shape), (512_300, 101, Shape::Round));
        assert_eq!(stone.to_json(), told());
        let text = serde_json::to_string(&stone).unwrap();
        assert_eq!(serde_json::from_str::<Stone>(&text).unwrap(), stone);
    }

    #[test]
    fn fields_that_nobody_knows_are_ignored() {
        assert_eq!(Stone::from_json(&with("mine", json!(["Karowe"]))), Stone::from_json(&told()));
    }

    #[test]
    fn every_field_is_needed_and_named_when_it_is_missing() {
        let fields: Vec<String> = told().as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields.len(), 11);
        for field in fields {
            let refused = Stone::from_json(&with(&field, Value::Null)).unwrap_err();
            assert!(refused.field == field && refused.limit.contains("missing"), "{refused}");
        }
    }

    #[test]
    fn what_is_out_of_its_limits_is_refused_by_name() {
        for (field, bad) in [
            ("supplier_stone_id", json!("")),
            ("supplier_stone_id", json!("x".repeat(ID_BYTES_MAX + 1))),
            ("supplier_stone_id", json!(42)),
            ("offer_id", json!("a\u{0}b")),
            ("origin", json!("mined")),
            ("shape", json!("ROUND")),
            ("carat_points", json!(0)),
            ("carat_points", json!(1.01)),
            ("carat_points", json!(CARAT_POINTS_MAX + 1)),
            ("colour", json!("Z")),
            ("clarity", json!("VS3")),
            ("cut", json!(1)),
            ("price_cents", json!(0)),
            ("price_cents", json!(-1)),
            ("price_cents", json!(PRICE_CENTS_MAX + 1)),
            ("available", json!("yes")),
            ("changed_at", json!("yesterday")),
        ] {
            assert_eq!(Stone::from_json(&with(field, bad.clone())).unwrap_err().field, field, "{bad}");
        }
        assert_eq!(Stone::from_json(&json!("stone")).unwrap_err().field, "stone");
    }

    #[test]
    fn money_is_whole_cents_and_never_a_float() {
        for float in [json!(5123.0), json!(0.5), json!(1e6)] {
            assert_eq!(Stone::from_json(&with("price_cents", float)).unwrap_err().field, "price_cents");
        }
        let dearest = Stone::from_json(&with("price_cents", json!(PRICE_CENTS_MAX))).unwrap();
        assert_eq!(dearest.price_cents, PRICE_CENTS_MAX);
    }
}
