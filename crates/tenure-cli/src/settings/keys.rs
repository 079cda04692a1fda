//! The keys of one table of a settings file: each read as what it must be, or refused where it stands.

use std::str::FromStr;

use tenure_core::Invalid;
use toml::de::{DeTable, DeValue};

/// What cannot be read: where in the file, and why.
pub(super) type Bad = (usize, String);

/// The rule for every yes-or-no setting: `true` or `false` in the environment, and in a settings file with or without
/// quotes.
pub(super) fn boolean(field: &'static str, text: &str) -> Result<bool, Invalid> {
    text.parse().map_err(|_| Invalid::new(field, text, "it is true or false"))
}

/// The text of a yes-or-no setting in a settings file; [`boolean`] reads it.
pub(super) fn boolean_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Boolean(said) => Some(said.to_string()),
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    }
}

/// One table.
pub(super) struct Keys<'t, 'f> {
    table: &'t DeTable<'f>,
    /// Where it begins, for what is missing.
    line: usize,
}

impl<'t, 'f> Keys<'t, 'f> {
    /// Refuses keys that `what` does not have.
    pub(super) fn new(table: &'t DeTable<'f>, line: usize, what: &str, known: &[&str]) -> Result<Self, Bad> {
        match table.iter().find(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(Self { table, line }),
            Some((key, _)) => {
                let why = format!("the key `{}` is unknown; {what} has {}", key.get_ref(), known.join(", "));
                Err((key.span().start, why))
            }
        }
    }

    /// Where a key stands.
    pub(super) fn at(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.line, |value| value.span().start)
    }

    /// A refusal of a key's value.
    pub(super) fn refused(&self, key: &str) -> impl FnOnce(Invalid) -> Bad {
        let at = self.at(key);
        move |why| (at, why.to_string())
    }

    /// A text.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'t str>, Bad> {
        match self.table.get(key).map(|value| value.get_ref()) {
            None => Ok(None),
            Some(DeValue::String(text)) => Ok(Some(text.as_ref())),
            Some(_) => Err((self.at(key), format!("`{key}` is a string in quotes"))),
        }
    }

    /// A whole number.
    pub(super) fn number<N: FromStr>(&self, key: &str) -> Result<Option<N>, Bad> {
        match self.table.get(key).map(|value| value.get_ref()) {
            None => Ok(None),
            Some(DeValue::Integer(number)) => match number.as_str().parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err((self.at(key), format!("`{key}` is a whole number from 0 on"))),
            },
            Some(_) => Err((self.at(key), format!("`{key}` is a whole number, without quotes"))),
        }
    }
}
