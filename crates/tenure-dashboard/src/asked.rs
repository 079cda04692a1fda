//! What a page's address asks for: a filter that was left empty asks for nothing, and one that is refused says why beside
//! its field.

use std::str::FromStr;

use tenure_core::{Invalid, Timestamp, When};
use tenure_server::problem::Problem;
use tenure_store::StoreError;

use crate::bits::{Markup, encoded, escaped};

/// A word of a filter; `None` when it was left empty.
pub(crate) fn word(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// A name, a state, an id.
pub(crate) fn parsed<T: FromStr<Err = Invalid>>(text: &str) -> Result<Option<T>, Invalid> {
    word(text).map(str::parse).transpose()
}

/// The same of a field that has another name in the form than in what it names.
pub(crate) fn parsed_as<T: FromStr<Err = Invalid>>(field: &'static str, text: &str) -> Result<Option<T>, Invalid> {
    parsed(text).map_err(|invalid| Invalid { field, ..invalid })
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

/// The value of a filter that cannot be accepted, if there is one: its page shows the form as it was filled in, with the
/// reason beside the field, and lists nothing.
#[derive(Debug, Default)]
pub(crate) struct Refused(Option<Invalid>);

impl Refused {
    /// What was found, or nothing and why.
    pub(crate) fn or<T: Default>(found: Result<T, Invalid>) -> (T, Self) {
        match found {
            Ok(found) => (found, Self(None)),
            Err(invalid) => (T::default(), Self(Some(invalid))),
        }
    }

    pub(crate) const fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// The reason, if it is about this field of the form.
    pub(crate) fn beside(&self, field: &str) -> Markup {
        let invalid = self.0.as_ref().filter(|invalid| invalid.field == field);
        let reason = |invalid: &Invalid| {
            format!("<span class=\"error-text\" id=\"refused-{field}\" role=\"alert\">{}</span>", Self::text(invalid))
        };
        Markup(invalid.map(reason).unwrap_or_default())
    }

    /// The attributes of this field, if the reason is about it.
    pub(crate) fn mark(&self, field: &str) -> Markup {
        let is_meant = self.0.as_ref().is_some_and(|invalid| invalid.field == field);
        let mark = || format!(" aria-invalid=\"true\" aria-describedby=\"refused-{field}\" autofocus");
        Markup(if is_meant { mark() } else { String::new() })
    }

    /// The reason, if it is about none of these fields: it stands above the form then.
    pub(crate) fn above(&self, fields: &[&str]) -> Markup {
        let invalid = self.0.as_ref().filter(|invalid| !fields.contains(&invalid.field));
        let reason = |invalid: &Invalid| format!("<p class=\"said bad\" role=\"alert\">{}</p>", Self::text(invalid));
        Markup(invalid.map(reason).unwrap_or_default())
    }

    fn text(invalid: &Invalid) -> String {
        escaped(Problem::from(invalid.clone()).detail())
    }
}

/// A refusal of the store is about a filter as well; everything else stays an error.
pub(crate) fn refusal<T>(found: Result<T, StoreError>) -> Result<Result<T, Invalid>, StoreError> {
    match found {
        Err(StoreError::Invalid(invalid)) => Ok(Err(invalid)),
        found => found.map(Ok),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_value_is_explained_beside_its_field_as_text() {
        let (jobs, refused): (Vec<u8>, _) = Refused::or(Err(Invalid::new("kind", "<b>", "letters & digits")));
        assert!(refused.is_some() && jobs.is_empty());
        let beside = refused.beside("kind").0;
        assert!(beside.contains("letters &amp; digits") && !beside.contains("<b>"), "{beside}");
        assert!(refused.mark("kind").0.contains("aria-invalid"));
        assert_eq!((refused.beside("queue").0, refused.mark("queue").0), (String::new(), String::new()));
        assert_eq!(refused.above(&["kind", "queue"]).0, "");
        assert!(refused.above(&["queue"]).0.contains("letters"), "it is said somewhere");
    }

    #[test]
    fn an_address_says_what_was_filled_in() {
        assert_eq!(address("/jobs", &[("state", ""), ("kind", " ")]), "/jobs");
        assert_eq!(address("/jobs", &[("state", "dead"), ("kind", "a/b")]), "/jobs?state=dead&kind=a%2Fb");
    }
}
