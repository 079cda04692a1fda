//! What callers say in the path and the query, refused with our own words.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::problem::{MALFORMED, NOT_FOUND, Problem};

/// The query, read. A parameter that is not known is refused: it is a typing error.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri).map(|axum::extract::Query(read)| Self(read)).map_err(|refused| {
            let said = refused.body_text();
            let what = said.rsplit("Failed to deserialize query string: ").next().unwrap_or_default();
            match what.split('`').nth(1) {
                Some(field) if what.contains("field") => Problem::invalid(field, format!("query: {what}")),
                _ => match what.split_once(": ") {
                    Some((field, why)) => Problem::invalid(field, format!("query parameter `{field}`: {why}")),
                    None => Problem::new(MALFORMED, format!("query: {what}")),
                },
            }
        })
    }
}

/// The segments of a path, in order.
pub(crate) struct Segments(Vec<(String, String)>);

impl FromRequestParts<App> for Segments {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, app).await;
        let params = params.map_err(|_| Problem::new(NOT_FOUND, "the path is no UTF-8"))?;
        Ok(Self(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}

impl Segments {
    /// A segment by its name.
    pub(crate) fn get<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Problem> {
        let text = self.0.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text);
        text.parse().map_err(|refused: T::Err| Problem::invalid(name, refused.to_string()))
    }

    /// A number that only grows, such as a lease's: what is none is not known.
    pub(crate) fn number(&self, name: &str) -> Result<i64, Problem> {
        let text: String = self.get(name)?;
        text.parse().map_err(|_| Problem::invalid(name, format!("{name} `{text}` is refused: it is a whole number")))
    }
}
