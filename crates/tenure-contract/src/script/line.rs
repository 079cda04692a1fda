//! Reading a line: a verb, words, `key=value` options, and what is expected after `->`.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::duration;

/// One line of a script. Verbs take out what they understand; what is left over is an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) verb: String,
    words: Vec<String>,
    options: BTreeMap<String, String>,
    expected: Option<Vec<String>>,
}

impl Line {
    /// Reads a line; `None` for an empty one.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        let mut tokens = tokens(text)?.into_iter();
        let Some(verb) = tokens.next() else { return Ok(None) };
        let mut line = Self { verb, words: Vec::new(), options: BTreeMap::new(), expected: None };
        for token in tokens.by_ref() {
            if token == "->" {
                line.expected = Some(Vec::new());
                break;
            }
            match token.split_once('=') {
                Some((key, value)) => {
                    if line.options.insert(key.into(), value.into()).is_some() {
                        return Err(format!("{key} is given twice"));
                    }
                }
                None => line.words.push(token),
            }
        }
        if let Some(expected) = &mut line.expected {
            expected.extend(tokens.map(|word| if word == "completed" { "succeeded".into() } else { word }));
            if expected.is_empty() {
                return Err("nothing is expected after ->".into());
            }
        }
        Ok(Some(line))
    }

    /// The next word.
    pub(super) fn word(&mut self, what: &str) -> Result<String, String> {
        if self.words.is_empty() { Err(format!("{} needs {what}", self.verb)) } else { Ok(self.words.remove(0)) }
    }

    /// All words that are left.
    pub(super) fn words(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words)
    }

    /// Whether this word is there.
    pub(super) fn flag(&mut self, word: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|other| other != word);
        self.words.len() < before
    }

    /// The value of an option.
    pub(super) fn option(&mut self, key: &str) -> Option<String> {
        self.options.remove(key)
    }

    /// The value of an option that must be there.
    pub(super) fn required(&mut self, key: &str) -> Result<String, String> {
        self.option(key).ok_or_else(|| format!("{} needs {key}=…", self.verb))
    }

    /// The value of an option, read as something else.
    pub(super) fn parsed<T: std::str::FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        let read = |text: String| text.parse().map_err(|_| format!("{key}={text} cannot be read"));
        self.option(key).map(read).transpose()
    }

    /// The value of an option as a duration.
    pub(super) fn duration(&mut self, key: &str) -> Result<Option<Duration>, String> {
        self.option(key).map(|text| parse_duration(&text)).transpose()
    }

    /// All options that are left.
    pub(super) fn options(&mut self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.options)
    }

    /// What is expected, if the line says so.
    pub(super) fn expectation(&mut self) -> Option<Vec<String>> {
        self.expected.take()
    }

    /// What is expected, or a verb's plain success.
    pub(super) fn expected_or(&mut self, usual: &str) -> Vec<String> {
        self.expectation().unwrap_or_else(|| vec![usual.into()])
    }

    /// Refuses what no verb took out.
    pub(super) fn finish(&self) -> Result<(), String> {
        if let Some(word) = self.words.first() {
            return Err(format!("{} does not know what to do with {word}", self.verb));
        }
        if let Some(key) = self.options.keys().next() {
            return Err(format!("{} has no option {key}", self.verb));
        }
        if self.expected.is_some() { Err(format!("{} answers nothing", self.verb)) } else { Ok(()) }
    }
}

/// Reads a duration such as `31s`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    duration::parse("duration", text).map_err(|why| why.to_string())
}

/// An option to compare, its duration or moment written as stores' answers are: `60s` is `1m`.
pub(super) fn compared(key: &str, value: &str) -> String {
    let (sign, text) = value.split_at(value.len() - value.trim_start_matches(['+', '-']).len());
    match parse_duration(text) {
        Ok(time) => format!("{key}={sign}{}", duration::format(time)),
        Err(_) => format!("{key}={value}"),
    }
}

/// Words between white space; quotes keep white space in, `#` begins a comment.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut token: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => token.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                token.get_or_insert_default();
                quote = Some(c);
            }
            (None, '#') if token.is_none() => break,
            (None, c) if c.is_whitespace() => tokens.extend(token.take()),
            (None, c) => token.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".into());
    }
    tokens.extend(token);
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_verb_words_options_and_an_expectation() {
        let mut line =
            Line::parse("  fail W1 J1 backoff=\"fixed 5m\" payload='{\"a\":1}' -> retry # why").unwrap().unwrap();
        assert_eq!(line.verb, "fail");
        assert_eq!(line.option("backoff").unwrap(), "fixed 5m");
        assert_eq!(line.option("payload").unwrap(), "{\"a\":1}");
        assert_eq!(line.expectation().unwrap(), ["retry"]);
        assert_eq!(line.words(), ["W1", "J1"]);
        assert_eq!(line.finish(), Ok(()));
        assert_eq!(Line::parse("   # nothing").unwrap(), None);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (text, why) in [
            ("claim W1 ->", "nothing is expected"),
            ("enqueue J1 a=1 a=2", "a is given twice"),
            ("enqueue \"J1", "a quote is not closed"),
        ] {
            assert!(Line::parse(text).unwrap_err().contains(why), "{text}");
        }
        let left_over = Line::parse("advance 1s twice=1").unwrap().unwrap();
        assert!(left_over.finish().unwrap_err().contains("1s"));
    }
}
