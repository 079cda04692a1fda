//! What is added to a supplier's price, by rules that are data.
//!
//! A rule is about one origin, some shapes (all of them when it names none) and a range of prices, and adds either cents
//! or basis points, hundredths of a percent. `markup.json` is the table that comes with the product:
//!
//! | origin | shapes | price | adds |
//! |---|---|---|---|
//! | natural | round | below $1,000 | $150 |
//! | natural | round | $1,000 to below $10,000 | 18 % |
//! | natural | round | from $10,000 | 12.5 % |
//! | natural | others | below $1,000 | $120 |
//! | natural | others | from $1,000 | 15 % |
//! | lab-grown | all | below $500 | $60 |
//! | lab-grown | all | from $500 | 25 % |
//!
//! Every stone has exactly one rule: a table in which two rules speak about one price, or none does, is refused, and the
//! refusal names the rules and the price. The supplier's price decides, before anything is added.
//!
//! A percentage is rounded to a whole cent, half a cent up. Nothing overflows: prices are at most
//! [`PRICE_CENTS_MAX`], a rule adds at most ten times the price or [`ADD_CENTS_MAX`], and the sums are far below 64 bits.

use serde_json::Value;
use tenure::Invalid;

use crate::fields::Fields;
use crate::grade::{Origin, Shape};
use crate::price_range::{PRICE_CENTS_MAX, PriceRange};
use crate::stone::Stone;

/// Most rules of a table.
pub const RULES_MAX: usize = 1_000;
/// Most cents that a rule adds.
pub const ADD_CENTS_MAX: u64 = PRICE_CENTS_MAX;
/// Most basis points that a rule adds: ten times the price.
pub const ADD_BASIS_POINTS_MAX: u64 = 100_000;
/// One whole, in basis points.
const WHOLE: u64 = 10_000;

// The largest product and the largest sum there can be.
const _: () = assert!(PRICE_CENTS_MAX <= (u64::MAX - WHOLE) / ADD_BASIS_POINTS_MAX, "a percentage fits 64 bits");
const _: () = assert!(PRICE_CENTS_MAX * 11 + ADD_CENTS_MAX <= i64::MAX as u64, "so does a price, in a database too");

/// A table that speaks once about every stone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markup {
    rules: Vec<Rule>,
    /// For each origin and shape its rules by price, without a gap.
    by_kind: Vec<Vec<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    origin: Origin,
    shapes: Vec<Shape>,
    prices: PriceRange,
    add: Add,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Add {
    Cents(u64),
    BasisPoints(u64),
}

/// A table that is refused. Rules are counted from 1, as people do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMarkup {
    /// It cannot be read.
    #[error("the markup cannot be read: {0}")]
    Json(String),
    /// A rule is wrong by itself.
    #[error("rule {rule} of the markup: {source}")]
    Rule {
        /// Which one.
        rule: usize,
        /// What is wrong.
        source: Invalid,
    },
    /// There are none, or too many.
    #[error("the markup has {0} rules: it has 1 to {RULES_MAX}")]
    Rules(usize),
    /// Two rules speak about one stone.
    #[error(
        "rules {one} and {other} both speak about {} {} stones of {cents} cents: end the first where the second begins",
        origin.as_str(), shape.as_str()
    )]
    Overlap {
        /// The one that begins first.
        one: usize,
        /// The other.
        other: usize,
        /// Of which origin.
        origin: Origin,
        /// Of which shape.
        shape: Shape,
        /// The first price that both speak about.
        cents: u64,
    },
    /// No rule speaks about these stones.
    #[error(
        "no rule speaks about {} {} stones from {} to below {} cents: add one",
        origin.as_str(), shape.as_str(), prices.min_cents(), prices.max_cents()
    )]
    Hole {
        /// Of which origin.
        origin: Origin,
        /// Of which shape.
        shape: Shape,
        /// Of which prices.
        prices: PriceRange,
    },
}

impl Markup {
    /// The table that comes with the product.
    pub fn standard() -> Self {
        Self::read(include_str!("../markup.json")).expect("the table that comes with the product is in order")
    }

    /// Reads and checks a table: `{"rules": [{"origin", "shapes"?, "from_cents"?, "below_cents"?, "add_cents" or
    /// "add_basis_points"}]}`.
    pub fn read(json: &str) -> Result<Self, BadMarkup> {
        let json: Value = serde_json::from_str(json).map_err(|error| BadMarkup::Json(error.to_string()))?;
        let rules = json.get("rules").and_then(Value::as_array);
        let rules = rules.ok_or_else(|| BadMarkup::Json("it is an object with a list of rules".to_owned()))?;
        if !(1..=RULES_MAX).contains(&rules.len()) {
            return Err(BadMarkup::Rules(rules.len()));
        }
        let read = |(at, rule)| Rule::from_json(rule).map_err(|source| BadMarkup::Rule { rule: at + 1, source });
        let rules: Vec<Rule> = rules.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let kinds = Origin::ALL.iter().flat_map(|origin| Shape::ALL.iter().map(|shape| (*origin, *shape)));
        let by_kind = kinds.map(|(origin, shape)| line_up(&rules, origin, shape)).collect::<Result<_, _>>()?;
        Ok(Self { rules, by_kind })
    }

    /// What we ask for a stone, in cents.
    pub fn retail_cents(&self, stone: &Stone) -> u64 {
        self.price(stone.origin, stone.shape, stone.price_cents)
    }

    /// What we ask for a stone of this price. One dearer than any stone can be is taken as the dearest.
    pub fn price(&self, origin: Origin, shape: Shape, price_cents: u64) -> u64 {
        let cents = price_cents.min(PRICE_CENTS_MAX);
        let line = &self.by_kind[kind(origin, shape)];
        // A line has no gap and ends behind the dearest stone, so there is a rule.
        let at = line.partition_point(|rule| self.rules[*rule].prices.max_cents() <= cents);
        cents + line.get(at).map_or(0, |rule| self.rules[*rule].add.to(cents))
    }
}

impl Rule {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of("rule", value)?;
        let end = PriceRange::ALL.max_cents();
        let from = fields.whole_if_there("from_cents", 0..=end - 1)?.unwrap_or(0);
        let below = fields.whole_if_there("below_cents", 1..=end)?.unwrap_or(end);
        let cents = fields.whole_if_there("add_cents", 0..=ADD_CENTS_MAX)?;
        let points = fields.whole_if_there("add_basis_points", 0..=ADD_BASIS_POINTS_MAX)?;
        let add = match (cents, points) {
            (Some(cents), None) => Add::Cents(cents),
            (None, Some(points)) => Add::BasisPoints(points),
            _ => return Err(Invalid::new("rule", value, "it has add_cents or add_basis_points, and not both")),
        };
        let origin = fields.word("origin", Origin::WORDS, Origin::parse)?;
        Ok(Self { origin, shapes: read_shapes(fields)?, prices: PriceRange::new(from, below)?, add })
    }
}

impl Add {
    /// What is added to a price.
    fn to(self, cents: u64) -> u64 {
        match self {
            Self::Cents(add) => add,
            Self::BasisPoints(points) => (cents * points + WHOLE / 2) / WHOLE,
        }
    }
}

fn read_shapes(fields: Fields<'_>) -> Result<Vec<Shape>, Invalid> {
    let Some(value) = fields.get("shapes") else { return Ok(Shape::ALL.to_vec()) };
    let refuse = || Invalid::new("shapes", value, format!("it is a list of {}", Shape::WORDS.trim_end()));
    let listed = value.as_array().filter(|listed| (1..=Shape::ALL.len()).contains(&listed.len())).ok_or_else(refuse)?;
    listed.iter().map(|word| word.as_str().and_then(Shape::parse).ok_or_else(refuse)).collect()
}

/// The rules about one kind of stone by price, if they cover every price once.
fn line_up(rules: &[Rule], origin: Origin, shape: Shape) -> Result<Vec<usize>, BadMarkup> {
    let about = |rule: &Rule| rule.origin == origin && rule.shapes.contains(&shape);
    let mut line: Vec<usize> = (0..rules.len()).filter(|at| about(&rules[*at])).collect();
    line.sort_by_key(|at| rules[*at].prices);
    let mut covered = 0;
    let mut last = 0;
    let hole = |from, to| match PriceRange::new(from, to) {
        Ok(prices) => Err(BadMarkup::Hole { origin, shape, prices }),
        Err(_) => Ok(()), // nothing lies between them
    };
    for at in &line {
        let prices = rules[*at].prices;
        if prices.min_cents() < covered {
            return Err(BadMarkup::Overlap { one: last + 1, other: at + 1, origin, shape, cents: prices.min_cents() });
        }
        hole(covered, prices.min_cents())?;
        (covered, last) = (prices.max_cents(), *at);
    }
    hole(covered, PriceRange::ALL.max_cents())?;
    Ok(line)
}

/// The place of a kind of stone in the table.
fn kind(origin: Origin, shape: Shape) -> usize {
    origin as usize * Shape::ALL.len() + shape as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// One rule for grown stones, and these for natural ones.
    #[expect(clippy::needless_pass_by_value, reason = "it is written in place")]
    fn table(natural: Value) -> Result<Markup, BadMarkup> {
        let mut rules = natural.as_array().unwrap().clone();
        rules.push(json!({ "origin": "lab_grown", "add_cents": 0 }));
        Markup::read(&json!({ "rules": rules }).to_string())
    }

    #[test]
    fn the_table_that_comes_with_the_product_says_what_its_page_says() {
        let markup = Markup::standard();
        for (origin, shape, price, retail) in [
            (Origin::Natural, Shape::Round, 1, 15_001),
            (Origin::Natural, Shape::Round, 99_999, 114_999),
            (Origin::Natural, Shape::Round, 100_000, 118_000),
            (Origin::Natural, Shape::Round, 999_999, 1_179_999),
            (Origin::Natural, Shape::Round, 1_000_000, 1_125_000),
            (Origin::Natural, Shape::Heart, 99_999, 111_999),
            (Origin::Natural, Shape::Oval, 100_000, 115_000),
            (Origin::LabGrown, Shape::Round, 49_999, 55_999),
            (Origin::LabGrown, Shape::Pear, 50_000, 62_500),
        ] {
            assert_eq!(markup.price(origin, shape, price), retail, "{origin:?} {shape:?} {price}");
        }
    }

    #[test]
    fn half_a_cent_is_rounded_up_and_less_is_dropped() {
        let markup = table(json!([{ "origin": "natural", "add_basis_points": 1_250 }])).unwrap();
        // 12.5 % of 3, 4, 12 and 20 cents is 0.375, 0.5, 1.5 and 2.5.
        for (price, retail) in [(3, 3), (4, 5), (12, 14), (20, 23)] {
            assert_eq!(markup.price(Origin::Natural, Shape::Round, price), retail);
        }
    }

    #[test]
    fn rules_that_overlap_are_refused_by_number_and_price() {
        let refused = table(json!([
            { "origin": "natural", "from_cents": 500, "add_cents": 1 },
            { "origin": "natural", "below_cents": 501, "add_cents": 2 },
        ]));
        let expected =
            BadMarkup::Overlap { one: 2, other: 1, origin: Origin::Natural, shape: Shape::Round, cents: 500 };
        assert_eq!(refused, Err(expected));
        let twice = table(json!([
            { "origin": "natural", "add_cents": 1 },
            { "origin": "natural", "shapes": ["heart"], "add_cents": 2 },
        ]));
        let told = twice.unwrap_err().to_string();
        assert!(told.starts_with("rules 1 and 2 both speak about natural heart stones of 0 cents"), "{told}");
    }

    #[test]
    fn holes_are_refused_by_kind_and_prices() {
        for (natural, from, to) in [
            (json!([{ "origin": "natural", "from_cents": 9, "add_cents": 1 }]), 0, 9),
            (json!([{ "origin": "natural", "below_cents": 9, "add_cents": 1 }]), 9, PRICE_CENTS_MAX + 1),
            (json!([]), 0, PRICE_CENTS_MAX + 1),
            (
                json!([
                    { "origin": "natural", "below_cents": 500, "add_cents": 1 },
                    { "origin": "natural", "from_cents": 501, "add_cents": 2 },
                ]),
                500,
                501,
            ),
        ] {
            let prices = PriceRange::new(from, to).unwrap();
            let hole = BadMarkup::Hole { origin: Origin::Natural, shape: Shape::Round, prices };
            assert_eq!(table(natural), Err(hole));
        }
        let no_hearts: Vec<&str> = Shape::ALL.iter().map(|shape| shape.as_str()).filter(|s| *s != "heart").collect();
        let refused = table(json!([{ "origin": "natural", "shapes": no_hearts, "add_cents": 1 }])).unwrap_err();
        assert!(matches!(refused, BadMarkup::Hole { shape: Shape::Heart, .. }), "{refused}");
    }

    #[test]
    fn a_rule_that_is_wrong_by_itself_is_named_with_its_field() {
        for (rule, field) in [
            (json!({ "origin": "mined", "add_cents": 1 }), "origin"),
            (json!({ "origin": "natural" }), "rule"),
            (json!({ "origin": "natural", "add_cents": 1, "add_basis_points": 1 }), "rule"),
            (json!({ "origin": "natural", "add_basis_points": ADD_BASIS_POINTS_MAX + 1 }), "add_basis_points"),
            (json!({ "origin": "natural", "add_basis_points": 12.5 }), "add_basis_points"),
            (json!({ "origin": "natural", "add_cents": -1 }), "add_cents"),
            (json!({ "origin": "natural", "add_cents": 1, "shapes": [] }), "shapes"),
            (json!({ "origin": "natural", "add_cents": 1, "shapes": ["square"] }), "shapes"),
            (json!({ "origin": "natural", "add_cents": 1, "from_cents": 9, "below_cents": 9 }), "price range"),
            (json!("rule"), "rule"),
        ] {
            let refused = table(json!([rule])).unwrap_err();
            assert!(matches!(&refused, BadMarkup::Rule { rule: 1, source } if source.field == field), "{refused}");
        }
        assert!(matches!(Markup::read("{"), Err(BadMarkup::Json(_))));
        assert!(matches!(Markup::read("[]"), Err(BadMarkup::Json(_))));
        assert_eq!(Markup::read(r#"{"rules": []}"#), Err(BadMarkup::Rules(0)));
    }

    proptest! {
        #[test]
        fn nothing_overflows_for_any_price_and_the_largest_rules(price: u64, points in 0..=ADD_BASIS_POINTS_MAX) {
            let percent = table(json!([{ "origin": "natural", "add_basis_points": points }])).unwrap();
            let fixed = table(json!([{ "origin": "natural", "add_cents": ADD_CENTS_MAX }])).unwrap();
            let cents = price.min(PRICE_CENTS_MAX);
            let retail = percent.price(Origin::Natural, Shape::Oval, price);
            prop_assert!(retail >= cents && retail <= 11 * PRICE_CENTS_MAX);
            prop_assert_eq!(fixed.price(Origin::Natural, Shape::Oval, price), cents + ADD_CENTS_MAX);
        }
    }
}
