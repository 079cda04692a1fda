//! Packs neighbouring pieces into partitions.

use super::Partition;

/// Pieces as they come, by price, and how many partitions they need so far.
pub(super) struct Pieces {
    pieces: Vec<Partition>,
    size_max: u64,
    /// Exactly as many as [`pack`](Self::pack) would make of them, but for one that is empty.
    pub(super) partitions: u64,
    /// Stones of the partition that is being filled; `None` where the next piece begins one.
    filling: Option<u64>,
}

impl Pieces {
    pub(super) fn new(size_max: u64) -> Self {
        Self { pieces: Vec::new(), size_max, partitions: 0, filling: None }
    }

    pub(super) fn push(&mut self, piece: Partition) {
        self.pieces.push(piece);
        if piece.stones == 0 {
            return;
        }
        let filled = self.filling.map(|stones| stones + piece.stones).filter(|stones| *stones <= self.size_max);
        self.partitions += u64::from(filled.is_none());
        self.filling = (!piece.is_one_price).then(|| filled.unwrap_or(piece.stones));
    }

    pub(super) fn pack(&self) -> Vec<Partition> {
        pack(&self.pieces, self.size_max)
    }
}

/// Packs pieces, which lie side by side, into partitions of at most `size_max` stones, as few as can be, and among those
/// with the smallest largest one. A piece that is larger stays alone.
fn pack(pieces: &[Partition], size_max: u64) -> Vec<Partition> {
    let pieces = without_empty(pieces);
    let mut partitions = Vec::new();
    for stretch in pieces.chunk_by(|one, next| !one.is_one_price && !next.is_one_price) {
        let cap = smallest_cap(stretch, size_max);
        partitions.extend(fill(stretch, cap));
    }
    partitions
}

/// Pieces without stones become a part of the one before them, or of the first one that has some.
fn without_empty(pieces: &[Partition]) -> Vec<Partition> {
    let mut kept: Vec<Partition> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match kept.last_mut() {
            Some(last) if last.stones == 0 || piece.stones == 0 => *last = joined(last, piece),
            _ => kept.push(*piece),
        }
    }
    kept
}

/// The smallest size with which there are no more partitions than with `size_max`.
fn smallest_cap(stretch: &[Partition], size_max: u64) -> u64 {
    let fewest = fill(stretch, size_max).len();
    let (mut low, mut high) = (stretch.iter().map(|piece| piece.stones).max().unwrap_or(0), size_max);
    // Partitions only get fewer with a larger size.
    while low < high {
        let middle = low + (high - low) / 2;
        if fill(stretch, middle).len() > fewest {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Fills one partition after the other, each as long as the next piece fits.
fn fill(stretch: &[Partition], cap: u64) -> Vec<Partition> {
    let mut filled: Vec<Partition> = Vec::new();
    for piece in stretch {
        match filled.last_mut() {
            Some(last) if last.stones + piece.stones <= cap => *last = joined(last, piece),
            _ => filled.push(*piece),
        }
    }
    filled
}

fn joined(one: &Partition, next: &Partition) -> Partition {
    Partition {
        range: one.range.joined(&next.range).unwrap_or(one.range), // they lie side by side
        stones: one.stones + next.stones,
        is_one_price: one.is_one_price || next.is_one_price,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price_range::PriceRange;

    /// Pieces of ten prices each, packed with size 100: how many stones each partition has.
    fn packed(stones: &[u64]) -> Vec<u64> {
        let piece = |(at, stones): (usize, &u64)| Partition {
            range: PriceRange::new(10 * at as u64, 10 * at as u64 + 10).unwrap(),
            stones: *stones,
            is_one_price: *stones > 100,
        };
        let pieces: Vec<Partition> = stones.iter().enumerate().map(piece).collect();
        let mut coming = Pieces::new(100);
        pieces.iter().for_each(|piece| coming.push(*piece));
        let partitions = coming.pack();
        let counted = partitions.iter().filter(|partition| partition.stones > 0).count();
        assert_eq!(coming.partitions, counted as u64, "they are counted as they come");
        let ends = |of: &[Partition]| (of[0].range.min_cents(), of[of.len() - 1].range.max_cents());
        assert_eq!(ends(&partitions), ends(&pieces));
        partitions.iter().map(|partition| partition.stones).collect()
    }

    #[test]
    fn they_are_few_and_among_those_even() {
        assert_eq!(packed(&[25; 5]), [75, 50], "not 100 and 25");
        assert_eq!(packed(&[25; 4]), [100]);
        assert_eq!(packed(&[20, 20, 20, 20, 20, 20, 20]), [80, 60]);
    }

    #[test]
    fn one_that_is_too_large_stays_alone() {
        assert_eq!(packed(&[25, 25, 400, 25, 25]), [50, 400, 50]);
        assert_eq!(packed(&[400, 500]), [400, 500]);
    }

    #[test]
    fn empty_pieces_make_no_partition() {
        assert_eq!(packed(&[0, 0, 25, 0, 25, 0]), [50]);
        assert_eq!(packed(&[0, 400, 0, 0, 500, 0]), [400, 500]);
        assert_eq!(packed(&[0, 0]), [0]);
    }

    #[test]
    fn crowds_below_the_limit_are_packed_as_they_are() {
        assert_eq!(packed(&[90, 20, 90]), [90, 20, 90]);
        assert_eq!(packed(&[60, 40, 60, 30]), [100, 90]);
    }
}
