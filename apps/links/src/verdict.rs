//! What becomes of a job by what it met, and who becomes a candidate for blocking.
//!
//! The rules are those of Tenure's preset [`LINKS`]; this module says what was met in its words, counts how often a domain
//! has answered 403 in a row, and reads the consequence:
//!
//! | met | the job | the domain |
//! |---|---|---|
//! | robots.txt refuses | dead at once | a candidate: `robots` |
//! | a captcha, whatever the status | dead at once | a candidate: `captcha` |
//! | 403, the first in a row of its domain | tried again after 5 minutes, dead by its second attempt | |
//! | 403, the second in a row or a later one | dead at once | a candidate: `forbidden` |
//! | any other status, a timeout, no connection | tried again after 5 minutes, dead by its second attempt | |

use std::fmt;

use tenure::Class;
use tenure::core::classify::Fault;
use tenure::preset::{CAPTCHA, LINKS, ROBOTS_REFUSED};

/// What an attempt met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// The site's robots.txt keeps us from this page.
    RobotsRefused,
    /// The page is a captcha.
    Captcha,
    /// This status, of the page or of the robots.txt that could not be read.
    Status(u16),
    /// No answer in time.
    Timeout,
    /// The site could not be reached, or hung up.
    Connection,
}

/// What becomes of the job, and of its domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Whether there are no more attempts, unless a person asks for them.
    pub is_dead: bool,
    /// Why its domain is put forward for blocking, if it is.
    pub block: Option<BlockReason>,
}

/// Why a domain is a candidate for blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockReason {
    /// Its robots.txt refused us.
    Robots,
    /// It asked for a person.
    Captcha,
    /// It answered 403, twice in a row or more often.
    Forbidden,
}

/// How often a domain has answered 403 in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Streak(pub u32);

impl Streak {
    /// The streak when this was met too. Any other answer of the domain ends it; a timeout, a lost connection and a robots.txt
    /// that refuses say nothing of how it answers for its pages, and change nothing.
    #[must_use]
    pub fn after(self, met: Met) -> Self {
        match met {
            Met::Status(403) => Self(self.0.saturating_add(1)),
            Met::Status(_) | Met::Captcha => Self(0),
            Met::RobotsRefused | Met::Timeout | Met::Connection => self,
        }
    }
}

impl Met {
    /// What follows for a job that makes its `attempt` (1 is the first), when `streak` counts this very answer too.
    pub fn judge(self, attempt: u32, streak: Streak) -> Verdict {
        let fault = match self {
            Self::Status(status) => Fault::HttpStatus(status),
            Self::RobotsRefused => Fault::Code(ROBOTS_REFUSED),
            Self::Captcha => Fault::Code(CAPTCHA),
            Self::Timeout => Fault::Timeout,
            Self::Connection => Fault::Connection,
        };
        let said = LINKS.classification.classify(&fault, streak.0);
        let is_last = attempt >= u32::from(LINKS.rules.max_attempts);
        Verdict {
            is_dead: is_last || said.class != Class::Transient,
            block: self.reason().filter(|_| said.block_candidate),
        }
    }

    fn reason(self) -> Option<BlockReason> {
        match self {
            Self::RobotsRefused => Some(BlockReason::Robots),
            Self::Captcha => Some(BlockReason::Captcha),
            Self::Status(_) => Some(BlockReason::Forbidden),
            Self::Timeout | Self::Connection => None,
        }
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RobotsRefused => f.write_str("robots"),
            Self::Captcha => f.write_str("captcha"),
            Self::Status(status) => write!(f, "http_{status}"),
            Self::Timeout => f.write_str("timeout"),
            Self::Connection => f.write_str("connection"),
        }
    }
}

impl BlockReason {
    /// The word that is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Robots => "robots",
            Self::Captcha => "captcha",
            Self::Forbidden => "forbidden",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGAIN: Verdict = Verdict { is_dead: false, block: None };
    const DEAD: Verdict = Verdict { is_dead: true, block: None };

    fn blocked(reason: BlockReason) -> Verdict {
        Verdict { is_dead: true, block: Some(reason) }
    }

    /// Shows: S1.16 S1.47
    #[test]
    fn two_attempts_and_then_it_is_dead() {
        let statuses = [301, 400, 401, 404, 410, 429, 500, 503].map(Met::Status);
        for met in statuses.into_iter().chain([Met::Timeout, Met::Connection]) {
            for streak in [0, 1, 7].map(Streak) {
                assert_eq!(met.judge(1, streak), AGAIN, "{met:?}");
                assert_eq!(met.judge(2, streak), DEAD, "{met:?}");
                assert_eq!(met.judge(3, streak), DEAD, "{met:?}");
            }
        }
    }

    /// Shows: S1.48 S1.49
    #[test]
    fn a_robots_refusal_and_a_captcha_are_dead_at_once_and_name_their_domain() {
        for attempt in [1, 2] {
            assert_eq!(Met::RobotsRefused.judge(attempt, Streak(0)), blocked(BlockReason::Robots));
            assert_eq!(Met::Captcha.judge(attempt, Streak(0)), blocked(BlockReason::Captcha));
        }
    }

    /// Shows: S1.50
    #[test]
    fn a_403_is_dead_at_the_second_in_a_row_of_its_domain() {
        let met = Met::Status(403);
        assert_eq!(met.judge(1, Streak(1)), AGAIN);
        assert_eq!(met.judge(1, Streak(2)), blocked(BlockReason::Forbidden));
        assert_eq!(met.judge(1, Streak(9)), blocked(BlockReason::Forbidden));
        assert_eq!(met.judge(2, Streak(2)), blocked(BlockReason::Forbidden));
        assert_eq!(met.judge(2, Streak(1)), DEAD, "its attempts are used up, and its domain has done nothing");
    }

    /// Shows: S1.50
    #[test]
    fn only_403s_in_a_row_are_counted() {
        let after = |all: &[Met]| all.iter().fold(Streak::default(), |streak, met| streak.after(*met)).0;
        let no = Met::Status(403);
        assert_eq!(after(&[no, no, no]), 3);
        for other in [Met::Status(200), Met::Status(404), Met::Status(503), Met::Captcha] {
            assert_eq!(after(&[no, other]), 0, "{other:?}");
            assert_eq!(after(&[no, other, no]), 1, "{other:?}");
        }
        for silent in [Met::Timeout, Met::Connection, Met::RobotsRefused] {
            assert_eq!(after(&[no, silent, no]), 2, "{silent:?}");
        }
        assert_eq!(Streak(u32::MAX).after(no), Streak(u32::MAX));
    }
}
