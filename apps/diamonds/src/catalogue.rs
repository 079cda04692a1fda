//! The simulated supplier: a catalogue that changes while it is read, as a pure model.
//!
//! Everything follows from a seed. Prices are spread as they are in the trade: many cheap stones, few dear ones, and
//! crowds at one price. Revision 0 is the first; [`Catalogue::advance`] makes the next one, in which some stones have
//! another price, some are held or free again, some are withdrawn and some are new.
//!
//! # Why no page loses or doubles a stone
//! Pages are asked for by price range and offset, over many minutes, while stones change. Three things can go wrong:
//! 1. A stone's price moves inside of its range. Were the order that by price, it would jump over the reader, or be met
//!    again. The order is by stone id, so it stays where it is.
//! 2. A stone enters or leaves a range, and all stones behind it move by one. The reader misses one, or meets one twice.
//! 3. A stone moves from a range that has been read to one that has not, or the other way: it is doubled, or lost.
//!
//! Order helps with the first only. So the supplier keeps its last revisions, each dated, and every question says which
//! one it is about: `as_of`. A run asks for the latest revision once, splits that, and reads that to its end. In one
//! revision nothing moves: each stone has one price, so it is in one of the ranges, and at one place in it.
//!
//! What changes meanwhile is in a later revision, and the next run finds it: a stone whose price changed is stored with
//! its old price first and with its new one then; one that was withdrawn is in the tables until then; a new one is not.
//! The supplier keeps [`REVISIONS_KEPT`] revisions. A run that is slower than that is told so ([`NotKept::Gone`]): its
//! partitions fail, nothing is published, and the next run begins with a new revision.
//!
//! # How fast
//! A revision of 200,000 stones is made in some tens of milliseconds. A count is two binary searches and a page some 18
//! steps a stone, whatever its offset: see `price_index`.

mod draw;
mod price_index;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure::{Invalid, Timestamp};

use crate::price_range::PriceRange;
use crate::stone::Stone;
use draw::{Chance, Fate, Listed};
use price_index::PriceIndex;

/// So many revisions can be asked for, the latest included.
pub const REVISIONS_KEPT: usize = 8;
/// Most stones of a new catalogue.
pub const STONES_MAX: u32 = 1_000_000;
/// Most stones of one page.
pub const PAGE_STONES_MAX: u32 = 1_000;
/// Of so many stones one appears in each revision; about as many are withdrawn.
const APPEARS_ONE_IN: u32 = 500;
/// Revision 0 is of 2026-01-01; each one is a minute later.
const FIRST_AT: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);
const REVISION_LASTS: Duration = Duration::from_secs(60);

/// All that the supplier knows.
#[derive(Debug, Clone)]
pub struct Catalogue {
    seed: u64,
    /// How many appear in each revision.
    appear: u32,
    next_number: u32,
    /// The oldest first; never empty.
    kept: VecDeque<Arc<Snapshot>>,
    latest: Arc<Snapshot>,
}

/// The catalogue as it was in one revision. It never changes.
#[derive(Debug)]
pub struct Snapshot {
    revision: u32,
    /// In the order of their ids.
    stones: Vec<Listed>,
    /// Made when it is first asked: many revisions never are.
    index: OnceLock<PriceIndex>,
}

/// What was different in a new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Advanced {
    /// Its number.
    pub revision: u32,
    /// Stones with another price.
    pub repriced: u32,
    /// Stones that are held now, or free again.
    pub held_or_freed: u32,
    /// Stones that are listed no longer.
    pub withdrawn: u32,
    /// Stones that are new.
    pub appeared: u32,
}

/// A revision that cannot be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// It was kept once.
    #[error("revision {revision} is no longer kept, the oldest is {oldest}: begin again with the latest")]
    Gone {
        /// Which one was asked for.
        revision: u32,
        /// The oldest one there is.
        oldest: u32,
    },
    /// There was none yet.
    #[error("there is no revision {revision} yet, the latest is {latest}")]
    NotYet {
        /// Which one was asked for.
        revision: u32,
        /// The latest one there is.
        latest: u32,
    },
}

impl Catalogue {
    /// Revision 0 of so many stones. The same seed gives the same stones, in every later revision too.
    pub fn new(seed: u64, stones: u32) -> Result<Self, Invalid> {
        if stones > STONES_MAX {
            return Err(Invalid::new("stones", stones, format!("a catalogue begins with at most {STONES_MAX}")));
        }
        let listed = (0..stones).map(|number| Listed::new(Chance::of(seed, number, 0), number, 0)).collect();
        let latest = Arc::new(Snapshot::new(0, listed));
        let kept = VecDeque::from([Arc::clone(&latest)]);
        Ok(Self { seed, appear: stones.div_ceil(APPEARS_ONE_IN), next_number: stones, kept, latest })
    }

    /// The same catalogue when it is so many revisions old.
    pub fn at_revision(seed: u64, stones: u32, revision: u32) -> Result<Self, Invalid> {
        let mut catalogue = Self::new(seed, stones)?;
        for _ in 0..revision {
            catalogue.advance();
        }
        Ok(catalogue)
    }

    /// The latest revision.
    pub fn latest(&self) -> &Arc<Snapshot> {
        &self.latest
    }

    /// An earlier one, while it is kept.
    pub fn as_of(&self, revision: u32) -> Result<&Arc<Snapshot>, NotKept> {
        if revision > self.latest.revision {
            return Err(NotKept::NotYet { revision, latest: self.latest.revision });
        }
        let oldest = self.kept.front().map_or(self.latest.revision, |oldest| oldest.revision);
        let found = self.kept.iter().find(|kept| kept.revision == revision);
        found.ok_or(NotKept::Gone { revision, oldest })
    }

    /// Makes the next revision, and forgets the oldest when there are too many.
    pub fn advance(&mut self) -> Advanced {
        let revision = self.latest.revision.saturating_add(1);
        let mut told = Advanced { revision, ..Advanced::default() };
        let mut stones = Vec::with_capacity(self.latest.stones.len());
        for stone in &self.latest.stones {
            let mut stone = *stone;
            match stone.live(Chance::of(self.seed, stone.number, revision), revision) {
                Fate::Stays => {}
                Fate::Repriced => told.repriced += 1,
                Fate::HeldOrFreed => told.held_or_freed += 1,
                Fate::Withdrawn => {
                    told.withdrawn += 1;
                    continue;
                }
            }
            stones.push(stone);
        }
        for _ in 0..self.appear {
            let number = self.next_number;
            // After billions of stones there are no new ones.
            let Some(next) = number.checked_add(1) else { break };
            stones.push(Listed::new(Chance::of(self.seed, number, revision), number, revision));
            self.next_number = next;
            told.appeared += 1;
        }
        self.latest = Arc::new(Snapshot::new(revision, stones));
        self.kept.push_back(Arc::clone(&self.latest));
        while self.kept.len() > REVISIONS_KEPT {
            self.kept.pop_front();
        }
        told
    }
}

impl Snapshot {
    fn new(revision: u32, stones: Vec<Listed>) -> Self {
        Self { revision, stones, index: OnceLock::new() }
    }

    fn index(&self) -> &PriceIndex {
        self.index.get_or_init(|| {
            let prices: Vec<u64> = self.stones.iter().map(|stone| stone.price_cents).collect();
            PriceIndex::new(&prices)
        })
    }

    /// Its number.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// Its date.
    pub fn taken_at(&self) -> Timestamp {
        date_of(self.revision)
    }

    /// How many stones have their price in this range.
    pub fn count(&self, range: PriceRange) -> u64 {
        self.index().count(range) as u64
    }

    /// The stones of this range from the `offset`-th on, by stone id, at most `limit` and never more than
    /// [`PAGE_STONES_MAX`]. Behind the last one there is nothing.
    pub fn page(&self, range: PriceRange, offset: u64, limit: u32) -> Vec<Stone> {
        let limit = limit.min(PAGE_STONES_MAX) as usize;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let places = self.index().page(range, offset, limit);
        places.filter_map(|place| self.stones.get(place)).map(Listed::told).collect()
    }
}

fn date_of(revision: u32) -> Timestamp {
    FIRST_AT.plus(REVISION_LASTS * revision)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const SEED: u64 = 20_260_101;

    fn range(min: u64, max: u64) -> PriceRange {
        PriceRange::new(min, max).unwrap()
    }

    /// All pages of a range, one after the other.
    fn walk(snapshot: &Snapshot, range: PriceRange, limit: u32) -> Vec<Stone> {
        let mut all = Vec::new();
        loop {
            let page = snapshot.page(range, all.len() as u64, limit);
            let is_last = page.len() < limit as usize;
            all.extend(page);
            if is_last {
                return all;
            }
        }
    }

    fn ids(stones: &[Stone]) -> Vec<&str> {
        stones.iter().map(|stone| stone.supplier_stone_id.as_str()).collect()
    }

    #[test]
    fn one_seed_gives_one_catalogue_in_every_revision() {
        let (mut one, mut same, mut other) = (
            Catalogue::new(SEED, 500).unwrap(),
            Catalogue::new(SEED, 500).unwrap(),
            Catalogue::new(SEED + 1, 500).unwrap(),
        );
        for _ in 0..3 {
            let all = |catalogue: &Catalogue| walk(catalogue.latest(), PriceRange::ALL, 100);
            assert_eq!(all(&one), all(&same));
            assert_ne!(all(&one), all(&other));
            assert_eq!(one.advance(), same.advance());
            other.advance();
        }
    }

    #[test]
    fn two_hundred_thousand_stones_are_met_once_each_by_pages_of_thirty() {
        let catalogue = Catalogue::new(SEED, 200_000).unwrap();
        let all = catalogue.latest();
        let cuts = [0, 30_000, 49_900, 49_901, 120_000, 1_000_000, PriceRange::ALL.max_cents()];
        let mut met = BTreeSet::new();
        for two in cuts.windows(2) {
            let part = range(two[0], two[1]);
            let stones = walk(all, part, 30);
            assert_eq!(stones.len() as u64, all.count(part), "{part}");
            assert!(stones.iter().all(|stone| part.contains(stone.price_cents)), "{part}");
            assert!(ids(&stones).is_sorted(), "{part}");
            met.extend(stones.into_iter().map(|stone| stone.supplier_stone_id));
        }
        assert_eq!((met.len(), all.count(PriceRange::ALL)), (200_000, 200_000));
    }

    #[test]
    fn prices_are_spread_very_unevenly() {
        let catalogue = Catalogue::new(SEED, 20_000).unwrap();
        let all = catalogue.latest();
        let share = |min, max| 100 * all.count(range(min, max)) / 20_000;
        assert!(share(0, 200_000) >= 60, "many cheap: {}", share(0, 200_000));
        let dear = all.count(range(2_000_000, PriceRange::ALL.max_cents()));
        assert!((20..=2_000).contains(&dear), "few dear: {dear}");
        let mut crowds: BTreeMap<u64, u64> = BTreeMap::new();
        for stone in walk(all, PriceRange::ALL, 1_000) {
            *crowds.entry(stone.price_cents).or_default() += 1;
        }
        assert!(crowds.values().any(|crowd| *crowd >= 400), "a crowd at one price");
        assert!(crowds.len() > 2_000, "and many prices: {}", crowds.len());
    }

    #[test]
    fn a_revision_stays_as_it_was_while_the_catalogue_changes() {
        let mut catalogue = Catalogue::new(SEED, 2_000).unwrap();
        let part = range(20_000, 90_000);
        let before = walk(catalogue.latest(), part, 30);
        catalogue.advance();
        let half: Vec<Stone> = catalogue.as_of(0).unwrap().page(part, 0, 500);
        for _ in 0..3 {
            catalogue.advance();
        }
        let rest = catalogue.as_of(0).unwrap().page(part, 500, 1_000);
        assert_eq!([half, rest].concat(), before[..].iter().take(1_500).cloned().collect::<Vec<_>>());
        assert_ne!(walk(catalogue.latest(), part, 30), before);
    }

    #[test]
    fn stones_change_their_price_appear_and_are_withdrawn() {
        let mut catalogue = Catalogue::new(SEED, 5_000).unwrap();
        let by_id = |catalogue: &Catalogue| -> BTreeMap<String, Stone> {
            let all = walk(catalogue.latest(), PriceRange::ALL, 1_000);
            all.into_iter().map(|stone| (stone.supplier_stone_id.clone(), stone)).collect()
        };
        let before = by_id(&catalogue);
        let told = catalogue.advance();
        let after = by_id(&catalogue);
        let count = |hits: &dyn Fn(&Stone, &Stone) -> bool| {
            before.iter().filter(|(id, old)| after.get(*id).is_some_and(|new| hits(old, new))).count() as u32
        };
        assert_eq!(told.revision, 1);
        assert_eq!(
            told.repriced,
            count(&|old, new| old.price_cents != new.price_cents && old.offer_id != new.offer_id)
        );
        assert_eq!(told.held_or_freed, count(&|old, new| old.available != new.available));
        assert_eq!(told.withdrawn as usize, before.keys().filter(|id| !after.contains_key(*id)).count());
        assert_eq!(told.appeared as usize, after.keys().filter(|id| !before.contains_key(*id)).count());
        assert!(told.repriced > 0 && told.held_or_freed > 0 && told.withdrawn > 0 && told.appeared > 0, "{told:?}");
        let dated = count(&|old, new| new.changed_at > old.changed_at);
        assert_eq!(dated, told.repriced + told.held_or_freed);
    }

    #[test]
    fn a_revision_is_kept_for_a_while_and_then_said_to_be_gone() {
        let mut catalogue = Catalogue::new(SEED, 10).unwrap();
        for _ in 1..REVISIONS_KEPT {
            catalogue.advance();
        }
        assert_eq!(catalogue.as_of(0).unwrap().revision(), 0);
        catalogue.advance();
        assert_eq!(catalogue.as_of(0).unwrap_err(), NotKept::Gone { revision: 0, oldest: 1 });
        assert_eq!(catalogue.as_of(9).unwrap_err(), NotKept::NotYet { revision: 9, latest: 8 });
        assert_eq!(catalogue.as_of(8).unwrap().taken_at().to_string(), "2026-01-01T00:08:00Z");
    }

    #[test]
    fn pages_have_limits_and_end() {
        let catalogue = Catalogue::new(SEED, 3_000).unwrap();
        let all = catalogue.latest();
        assert_eq!(all.page(PriceRange::ALL, 0, u32::MAX).len(), PAGE_STONES_MAX as usize);
        assert_eq!(all.page(PriceRange::ALL, 2_999, 30).len(), 1);
        assert!(all.page(PriceRange::ALL, 3_000, 30).is_empty());
        assert!(all.page(PriceRange::ALL, u64::MAX, 30).is_empty());
        assert!(Catalogue::new(SEED, 0).unwrap().latest().page(PriceRange::ALL, 0, 30).is_empty());
        assert_eq!(Catalogue::new(SEED, STONES_MAX + 1).unwrap_err().field, "stones");
    }

    #[test]
    fn every_stone_is_one_that_a_reader_accepts() {
        let mut catalogue = Catalogue::new(SEED, 2_000).unwrap();
        for _ in 0..20 {
            catalogue.advance();
        }
        for stone in walk(catalogue.latest(), PriceRange::ALL, 500) {
            assert_eq!(Stone::from_json(&stone.to_json()), Ok(stone));
        }
    }
}
