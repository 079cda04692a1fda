//! Tags and text of a markup, one after the other: bookmark files and pages are both read with it.
//!
//! It knows no elements and builds no tree. Whatever comes, it ends, it never goes back, and no byte is looked at more than
//! a few times: an input that is twice as long takes twice as long.

/// One piece of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `<name …>`
    Open(Tag<'a>),
    /// `</name>`
    Close(&'a str),
    /// What stands between tags, as it came. A `<` that begins no tag is text.
    Text(&'a str),
    /// A tag or a comment without an end.
    Broken,
}

/// A tag that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag<'a> {
    /// As it came: compare without case.
    pub(crate) name: &'a str,
    attributes: Attributes<'a>,
}

/// Where a value in quotes may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// On its line: without a quote there the tag is broken, and reading goes on with the next line. A quote that was
    /// forgotten costs its own line and no other.
    OneLine,
    /// Wherever the quote is, as browsers have it.
    ManyLines,
}

/// Reads an input to its end.
pub(crate) struct Tokens<'a> {
    rest: &'a str,
    values: Values,
}

impl<'a> Tokens<'a> {
    /// Begins at the beginning.
    pub(crate) fn new(text: &'a str, values: Values) -> Self {
        Self { rest: text, values }
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Takes what stands before `</name`, or all that is left: the inside of an element whose tags are none.
    pub(crate) fn take_raw(&mut self, name: &str) -> &'a str {
        let ends = |at: usize| {
            let after = self.rest.as_bytes().get(at + 2..)?;
            let (found, rest) = after.split_at_checked(name.len())?;
            let is_whole = rest.first().is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>'));
            (found.eq_ignore_ascii_case(name.as_bytes()) && is_whole).then_some(at)
        };
        let at = self.rest.match_indices("</").find_map(|(at, _)| ends(at));
        self.take(at.unwrap_or(self.rest.len()))
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// Goes on behind `end`; without one there is nothing left.
    fn skip_past(&mut self, end: &str) -> bool {
        let at = self.rest.find(end);
        self.take(at.map_or(self.rest.len(), |at| at + end.len()));
        at.is_some()
    }

    fn tag(&mut self) -> Option<Tag<'a>> {
        let name = self.take(self.rest.find(ends_name).unwrap_or(self.rest.len()));
        let attributes = Attributes { rest: self.rest, values: self.values };
        let mut walk = attributes;
        let end = loop {
            match walk.step() {
                Step::Attribute(..) => {}
                end => break end,
            }
        };
        self.rest = walk.rest;
        (end == Step::End).then_some(Tag { name, attributes })
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while !self.rest.is_empty() {
            let text = self.take(markup_at(self.rest));
            if !text.is_empty() {
                return Some(Token::Text(text));
            }
            self.take(1); // the `<`
            if self.rest.starts_with("!--") {
                self.take(1); // `<!-->` is a comment too
                if !self.skip_past("-->") {
                    return Some(Token::Broken);
                }
            } else if self.rest.starts_with(['!', '?']) {
                if !self.skip_past(">") {
                    return Some(Token::Broken);
                }
            } else if self.rest.starts_with('/') {
                self.take(1);
                return Some(self.tag().map_or(Token::Broken, |tag| Token::Close(tag.name)));
            } else {
                return Some(self.tag().map_or(Token::Broken, Token::Open));
            }
        }
        None
    }
}

impl<'a> Tag<'a> {
    /// Whether it is this element.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The value of an attribute as it came, empty if it has none; of two the first.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'a str> {
        let mut walk = self.attributes;
        loop {
            match walk.step() {
                Step::Attribute(found, value) if found.eq_ignore_ascii_case(name) => return Some(value),
                Step::Attribute(..) => {}
                Step::End | Step::Broken => return None,
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attributes<'a> {
    rest: &'a str,
    values: Values,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'a> {
    Attribute(&'a str, &'a str),
    End,
    Broken,
}

impl<'a> Attributes<'a> {
    fn step(&mut self) -> Step<'a> {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if let Some(behind) = self.rest.strip_prefix('>') {
            self.rest = behind;
            return Step::End;
        }
        // A name has a first letter, whatever it is: every step goes forward.
        let mut letters = self.rest.char_indices();
        if letters.next().is_none() {
            return Step::Broken;
        }
        let end = letters.find(|(_, c)| ends_name(*c) || *c == '=').map_or(self.rest.len(), |(at, _)| at);
        let (name, behind) = self.rest.split_at(end);
        self.rest = behind.trim_ascii_start();
        let Some(behind) = self.rest.strip_prefix('=') else { return Step::Attribute(name, "") };
        self.rest = behind.trim_ascii_start();
        match self.value() {
            Some(value) => Step::Attribute(name, value),
            None => Step::Broken,
        }
    }

    fn value(&mut self) -> Option<&'a str> {
        let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            let end = self.rest.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(self.rest.len());
            let (value, behind) = self.rest.split_at(end);
            self.rest = behind;
            return Some(value);
        };
        let inside = &self.rest[1..];
        let is_end = |c: char| c == quote || (c == '\n' && self.values == Values::OneLine);
        let end = inside.find(is_end).unwrap_or(inside.len());
        let (value, behind) = inside.split_at(end);
        self.rest = behind.get(1..).unwrap_or_default();
        behind.starts_with(quote).then_some(value)
    }
}

fn ends_name(c: char) -> bool {
    c.is_ascii_whitespace() || c == '/' || c == '>'
}

/// Where the next tag, comment or declaration begins, or the end.
fn markup_at(text: &str) -> usize {
    let begins = |at: usize| match text.as_bytes().get(at + 1..) {
        Some([b'!' | b'?', ..]) => true,
        Some([b'/', letter, ..] | [letter, ..]) => letter.is_ascii_alphabetic(),
        _ => false,
    };
    text.match_indices('<').map(|(at, _)| at).find(|at| begins(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each piece as a short text.
    fn pieces(text: &str, values: Values) -> Vec<String> {
        let show = |token| match token {
            Token::Open(tag) => format!("<{}>", tag.name),
            Token::Close(name) => format!("</{name}>"),
            Token::Text(text) => text.to_owned(),
            Token::Broken => "broken".to_owned(),
        };
        Tokens::new(text, values).map(show).collect()
    }

    fn first(text: &str) -> Tag<'_> {
        match Tokens::new(text, Values::ManyLines).next() {
            Some(Token::Open(tag)) => tag,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tags_and_text_come_in_their_order() {
        let text = "<!DOCTYPE x><DL><p>\n<DT><A HREF=a>one</A ><!-- <b> --><?php ?>two<br/></DL>";
        let expected = ["<DL>", "<p>", "\n", "<DT>", "<A>", "one", "</A>", "two", "<br>", "</DL>"];
        assert_eq!(pieces(text, Values::ManyLines), expected);
    }

    #[test]
    fn an_angle_that_begins_no_tag_is_text() {
        assert_eq!(pieces("1 < 2 <3 </3 <", Values::ManyLines), ["1 < 2 <3 </3 <"]);
    }

    #[test]
    fn attributes_are_found_in_any_quotes_and_any_case() {
        let tag = first("<A HREF=\"x>y\" title='it\"s' Add_Date = 12 bare x=it's href=second>");
        assert!(tag.is("a"));
        for (name, value) in [
            ("href", Some("x>y")),
            ("TITLE", Some("it\"s")),
            ("add_date", Some("12")),
            ("bare", Some("")),
            ("x", Some("it's")),
            ("icon", None),
        ] {
            assert_eq!(tag.attribute(name), value, "{name}");
        }
    }

    #[test]
    fn what_has_no_end_is_broken_and_the_last_piece() {
        for text in ["<a", "<a href", "<a href=", "<a href=\"x", "<a href='x>y", "<!-- x", "<!doctype", "</a"] {
            assert_eq!(pieces(text, Values::ManyLines), ["broken"], "{text}");
        }
        assert_eq!(pieces("<!--><b>", Values::ManyLines), ["<b>"]);
    }

    #[test]
    fn a_forgotten_quote_costs_its_own_line_only_where_values_have_one() {
        let text = "<a href=\"x>\n<b title=\"y\">z";
        assert_eq!(pieces(text, Values::OneLine), ["broken", "<b>", "z"]);
        assert_eq!(pieces(text, Values::ManyLines), ["<a>", "z"]);
    }

    #[test]
    fn the_inside_of_a_script_is_no_markup() {
        let mut tokens = Tokens::new("if (a</b) '<c>' </scripts></SCRIPT >x", Values::ManyLines);
        assert_eq!(tokens.take_raw("script"), "if (a</b) '<c>' </scripts>");
        assert_eq!(tokens.next(), Some(Token::Close("SCRIPT")));
        assert_eq!(tokens.take_raw("script"), "x", "without an end it is all that is left");
        assert_eq!(tokens.rest(), "");
    }
}
