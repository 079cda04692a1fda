//! `[rabbitmq]` of a settings file, and its variables: the broker that wakes workers sooner than they poll.
//!
//! ```toml
//! [rabbitmq]
//! url = "amqps://tenure:secret@broker.example/jobs"
//! publish = true
//! ```
//!
//! Every binary reads these settings and can show them; whether it can use them is said by [`crate::broker`], which also
//! checks what only a broker's client can check.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::file::SettingsFile;
use super::keys::{Bad, boolean, boolean_text};
use super::{Lookup, Origin, Setting, first};
use crate::failure::Failure;

/// Each setting: its key in the table, its whole name, its variable, and whether it is yes or no.
const KEYS: [(&str, &str, &str, bool); 7] = [
    ("url", "rabbitmq.url", "TENURE_RABBITMQ_URL", false),
    ("exchange", "rabbitmq.exchange", "TENURE_RABBITMQ_EXCHANGE", false),
    ("routing_key", "rabbitmq.routing_key", "TENURE_RABBITMQ_ROUTING_KEY", false),
    ("queue", "rabbitmq.queue", "TENURE_RABBITMQ_QUEUE", false),
    ("ca", "rabbitmq.ca", "TENURE_RABBITMQ_CA", false),
    ("publish", "rabbitmq.publish", "TENURE_RABBITMQ_PUBLISH", true),
    ("required", "rabbitmq.required", "TENURE_RABBITMQ_REQUIRED", true),
];
const EXCHANGE_DEFAULT: &str = "tenure";
const ROUTING_KEY_DEFAULT: &str = "jobs.trigger";

/// Which broker, and how it is used.
#[derive(Debug)]
pub(crate) struct RabbitSettings {
    /// Where it is; without it there is none.
    pub(crate) url: Option<Setting<BrokerUrl>>,
    pub(crate) exchange: Setting<String>,
    pub(crate) routing_key: Setting<String>,
    /// A queue that processes share; without it each has its own.
    pub(crate) queue: Option<Setting<String>>,
    /// Certificates that may sign the broker's; without them those that the system trusts.
    pub(crate) ca: Option<Setting<PathBuf>>,
    /// Whether new jobs are published.
    pub(crate) publish: Setting<bool>,
    /// Whether a server is ready only while the broker is there.
    pub(crate) required: Setting<bool>,
}

/// A broker's URL, password included: never shown as it is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BrokerUrl(pub(crate) String);

impl RabbitSettings {
    pub(super) fn resolve(env: Lookup, file: Option<&SettingsFile>) -> Result<Self, Failure> {
        let [url, exchange, routing_key, queue, ca, publish, required] =
            KEYS.map(|(_, name, variable, _)| first(variable, name, env, file));
        let (exchange, routing_key, queue, ca) = (exchange?, routing_key?, queue?, ca?);
        let (url, publish, required) = (url?, publish?, required?);
        if url.is_none()
            && let Some(said) = [&exchange, &routing_key, &queue, &ca, &publish, &required].into_iter().flatten().next()
        {
            let why = format!("{}: there is no broker to use it for; rabbitmq.url says where one is", said.origin);
            return Err(Failure::usage("settings", why));
        }
        Ok(Self {
            url: url.map(|Setting { value, origin }| Setting { value: BrokerUrl(value), origin }),
            exchange: or_default(exchange, EXCHANGE_DEFAULT),
            routing_key: or_default(routing_key, ROUTING_KEY_DEFAULT),
            queue,
            ca: ca.map(from_its_file),
            publish: yes_or_no("publish", publish)?,
            required: yes_or_no("required", required)?,
        })
    }

    /// Who said this of the broker, by the name that a refusal has for it.
    #[cfg(feature = "rabbitmq")]
    pub(crate) fn origin(&self, field: &str) -> Option<&Origin> {
        match field {
            "url" => self.url.as_ref().map(|said| &said.origin),
            "exchange" => Some(&self.exchange.origin),
            "routing_key" => Some(&self.routing_key.origin),
            "queue" => self.queue.as_ref().map(|said| &said.origin),
            "ca" => self.ca.as_ref().map(|said| &said.origin),
            _ => None,
        }
    }
}

/// Reads the table: where each key stands, its whole name, and what it says.
pub(super) fn read(table: &DeTable<'_>) -> Result<Vec<(usize, &'static str, String)>, Bad> {
    let mut read = Vec::new();
    for (name, value) in table {
        let Some((_, whole, _, is_yes_or_no)) = KEYS.into_iter().find(|(key, ..)| *key == name.get_ref().as_ref())
        else {
            let known = KEYS.map(|(key, ..)| key).join(", ");
            return Err((name.span().start, format!("the key `{}` is unknown; rabbitmq has {known}", name.get_ref())));
        };
        let text = match (value.get_ref(), is_yes_or_no) {
            (DeValue::String(text), false) => text.to_string(),
            (value, true) => match boolean_text(value) {
                Some(text) => text,
                None => return Err((name.span().start, format!("`{whole}` is true or false"))),
            },
            (_, false) => return Err((value.span().start, format!("`{whole}` is a string in quotes"))),
        };
        read.push((name.span().start, whole, text));
    }
    Ok(read)
}

fn or_default(said: Option<Setting<String>>, default: &str) -> Setting<String> {
    said.unwrap_or_else(|| Setting { value: default.to_owned(), origin: Origin::Default })
}

/// A relative path in the file starts at the file, wherever the command is run.
fn from_its_file(said: Setting<String>) -> Setting<PathBuf> {
    let base = match &said.origin {
        Origin::File { path, .. } => path.parent().unwrap_or(Path::new("")),
        _ => Path::new(""),
    };
    Setting { value: base.join(&said.value), origin: said.origin }
}

fn yes_or_no(field: &'static str, said: Option<Setting<String>>) -> Result<Setting<bool>, Failure> {
    said.map_or(Ok(Setting { value: false, origin: Origin::Default }), |said| said.check(|text| boolean(field, &text)))
}

/// Shows where it is, and neither user nor password, whatever was typed.
impl fmt::Display for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else { return f.write_str("…") };
        // A password may hold anything: the last at-sign ends it.
        let place = match rest.rsplit_once('@') {
            Some((_, place)) => place,
            // A password whose at-sign was forgotten looks like a port.
            None if rest.contains(':') && !has_port(rest) => "…",
            None => rest,
        };
        write!(f, "{scheme}://{}", place.split(['?', '#']).next().unwrap_or_default())
    }
}

fn has_port(place: &str) -> bool {
    let (_, port) = place.split('/').next().unwrap_or_default().rsplit_once(':').unwrap_or_default();
    !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Debug for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_user_and_password() {
        for (url, shown) in [
            ("amqp://ops:secret@broker:5672/jobs", "amqp://broker:5672/jobs"),
            ("amqps://ops:sec/ret?@secret@broker/jobs?secret#secret", "amqps://broker/jobs"),
            ("amqp://broker/jobs", "amqp://broker/jobs"),
            ("amqp://broker:5672", "amqp://broker:5672"),
            ("amqp://[::1]:5672/", "amqp://[::1]:5672/"),
            ("amqp://ops:secret", "amqp://…"),
            ("amqp://ops:sec/ret", "amqp://…"),
            ("ops:secret@broker", "…"),
        ] {
            let url = BrokerUrl(url.to_owned());
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
        }
    }

    #[test]
    fn variables_win_over_the_file_and_nothing_is_said_without_a_url() {
        let none = RabbitSettings::resolve(&|_| None, None).unwrap();
        assert!(none.url.is_none() && !none.publish.value && !none.required.value);
        let said = |name: &str| match name {
            "TENURE_RABBITMQ_URL" => Some("amqp://broker".into()),
            "TENURE_RABBITMQ_PUBLISH" => Some("true".into()),
            _ => None,
        };
        let settings = RabbitSettings::resolve(&said, None).unwrap();
        assert!(settings.publish.value && settings.exchange.value == "tenure");
        for (name, value, part) in [
            ("TENURE_RABBITMQ_REQUIRED", "true", "TENURE_RABBITMQ_REQUIRED: there is no broker"),
            ("TENURE_RABBITMQ_QUEUE", "wakes", "TENURE_RABBITMQ_QUEUE: there is no broker"),
        ] {
            let refused = RabbitSettings::resolve(&|asked| (asked == name).then(|| value.into()), None).unwrap_err();
            assert!(refused.message().starts_with(part), "{}", refused.message());
        }
        let often = |name: &str| match name {
            "TENURE_RABBITMQ_URL" => Some("amqp://broker".into()),
            "TENURE_RABBITMQ_PUBLISH" => Some("often".into()),
            _ => None,
        };
        let refused = RabbitSettings::resolve(&often, None).unwrap_err();
        assert!(refused.message().contains("TENURE_RABBITMQ_PUBLISH: publish `often`"), "{}", refused.message());
    }

    #[cfg(feature = "rabbitmq")]
    #[test]
    fn the_defaults_are_the_clients_own() {
        let own = tenure_rabbitmq::Options::new("amqp://broker");
        assert_eq!((own.exchange.as_str(), own.routing_key.as_str()), (EXCHANGE_DEFAULT, ROUTING_KEY_DEFAULT));
    }
}
