//! Holds answers against the OpenAPI document: the path, the method and the status are in it, and the body is what it says.

use std::sync::OnceLock;

use serde_json::Value;

use crate::http::Reply;

/// The document as the code makes it.
pub(crate) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(&tenure_server::api::openapi()).expect("JSON"))
}

/// Each operation: method, path and what is said of it.
pub(crate) fn operations() -> Vec<(String, String, &'static Value)> {
    let paths = document()["paths"].as_object().expect("paths");
    let of_path = |(path, methods): (&'static String, &'static Value)| {
        let methods = methods.as_object().expect("methods");
        methods.iter().map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation))
    };
    paths.iter().flat_map(of_path).collect()
}

#[track_caller]
pub(crate) fn check(method: &str, path: &str, reply: &Reply) {
    let path = path.split('?').next().unwrap_or_default();
    let Some((_, template, operation)) =
        operations().into_iter().find(|(known, template, _)| known == method && fits(template, path))
    else {
        assert!(
            reply.status == 404 || reply.status == 405 || path == "/v1/openapi.json",
            "{method} {path}: {}",
            reply.status
        );
        return;
    };
    let said = &operation["responses"][reply.status.to_string()];
    let said = match said["$ref"].as_str() {
        Some(name) => &document()["components"]["responses"][name.rsplit('/').next().unwrap_or_default()],
        None => said,
    };
    assert!(said.is_object(), "{method} {template} does not tell of {}: {}", reply.status, reply.text);
    let Some(content) = said["content"].as_object() else {
        assert_eq!(reply.text, "", "{method} {template}: no body is told of");
        return;
    };
    let (kind, media) = content.iter().next().expect("a kind");
    assert!(reply.head.contains(&format!("content-type: {kind}")), "{method} {template}: {}", reply.head);
    let text = Value::String(reply.text.clone());
    let body = if kind.ends_with("json") { &reply.body } else { &text };
    if let Err(why) = validate(&media["schema"], body, "body") {
        panic!("{method} {template} {}: {why}\n{}", reply.status, reply.text);
    }
}

fn fits(template: &str, path: &str) -> bool {
    let (wanted, got): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    wanted.len() == got.len() && wanted.iter().zip(&got).all(|(wanted, got)| wanted.starts_with('{') || wanted == got)
}

/// As much of JSON Schema as our document uses; a word that is not known here fails.
fn validate(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or_default();
        let found = &document()["components"]["schemas"][name];
        return if found.is_object() { validate(found, value, at) } else { Err(format!("{at}: no schema {name}")) };
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().try_for_each(|schema| validate(schema, value, at));
    }
    if let Some(some) = schema["oneOf"].as_array() {
        return match some.iter().any(|schema| validate(schema, value, at).is_ok()) {
            true => Ok(()),
            false => Err(format!("{at}: {value} is none of {some:?}")),
        };
    }
    check_type(schema, value, at)?;
    if let Some(members) = value.as_object() {
        for wanted in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(wanted) {
                return Err(format!("{at}: `{wanted}` is missing"));
            }
        }
        for (name, value) in members {
            let known = &schema["properties"][name];
            if known.is_object() {
                validate(known, value, &format!("{at}.{name}"))?;
            }
        }
    }
    if let (Some(items), true) = (value.as_array(), schema["items"].is_object()) {
        for (place, item) in items.iter().enumerate() {
            validate(&schema["items"], item, &format!("{at}[{place}]"))?;
        }
    }
    Ok(())
}

fn check_type(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        // Anything.
        _ => return Ok(()),
    };
    let is = |kind: &&str| match *kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("type {other} is not known here"),
    };
    if kinds.iter().any(is) { Ok(()) } else { Err(format!("{at}: {value} is not {kinds:?}")) }
}
