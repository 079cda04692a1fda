//! What a page's address asks for: a filter that was left empty asks for nothing.

use std::str::FromStr;

use tenure_core::{Invalid, Timestamp, When};

use crate::bits::encoded;

/// A word of a filter; `None` when it was left empty.
pub(crate) fn word(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// A name, a state, an id.
pub(crate) fn parsed<T: FromStr<Err = Invalid>>(text: &str) -> Result<Option<T>, Invalid> {
    word(text).map(str::parse).transpose()
}

/// A moment: a date, or how long ago.
pub(crate) fn moment(field: &'static str, text: &str, now: Timestamp) -> Result<Option<Timestamp>, Invalid> {
    word(text).map(|text| When::parse(field, text).map(|when| when.at(now))).transpose()
}

/// An address with those of the pairs that say something.
pub(crate) fn address(path: &str, pairs: &[(&str, &str)]) -> String {
    let said = pairs.iter().filter(|(_, value)| !value.trim().is_empty());
    let query: Vec<String> = said.map(|(name, value)| format!("{name}={}", encoded(value.trim()))).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_was_filled_in() {
        assert_eq!(address("/jobs", &[("state", ""), ("kind", " ")]), "/jobs");
        assert_eq!(address("/jobs", &[("state", "dead"), ("kind", "a/b")]), "/jobs?state=dead&kind=a%2Fb");
    }
}
