//! robots.txt: whether a site lets us read a page, by RFC 9309.
//!
//! | what | rule |
//! |---|---|
//! | group | the rules for [`AGENT`], of all its groups together; without any, those for `*`; without any, all is allowed |
//! | match | the longest pattern that fits the beginning of path and query wins; of two as long `Allow` |
//! | `*`, `$` | any characters; the end of the address, as the last character of a pattern |
//! | encoding | `%7e` and `~` are the same, `%2F` and `/` are not; other scripts are compared percent-encoded |
//! | nothing | a `Disallow` without a pattern forbids nothing; `/robots.txt` itself is always allowed |
//! | size | the first 512 KiB and the first 10,000 rules of a group count |
//! | 2xx | by its rules; 401 and 403: refused; other 4xx: all is allowed |
//! | else | not known, as with redirects without an end: ask again later |

use serde::{Deserialize, Serialize};

use crate::canonical::CanonicalUrl;

/// How we are called there, and in the header `User-Agent`.
pub const AGENT: &str = "tenure-links";
/// As much as is read of a robots.txt.
pub const ROBOTS_BYTES_MAX: usize = 512 << 10;
/// As many rules as are kept.
pub const RULES_MAX: usize = 10_000;

/// What a site allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Robots {
    /// What its rules say; without rules everything.
    Rules(Vec<Rule>),
    /// Nothing: who may not read the rules may not read the pages.
    Refused,
    /// The site could not say: neither allowed nor refused.
    Unknown {
        /// What it answered instead.
        status: u16,
    },
}

/// One line of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    allows: bool,
    /// Normalised as addresses are, with `*` and a last `$`.
    pattern: String,
}

/// What a site says about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go there.
    Allowed,
    /// Do not, now or later.
    Refused,
    /// Ask again later.
    Unknown,
}

impl Robots {
    /// What an answer to `GET /robots.txt` means.
    pub fn of_answer(status: u16, body: &[u8]) -> Self {
        match status {
            200..=299 => {
                let read = body.get(..ROBOTS_BYTES_MAX).unwrap_or(body);
                Self::Rules(rules_for(AGENT, &String::from_utf8_lossy(read)))
            }
            401 | 403 => Self::Refused,
            429 => Self::Unknown { status }, // too many questions, not too few pages
            400..=499 => Self::Rules(Vec::new()),
            _ => Self::Unknown { status },
        }
    }

    /// Whether we may read this page.
    pub fn decide(&self, url: &CanonicalUrl) -> Decision {
        let rules = match self {
            Self::Rules(rules) => rules,
            Self::Refused => return Decision::Refused,
            Self::Unknown { .. } => return Decision::Unknown,
        };
        let query = url.as_url().query().map(|query| format!("?{query}")).unwrap_or_default();
        let address = normalise(&format!("{}{query}", url.as_url().path()));
        if address == "/robots.txt" {
            return Decision::Allowed;
        }
        let fitting = rules.iter().filter(|rule| fits(&rule.pattern, &address));
        match fitting.max_by_key(|rule| (rule.pattern.len(), rule.allows)) {
            Some(Rule { allows: false, .. }) => Decision::Refused,
            Some(_) | None => Decision::Allowed,
        }
    }
}

/// The rules for `agent`, or else those for everybody.
fn rules_for(agent: &str, text: &str) -> Vec<Rule> {
    let (mut ours, mut everybodys): (Option<Vec<Rule>>, Vec<Rule>) = (None, Vec::new());
    // Whom the group is for that we are in: us, everybody. It ends at the first agent behind a rule.
    let (mut is_ours, mut is_everybodys, mut has_rules) = (false, false, false);
    for line in text.trim_start_matches('\u{feff}').split(['\n', '\r']) {
        let line = line.split('#').next().unwrap_or_default();
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        match key.as_str() {
            "user-agent" => {
                if std::mem::take(&mut has_rules) {
                    (is_ours, is_everybodys) = (false, false);
                }
                let token = value.split(|c: char| !c.is_ascii_alphabetic() && !"-_".contains(c)).next();
                is_everybodys |= value.starts_with('*');
                is_ours |= token.is_some_and(|token| token.eq_ignore_ascii_case(agent));
                if is_ours {
                    // A group for us counts even when it is empty.
                    ours.get_or_insert_default();
                }
            }
            "allow" | "disallow" => {
                has_rules = true;
                let rule = || Rule { allows: key == "allow", pattern: normalise(value) };
                let groups = [(is_ours, ours.as_mut()), (is_everybodys, Some(&mut everybodys))];
                for group in groups.into_iter().filter_map(|(is_in, group)| group.filter(|_| is_in)) {
                    if !value.is_empty() && group.len() < RULES_MAX {
                        group.push(rule());
                    }
                }
            }
            _ => {} // sitemaps, delays and whatever else is told here
        }
    }
    ours.unwrap_or(everybodys)
}

/// Whether the pattern fits the beginning of the address. Each piece is found behind the one before and never again, so
/// no pattern takes longer than the address and itself are long.
fn fits(pattern: &str, address: &str) -> bool {
    let (pattern, is_anchored) = pattern.strip_suffix('$').map_or((pattern, false), |pattern| (pattern, true));
    let mut pieces = pattern.split('*');
    let Some(mut rest) = address.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for piece in pieces {
        if let Some(before) = last.replace(piece) {
            let Some(at) = rest.find(before) else { return false };
            rest = &rest[at + before.len()..];
        }
    }
    match last {
        None => !is_anchored || rest.is_empty(),
        Some(piece) if is_anchored => rest.ends_with(piece),
        Some(piece) => rest.contains(piece),
    }
}

/// Percent-encoding in one form: decoded where it is not needed, upper-cased where it is, added for other scripts.
fn normalise(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut normal = String::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
        let encoded = if byte == b'%' { hex(at + 1).zip(hex(at + 2)) } else { None };
        let letter = encoded.and_then(|(high, low)| u8::try_from(16 * high + low).ok());
        at += if letter.is_some() { 3 } else { 1 };
        match letter {
            Some(letter) if letter.is_ascii_alphanumeric() || b"-._~".contains(&letter) => normal.push(letter.into()),
            Some(letter) => normal.push_str(&format!("%{letter:02X}")),
            None if byte.is_ascii() => normal.push(byte.into()),
            None => normal.push_str(&format!("%{byte:02X}")),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::Decision::{Allowed, Refused, Unknown};
    use super::*;

    fn decide(robots: &str, path: &str) -> Decision {
        let url = CanonicalUrl::parse(&format!("https://a.example{path}")).unwrap();
        Robots::of_answer(200, robots.as_bytes()).decide(&url)
    }

    #[test]
    fn our_group_is_read_and_else_the_one_for_everybody() {
        let both = "User-agent: *\nDisallow: /\n\nUser-Agent: Tenure-Links/1.0 # us\nDisallow: /private";
        assert_eq!(decide(both, "/x"), Allowed);
        assert_eq!(decide(both, "/private/x"), Refused);
        let others = "user-agent: other\ndisallow: /\nuser-agent: *\ndisallow: /x";
        assert_eq!((decide(others, "/y"), decide(others, "/x")), (Allowed, Refused));
        let longer_name = "user-agent: tenure-links-plus\ndisallow: /";
        assert_eq!(decide(longer_name, "/x"), Allowed);
        assert_eq!(decide("user-agent: *\ndisallow: /\nuser-agent: tenure-links\n", "/x"), Allowed, "ours is empty");
        assert_eq!((decide("", "/x"), decide("<html>no such page</html>", "/x")), (Allowed, Allowed));
    }

    #[test]
    fn groups_for_several_agents_and_several_groups_for_one_are_joined() {
        let shared = "user-agent: other\nuser-agent: tenure-links\n\nsitemap: x\ndisallow: /a\r\n\
                      user-agent: third\rdisallow: /b\nuser-agent: TENURE-LINKS\nuser-agent: fourth\ndisallow: /c";
        assert_eq!(["/a", "/b", "/c"].map(|path| decide(shared, path)), [Refused, Allowed, Refused]);
    }

    #[test]
    fn the_longest_match_wins_and_allow_wins_ties() {
        let robots = "\u{feff}user-agent: *\ndisallow: /a\nallow: /a/b\ndisallow: /a/b/c\nallow: /tie\ndisallow: /tie\ndisallow:";
        for (path, decision) in [
            ("/a", Refused),
            ("/a/b", Allowed),
            ("/a/bc", Allowed),
            ("/a/b/c", Refused),
            ("/tie", Allowed),
            ("/z", Allowed),
        ] {
            assert_eq!(decide(robots, path), decision, "{path}");
        }
    }

    #[test]
    fn stars_and_ends_are_understood() {
        for (pattern, yes, no) in [
            ("/*.gif$", "/a/b.gif", "/a.gif?x"),
            ("/a*b*c", "/axxbxxcxx", "/acb"),
            ("/a$", "/a", "/a/"),
            ("/a*", "/abc", "/b"),
            ("/a*$", "/abc", "/b"),
            ("*/x", "/y/x", "/y"),
            ("/*ab$", "/abab", "/aba"),
            ("/a$b", "/a$b", "/a"),
            ("/?q=", "/?q=1", "/q"),
        ] {
            let robots = format!("user-agent: *\ndisallow: {pattern}");
            assert_eq!((decide(&robots, yes), decide(&robots, no)), (Refused, Allowed), "{pattern}");
        }
    }

    #[test]
    fn encodings_of_one_letter_are_the_same() {
        for (pattern, yes) in
            [("/%7euser", "/~user"), ("/~user", "/%7Euser"), ("/가", "/%ea%b0%80"), ("/a%2fb", "/a%2Fb")]
        {
            assert_eq!(decide(&format!("user-agent: *\ndisallow: {pattern}"), yes), Refused, "{pattern}");
        }
        assert_eq!(decide("user-agent: *\ndisallow: /a%2Fb", "/a/b"), Allowed);
        assert_eq!(normalise("%%4%zz%"), "%%4%zz%");
    }

    #[test]
    fn the_status_of_the_answer_counts_first() {
        let url = CanonicalUrl::parse("https://a.example/x").unwrap();
        let refuse = b"user-agent: *\ndisallow: /";
        for (status, decision) in [
            (200, Refused),
            (301, Unknown),
            (401, Refused),
            (403, Refused),
            (404, Allowed),
            (410, Allowed),
            (429, Unknown),
            (500, Unknown),
            (503, Unknown),
        ] {
            let body: &[u8] = if status == 200 { refuse } else { b"" };
            assert_eq!(Robots::of_answer(status, body).decide(&url), decision, "{status}");
        }
        assert_eq!(decide("user-agent: *\ndisallow: /", "/robots.txt"), Allowed);
    }

    #[test]
    fn beyond_its_size_a_file_says_nothing() {
        let padding = "#".repeat(ROBOTS_BYTES_MAX);
        assert_eq!(decide(&format!("user-agent: *\n{padding}\ndisallow: /"), "/x"), Allowed);
        let many = "disallow: /y\n".repeat(RULES_MAX);
        assert_eq!(decide(&format!("user-agent: *\n{many}disallow: /x"), "/x"), Allowed);
        assert_eq!(decide(&format!("user-agent: *\n{many}disallow: /x"), "/y"), Refused);
    }
}
