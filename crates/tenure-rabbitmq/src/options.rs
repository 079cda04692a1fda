//! Where the broker is and what is declared there.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tenure_core::Invalid;
use url::Url;

use crate::stream;

/// The exchange unless somebody says otherwise.
pub const EXCHANGE_DEFAULT: &str = "tenure";
/// The routing key unless somebody says otherwise.
pub const ROUTING_KEY_DEFAULT: &str = "jobs.trigger";
/// Messages that may be on their way to us unless somebody says otherwise.
pub const PREFETCH_DEFAULT: u16 = 16;
/// How often both sides say that they live unless somebody says otherwise. Twice as long a silence is a loss.
pub const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(10);
/// How long connecting and declaring may take unless somebody says otherwise.
pub const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Names in the protocol have one byte for their length.
const NAME_BYTES_MAX: usize = 255;
/// The driver keeps room for 64 frames a connection: a megabyte, where the broker's own proposal would be eight.
const FRAME_BYTES_MAX: u32 = 16 * 1024;
/// Longest heartbeat: a loss should be noticed the same hour.
const HEARTBEAT_MAX: Duration = Duration::from_secs(1_800);

/// How to reach and use a broker. Checked once, by [`Broker::start`](crate::Broker::start).
#[derive(Clone)]
pub struct Options {
    /// `amqp://user:password@host:port/vhost` or `amqps://…`. Without a user it is `guest`, without a port 5672 or 5671,
    /// without a vhost `/`. A `/`, `@`, `:`, `#` or `?` inside of a part is written as `%2f`, `%40`, `%3a`, `%23`, `%3f`.
    pub url: String,
    /// The exchange that is declared: topic, durable.
    pub exchange: String,
    /// What is published with and bound to. A binding alone may have `*` and `#`.
    pub routing_key: String,
    /// `None`: a queue of this process's own, which goes with it, so that every process is woken. A name: a queue that
    /// processes share, so that each message wakes one of them; made when it is not there, and kept.
    pub queue: Option<String>,
    /// Whether [`publish`](crate::Broker::publish) does anything.
    pub publish: bool,
    /// A PEM file with the certificates that may sign the broker's; `None`: those that the system trusts.
    pub ca: Option<PathBuf>,
    /// How many messages may be on their way to us: this many bodies are in memory at most.
    pub prefetch: u16,
    /// How often both sides say that they live, in whole seconds.
    pub heartbeat: Duration,
    /// How long connecting and declaring may take.
    pub connect_timeout: Duration,
}

impl Options {
    /// The defaults, at this URL. It only listens.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            exchange: EXCHANGE_DEFAULT.to_owned(),
            routing_key: ROUTING_KEY_DEFAULT.to_owned(),
            queue: None,
            publish: false,
            ca: None,
            prefetch: PREFETCH_DEFAULT,
            heartbeat: HEARTBEAT_DEFAULT,
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
        }
    }

    /// Checks everything, and reads the certificates.
    pub(crate) fn check(self) -> Result<Target, Invalid> {
        let uri = self.uri()?;
        check_name("exchange", &self.exchange)?;
        check_key(&self.routing_key, self.publish)?;
        self.queue.as_deref().map_or(Ok(()), |queue| check_name("queue", queue))?;
        if self.prefetch == 0 {
            return Err(Invalid::new("prefetch", 0, "at least one message must be allowed to come"));
        }
        if self.connect_timeout.is_zero() {
            return Err(Invalid::new("connect_timeout", "0 s", "connecting takes time"));
        }
        let tls = match (&uri.scheme, &self.ca) {
            (AMQPScheme::AMQPS, ca) => Some(self.tls(&uri.authority.host, ca.as_deref())?),
            (AMQPScheme::AMQP, None) => None,
            (AMQPScheme::AMQP, Some(ca)) => {
                return Err(Invalid::new("ca", ca.display(), "certificates are for amqps://, and the URL is amqp://"));
            }
        };
        Ok(Target { shown: without_password(&self.url), uri, tls, options: self })
    }

    fn uri(&self) -> Result<AMQPUri, Invalid> {
        let refuse = |limit: &str| Invalid::new("url", without_password(&self.url), limit);
        let shape = "a broker is amqp://user:password@host:port/vhost, or amqps://";
        let url = Url::parse(&self.url).map_err(|error| refuse(&format!("{shape} ({error})")))?;
        let scheme = match url.scheme() {
            "amqp" => AMQPScheme::AMQP,
            "amqps" => AMQPScheme::AMQPS,
            _ => return Err(refuse(shape)),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("nothing follows the vhost: what else there is to say has an option of its own"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| refuse(shape))?;
        // The brackets are the URL's, not the address's.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port().unwrap_or_else(|| scheme.default_port());
        let path = url.path().strip_prefix('/').unwrap_or_default();
        if path.contains('/') {
            return Err(refuse("a / inside of a vhost's name is written as %2f"));
        }
        let decode = |part: &str| decoded(part).ok_or_else(|| refuse("what is escaped with % must be UTF-8"));
        let vhost = if path.is_empty() { "/".to_owned() } else { decode(path)? };
        if vhost.len() > NAME_BYTES_MAX {
            return Err(refuse("a vhost has at most 255 bytes"));
        }
        let userinfo = match (url.username(), url.password()) {
            ("", None) => AMQPUserInfo::default(),
            (user, Some(password)) if !user.is_empty() => {
                AMQPUserInfo { username: decode(user)?, password: decode(password)? }
            }
            _ => return Err(refuse("a user has a password, and a password a user")),
        };
        let query = AMQPQueryString {
            heartbeat: Some(self.heartbeat_seconds()?),
            frame_max: Some(FRAME_BYTES_MAX),
            ..AMQPQueryString::default()
        };
        Ok(AMQPUri { scheme, authority: AMQPAuthority { userinfo, host, port }, vhost, query })
    }

    fn heartbeat_seconds(&self) -> Result<u16, Invalid> {
        let given = self.heartbeat;
        let whole = given.subsec_nanos() == 0 && !given.is_zero() && given <= HEARTBEAT_MAX;
        let seconds = u16::try_from(given.as_secs()).ok().filter(|_| whole);
        seconds.ok_or_else(|| Invalid::new("heartbeat", format!("{given:?}"), "it is 1 to 1800 whole seconds"))
    }

    fn tls(&self, host: &str, ca: Option<&std::path::Path>) -> Result<Tls, Invalid> {
        let shown = || ca.map_or_else(|| "the system's".to_owned(), |ca| ca.display().to_string());
        let refuse = |limit: String| Invalid::new("ca", shown(), limit);
        let config = Arc::new(stream::client_config(ca).map_err(refuse)?);
        let limit = "a certificate is for a host name or an address";
        let refuse = |_| Invalid::new("url", without_password(&self.url), limit);
        Ok(Tls { config, name: ServerName::try_from(host.to_owned()).map_err(refuse)? })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("url", &without_password(&self.url))
            .field("exchange", &self.exchange)
            .field("routing_key", &self.routing_key)
            .field("queue", &self.queue)
            .field("publish", &self.publish)
            .field("ca", &self.ca)
            .field("prefetch", &self.prefetch)
            .field("heartbeat", &self.heartbeat)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// Options that were checked.
pub(crate) struct Target {
    pub(crate) options: Options,
    pub(crate) uri: AMQPUri,
    pub(crate) tls: Option<Tls>,
    /// The URL as it may be told.
    pub(crate) shown: String,
}

/// Whom to trust, and whom the certificate must be for.
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

fn check_name(field: &'static str, name: &str) -> Result<(), Invalid> {
    let reserved = name.starts_with("amq.");
    if name.is_empty() || name.len() > NAME_BYTES_MAX || reserved || name.chars().any(char::is_control) {
        let limit =
            "it has 1 to 255 bytes, no control characters, and does not begin with `amq.`, which is the broker's";
        return Err(Invalid::new(field, name, limit));
    }
    Ok(())
}

fn check_key(key: &str, publish: bool) -> Result<(), Invalid> {
    let refuse = |limit| Err(Invalid::new("routing_key", key, limit));
    if key.is_empty() || key.len() > NAME_BYTES_MAX || key.chars().any(char::is_control) {
        return refuse("it has 1 to 255 bytes and no control characters");
    }
    if publish && key.split('.').any(|word| matches!(word, "*" | "#")) {
        return refuse("a key to publish with has no `*` and no `#`");
    }
    Ok(())
}

/// `%2f` is a slash. `None`: not UTF-8 afterwards.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push(hex(*high)? * 16 + hex(*low)?);
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// A URL that can be shown, whatever was typed: nothing between the first colon after `://` and the last `@` is.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "that has no ://".to_owned() };
    match rest.rsplit_once('@') {
        Some((user, place)) => format!("{scheme}://{}@{place}", user.split(':').next().unwrap_or_default()),
        // Perhaps a host and a port, perhaps a password whose `@` was forgotten.
        None => match rest.split_once(':') {
            Some((host, after)) if !after.split('/').next().is_some_and(is_number) => format!("{scheme}://{host}:…"),
            _ => format!("{scheme}://{rest}"),
        },
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(url: &str) -> AMQPUri {
        Options::new(url).check().unwrap_or_else(|refused| panic!("{url}: {refused}")).uri
    }

    fn refused(options: Options) -> String {
        match options.check() {
            Ok(_) => panic!("it was taken"),
            Err(refused) => refused.to_string(),
        }
    }

    #[test]
    fn a_url_says_host_port_user_and_vhost() {
        let full = uri("amqp://ops:s%40cret%2f@broker.example:5673/jobs%2fnight");
        assert_eq!((full.authority.host.as_str(), full.authority.port), ("broker.example", 5673));
        assert_eq!(full.authority.userinfo.password, "s@cret/");
        assert_eq!(full.vhost, "jobs/night");
        assert_eq!(full.query.heartbeat, Some(10));
        for bare in ["amqp://h", "amqp://h/", "amqp://h/%2f", "amqp://guest:guest@h:5672"] {
            let uri = uri(bare);
            assert_eq!((uri.vhost.as_str(), uri.authority.port), ("/", 5672), "{bare}");
            assert_eq!(uri.authority.userinfo.username, "guest", "{bare}");
        }
        assert_eq!(uri("amqp://u:p@[::1]:5672/").authority.host, "::1");
    }

    #[test]
    fn what_is_wrong_is_named_without_the_password() {
        let urls = [
            "amqp://ops:s3cret@host:port/",
            "amqp://ops:s3cret@/jobs",
            "amqp://ops:s3cret@host/a/b",
            "amqp://ops:s3cret@host//b",
            "amqp://ops:s3cret@host/%ff",
            "amqp://ops:s3cret@host/?heartbeat=5",
            "amqp://ops:s3cret@host/#x",
            "amqp://:s3cret@host/",
            "amqp://ops@host/",
            "http://ops:s3cret@host/",
            "amqp://ops:s3#cret@host/",
            "amqp://ops:s3/cret@host/",
            "amqp://ops:s3?cret@host/",
            "amqp://ops:s3cret",
            "amqp://ops:5ecret",
            "ops:s3cret@host",
            "",
        ];
        for url in urls {
            let text = refused(Options::new(url));
            assert!(text.starts_with("url `") && text.contains("is refused: "), "{url}: {text}");
            assert!(!text.contains("cret"), "{url}: {text}");
            assert!(!format!("{:?}", Options::new(url)).contains("cret"), "{url}");
        }
    }

    #[test]
    fn names_keys_and_numbers_have_limits() {
        let with = |change: fn(&mut Options)| {
            let mut options = Options::new("amqp://h");
            change(&mut options);
            refused(options)
        };
        assert!(with(|o| o.exchange = String::new()).starts_with("exchange"));
        assert!(with(|o| o.exchange = "amq.topic".into()).starts_with("exchange"));
        assert!(with(|o| o.exchange = "x".repeat(256)).starts_with("exchange"));
        assert!(with(|o| o.queue = Some("a\nb".into())).starts_with("queue"));
        assert!(with(|o| o.routing_key = String::new()).starts_with("routing_key"));
        assert!(with(|o| (o.routing_key, o.publish) = ("jobs.#".into(), true)).starts_with("routing_key"));
        assert!(with(|o| o.prefetch = 0).starts_with("prefetch"));
        assert!(with(|o| o.heartbeat = Duration::ZERO).starts_with("heartbeat"));
        assert!(with(|o| o.heartbeat = Duration::from_millis(1_500)).starts_with("heartbeat"));
        assert!(with(|o| o.connect_timeout = Duration::ZERO).starts_with("connect_timeout"));
        assert!(with(|o| o.ca = Some("ca.pem".into())).starts_with("ca"));
        assert!(with(|o| (o.url, o.ca) = ("amqps://h".into(), Some("no/such.pem".into()))).starts_with("ca"));
        let listens = Options { routing_key: "jobs.#".into(), ..Options::new("amqp://h") };
        assert!(listens.check().is_ok());
    }
}
