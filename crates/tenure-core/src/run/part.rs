//! What a job is of a run: an item, a page of a partition, or the consolidate.
//!
//! The text of a page is its stable id, `run:partition:offset`; it is what logs and tables show.

use std::fmt;
use std::str::FromStr;

use crate::id::uuid_id;
use crate::invalid::Invalid;
use crate::name::PartitionName;

/// Largest offset of a page: the rows of many thousand partitions can still be added up.
pub const PARTITION_OFFSET_MAX: u64 = 1 << 48;

uuid_id! {
    /// A run's id: a uuid v7 made by the client, so that a run created twice is one.
    RunId, "run"
}

/// What a job is of its run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// One of its items: `<run>`.
    Item(RunId),
    /// A page: `<run>:<partition>:<offset>`.
    Page {
        /// Of which run.
        run: RunId,
        /// Of which partition.
        partition: PartitionName,
        /// Where it begins.
        offset: u64,
    },
    /// The job that waits for all the others: `<run>/consolidate`.
    Consolidate(RunId),
}

impl Part {
    /// Whose part it is.
    pub const fn run(&self) -> RunId {
        match self {
            Self::Item(run) | Self::Consolidate(run) | Self::Page { run, .. } => *run,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(run) => run.fmt(f),
            Self::Page { run, partition, offset } => write!(f, "{run}:{partition}:{offset}"),
            Self::Consolidate(run) => write!(f, "{run}/consolidate"),
        }
    }
}

impl FromStr for Part {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("part", text, "a part of a run is its id, id:partition:offset or id/consolidate");
        let (run, rest) = text.split_at_checked(36).ok_or_else(refuse)?;
        let run: RunId = run.parse()?;
        match (rest, rest.strip_prefix(':').and_then(|rest| rest.rsplit_once(':'))) {
            ("", _) => Ok(Self::Item(run)),
            ("/consolidate", _) => Ok(Self::Consolidate(run)),
            (_, Some((partition, offset))) => {
                let offset = offset.parse().map_err(|_| refuse())?;
                Ok(Self::Page { run, partition: partition.parse()?, offset })
            }
            _ => Err(refuse()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn the_text_of_a_part_is_its_own_inverse() {
        let run = RunId::from_parts(Timestamp::from_micros(1_763_197_200_000_000), [1; 10]);
        let page = |name: &str| Part::Page { run, partition: name.parse().unwrap(), offset: 60 };
        for part in [Part::Item(run), Part::Consolidate(run), page("p1"), page("price:0-100"), page("a/consolidate")] {
            assert_eq!(part.to_string().parse(), Ok(part.clone()));
            assert_eq!(part.run(), run);
        }
        for wrong in ["", "p1:0", &format!("{run}:p1"), &format!("{run}:p1:x"), &format!("{run}/x")] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
    }
}
