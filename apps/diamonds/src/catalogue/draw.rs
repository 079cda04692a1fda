//! How stones look and what becomes of them, drawn from a seed: whole numbers only, the same on every machine.

use crate::grade::{Clarity, Colour, Cut, Origin, Shape};
use crate::price_range::PRICE_CENTS_MAX;
use crate::stone::{CARAT_POINTS_MAX, Stone};

/// Weights at which the trade cuts its stones, in points, and how many of a hundred stones have about that.
const WEIGHTS: [(u64, u32); 9] =
    [(24, 30), (14, 40), (18, 50), (13, 70), (6, 90), (14, 100), (6, 150), (4, 200), (1, 300)];
/// From so many points on a carat costs so many cents.
const RATES: [(u32, u64); 6] =
    [(0, 120_000), (50, 190_000), (90, 380_000), (150, 700_000), (200, 1_100_000), (300, 1_900_000)];
/// What grown stones cost, in percent of natural ones.
const LAB_GROWN_PERCENT: u64 = 22;
/// One stone in so many is a rarity, and costs so many times as much.
const RARITY: (u64, u64) = (2_000, 40);
/// Three stones in a hundred are sold at the price of the advertisement.
const ADVERTISED: (u64, u64) = (3, 49_900);

/// A stone as the catalogue keeps it: 200,000 of them, for each revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) number: u32,
    pub(super) price_cents: u64,
    /// The revision in which its price was made.
    priced_in: u32,
    /// The revision in which anything changed last.
    changed_in: u32,
    carat_points: u32,
    origin: Origin,
    shape: Shape,
    colour: Colour,
    clarity: Clarity,
    cut: Cut,
    available: bool,
}

/// What becomes of a stone in a new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    Repriced,
    HeldOrFreed,
    Withdrawn,
}

impl Listed {
    /// A stone that appears in `revision`.
    pub(super) fn new(mut chance: Chance, number: u32, revision: u32) -> Self {
        let origin = if chance.below(100) < 35 { Origin::LabGrown } else { Origin::Natural };
        // Half of all are round.
        let shape = if chance.below(2) == 0 { Shape::Round } else { chance.one_of(Shape::ALL) };
        let colour = chance.one_of(Colour::ALL);
        let clarity = chance.one_of(Clarity::ALL);
        let cut = chance.one_of(Cut::ALL);
        let carat_points = draw_points(&mut chance);
        let worth = worth_cents(origin, shape, colour, clarity, carat_points);
        let price_cents = draw_price(&mut chance, worth);
        let available = chance.below(20) > 0;
        let (priced_in, changed_in) = (revision, revision);
        Self {
            number,
            price_cents,
            priced_in,
            changed_in,
            carat_points,
            origin,
            shape,
            colour,
            clarity,
            cut,
            available,
        }
    }

    /// Lives through one revision: of a thousand stones 2 are withdrawn, 20 priced anew, 10 held or freed.
    pub(super) fn live(&mut self, mut chance: Chance, revision: u32) -> Fate {
        match chance.below(1_000) {
            0..2 => Fate::Withdrawn,
            2..22 => {
                // Up to a tenth more or less, and never the same.
                let price = self.price_cents * (90 + chance.below(21)) / 100;
                let price = if price == self.price_cents { price + 100 } else { price };
                self.price_cents = price.clamp(1, PRICE_CENTS_MAX);
                (self.priced_in, self.changed_in) = (revision, revision);
                Fate::Repriced
            }
            22..32 => {
                self.available = !self.available;
                self.changed_in = revision;
                Fate::HeldOrFreed
            }
            _ => Fate::Stays,
        }
    }

    /// The stone as a reader is told. Ids have leading zeros, so that their order is that of the numbers.
    pub(super) fn told(&self) -> Stone {
        Stone {
            supplier_stone_id: format!("stone-{:010}", self.number),
            offer_id: format!("offer-{:010}-{}", self.number, self.priced_in),
            origin: self.origin,
            shape: self.shape,
            carat_points: self.carat_points,
            colour: self.colour,
            clarity: self.clarity,
            cut: self.cut,
            price_cents: self.price_cents,
            available: self.available,
            changed_at: super::date_of(self.changed_in),
        }
    }
}

fn draw_points(chance: &mut Chance) -> u32 {
    let mut roll = chance.below(100);
    let mut usual = 0;
    for (share, points) in WEIGHTS {
        usual = points;
        if roll < share {
            break;
        }
        roll -= share;
    }
    // Most are a little heavier than the weight they were cut for, and a few dear ones much more.
    let much = if usual == 300 { chance.below(900) as u32 } else { 0 };
    (usual + chance.below(4).min(chance.below(10)) as u32 + much).min(CARAT_POINTS_MAX)
}

/// What such a stone costs, before anybody rounds.
fn worth_cents(origin: Origin, shape: Shape, colour: Colour, clarity: Clarity, points: u32) -> u64 {
    let rate = RATES.iter().rev().find(|(from, _)| *from <= points).map_or(0, |(_, rate)| *rate);
    let grade = 160 - 9 * colour as u64 - 6 * clarity as u64; // percent, 31 at least
    let outline = if shape == Shape::Round { 100 } else { 80 };
    let made = if origin == Origin::LabGrown { LAB_GROWN_PERCENT } else { 100 };
    u64::from(points) * rate / 100 * grade / 100 * outline / 100 * made / 100
}

/// The price on the tag: most are rounded to what looks good, which makes the crowds.
fn draw_price(chance: &mut Chance, worth: u64) -> u64 {
    let worth = if chance.below(RARITY.0) == 0 { worth * RARITY.1 } else { worth };
    let worth = worth * (90 + chance.below(21)) / 100;
    let step = match worth {
        0..100_000 => 1_000,
        100_000..1_000_000 => 5_000,
        _ => 10_000,
    };
    let roll = chance.below(100);
    let price = match roll {
        _ if roll < ADVERTISED.0 => ADVERTISED.1,
        0..60 => (worth / step * step).saturating_sub(100), // $499, not $500
        _ => worth,
    };
    price.clamp(1, PRICE_CENTS_MAX)
}

/// A stream of numbers that follows from a seed, a stone and a revision (splitmix64).
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn of(seed: u64, number: u32, revision: u32) -> Self {
        let mut mixed = Self(seed);
        let start = mixed.next() ^ (u64::from(number) << 32 | u64::from(revision));
        Self(start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `end`. The small ends here are met evenly enough.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_weights_are_a_hundred() {
        assert_eq!(WEIGHTS.iter().map(|(share, _)| share).sum::<u64>(), 100);
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..5_000 {
            let points = draw_points(&mut Chance::of(1, number, 0));
            let (_, usual) = WEIGHTS.iter().rev().find(|(_, usual)| *usual <= points).unwrap();
            seen.insert(*usual);
        }
        assert_eq!(seen.len(), WEIGHTS.len(), "{seen:?}");
    }

    #[test]
    fn heavier_clearer_and_natural_stones_cost_more() {
        let worth = |origin, colour, points| worth_cents(origin, Shape::Round, colour, Clarity::Vs1, points);
        assert!(worth(Origin::Natural, Colour::D, 100) > worth(Origin::Natural, Colour::D, 99));
        assert!(worth(Origin::Natural, Colour::D, 100) > worth(Origin::Natural, Colour::E, 100));
        assert!(worth(Origin::Natural, Colour::D, 100) > worth(Origin::LabGrown, Colour::D, 100));
        assert!(worth_cents(Origin::LabGrown, Shape::Heart, Colour::M, Clarity::I1, 30) > 0);
    }

    #[test]
    fn a_new_price_is_another_one_and_a_new_offer() {
        let mut priced = 0;
        for number in 0..5_000 {
            let old = Listed::new(Chance::of(7, number, 0), number, 0);
            let mut new = old;
            if new.live(Chance::of(7, number, 1), 1) == Fate::Repriced {
                priced += 1;
                assert!(new.price_cents != old.price_cents && new.told().offer_id != old.told().offer_id);
                assert_eq!(new.told().supplier_stone_id, old.told().supplier_stone_id);
            }
        }
        assert!((50..=150).contains(&priced), "{priced} of 5,000");
    }
}
