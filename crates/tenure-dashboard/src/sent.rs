//! A form as a browser sends it back: the call of the API that it stands for.

use std::collections::HashMap;

use axum::http::Method;
use serde_json::{Map, Value};
use tenure_server::problem::{MALFORMED, Problem};

use crate::person::own_path;

/// Most jobs that are named one by one.
const EACH_MAX: usize = 200;
/// The name of a hidden field begins so that has another field's value from before.
pub(crate) const BEFORE: &str = "_before:";

/// A form as it came back.
pub(crate) struct Sent {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) back: String,
    pub(crate) done: String,
    /// One by one, each in the place of `{}` in the path.
    pub(crate) each: Vec<String>,
    pub(crate) body: Map<String, Value>,
}

impl Sent {
    /// Reads the fields of a form. A field with a value from before is sent only where it differs, and as `null` where
    /// it was emptied.
    pub(crate) fn read(form: Vec<(String, String)>) -> Result<Self, Problem> {
        let malformed = |why: &str| Problem::new(MALFORMED, why.to_owned());
        let mut sent = Self {
            method: Method::POST,
            path: String::new(),
            back: "/".to_owned(),
            done: "Done.".to_owned(),
            each: Vec::new(),
            body: Map::new(),
        };
        let mut before: HashMap<String, String> = HashMap::new();
        for (name, value) in form {
            if let Some(name) = name.strip_prefix(BEFORE) {
                before.insert(name.to_owned(), value);
                continue;
            }
            match name.as_str() {
                "_token" => {}
                "_back" => sent.back = own_path(&value),
                "_path" => sent.path = value,
                "_done" => sent.done = value,
                "_each" => sent.each.push(value),
                "_method" => {
                    let method = value
                        .parse()
                        .ok()
                        .filter(|method| [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method));
                    sent.method = method.ok_or_else(|| malformed("the form names no method"))?;
                }
                name if before.get(name) == Some(&value) => {}
                name if value.is_empty() && before.contains_key(name) => {
                    let (name, _) = name.split_once(':').unwrap_or((name, ""));
                    sent.body.insert(name.to_owned(), Value::Null);
                }
                _ if value.is_empty() => {}
                name => add(&mut sent.body, name, value)?,
            }
        }
        if !sent.path.starts_with("/v1/") || sent.path.contains("..") || sent.each.len() > EACH_MAX {
            return Err(malformed("the form names no call of the API"));
        }
        Ok(sent)
    }
}

/// A member of the body: `name`, `name:number`, `name:bool`, or `name:list` once for each of its values.
fn add(body: &mut Map<String, Value>, name: &str, value: String) -> Result<(), Problem> {
    let (name, shape) = name.split_once(':').unwrap_or((name, "text"));
    let refused = |what: &str| Problem::invalid(name, format!("{name} `{value}` is refused: {what}"));
    match shape {
        "number" => {
            let number: u64 =
                value.trim().replace([',', '_'], "").parse().map_err(|_| refused("it is a whole number"))?;
            body.insert(name.to_owned(), number.into());
        }
        "duration" => {
            let time = tenure_core::duration::parse("duration", &value).map_err(|error| refused(&error.to_string()))?;
            body.insert(name.to_owned(), u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into());
        }
        "bool" => {
            body.insert(name.to_owned(), (value == "true").into());
        }
        "list" => {
            let list = body.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(values) = list {
                values.extend(value.split(',').map(|value| Value::from(value.trim())));
            }
        }
        _ => {
            body.insert(name.to_owned(), value.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)]) -> Result<Sent, Problem> {
        Sent::read(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_form_becomes_a_body_of_the_right_shapes() {
        let sent = read(&[
            ("_path", "/v1/keys"),
            ("name", "ops"),
            ("scopes:list", "read"),
            ("scopes:list", "operate"),
            ("offset:number", "1,200"),
            ("enabled:bool", "false"),
            ("overlap_ms:duration", "5m"),
            ("reason", ""),
        ])
        .unwrap();
        let body = Value::Object(sent.body).to_string();
        assert_eq!(
            body,
            r#"{"enabled":false,"name":"ops","offset":1200,"overlap_ms":300000,"scopes":["read","operate"]}"#
        );
    }

    #[test]
    fn only_calls_of_the_api_are_made() {
        for path in ["", "/", "/do", "/jobs", "http://evil.example/v1/", "/v1/../do"] {
            assert!(read(&[("_path", path)]).is_err(), "{path}");
        }
        assert!(read(&[("_path", "/v1/jobs"), ("_method", "GET")]).is_err(), "reading is what pages are for");
        assert!(read(&[("_path", "/v1/x"), ("offset:number", "many")]).is_err());
    }

    #[test]
    fn a_form_that_changes_a_thing_sends_what_was_changed() {
        let sent = read(&[
            ("_path", "/v1/rules/g"),
            ("_method", "PATCH"),
            ("_before:rate", "30/m"),
            ("rate", "60/m"),
            ("_before:burst:number", ""),
            ("burst:number", ""),
            ("_before:concurrency:number", "2"),
            ("concurrency:number", ""),
            ("_before:weight:number", "1"),
            ("weight:number", "1"),
        ])
        .unwrap();
        assert_eq!(Value::Object(sent.body).to_string(), r#"{"concurrency":null,"rate":"60/m"}"#);
    }
}
