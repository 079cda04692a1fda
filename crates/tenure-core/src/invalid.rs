//! The one error of validation: a sentence that names the field, the value and the limit.

use std::fmt;

use crate::text::is_deceptive;

/// An input that was refused before anything was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value} is refused: {limit}")]
pub struct Invalid {
    /// Which input: `queue`, `payload`, `priority`, …
    pub field: &'static str,
    /// What was given, quoted and shortened.
    pub value: String,
    /// What would have been accepted.
    pub limit: String,
}

/// Longest value repeated back in a message; payloads can be a megabyte.
const VALUE_CHARS_MAX: usize = 60;

impl Invalid {
    /// Refuses `value` of `field`; `limit` says what would do.
    pub fn new(field: &'static str, value: impl fmt::Display, limit: impl Into<String>) -> Self {
        Self { field, value: quote(&value.to_string()), limit: limit.into() }
    }
}

/// Back-quotes a value for a message: control characters and the like escaped, cut after 60 characters.
fn quote(value: &str) -> String {
    let mut shown = String::with_capacity(VALUE_CHARS_MAX + 3);
    shown.push('`');
    for (i, c) in value.chars().enumerate() {
        if i == VALUE_CHARS_MAX {
            shown.push('…');
            break;
        }
        if is_deceptive(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown.push('`');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_field_value_and_limit() {
        let refused = Invalid::new("priority", 7, "priorities are 0 (critical) to 3 (low)");
        assert_eq!(refused.to_string(), "priority `7` is refused: priorities are 0 (critical) to 3 (low)");
    }

    #[test]
    fn long_and_unprintable_values_are_shortened_and_escaped() {
        let refused = Invalid::new("queue", format!("a\0{}", "x".repeat(500)), "a name");
        assert!(refused.value.starts_with("`a\\u{0}xxx") && refused.value.ends_with("…`"), "{}", refused.value);
    }
}
