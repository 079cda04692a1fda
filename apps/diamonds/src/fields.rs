//! Fields of a JSON object that came from outside, each read with its limit.
//!
//! Serde says `invalid type: string, expected u64` and leaves the reader to guess where. Here a refusal names the field,
//! what was there and what would have done.

use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::{Map, Value};
use tenure::{Invalid, Timestamp};

/// Longest text that is read as something else: ids and names are shorter.
const PARSED_BYTES_MAX: usize = 100;

/// An object whose fields are read one by one. Fields that nobody asks for are ignored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// The fields of `value`, which is called `what` when it is no object.
    pub(crate) fn of(what: &'static str, value: &'a Value) -> Result<Self, Invalid> {
        value.as_object().map(Self).ok_or_else(|| Invalid::new(what, value, "it is a JSON object"))
    }

    /// The value of a field; one that is null counts as missing.
    pub(crate) fn get(&self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// A whole number, written as a JSON number without a fraction.
    pub(crate) fn whole(&self, field: &'static str, limits: RangeInclusive<u64>) -> Result<u64, Invalid> {
        let rule = format!("it is a whole number from {} to {}", limits.start(), limits.end());
        let value = self.need(field, &rule)?;
        value.as_u64().filter(|number| limits.contains(number)).ok_or_else(|| Invalid::new(field, value, rule))
    }

    /// The same, or `None` where the field is missing.
    pub(crate) fn whole_if_there(
        &self,
        field: &'static str,
        limits: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Invalid> {
        self.get(field).map(|_| self.whole(field, limits)).transpose()
    }

    /// A text of 1 to `bytes_max` bytes without control characters.
    pub(crate) fn text(&self, field: &'static str, bytes_max: usize) -> Result<&'a str, Invalid> {
        let rule = text_rule(bytes_max);
        let value = self.need(field, &rule)?;
        let fits = |text: &&str| check_text(field, text, bytes_max).is_ok();
        value.as_str().filter(fits).ok_or_else(|| Invalid::new(field, value, rule))
    }

    /// A text that means something, such as an id; `rule` says what it has to be.
    pub(crate) fn parsed<T: FromStr>(&self, field: &'static str, rule: &str) -> Result<T, Invalid> {
        let text = self.text(field, PARSED_BYTES_MAX)?;
        text.parse().map_err(|_| Invalid::new(field, text, rule))
    }

    /// One of several words.
    pub(crate) fn word<T>(
        &self,
        field: &'static str,
        words: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Invalid> {
        let rule = format!("it is one of {}", words.trim_end());
        let value = self.need(field, &rule)?;
        value.as_str().and_then(parse).ok_or_else(|| Invalid::new(field, value, rule))
    }

    /// Yes or no.
    pub(crate) fn flag(&self, field: &'static str) -> Result<bool, Invalid> {
        let rule = "it is true or false";
        let value = self.need(field, rule)?;
        value.as_bool().ok_or_else(|| Invalid::new(field, value, rule))
    }

    /// A moment.
    pub(crate) fn time(&self, field: &'static str) -> Result<Timestamp, Invalid> {
        Timestamp::parse(field, self.text(field, 40)?)
    }

    fn need(&self, field: &'static str, rule: &str) -> Result<&'a Value, Invalid> {
        self.get(field).ok_or_else(|| Invalid::new(field, "nothing", format!("it is missing; {rule}")))
    }
}

/// Refuses a text that is empty, too long, or has control characters.
pub(crate) fn check_text(field: &'static str, text: &str, bytes_max: usize) -> Result<(), Invalid> {
    let fits = (1..=bytes_max).contains(&text.len()) && !text.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(Invalid::new(field, text, text_rule(bytes_max))) }
}

fn text_rule(bytes_max: usize) -> String {
    format!("it is a text of 1 to {bytes_max} bytes without control characters")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_names_the_field_what_was_there_and_what_would_do() {
        let object = json!({ "offset": -1, "cents": 12.5, "name": "", "there": "yes", "at": "soon", "null": null });
        let fields = Fields::of("message", &object).unwrap();
        let told = |refused: Invalid| refused.to_string();
        assert_eq!(
            told(fields.whole("offset", 0..=9).unwrap_err()),
            "offset `-1` is refused: it is a whole number from 0 to 9"
        );
        assert_eq!(
            told(fields.whole("limit", 1..=9).unwrap_err()),
            "limit `nothing` is refused: it is missing; it is a whole number from 1 to 9"
        );
        assert!(told(fields.whole("null", 1..=9).unwrap_err()).contains("missing"));
        assert!(told(fields.whole("cents", 0..=99).unwrap_err()).starts_with("cents `12.5`"));
        assert!(told(fields.text("name", 5).unwrap_err()).starts_with("name `\"\"`"));
        assert!(told(fields.flag("there").unwrap_err()).ends_with("it is true or false"));
        assert_eq!(fields.time("at").unwrap_err().field, "at");
        assert_eq!(Fields::of("message", &json!([1])).unwrap_err().field, "message");
    }

    #[test]
    fn texts_have_a_length_and_no_control_characters() {
        for (text, fits) in
            [("a", true), ("東", true), ("abcde", true), ("abcdef", false), ("a\nb", false), ("", false)]
        {
            let object = json!({ "text": text });
            assert_eq!(Fields::of("it", &object).unwrap().text("text", 5).is_ok(), fits, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_held_to_both_ends() {
        for (number, fits) in
            [(json!(1), true), (json!(9), true), (json!(0), false), (json!(10), false), (json!("5"), false)]
        {
            let object = json!({ "number": number });
            assert_eq!(Fields::of("it", &object).unwrap().whole("number", 1..=9).is_ok(), fits, "{object}");
        }
    }
}
