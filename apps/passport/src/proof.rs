//! The proof: a Merkle tree over the hashes of a passport's facts.
//!
//! Who holds one fact can show that the passport was made of it, without showing the others: the root stands on the
//! label, and a path of a few hashes leads from the fact to the root. The others are not shown, and not secret either:
//! leaves are hashes without salt, so whoever has the path can try what a neighbour may say, and a mass has few values.
//!
//! ```text
//!                root = node(ab, c)             leaf(h)    = SHA-256(0x00 || h)
//!               /                 \             node(l, r) = SHA-256(0x01 || l || r)
//!       ab = node(a, b)            c
//!       /             \            │            One byte in front keeps leaves and nodes apart: no pair of hashes
//!  a = leaf(1)   b = leaf(2)   c = leaf(3)      can be shown as a fact, nor a fact as a pair.
//! ```
//!
//! - Leaves stand in ascending order of the facts' hashes, byte by byte, each hash once: the root depends on the set of
//!   facts and on nothing else.
//! - Neighbours are paired from the left. The last one of an odd row is promoted to the next row as it is, never paired
//!   with itself: doubled, two different lists would share a root.
//!
//! This is the tree of RFC 6962, section 2.1 (there without our order), so its tools can check it. A tree without
//! leaves is refused.

use serde::{Deserialize, Serialize};

use crate::canonical::Canonical;
use crate::code::Refusal;
use crate::digest::Digest;
use crate::fact::Fact;

/// Longest path: more than any tree that fits into memory.
const PATH_MAX: usize = 64;

/// The tree of a passport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The facts' hashes, ascending.
    facts: Vec<Digest>,
    /// From the leaves to the root.
    rows: Vec<Vec<Digest>>,
}

/// That one fact is part of a passport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inclusion {
    /// The hash of the fact.
    pub fact_hash: Digest,
    /// Which leaf it is; 0 is the first.
    pub index: usize,
    /// How many leaves there are.
    pub leaves: usize,
    /// The neighbours on the way to the root, the nearest first.
    pub path: Vec<Digest>,
}

impl Tree {
    /// The tree of these facts, in whatever order they come.
    pub fn new(mut facts: Vec<Digest>) -> Result<Self, Refusal> {
        facts.sort_unstable();
        facts.dedup();
        let rows = rows(facts.iter().map(|fact| leaf(fact.as_bytes())).collect());
        if rows.is_empty() {
            return Err(Refusal::invalid(
                "a passport without facts is refused: seal a snapshot that holds at least one",
            ));
        }
        Ok(Self { facts, rows })
    }

    /// The proof root.
    pub fn root(&self) -> Digest {
        // There is a row, and the last one has one hash.
        self.rows.last().and_then(|row| row.first()).copied().unwrap_or(Digest::from_bytes([0; 32]))
    }

    /// How many facts it holds.
    pub fn leaves(&self) -> usize {
        self.facts.len()
    }

    /// The proof that this fact is part of it, if it is.
    pub fn prove(&self, fact_hash: Digest) -> Option<Inclusion> {
        let index = self.facts.binary_search(&fact_hash).ok()?;
        // A neighbour that is not there is a promotion: nothing is added to the path.
        let path = self.rows.iter().enumerate().filter_map(|(row, hashes)| hashes.get((index >> row) ^ 1).copied());
        Some(Inclusion { fact_hash, index, leaves: self.facts.len(), path: path.collect() })
    }
}

impl Inclusion {
    /// Whether the path leads to `root`.
    pub fn check(&self, root: Digest) -> bool {
        if self.index >= self.leaves || self.path.len() > PATH_MAX {
            return false;
        }
        let (mut index, mut width) = (self.index, self.leaves);
        let mut path = self.path.iter();
        let mut hash = leaf(self.fact_hash.as_bytes());
        while width > 1 {
            if index ^ 1 < width {
                let Some(neighbour) = path.next() else { return false };
                hash = if index % 2 == 0 { node(&hash, neighbour) } else { node(neighbour, &hash) };
            }
            (index, width) = (index / 2, width.div_ceil(2));
        }
        path.next().is_none() && hash == root
    }
}

/// A fact with its proof, for somebody who has a label and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenFact {
    /// What kind of thing.
    pub fact_type: String,
    /// Which one.
    pub fact_key: String,
    /// By which version of its shape the payload was written.
    pub schema_version: u32,
    /// What is said, the canonical JSON that was hashed.
    pub payload: String,
    /// That it is part of the passport.
    pub inclusion: Inclusion,
}

impl ProvenFact {
    /// The fact with its proof, if it is part of the tree.
    pub fn new(tree: &Tree, fact: &Fact) -> Result<Option<Self>, Refusal> {
        let Fact { fact_type, fact_key, schema_version, payload } = fact.clone();
        let inclusion = tree.prove(fact.hash()?);
        let payload = payload.as_str().to_owned();
        Ok(inclusion.map(|inclusion| Self { fact_type, fact_key, schema_version, payload, inclusion }))
    }

    /// Refuses what does not lead from this very fact to `root`.
    pub fn check(&self, root: Digest) -> Result<(), Refusal> {
        let Self { fact_type, fact_key, schema_version, payload, inclusion } = self.clone();
        let fact = Fact { fact_type, fact_key, schema_version, payload: Canonical::read("payload", &payload)? };
        let hash = fact.hash()?;
        if hash != inclusion.fact_hash {
            let proven = inclusion.fact_hash;
            return Err(Refusal::invalid(format!(
                "the proof is of another fact: this one has the hash {hash}, not {proven}"
            )));
        }
        match inclusion.check(root) {
            true => Ok(()),
            false => Err(Refusal::invalid(format!("the proof does not lead to the proof root {root}"))),
        }
    }
}

fn leaf(data: &[u8]) -> Digest {
    Digest::of_parts(&[&[0], data])
}

fn node(left: &Digest, right: &Digest) -> Digest {
    Digest::of_parts(&[&[1], left.as_bytes(), right.as_bytes()])
}

/// Every row from the leaves to the root; none of no leaves.
fn rows(leaves: Vec<Digest>) -> Vec<Vec<Digest>> {
    let mut rows = Vec::new();
    let mut row = leaves;
    while row.len() > 1 {
        let above =
            row.chunks(2).map(|pair| if let [left, right] = pair { node(left, right) } else { pair[0] }).collect();
        rows.push(std::mem::replace(&mut row, above));
    }
    if !row.is_empty() {
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hashes(count: u32) -> Vec<Digest> {
        (0..count).map(|i| Digest::of(&i.to_be_bytes())).collect()
    }

    /// The eight leaves that implementations of RFC 6962 test with, and the root of each beginning of the list.
    #[test]
    fn the_tree_is_that_of_certificate_transparency() {
        let data: [&[u8]; 8] = [
            &[],
            &[0x00],
            &[0x10],
            &[0x20, 0x21],
            &[0x30, 0x31],
            &[0x40, 0x41, 0x42, 0x43],
            &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
            &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
        ];
        let roots = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        for (count, root) in (1..).zip(roots) {
            let rows = rows(data[..count].iter().map(|data| leaf(data)).collect());
            assert_eq!(rows.last().unwrap()[0].to_hex(), root, "{count} leaves");
        }
    }

    #[test]
    fn the_root_depends_on_the_set_of_facts_alone() {
        let facts = hashes(7);
        let root = Tree::new(facts.clone()).unwrap().root();
        let mut others = facts.clone();
        others.reverse();
        others.push(facts[3]);
        let tree = Tree::new(others).unwrap();
        assert_eq!((tree.root(), tree.leaves()), (root, 7));
        assert_ne!(Tree::new(facts[..6].to_vec()).unwrap().root(), root);
    }

    #[test]
    fn an_odd_leaf_is_promoted_and_not_doubled() {
        let mut facts = hashes(3);
        facts.sort_unstable();
        let [a, b, c] = [0, 1, 2].map(|i: usize| leaf(facts[i].as_bytes()));
        let root = Tree::new(facts).unwrap().root();
        assert_eq!(root, node(&node(&a, &b), &c));
        assert_ne!(root, node(&node(&a, &b), &node(&c, &c)));
    }

    #[test]
    fn a_pair_of_hashes_cannot_be_shown_as_a_fact() {
        let tree = Tree::new(hashes(4)).unwrap();
        for row in &tree.rows[1..] {
            for inner in row {
                let short = Inclusion { fact_hash: *inner, index: 0, leaves: 1, path: Vec::new() };
                assert!(!short.check(tree.root()));
            }
        }
    }

    #[test]
    fn a_proven_fact_is_checked_by_the_root_alone() {
        let fact = |mass: u32| Fact {
            fact_type: "bom.component".to_owned(),
            fact_key: "cathode/nickel".to_owned(),
            schema_version: 1,
            payload: Canonical::of("payload", &mass).unwrap(),
        };
        let tree = Tree::new([1, 2, 3].map(|mass| fact(mass).hash().unwrap()).to_vec()).unwrap();
        assert_eq!(ProvenFact::new(&tree, &fact(4)), Ok(None));
        let proven = ProvenFact::new(&tree, &fact(2)).unwrap().unwrap();
        assert_eq!(proven.check(tree.root()), Ok(()));
        let other = ProvenFact { payload: "3".to_owned(), ..proven.clone() };
        assert!(other.check(tree.root()).unwrap_err().message.contains("of another fact"));
        assert!(proven.check(Digest::of(b"another")).unwrap_err().message.contains("does not lead"));
    }

    #[test]
    fn no_facts_have_no_tree() {
        assert!(Tree::new(Vec::new()).unwrap_err().message.contains("without facts"));
    }

    proptest! {
        #[test]
        fn every_fact_is_proven_and_nothing_else(count in 1_u32..70, pick: prop::sample::Index, bit in 0_usize..256) {
            let facts = hashes(count);
            let tree = Tree::new(facts.clone()).unwrap();
            let fact = facts[pick.index(facts.len())];
            let proof = tree.prove(fact).unwrap();
            prop_assert!(proof.check(tree.root()));
            prop_assert_eq!(tree.prove(Digest::of(b"another")), None);

            let flip = |hash: &mut Digest| {
                let mut bytes = *hash.as_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                *hash = Digest::from_bytes(bytes);
            };
            let mut root = tree.root();
            flip(&mut root);
            prop_assert!(!proof.check(root), "another root");
            for place in 0..proof.path.len() {
                let mut other = proof.clone();
                flip(&mut other.path[place]);
                prop_assert!(!other.check(tree.root()), "another neighbour");
            }
            let mut other = proof.clone();
            flip(&mut other.fact_hash);
            prop_assert!(!other.check(tree.root()), "another fact");
            let mut other = proof.clone();
            other.path.push(fact);
            prop_assert!(!other.check(tree.root()), "a longer path");
            other.path.truncate(proof.path.len().saturating_sub(1));
            prop_assert!(proof.path.is_empty() || !other.check(tree.root()), "a shorter path");
            for index in (0..=facts.len()).filter(|index| *index != proof.index) {
                let other = Inclusion { index, ..proof.clone() };
                prop_assert!(!other.check(tree.root()), "another place");
            }
        }
    }
}
