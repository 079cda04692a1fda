//! What is kept of a page: title, description, canonical address and language. Nothing else of it is.
//!
//! | field | taken from | at most |
//! |---|---|---|
//! | title | the first `title` with text, else `og:title` | 300 characters, on one line |
//! | description | `meta name=description`, else `og:description` | 1,000 characters, on one line |
//! | canonical | `link rel=canonical`, absolute, by the rules of [`canonical`](crate::canonical) | 8,192 bytes |
//! | language | `lang` of `html`, else the header `Content-Language`; lower-cased, such as `ko-kr` | 35 characters |
//!
//! The first 256 KiB are read, in the encoding that a byte order mark, the header or the page itself names, else as UTF-8.
//! What is no HTML has no title. Scripts, styles and drawings are passed over. A field that is not there, or cannot be
//! used, is none: a page is never refused.

mod captcha;

use encoding_rs::{Encoding, UTF_8};

use crate::canonical::CanonicalUrl;
use crate::entity::decode;
use crate::markup::{Tag, Token, Tokens, Values};
use crate::text::{cut, plain};

pub use captcha::Captcha;

/// As much of a page as is read.
pub const PAGE_BYTES_MAX: usize = 256 << 10;
/// As much of it as may name its encoding.
const ENCODING_BYTES_MAX: usize = 4 << 10;
const TITLE_CHARS_MAX: usize = 300;
const DESCRIPTION_CHARS_MAX: usize = 1_000;
const LANGUAGE_CHARS_MAX: usize = 35;
/// Elements whose inside is text, whatever it looks like.
const RAW: [&str; 8] = ["script", "style", "textarea", "iframe", "xmp", "noembed", "noframes", "plaintext"];

/// What a site answered.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Where it came from in the end: links inside of it may be relative.
    pub url: &'a CanonicalUrl,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The header `Content-Language`.
    pub content_language: Option<&'a str>,
    /// The beginning of the page, or all of it.
    pub body: &'a [u8],
}

/// What is kept of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// What it is called.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// What it says its address is. It changes nothing about the link that led here.
    pub canonical: Option<CanonicalUrl>,
    /// The language it is in.
    pub language: Option<String>,
}

/// What an answer turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// A page, with what is known of it.
    Page(Page),
    /// A riddle for people.
    Captcha(Captcha),
}

/// Reads an answer.
pub fn read(answer: &Answer<'_>) -> Read {
    let header_language = answer.content_language.and_then(language);
    if !is_html(answer.content_type) {
        return Read::Page(Page { language: header_language, ..Page::default() });
    }
    let body = answer.body.get(..PAGE_BYTES_MAX).unwrap_or(answer.body);
    let (text, _, _) = encoding(answer.content_type, body).decode(body);
    let mut found = Found::default();
    found.read(&text, answer.url);
    if let Some(captcha) = found.signs.verdict(found.page.title.as_deref()) {
        return Read::Captcha(captcha);
    }
    let Found { mut page, og_title, og_description, .. } = found;
    page.title = page.title.or(og_title);
    page.description = page.description.or(og_description);
    page.language = page.language.or(header_language);
    Read::Page(page)
}

#[derive(Default)]
struct Found {
    page: Page,
    og_title: Option<String>,
    og_description: Option<String>,
    signs: captcha::Signs,
}

impl Found {
    fn read(&mut self, text: &str, base: &CanonicalUrl) {
        let mut tokens = Tokens::new(text, Values::ManyLines);
        let mut is_drawing = false; // the title of an image is not that of the page
        while let Some(token) = tokens.next() {
            match token {
                Token::Open(tag) => {
                    self.signs.see(&tag);
                    if tag.is("svg") {
                        is_drawing = true;
                    } else if tag.is("title") && !is_drawing {
                        let title = tokens.take_raw("title");
                        keep(&mut self.page.title, || line(title, TITLE_CHARS_MAX));
                    } else if let Some(name) = RAW.iter().find(|name| tag.is(name)) {
                        tokens.take_raw(name);
                    } else {
                        self.take(&tag, base);
                    }
                }
                Token::Close(name) if name.eq_ignore_ascii_case("svg") => is_drawing = false,
                Token::Close(_) | Token::Text(_) | Token::Broken => {}
            }
        }
    }

    fn take(&mut self, tag: &Tag<'_>, base: &CanonicalUrl) {
        let value = |name| tag.attribute(name).unwrap_or_default();
        if tag.is("meta") {
            let name = tag.attribute("name").or(tag.attribute("property")).unwrap_or_default().trim_ascii();
            let content = value("content");
            match name.to_ascii_lowercase().as_str() {
                "description" => keep(&mut self.page.description, || line(content, DESCRIPTION_CHARS_MAX)),
                "og:title" => keep(&mut self.og_title, || line(content, TITLE_CHARS_MAX)),
                "og:description" => keep(&mut self.og_description, || line(content, DESCRIPTION_CHARS_MAX)),
                _ => {}
            }
        } else if tag.is("link") {
            let is_canonical = value("rel").split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("canonical"));
            let href = value("href").trim_ascii();
            if is_canonical && !href.is_empty() {
                keep(&mut self.page.canonical, || base.join(&decode(href)).ok());
            }
        } else if tag.is("html") {
            keep(&mut self.page.language, || language(value("lang")));
        }
    }
}

/// The first that can be used stays.
fn keep<T>(slot: &mut Option<T>, found: impl FnOnce() -> Option<T>) {
    if slot.is_none() {
        *slot = found();
    }
}

fn line(raw: &str, chars_max: usize) -> Option<String> {
    Some(cut(plain(raw), chars_max)).filter(|text| !text.is_empty())
}

/// `ko-KR` of `ko-KR`, `ko_kr` and `ko-KR, en`, lower-cased; none of what is no language.
fn language(raw: &str) -> Option<String> {
    let first = raw.split(',').next()?.trim_ascii().replace('_', "-").to_ascii_lowercase();
    let is_part = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    let begins_well = first.bytes().take_while(u8::is_ascii_lowercase).count() >= 2;
    (begins_well && first.len() <= LANGUAGE_CHARS_MAX && first.split('-').all(is_part)).then_some(first)
}

/// An answer that does not say what it is may be a page.
fn is_html(content_type: Option<&str>) -> bool {
    let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim_ascii();
    ["", "text/html", "application/xhtml+xml"].iter().any(|html| essence.eq_ignore_ascii_case(html))
}

/// A byte order mark is looked for by whoever decodes.
fn encoding(content_type: Option<&str>, body: &[u8]) -> &'static Encoding {
    if let Some(named) = content_type.and_then(charset) {
        return named;
    }
    let head = String::from_utf8_lossy(body.get(..ENCODING_BYTES_MAX).unwrap_or(body));
    let named = |token| match token {
        Token::Open(tag) if tag.is("meta") => {
            let label = tag.attribute("charset").and_then(|label| Encoding::for_label(label.as_bytes()));
            label.or_else(|| charset(tag.attribute("content")?))
        }
        _ => None,
    };
    Tokens::new(&head, Values::ManyLines).find_map(named).unwrap_or(UTF_8)
}

/// The encoding of `text/html; charset=euc-kr`.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    let parameter = |part: &str| {
        let (name, value) = part.split_once('=')?;
        name.trim_ascii()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim_ascii().trim_matches(['"', '\'']).to_owned())
    };
    Encoding::for_label(content_type.split(';').find_map(parameter)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> Page {
        page_of(Some("text/html; charset=utf-8"), body.as_bytes())
    }

    fn page_of(content_type: Option<&str>, body: &[u8]) -> Page {
        let url = CanonicalUrl::parse("https://a.example/b/c").unwrap();
        match read(&Answer { url: &url, content_type, content_language: Some("en-GB, ko"), body }) {
            Read::Page(page) => page,
            Read::Captcha(sign) => panic!("{sign:?}"),
        }
    }

    fn canonical(page: &Page) -> Option<&str> {
        page.canonical.as_ref().map(CanonicalUrl::as_str)
    }

    #[test]
    fn title_description_canonical_and_language_are_kept() {
        let page = page(
            "<!doctype html><HTML lang='ko_KR'><head><script>var a = '<title>no</title>'</script>\
             <title>\n  Fish &amp; <chips>\n</title><meta property='og:title' content='og'>\
             <META NAME=\"Description\" CONTENT=\"First\n line &#8212; second\"><meta name=description content=later>\
             <link rel=\"alternate\" href=\"/x\"><link rel='shortcut Canonical' href='/d?utm_source=x&amp;e=1#f'>",
        );
        assert_eq!(page.title.as_deref(), Some("Fish & <chips>"));
        assert_eq!(page.description.as_deref(), Some("First line — second"));
        assert_eq!(canonical(&page), Some("https://a.example/d?e=1"));
        assert_eq!(page.language.as_deref(), Some("ko-kr"));
    }

    #[test]
    fn what_is_missing_is_taken_from_the_second_place() {
        let found = page(
            "<html lang=''><body><svg><title>icon</title></svg><title> </title>\
             <meta content='og one' property='og:title'><meta property='OG:Description' content='og two'>\
             <link rel=canonical href='javascript:x'><link rel=canonical href=''>",
        );
        let expected = Page {
            title: Some("og one".to_owned()),
            description: Some("og two".to_owned()),
            canonical: None,
            language: Some("en-gb".to_owned()),
        };
        assert_eq!(found, expected);
        assert_eq!(page(""), Page { language: Some("en-gb".to_owned()), ..Page::default() });
    }

    /// Shows: S1.60
    #[test]
    fn no_text_of_the_page_is_kept() {
        let found = page("<title>T</title><body><h1>Heading</h1><p>A long story.</p><img src=x alt=picture></body>");
        let Page { title, description, canonical, language } = found;
        let kept = [title, description, canonical.map(String::from), language];
        assert_eq!(kept.into_iter().flatten().collect::<Vec<_>>(), ["T", "en-gb"]);
    }

    #[test]
    fn every_field_has_its_length() {
        let long = "가".repeat(5_000);
        let far = format!("https://a.example/{}", "x".repeat(9_000));
        let tags = "x".repeat(40);
        let page = page(&format!(
            "<html lang=en-{tags}><title>{long}</title><meta name=description content={long}><link rel=canonical href={far}>"
        ));
        assert_eq!(page.title.unwrap().chars().count(), TITLE_CHARS_MAX);
        assert_eq!(page.description.unwrap().chars().count(), DESCRIPTION_CHARS_MAX);
        assert_eq!((page.canonical, page.language.as_deref()), (None, Some("en-gb")));
    }

    #[test]
    fn only_the_beginning_is_read() {
        let at = |padding: usize| format!("<p>{}<title>T</title>", "x".repeat(padding));
        let (whole, short) = ("<p><title>T</title>".len(), "<p><title>".len());
        assert_eq!(page(&at(PAGE_BYTES_MAX - whole)).title.as_deref(), Some("T"));
        assert_eq!(page(&at(PAGE_BYTES_MAX - short)).title, None);
    }

    #[test]
    fn other_encodings_are_read_as_they_are() {
        let (korean, _, _) = encoding_rs::EUC_KR.encode("<title>한국어</title>");
        let with_meta =
            [b"<meta http-equiv=content-type content='text/html; charset=ks_c_5601-1987'>", &korean[..]].concat();
        let short_meta = [b"<meta charset='EUC-KR'>", &korean[..]].concat();
        let utf16: Vec<u8> = "\u{feff}<title>한국어</title>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (content_type, body) in [
            (Some("text/html;charset=\"euc-kr\""), &korean[..]),
            (Some("text/html"), &with_meta),
            (None, &short_meta),
            (Some("text/html; charset=utf-8"), &utf16),
            (Some("text/html; charset=unheard-of"), "<title>한국어</title>".as_bytes()),
        ] {
            assert_eq!(page_of(content_type, body).title.as_deref(), Some("한국어"), "{content_type:?}");
        }
    }

    #[test]
    fn what_is_no_html_has_no_title() {
        for content_type in ["application/pdf", "image/svg+xml", "text/plain; charset=utf-8"] {
            assert_eq!(page_of(Some(content_type), b"<title>T</title>").title, None);
        }
        assert_eq!(page_of(Some("application/xhtml+xml"), b"<title>T</title>").title.as_deref(), Some("T"));
    }
}
