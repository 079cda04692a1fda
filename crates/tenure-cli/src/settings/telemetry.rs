//! `[telemetry]` of a settings file, and its variables: who is told what this program does.
//!
//! ```toml
//! [telemetry]
//! otlp_endpoint = "http://127.0.0.1:4318"
//! sample_ratio = "0.1"
//! sentry_dsn = "https://KEY@sentry.example/1"
//! ```
//!
//! Each has a variable of ours and the one that every program of its kind reads; ours wins.

use std::fmt;

use tenure_core::Invalid;
use toml::de::{DeTable, DeValue};

use super::file::SettingsFile;
use super::keys::Bad;
use super::{Lookup, Origin, Setting, variable};
use crate::failure::Failure;

/// Each setting: its key in the table, its whole name, and its variables.
const KEYS: [(&str, &str, [&str; 2]); 4] = [
    ("otlp_endpoint", "telemetry.otlp_endpoint", ["TENURE_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]),
    ("service_name", "telemetry.service_name", ["TENURE_SERVICE_NAME", "OTEL_SERVICE_NAME"]),
    ("sample_ratio", "telemetry.sample_ratio", ["TENURE_SAMPLE_RATIO", "OTEL_TRACES_SAMPLER_ARG"]),
    ("sentry_dsn", "telemetry.sentry_dsn", ["TENURE_SENTRY_DSN", "SENTRY_DSN"]),
];
const SERVICE_NAME_DEFAULT: &str = "tenure";

/// Who is told what.
#[derive(Debug)]
pub(crate) struct TelemetrySettings {
    /// The collector of traces; without it there are none.
    pub(crate) otlp_endpoint: Option<Setting<Whereto>>,
    /// How this program is called there.
    pub(crate) service_name: Setting<String>,
    /// How many of the traces that begin here are recorded, 0 to 1.
    pub(crate) sample_ratio: Setting<f64>,
    /// Where Sentry is; without it nobody is told of errors.
    pub(crate) sentry_dsn: Option<Setting<Whereto>>,
}

/// A URL that may hold a key or a password: never shown as it is.
#[derive(Clone)]
pub(crate) struct Whereto(pub(crate) String);

impl TelemetrySettings {
    pub(super) fn resolve(env: Lookup, file: Option<&SettingsFile>) -> Result<Self, Failure> {
        let find = |(_, whole, names): (&str, &str, [&'static str; 2])| {
            for name in names {
                if let said @ Some(_) = variable(name, env)? {
                    return Ok::<_, Failure>(said);
                }
            }
            Ok(file.and_then(|file| file.get(whole)))
        };
        let [otlp_endpoint, service_name, sample_ratio, sentry_dsn] = KEYS.map(find);
        let ratio = |text: String| {
            let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
            ratio.ok_or_else(|| Invalid::new("sample_ratio", &text, "it is 0 (none) to 1 (all)"))
        };
        let name = || Setting { value: SERVICE_NAME_DEFAULT.to_owned(), origin: Origin::Default };
        Ok(Self {
            otlp_endpoint: otlp_endpoint?.map(hidden),
            service_name: service_name?.unwrap_or_else(name),
            sample_ratio: match sample_ratio? {
                Some(said) => said.check(ratio)?,
                None => Setting { value: 1.0, origin: Origin::Default },
            },
            sentry_dsn: sentry_dsn?.map(hidden),
        })
    }

    /// As the crate that tells them knows them.
    pub(crate) fn options(&self) -> tenure_telemetry::Options {
        tenure_telemetry::Options {
            otlp_endpoint: self.otlp_endpoint.as_ref().map(|said| said.value.0.clone()),
            service_name: self.service_name.value.clone(),
            sample_ratio: self.sample_ratio.value,
            sentry_dsn: self.sentry_dsn.as_ref().map(|said| said.value.0.clone()),
        }
    }

    /// Who said this, by the name that a refusal has for it.
    pub(crate) fn origin(&self, field: &str) -> Option<&Origin> {
        match field {
            "otlp_endpoint" => self.otlp_endpoint.as_ref().map(|said| &said.origin),
            "sentry_dsn" => self.sentry_dsn.as_ref().map(|said| &said.origin),
            _ => None,
        }
    }
}

/// Reads the table: where each key stands, its whole name, and what it says.
pub(super) fn read(table: &DeTable<'_>) -> Result<Vec<(usize, &'static str, String)>, Bad> {
    let mut read = Vec::new();
    for (name, value) in table {
        let Some((_, whole, _)) = KEYS.into_iter().find(|(key, ..)| *key == name.get_ref().as_ref()) else {
            let known = KEYS.map(|(key, ..)| key).join(", ");
            return Err((name.span().start, format!("the key `{}` is unknown; telemetry has {known}", name.get_ref())));
        };
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            _ => return Err((value.span().start, format!("`{whole}` is a string in quotes"))),
        };
        read.push((name.span().start, whole, text));
    }
    Ok(read)
}

fn hidden(said: Setting<String>) -> Setting<Whereto> {
    Setting { value: Whereto(said.value), origin: said.origin }
}

/// Shows scheme and place, and nothing that may be a secret.
impl fmt::Display for Whereto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else { return f.write_str("…") };
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        write!(f, "{scheme}://{}", place.split(['/', '?', '#']).next().unwrap_or_default())
    }
}

impl fmt::Debug for Whereto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_variables_win_and_a_ratio_is_one() {
        let said = |name: &str| match name {
            "TENURE_OTLP_ENDPOINT" => Some("http://user:secret@here:4318/secret?secret".into()),
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://elsewhere".into()),
            "OTEL_SERVICE_NAME" => Some("shop".into()),
            "OTEL_TRACES_SAMPLER_ARG" => Some("0.25".into()),
            "SENTRY_DSN" => Some("https://secret@sentry.test/1".into()),
            _ => None,
        };
        let settings = TelemetrySettings::resolve(&said, None).unwrap();
        assert_eq!(settings.sentry_dsn.unwrap().value.to_string(), "https://sentry.test");
        assert_eq!(settings.otlp_endpoint.unwrap().value.to_string(), "http://here:4318");
        assert_eq!((settings.service_name.value.as_str(), settings.sample_ratio.value), ("shop", 0.25));
        for bad in ["2", "-1", "some", "NaN"] {
            let refused = TelemetrySettings::resolve(&|name| (name == "TENURE_SAMPLE_RATIO").then(|| bad.into()), None);
            let refused = refused.unwrap_err();
            assert!(refused.message().starts_with("TENURE_SAMPLE_RATIO: sample_ratio"), "{}", refused.message());
        }
    }
}
