//! When two links are one: the canonical address, by which a link is enriched once.
//!
//! The address is read as browsers read it (the WHATWG standard, by the crate `url`); then these rules hold, in this order.
//! The canonical address of a canonical address is itself.
//!
//! | part | rule |
//! |---|---|
//! | all | white space around it is cut off, tabs and line breaks inside are dropped; at most 8,192 bytes, before and after |
//! | scheme | `http` or `https`, lower-cased; the two stay different |
//! | user, password | dropped: they are nobody's business but the user's |
//! | host | lower-cased; other scripts as punycode (`bücher.example` is `xn--bcher-kva.example`); dots at its end dropped |
//! | | letters, digits, `-` and `_` in labels of 1 to 63, at most 253 in all; or an IP address, in its one usual form |
//! | | `www.` stays: not every site answers without it |
//! | port | dropped if it is empty, 80 of `http` or 443 of `https` |
//! | path | `.` and `..` are resolved, an empty one is `/`; letters, doubled slashes and a slash at the end stay |
//! | | characters that an address cannot hold are percent-encoded; what is percent-encoded stays: `%7E` and `~` differ |
//! | query | parameters of [`TRACKING`] are dropped, and those that begin with `utm_`: by name, in any case, encoded ones not |
//! | | others stay as they came and in their order; empty ones (`a&&b`) and an empty query (`?`) are dropped |
//! | fragment | dropped: it never reaches the server |
//!
//! The [domain](CanonicalUrl::domain) of a link is its host without brackets and port, and who is put forward for blocking.
//! Without a leading `www.` it is the link's [site](CanonicalUrl::site), which is asked by at most two at once. Other
//! subdomains are domains and sites of their own.

use std::fmt;

use tenure::Invalid;
use url::{Host, Url};

/// Longest address, in bytes, as it came and as it is kept.
pub const URL_BYTES_MAX: usize = 8 << 10;
/// Longest name of a host that names are looked up by.
const HOST_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Parameters that tell who sent a reader and nothing about the page; see also [`TRACKING_PREFIX`].
pub const TRACKING: [&str; 31] = [
    // Google
    "gclid",
    "gclsrc",
    "dclid",
    "gbraid",
    "wbraid",
    "srsltid",
    "_ga",
    "_gl",
    // Facebook, Instagram, Microsoft, Yandex, Twitter, TikTok, LinkedIn, Pinterest
    "fbclid",
    "igshid",
    "igsh",
    "msclkid",
    "yclid",
    "ysclid",
    "_openstat",
    "twclid",
    "ttclid",
    "li_fat_id",
    "epik",
    // Mail and campaigns: Mailchimp, HubSpot, Marketo, Omeda, Vero, Adobe, Wicked Reports, Matomo
    "mc_cid",
    "mc_eid",
    "_hsenc",
    "_hsmi",
    "mkt_tok",
    "oly_anon_id",
    "oly_enc_id",
    "vero_id",
    "s_cid",
    "wickedid",
    "mtm_campaign",
    "pk_campaign",
];
/// Parameters that begin so are dropped too.
pub const TRACKING_PREFIX: &str = "utm_";

/// An address by the rules of this module.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CanonicalUrl {
    url: Url,
    domain: String,
}

impl CanonicalUrl {
    /// The canonical address of a link.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        check_length(text)?;
        let url = Url::parse(text).map_err(|error| refuse(text, error))?;
        Self::of(url)
    }

    /// The canonical address of a link that stands in this page, where it may be relative.
    pub fn join(&self, text: &str) -> Result<Self, Invalid> {
        check_length(text)?;
        let url = self.url.join(text).map_err(|error| refuse(text, error))?;
        Self::of(url)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The address, to go there.
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// Whom it belongs to: `example.org`, `192.0.2.7`, `2001:db8::7`.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The domain without a leading `www.`: both are one site, and its pages send readers from one to the other.
    pub fn site(&self) -> &str {
        self.domain.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(&self.domain)
    }

    fn of(mut url: Url) -> Result<Self, Invalid> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(url.as_str(), "a link begins with http:// or https://"));
        }
        let domain = settle_host(&mut url)?;
        // These fail where there is no host only.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        let query = url.query().map(|query| query.split('&').filter(|p| is_kept(p)).collect::<Vec<_>>().join("&"));
        url.set_query(query.as_deref().filter(|query| !query.is_empty()));
        check_length(url.as_str())?;
        Ok(Self { url, domain })
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<CanonicalUrl> for String {
    fn from(url: CanonicalUrl) -> Self {
        url.url.into()
    }
}

/// Drops the dots at the end of the host and checks the rest. Answers the domain.
fn settle_host(url: &mut Url) -> Result<String, Invalid> {
    let bad = |url: &Url| refuse(url.as_str(), "its host is the name of a domain or an IP address");
    if let Some(Host::Domain(name)) = url.host() {
        let bare = name.trim_end_matches('.').to_owned();
        // Without its dots a name can turn out to be an address: `127.0.0.1..`.
        url.set_host(Some(&bare)).map_err(|_| bad(url))?;
    }
    match url.host() {
        Some(Host::Domain(name)) if is_name(name) => Ok(name.to_owned()),
        Some(Host::Ipv4(address)) => Ok(address.to_string()),
        Some(Host::Ipv6(address)) => Ok(address.to_string()),
        Some(Host::Domain(_)) | None => Err(bad(url)),
    }
}

fn is_name(host: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
    let is_label = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(is_letter);
    host.len() <= HOST_BYTES_MAX && host.split('.').all(is_label)
}

fn is_kept(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
    !parameter.is_empty() && !name.starts_with(TRACKING_PREFIX) && !TRACKING.contains(&name.as_str())
}

fn check_length(text: &str) -> Result<(), Invalid> {
    if text.len() > URL_BYTES_MAX {
        return Err(refuse(text, format!("an address has at most {URL_BYTES_MAX} bytes")));
    }
    Ok(())
}

fn refuse(text: &str, limit: impl fmt::Display) -> Invalid {
    Invalid::new("url", text, limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        CanonicalUrl::parse(text).unwrap().to_string()
    }

    #[test]
    fn every_rule_of_the_table_holds() {
        for (text, expected) in [
            (" https://a.example/x\ty\n ", "https://a.example/xy"),
            ("HTTP://A.Example", "http://a.example/"),
            ("https://user:secret@a.example/", "https://a.example/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
            ("https://한국.example/가?나=다", "https://xn--3e0b707e.example/%EA%B0%80?%EB%82%98=%EB%8B%A4"),
            ("https://a.example.../x", "https://a.example/x"),
            ("http://127.1../", "http://127.0.0.1/"),
            ("http://0x7f.0.0.1/", "http://127.0.0.1/"),
            ("http://[2001:DB8:0::7]:80/", "http://[2001:db8::7]/"),
            ("https://www.a.example/", "https://www.a.example/"),
            ("http://a.example:80/", "http://a.example/"),
            ("https://a.example:/", "https://a.example/"),
            ("https://a.example:443/", "https://a.example/"),
            ("https://a.example:80/", "https://a.example:80/"),
            ("https://a.example/b/./c/../%2e%2E/D//e/", "https://a.example/D//e/"),
            ("https://a.example/%7e~ <x>", "https://a.example/%7e~%20%3Cx%3E"),
            ("https:a.example\\x", "https://a.example/x"),
            ("https://a.example/?b=2&UTM_Source=x&a=1&gclid=9&fbclid&a=%20", "https://a.example/?b=2&a=1&a=%20"),
            ("https://a.example/?utm%5Fsource=x&q=utm_source", "https://a.example/?utm%5Fsource=x&q=utm_source"),
            ("https://a.example/?a&&b=&", "https://a.example/?a&b="),
            ("https://a.example/?utm_medium=x#top", "https://a.example/"),
            ("https://a.example/?#!/route", "https://a.example/"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn the_domain_is_the_host_alone() {
        for (text, domain) in [
            ("https://u:p@News.Example.:8443/x", "news.example"),
            ("http://192.0.2.7:8080/", "192.0.2.7"),
            ("http://[2001:db8::7]/", "2001:db8::7"),
        ] {
            assert_eq!(CanonicalUrl::parse(text).unwrap().domain(), domain);
        }
    }

    #[test]
    fn with_and_without_www_it_is_one_site() {
        for (text, site) in [
            ("https://www.a.example/", "a.example"),
            ("http://a.example/", "a.example"),
            ("http://www.www.a.example/", "www.a.example"),
            ("http://www.example/", "www.example"),
            ("http://wwww.a.example/", "wwww.a.example"),
        ] {
            assert_eq!(CanonicalUrl::parse(text).unwrap().site(), site, "{text}");
        }
    }

    #[test]
    fn what_is_no_link_is_refused_by_name() {
        let long_label = format!("http://{}.example/", "a".repeat(64));
        let long_host = format!("http://{}example/", "abc.".repeat(63));
        let long = format!("http://a.example/{}", "x".repeat(URL_BYTES_MAX));
        // Each of these letters takes nine bytes when it is kept.
        let grows = format!("http://a.example/{}", "가".repeat(URL_BYTES_MAX / 6));
        for text in [
            "",
            "a.example",
            "//a.example/",
            "ftp://a.example/",
            "javascript:alert(1)",
            "data:,x",
            "chrome://settings",
            "http://",
            "http://./",
            "http://a..example/",
            "http://a b/",
            "http://a*b/",
            "http://1.2.3.999../",
            "http://a.example:99999/",
            &long_label,
            &long_host,
            &long,
            &grows,
        ] {
            assert_eq!(CanonicalUrl::parse(text).unwrap_err().field, "url", "{text}");
        }
    }

    #[test]
    fn a_link_inside_of_a_page_may_be_relative() {
        let page = CanonicalUrl::parse("https://a.example/b/c?x=1").unwrap();
        for (text, expected) in [
            ("d?utm_id=1", "https://a.example/b/d"),
            ("/e#f", "https://a.example/e"),
            ("//b.example", "https://b.example/"),
        ] {
            assert_eq!(page.join(text).unwrap().as_str(), expected);
        }
        assert!(page.join("mailto:a@b.example").is_err());
    }

    #[test]
    fn the_list_of_tracking_parameters_is_written_as_it_is_compared() {
        let mut names = TRACKING.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TRACKING.len(), "none stands twice");
        assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()));
    }
}
