//! Captchas: pages that want a person before they show anything.
//!
//! Many good pages carry a captcha beside a form for comments, so a widget alone says nothing. These signs are those of
//! pages that are nothing else:
//!
//! | sign | what is seen |
//! |---|---|
//! | [`Title`](Captcha::Title) | the title is, in any case, one of a short list: `Just a moment...`, `Robot Check`, … |
//! | [`Form`](Captcha::Form) | an element with the `id` of a challenge: `challenge-form`, `captcha-form`, `px-captcha` |
//! | [`Source`](Captcha::Source) | a script, frame or form of `captcha-delivery.com`, or one that ends in `validateCaptcha` |
//! | [`Widget`](Captcha::Widget) | a widget (`g-recaptcha`, `h-captcha`, `cf-turnstile`) on a page that asks not to be indexed |

use crate::markup::Tag;

/// By what a captcha was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Captcha {
    /// The title is that of a challenge.
    Title,
    /// It has the form of a challenge.
    Form,
    /// It loads or calls a challenge.
    Source,
    /// It holds a widget and wants no robot to remember it.
    Widget,
}

impl Captcha {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Form => "form",
            Self::Source => "source",
            Self::Widget => "widget",
        }
    }
}

const TITLES: [&str; 9] = [
    "just a moment...",
    "attention required! | cloudflare",
    "robot check",
    "are you a robot?",
    "are you human?",
    "human verification",
    "captcha",
    "access to this page has been denied",
    "로봇이 아닙니다",
];
const FORM_IDS: [&str; 3] = ["challenge-form", "captcha-form", "px-captcha"];
const SOURCE_HOST: &str = "captcha-delivery.com/";
const SOURCE_END: &str = "/validatecaptcha";
const WIDGETS: [&str; 3] = ["g-recaptcha", "h-captcha", "cf-turnstile"];
/// Longest value that is looked at: signs are short, and what is embedded in a page need not be.
const VALUE_BYTES_MAX: usize = 500;

/// What was seen so far.
#[derive(Default)]
pub(super) struct Signs {
    form: bool,
    source: bool,
    widget: bool,
    noindex: bool,
}

impl Signs {
    pub(super) fn see(&mut self, tag: &Tag<'_>) {
        let value = |name| tag.attribute(name).filter(|value| value.len() <= VALUE_BYTES_MAX).unwrap_or_default();
        let is_any = |words: &[&str], word: &str| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        self.form |= is_any(&FORM_IDS, value("id"));
        self.widget |= value("class").split_ascii_whitespace().any(|class| is_any(&WIDGETS, class));
        for source in [value("src"), value("action")] {
            let source = source.to_ascii_lowercase();
            self.source |= source.contains(SOURCE_HOST) || source.ends_with(SOURCE_END);
        }
        let is_for_robots = tag.is("meta") && value("name").eq_ignore_ascii_case("robots");
        self.noindex |= is_for_robots && value("content").to_ascii_lowercase().contains("noindex");
    }

    pub(super) fn verdict(&self, title: Option<&str>) -> Option<Captcha> {
        let title = title.unwrap_or_default().to_lowercase();
        let has_title = TITLES.contains(&title.as_str());
        let found = [
            (has_title, Captcha::Title),
            (self.form, Captcha::Form),
            (self.source, Captcha::Source),
            (self.widget && self.noindex, Captcha::Widget),
        ];
        found.into_iter().find_map(|(is_seen, sign)| is_seen.then_some(sign))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, Read, read};
    use super::*;
    use crate::canonical::CanonicalUrl;

    fn sign(body: &str) -> Option<Captcha> {
        let url = CanonicalUrl::parse("https://a.example/").unwrap();
        let answer =
            Answer { url: &url, content_type: Some("text/html"), content_language: None, body: body.as_bytes() };
        match read(&answer) {
            Read::Captcha(sign) => Some(sign),
            Read::Page(_) => None,
        }
    }

    /// Shows: S1.49
    #[test]
    fn every_sign_is_seen() {
        for (body, expected) in [
            ("<title>Just a moment...</title>", Captcha::Title),
            ("<title>\n ROBOT  check </title>", Captcha::Title),
            ("<title>로봇이 아닙니다</title>", Captcha::Title),
            ("<title>x</title><form id='challenge-form'>", Captcha::Form),
            ("<div ID=px-captcha>", Captcha::Form),
            ("<script src='https://geo.Captcha-Delivery.com/c.js'></script>", Captcha::Source),
            ("<form action=/errors/validateCaptcha>", Captcha::Source),
            ("<meta name=Robots content='NOINDEX, nofollow'><div class='box g-recaptcha'>", Captcha::Widget),
            ("<div class=cf-turnstile></div><meta name=robots content=noindex>", Captcha::Widget),
        ] {
            assert_eq!(sign(body), Some(expected), "{body}");
        }
    }

    #[test]
    fn a_good_page_may_speak_of_captchas_and_carry_one() {
        for body in [
            "<title>How to solve a captcha</title>",
            "<title>Contact</title><form id=contact><div class=g-recaptcha></div></form>",
            "<title>Draft</title><meta name=robots content=noindex>",
            "<title>Docs</title><script>'<form id=captcha-form>'</script><p>captcha-form</p>",
            "<meta property='og:title' content='Captcha'>",
        ] {
            assert_eq!(sign(body), None, "{body}");
        }
    }
}
