//! What an error means for its job: try again, give up, or dead now.
//!
//! A handler may say the class itself. Otherwise it says what it met (a [`Fault`]) and a [`RuleTable`] decides: rules
//! are read from the top, the first match wins, and what nothing matches gets the table's own last word. Tables are
//! data, so a product's policy is a list that a person can read; the seeds' own are in [`preset`](crate::preset).

use std::borrow::Cow;

/// What an error means for its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// It may work next time: tried again while attempts are left.
    Transient,
    /// It will never work: the job is `failed`, also on its last attempt.
    Permanent,
    /// Nobody should try: the job is `dead` at once, kept for a person to look at.
    Dead,
}

/// What a handler met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault<'a> {
    /// An error with a code of the handler's own, compared letter by letter.
    Code(&'a str),
    /// A source answered with this HTTP status.
    HttpStatus(u16),
    /// Something took too long: a call, or the handler itself.
    Timeout,
    /// A source could not be reached, or hung up.
    Connection,
    /// A source asked for fewer calls without saying so in HTTP.
    RateLimit,
    /// The handler panicked.
    Panic,
}

/// Which faults a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// This code.
    Code(Cow<'static, str>),
    /// HTTP statuses from the first to the last, both included.
    HttpStatus(u16, u16),
    /// [`Fault::Timeout`].
    Timeout,
    /// [`Fault::Connection`].
    Connection,
    /// [`Fault::RateLimit`].
    RateLimit,
    /// [`Fault::Panic`].
    Panic,
}

/// One row of a table. Make one with [`Rule::code`] and its siblings and set what differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which faults it is about.
    pub matches: Pattern,
    /// It holds from this many such faults in a row on; 1 is always.
    pub from_streak: u32,
    /// What they mean.
    pub class: Class,
    /// Whether the source is recorded as a candidate for blocking.
    pub blocks: bool,
}

/// Rules in order, and the class of what none of them matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTable {
    /// The first match wins.
    pub rules: Cow<'static, [Rule]>,
    /// The last word.
    pub otherwise: Class,
}

/// What a table says about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What it means for the job.
    pub class: Class,
    /// Whether to record the source as a candidate for blocking.
    pub block_candidate: bool,
}

/// What a user gets who says nothing: it may work next time, unless the source says that the request is wrong.
const DEFAULT: &[Rule] = &[
    Rule::new(Pattern::Timeout, Class::Transient),
    Rule::new(Pattern::Connection, Class::Transient),
    Rule::new(Pattern::RateLimit, Class::Transient),
    Rule::new(Pattern::Panic, Class::Transient),
    Rule::http_status(408, Class::Transient), // request timeout
    Rule::http_status(425, Class::Transient), // too early
    Rule::http_status(429, Class::Transient), // too many requests
    Rule::http_statuses(400, 499, Class::Permanent),
    Rule::http_statuses(500, 599, Class::Transient),
];

impl RuleTable {
    /// These rules and this last word.
    pub const fn new(rules: &'static [Rule], otherwise: Class) -> Self {
        Self { rules: Cow::Borrowed(rules), otherwise }
    }

    /// The table of a user who says nothing: timeouts, connections, rate limits, panics, 408, 425, 429 and 5xx are
    /// transient, other 4xx permanent, everything else transient.
    pub const fn standard() -> Self {
        Self::new(DEFAULT, Class::Transient)
    }

    /// This table with `rule` read before all others.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.to_mut().insert(0, rule);
        self
    }

    /// What `fault` means. `streak` counts how often its source (the job's gate, such as a domain) has given this very
    /// fault in a row, this time included.
    pub fn classify(&self, fault: &Fault<'_>, streak: u32) -> Verdict {
        match self.rules.iter().find(|rule| rule.holds(fault, streak)) {
            Some(rule) => Verdict { class: rule.class, block_candidate: rule.blocks },
            None => Verdict { class: self.otherwise, block_candidate: false },
        }
    }
}

impl Default for RuleTable {
    fn default() -> Self {
        Self::standard()
    }
}

impl Rule {
    /// Faults of this pattern are of this class.
    pub const fn new(matches: Pattern, class: Class) -> Self {
        Self { matches, from_streak: 1, class, blocks: false }
    }

    /// A rule about one code.
    pub const fn code(code: &'static str, class: Class) -> Self {
        Self::new(Pattern::Code(Cow::Borrowed(code)), class)
    }

    /// A rule about one HTTP status.
    pub const fn http_status(status: u16, class: Class) -> Self {
        Self::http_statuses(status, status, class)
    }

    /// A rule about the HTTP statuses from `first` to `last`.
    pub const fn http_statuses(first: u16, last: u16, class: Class) -> Self {
        Self::new(Pattern::HttpStatus(first, last), class)
    }

    /// The rule holds from the `streak`-th such fault in a row on; before that the rules below speak.
    #[must_use]
    pub const fn from_streak(mut self, streak: u32) -> Self {
        self.from_streak = streak;
        self
    }

    /// The source is recorded as a candidate for blocking.
    #[must_use]
    pub const fn blocking(mut self) -> Self {
        self.blocks = true;
        self
    }

    fn holds(&self, fault: &Fault<'_>, streak: u32) -> bool {
        // This fault has happened, so a caller that counts nothing and says zero means one.
        streak.max(1) >= self.from_streak && self.matches.fits(fault)
    }
}

impl Pattern {
    fn fits(&self, fault: &Fault<'_>) -> bool {
        match self {
            Self::Code(code) => *fault == Fault::Code(code),
            Self::HttpStatus(first, last) => matches!(fault, Fault::HttpStatus(s) if (first..=last).contains(&s)),
            Self::Timeout => *fault == Fault::Timeout,
            Self::Connection => *fault == Fault::Connection,
            Self::RateLimit => *fault == Fault::RateLimit,
            Self::Panic => *fault == Fault::Panic,
        }
    }
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Transient, Self::Permanent, Self::Dead];

    /// The word used in commands and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::Dead => "dead",
        }
    }

    /// The class of this word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::Class::{Dead, Permanent, Transient};
    use super::*;

    #[test]
    fn every_row_of_the_default_table_speaks() {
        let table = RuleTable::default();
        for (fault, class) in [
            (Fault::Timeout, Transient),
            (Fault::Connection, Transient),
            (Fault::RateLimit, Transient),
            (Fault::Panic, Transient),
            (Fault::HttpStatus(408), Transient),
            (Fault::HttpStatus(425), Transient),
            (Fault::HttpStatus(429), Transient),
            (Fault::HttpStatus(400), Permanent),
            (Fault::HttpStatus(403), Permanent),
            (Fault::HttpStatus(404), Permanent),
            (Fault::HttpStatus(410), Permanent),
            (Fault::HttpStatus(499), Permanent),
            (Fault::HttpStatus(500), Transient),
            (Fault::HttpStatus(503), Transient),
            (Fault::HttpStatus(599), Transient),
            (Fault::HttpStatus(0), Transient),
            (Fault::HttpStatus(302), Transient),
            (Fault::HttpStatus(600), Transient),
            (Fault::Code("ANYTHING"), Transient),
            (Fault::Code(""), Transient),
        ] {
            for streak in [0, 1, 2, u32::MAX] {
                let expected = Verdict { class, block_candidate: false };
                assert_eq!(table.classify(&fault, streak), expected, "{fault:?} {streak}");
            }
        }
    }

    #[test]
    fn the_first_match_wins() {
        let table = RuleTable::new(&[], Permanent).with(Rule::http_statuses(400, 499, Transient));
        assert_eq!(table.classify(&Fault::HttpStatus(404), 1).class, Transient);
        let table = table.with(Rule::http_status(404, Dead).blocking());
        assert_eq!(table.classify(&Fault::HttpStatus(404), 1), Verdict { class: Dead, block_candidate: true });
        assert_eq!(table.classify(&Fault::HttpStatus(405), 1), Verdict { class: Transient, block_candidate: false });
        assert_eq!(table.classify(&Fault::HttpStatus(500), 1), Verdict { class: Permanent, block_candidate: false });
    }

    #[test]
    fn codes_are_compared_letter_by_letter() {
        let table = RuleTable::default().with(Rule::code("BAD", Permanent));
        assert_eq!(table.classify(&Fault::Code("BAD"), 1).class, Permanent);
        for other in ["bad", "BA", "BADE", " BAD"] {
            assert_eq!(table.classify(&Fault::Code(other), 1).class, Transient, "{other}");
        }
        let read_from_a_file = Rule::new(Pattern::Code(String::from("WORSE").into()), Dead);
        assert_eq!(table.with(read_from_a_file).classify(&Fault::Code("WORSE"), 1).class, Dead);
    }

    #[test]
    fn a_pattern_fits_its_own_fault_only() {
        let pairs = [
            (Pattern::Code("X".into()), Fault::Code("X")),
            (Pattern::HttpStatus(403, 403), Fault::HttpStatus(403)),
            (Pattern::Timeout, Fault::Timeout),
            (Pattern::Connection, Fault::Connection),
            (Pattern::RateLimit, Fault::RateLimit),
            (Pattern::Panic, Fault::Panic),
        ];
        for (i, (pattern, _)) in pairs.iter().enumerate() {
            for (j, (_, fault)) in pairs.iter().enumerate() {
                assert_eq!(pattern.fits(fault), i == j, "{pattern:?} {fault:?}");
            }
        }
    }

    #[test]
    fn a_rule_for_a_streak_is_silent_before_it() {
        let table = RuleTable::new(&[], Transient).with(Rule::http_status(403, Dead).from_streak(3).blocking());
        let classes = [0, 1, 2, 3, 4].map(|streak| table.classify(&Fault::HttpStatus(403), streak).class);
        assert_eq!(classes, [Transient, Transient, Transient, Dead, Dead]);
    }

    #[test]
    fn words_are_their_own_inverse() {
        for class in Class::ALL {
            assert_eq!(Class::parse(class.as_str()), Some(class));
        }
        assert_eq!(Class::parse("snooze"), None);
    }
}
