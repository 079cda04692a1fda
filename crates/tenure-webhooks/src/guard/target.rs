//! [`Target`]: a URL that was read, by one parser and once.

use std::fmt;

use hyper::Uri;
use tenure_core::Invalid;
use url::{Host, Position, Url};

/// Longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 2_048;

/// Where a webhook goes: scheme, host, port, path and query, checked. Shows its host only, because paths and queries of
/// endpoints hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: Host<String>,
    port: u16,
}

impl Target {
    /// Reads a URL. Refusals repeat no part of it but scheme and host.
    pub(super) fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |limit: &str| Invalid::new("url", format!("of {} bytes", text.len()), limit);
        if text.len() > URL_BYTES_MAX {
            return Err(refuse(&format!("it is at most {URL_BYTES_MAX} bytes")));
        }
        // The parser would remove tabs and line breaks, trim blanks and take a backslash for a slash: others would not.
        if text.chars().any(|c| c == '\\' || c.is_control() || c.is_whitespace()) {
            return Err(refuse("it has no blanks, control characters or backslashes: write %20 or %5C"));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| refuse("it begins with https://"))?;
        if !["https", "http"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(Invalid::new("url scheme", scheme, "endpoints are called by https://"));
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(refuse("it names a host behind https://"));
        }
        if authority.contains('@') {
            return Err(refuse("it names no user: receivers check the signature instead"));
        }
        let url = Url::parse(text).map_err(|error| refuse(&format!("it must be a URL ({error})")))?;
        if url.fragment().is_some() {
            return Err(refuse("it has no fragment (#…): a server never sees one"));
        }
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(refuse(&format!("it is at most {URL_BYTES_MAX} bytes, escaped")));
        }
        let host = url.host().ok_or_else(|| refuse("it names a host behind https://"))?.to_owned();
        let port = url.port_or_known_default().ok_or_else(|| refuse("it names a port, or a scheme that has one"))?;
        if let Host::Domain(name) = &host {
            check_name(name)?;
        }
        let target = Self { url, host, port };
        target
            .path_and_query()
            .parse::<Uri>()
            .map_err(|_| refuse("its path and query are escaped: write %7C for |"))?;
        Ok(target)
    }

    /// The URL as it is called: written out by the parser, punycode for names in other scripts.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// A name, or an address.
    pub fn host(&self) -> &Host<String> {
        &self.host
    }

    /// The port, also where the scheme implies it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is called by TLS.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// What the `Host` header says: the port only where it is not the scheme's own.
    pub(crate) fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::BeforePath]
    }

    pub(crate) fn path_and_query(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({}://{}/…)", self.url.scheme(), self.authority())
    }
}

/// Refuses names that are written in two ways: `example.com.` is `example.com` to a resolver and not to a certificate.
fn check_name(name: &str) -> Result<(), Invalid> {
    if name.len() > 253 || name.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return Err(Invalid::new(
            "url host",
            name,
            "it is labels of 1 to 63 bytes with a dot between, 253 bytes at most",
        ));
    }
    Ok(())
}

/// Endings of names that mean something inside of a network alone: special-use names, those of RFC 6762 appendix G, and
/// those of a cluster.
const INSIDE: [&str; 12] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "home.arpa",
    "lan",
    "svc",
    "cluster",
];

/// Whether a name belongs to the inside of a network: by its ending, or as a single label of a search domain.
pub(super) fn is_inside(name: &str) -> bool {
    let ends =
        |inside: &str| name.strip_suffix(inside).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    !name.contains('.') || INSIDE.into_iter().any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_refusals_nor_debug_repeat_path_query_or_user() {
        for url in [
            "ftp://hook.example/s3cret?token=s3cret",
            "https://ops:s3cret@hook.example/s3cret",
            "https://hook.example/s3cret?token=s3cret#s3cret",
            "https://hook.example:port/s3cret",
            "https://hook.example/s3cret\n",
            "https://s3.example./s3cret",
        ] {
            let refused = Target::parse(url).unwrap_err().to_string();
            assert!(!refused.contains("s3cret"), "{refused}");
        }
        let target = Target::parse("https://Hook.Example:8443/s3cret?token=s3cret").unwrap();
        assert_eq!(format!("{target:?}"), "Target(https://hook.example:8443/…)");
    }

    #[test]
    fn a_target_says_what_is_called() {
        let target = Target::parse("https://BÜCHER.example/a b?q=%20".replace(' ', "%20").as_str()).unwrap();
        assert_eq!(target.authority(), "xn--bcher-kva.example");
        assert_eq!((target.path_and_query(), target.port()), ("/a%20b?q=%20", 443));
        let target = Target::parse("http://hook.example:443").unwrap();
        assert_eq!((target.authority(), target.path_and_query()), ("hook.example:443", "/"));
        let target = Target::parse("https://[2606:2800:220:1::]/").unwrap();
        assert_eq!(target.authority(), "[2606:2800:220:1::]");
    }

    #[test]
    fn names_of_the_inside_are_known() {
        for name in [
            "db.prod.svc",
            "db.prod.svc.cluster.local",
            "git.corp",
            "localhost",
            "a.localhost",
            "printer.local",
            "metadata.google.internal",
            "home.arpa",
            "nas",
            "internal",
        ] {
            assert!(is_inside(name), "{name}");
        }
        for name in ["example.com", "mylocalhost.com", "notinternal.example", "local.example", "xlocal.de"] {
            assert!(!is_inside(name), "{name}");
        }
    }
}
