//! Reading: one pass over the tags, with a stack of lists that is never deeper than the limit.

use tenure::Invalid;

use super::{Bookmarks, Folder, FolderNo, Limits, OTHER, Placement, SCHEMES_SKIPPED};
use crate::entity::decode;
use crate::markup::{Tag, Token, Tokens, Values};
use crate::text::plain;

/// The first words of every bookmark file, in any case.
const DECLARATION: [&str; 2] = ["<!doctype", "netscape-bookmark-file-1>"];

pub(super) fn read(text: &str, limits: &Limits) -> Result<Bookmarks, Invalid> {
    check_declaration(text)?;
    let (found, paths, open) = (Bookmarks::default(), Vec::new(), Vec::new());
    let mut reader = Reader { limits, found, paths, open, heading: None, entry: None };
    let mut tokens = Tokens::new(text, Values::OneLine);
    while let Some(token) = tokens.next() {
        reader.take(token).map_err(|refused| at_line(refused, text, tokens.rest()))?;
    }
    reader.end_entry().map_err(|refused| at_line(refused, text, ""))?;
    reader.found.unclosed = reader.open.len();
    Ok(reader.found)
}

struct Reader<'l> {
    limits: &'l Limits,
    found: Bookmarks,
    /// How long the path of each folder is, in bytes.
    paths: Vec<usize>,
    /// The lists we are in, each with the folder that its entries belong to.
    open: Vec<Option<FolderNo>>,
    /// The folder that was named last: the next list is its own.
    heading: Option<FolderNo>,
    entry: Option<Entry>,
}

/// What the text that comes is the title of.
struct Entry {
    what: What,
    /// The title, as it came so far.
    title: String,
}

enum What {
    Link { url: String, added_at_s: Option<u64> },
    Folder { is_toolbar: bool },
}

impl Reader<'_> {
    fn take(&mut self, token: Token<'_>) -> Result<(), Invalid> {
        match token {
            Token::Text(text) => {
                if let Some(entry) = &mut self.entry {
                    entry.title.push_str(text);
                }
                Ok(())
            }
            Token::Broken => {
                self.found.unreadable += 1;
                self.end_entry()
            }
            Token::Open(tag) if tag.is("a") => {
                self.end_entry()?;
                self.begin_link(&tag)
            }
            Token::Open(tag) if tag.is("h3") => {
                self.end_entry()?;
                let is_toolbar =
                    tag.attribute("personal_toolbar_folder").is_some_and(|v| v.eq_ignore_ascii_case("true"));
                self.begin(What::Folder { is_toolbar });
                Ok(())
            }
            Token::Open(tag) if tag.is("dl") => {
                self.end_entry()?;
                self.open_list()
            }
            Token::Close(name) if name.eq_ignore_ascii_case("dl") => {
                self.end_entry()?;
                self.heading = None;
                self.open.pop();
                Ok(())
            }
            Token::Open(Tag { name, .. }) if is_one_of(name, &["dt", "dd", "hr"]) => self.end_entry(),
            Token::Close(name) if is_one_of(name, &["a", "h3"]) => self.end_entry(),
            Token::Open(_) | Token::Close(_) => Ok(()), // inside of a title, or of no meaning here
        }
    }

    fn begin_link(&mut self, tag: &Tag<'_>) -> Result<(), Invalid> {
        let href = decode(tag.attribute("href").unwrap_or_default().trim_ascii());
        let is_whole = |c: char| !c.is_control() && c != char::REPLACEMENT_CHARACTER;
        let scheme = href.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") if href.chars().all(is_whole) => {
                let max = self.limits.url_bytes_max;
                if href.len() > max {
                    let limit = format!("an address has at most {max} bytes; remove or shorten this bookmark");
                    return Err(Invalid::new("url", href, limit));
                }
                let added_at_s = tag.attribute("add_date").and_then(|seconds| seconds.parse().ok());
                self.begin(What::Link { url: href.into_owned(), added_at_s });
            }
            Some(scheme) if is_scheme(scheme) && !matches!(scheme, "http" | "https") => {
                let known = SCHEMES_SKIPPED.iter().find(|known| **known == scheme);
                *self.found.skipped.entry(known.unwrap_or(&OTHER)).or_default() += 1;
            }
            _ => self.found.unreadable += 1,
        }
        Ok(())
    }

    fn begin(&mut self, what: What) {
        self.heading = None;
        self.entry = Some(Entry { what, title: String::new() });
    }

    /// The title is whole: what it belongs to is kept.
    fn end_entry(&mut self) -> Result<(), Invalid> {
        let Some(Entry { what, title }) = self.entry.take() else { return Ok(()) };
        let title = plain(&title);
        let (max, here) = (self.limits.title_bytes_max, self.open.last().copied().flatten());
        if title.len() > max {
            let limit = format!("a title has at most {max} bytes; rename this bookmark or folder");
            return Err(Invalid::new("title", title, limit));
        }
        match what {
            What::Link { url, added_at_s } => {
                let placement = Placement { folder: here, url, title, added_at_s };
                push("links", self.limits.links_max, &mut self.found.placements, placement)
            }
            What::Folder { is_toolbar } => {
                self.measure(here, &title)?;
                self.heading = Some(FolderNo(self.found.folders.len()));
                let folder = Folder { parent: here, name: title, is_toolbar };
                push("folders", self.limits.folders_max, &mut self.found.folders, folder)
            }
        }
    }

    /// Notes how long the path of the next folder is.
    fn measure(&mut self, parent: Option<FolderNo>, name: &str) -> Result<(), Invalid> {
        let around = parent.and_then(|parent| self.paths.get(parent.0)).copied().unwrap_or_default();
        let (bytes, max) = (around + name.len(), self.limits.path_bytes_max);
        if bytes > max {
            let limit = format!("the names of a folder and of those around it have at most {max} bytes; rename some");
            return Err(Invalid::new("path", format!("{bytes} bytes"), limit));
        }
        self.paths.push(bytes);
        Ok(())
    }

    fn open_list(&mut self) -> Result<(), Invalid> {
        // A list that no heading names belongs to the folder around it.
        let folder = self.heading.take().or(self.open.last().copied().flatten());
        // The outermost list is no folder: there are as many folders around the new list as lists were open.
        let (depth, max) = (self.open.len(), self.limits.depth_max);
        if depth > max {
            let limit = format!("folders stand at most {max} deep inside of each other; move this one up");
            return Err(Invalid::new("depth", depth, limit));
        }
        self.open.push(folder);
        Ok(())
    }
}

fn push<T>(field: &'static str, max: usize, all: &mut Vec<T>, one: T) -> Result<(), Invalid> {
    all.push(one);
    if all.len() > max {
        let limit = format!("a file has at most {max} {field}; split it and import the parts one after the other");
        return Err(Invalid::new(field, all.len(), limit));
    }
    Ok(())
}

fn check_declaration(text: &str) -> Result<(), Invalid> {
    let mut words = text.trim_start_matches('\u{feff}').split_ascii_whitespace();
    let begins = |word: Option<&str>, with: &str| {
        word.and_then(|word| word.as_bytes().get(..with.len())).is_some_and(|b| b.eq_ignore_ascii_case(with.as_bytes()))
    };
    if DECLARATION.iter().all(|word| begins(words.next(), word)) {
        return Ok(());
    }
    let beginning: String = text.chars().take(40).collect();
    let limit = "a bookmark file begins with <!DOCTYPE NETSCAPE-Bookmark-file-1>; in Chrome, open the bookmark manager, \
                 choose Export bookmarks and import that file";
    Err(Invalid::new("file", beginning, limit))
}

/// Says where: the line on which the entry ends that was read last.
fn at_line(refused: Invalid, text: &str, rest: &str) -> Invalid {
    let read = text.len() - rest.len();
    let line = 1 + text.as_bytes()[..read].iter().filter(|b| **b == b'\n').count();
    Invalid { limit: format!("line {line}: {}", refused.limit), ..refused }
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
