//! [`Check`]: one thing that a product has to show, and what was seen.

use serde::Serialize;

/// What was to be seen, and what was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What should hold, as a sentence.
    pub name: String,
    /// Whether it did.
    pub holds: bool,
    /// The figures behind it.
    pub seen: String,
}

impl Check {
    /// A check that holds or does not.
    pub fn new(name: impl Into<String>, holds: bool, seen: impl Into<String>) -> Self {
        Self { name: name.into(), holds, seen: seen.into() }
    }

    /// Holds when both are equal; what was seen is both.
    pub fn equal<T: PartialEq + std::fmt::Display>(name: impl Into<String>, expected: &T, seen: &T) -> Self {
        let text = match expected == seen {
            true => seen.to_string(),
            false => format!("{seen}, expected {expected}"),
        };
        Self::new(name, expected == seen, text)
    }
}
