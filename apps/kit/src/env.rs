//! [`Env`]: settings from the environment, by the names that the seeds gave them. A wrong one is refused at the start, with
//! its name, its value and what it may be; one that is not there, or empty, is not set.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where settings come from: the process, or a test.
#[derive(Clone)]
pub struct Env(Arc<BTreeMap<String, String>>);

/// A setting that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    name: &'static str,
    value: String,
    limit: String,
}

impl Env {
    /// The process's own, as it is now; what is no text is not set.
    pub fn of_process() -> Self {
        let pairs =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self(Arc::new(pairs.collect()))
    }

    /// A test's.
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        Self(Arc::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()))
    }

    /// A text.
    pub fn text(&self, name: &'static str) -> Option<String> {
        self.0.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Whole seconds within bounds.
    pub fn seconds(&self, name: &'static str, least: u64, most: u64) -> Result<Option<Duration>, Refused> {
        Ok(self.number(name, least, most)?.map(Duration::from_secs))
    }

    /// Whole milliseconds within bounds.
    pub fn millis(&self, name: &'static str, least: u64, most: u64) -> Result<Option<Duration>, Refused> {
        Ok(self.number(name, least, most)?.map(Duration::from_millis))
    }

    /// A whole number within bounds.
    pub fn number(&self, name: &'static str, least: u64, most: u64) -> Result<Option<u64>, Refused> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(Refused { name, value: text, limit: format!("it is a whole number from {least} to {most}") }),
        }
    }

    /// `true` or `false`.
    pub fn switch(&self, name: &'static str) -> Result<Option<bool>, Refused> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Some(true)),
            "false" | "0" | "no" | "off" => Ok(Some(false)),
            _ => Err(Refused { name, value: text, limit: "it is true or false".into() }),
        }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env") // what is in it may be secret
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=`{}` is refused: {}", self.name, self.value.escape_debug(), self.limit)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_refused_by_its_name() {
        let env = Env::of(&[("TTL", "0"), ("ON", "maybe"), ("EMPTY", " "), ("GOOD", " 60 "), ("OFF", "False")]);
        assert_eq!(env.seconds("GOOD", 1, 60).unwrap(), Some(Duration::from_secs(60)));
        assert_eq!(env.millis("GOOD", 1, 60).unwrap(), Some(Duration::from_millis(60)));
        assert_eq!((env.switch("OFF").unwrap(), env.number("EMPTY", 0, 1).unwrap()), (Some(false), None));
        let refused = env.seconds("TTL", 1, 86_400).unwrap_err().to_string();
        assert_eq!(refused, "TTL=`0` is refused: it is a whole number from 1 to 86400");
        assert_eq!(env.switch("ON").unwrap_err().to_string(), "ON=`maybe` is refused: it is true or false");
    }
}
