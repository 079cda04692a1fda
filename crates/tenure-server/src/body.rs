//! Bodies: read whole, in bounded time and memory, and only after the caller is known.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tokio::time::{Instant, timeout_at};

use crate::app::App;
use crate::bodies::{Held, Holder, SMALL_BYTES_MAX};
use crate::caller::Caller;
use crate::problem::{MALFORMED, Problem, TIMEOUT, TOO_LARGE, UNSUPPORTED_MEDIA_TYPE};
use crate::right::Right;

/// The text of a JSON body, of a caller with the right `R`. An empty one is an empty object: many calls have nothing to say.
pub(crate) struct Text<R> {
    pub(crate) text: String,
    held: Held,
    right: PhantomData<R>,
}

/// A JSON body, read, of a caller with the right `R`, with its share of the memory for bodies: what was made of it lives
/// as long.
pub(crate) struct Json<R, T>(pub(crate) T, pub(crate) BodyHeld<R>);

/// A body's share of the memory for bodies, given back when it is dropped.
pub(crate) struct BodyHeld<R>(#[expect(dead_code, reason = "only kept")] Held, PhantomData<R>);

/// A large body has to bring this much more within [`Options::body_stall`](crate::Options::body_stall).
const PROGRESS_BYTES: usize = 64 << 10;

/// The bytes of a body of at most `max`, in time, with their share of the memory for bodies.
pub(crate) async fn bytes(request: Request, app: &App, max: usize) -> Result<(Vec<u8>, Held), Problem> {
    let too_large = || Problem::new(TOO_LARGE, format!("a body has at most {max} bytes"));
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > max as u64) {
        return Err(too_large());
    }
    let announced = announced.and_then(|length| usize::try_from(length).ok());
    let holder = Holder::of(request.extensions().get(), request.extensions().get().copied());
    let mut held = app.bodies.begin(announced, holder);
    let is_small = announced.is_some_and(|length| length <= SMALL_BYTES_MAX);
    let deadline = Instant::now() + app.options.body_timeout;
    let mut stall = Instant::now() + app.options.body_stall;
    let mut body = request.into_body();
    let (mut bytes, mut milestone) = (Vec::new(), PROGRESS_BYTES);
    loop {
        let until = if is_small { deadline } else { deadline.min(stall) };
        let slow = |_| match until == deadline {
            true => Problem::new(TIMEOUT, "the body did not arrive in time"),
            false => Problem::new(TIMEOUT, "the body comes too slowly: send it at once, without pauses"),
        };
        let Some(frame) = timeout_at(until, body.frame()).await.map_err(slow)? else { break };
        let broken = |_| Problem::new(MALFORMED, "the body ended in the middle");
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if bytes.len() + data.len() > max {
            return Err(too_large());
        }
        held.grow_to(bytes.len() + data.len())?;
        bytes.extend_from_slice(&data);
        if bytes.len() >= milestone {
            milestone = bytes.len() + PROGRESS_BYTES;
            stall = Instant::now() + app.options.body_stall;
        }
    }
    Ok((bytes, held))
}

impl<R: Right> FromRequest<App> for Text<R> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        R::check(&Caller::from_request_parts(&mut parts, app).await?)?;
        let is_json = is_json(&parts.headers);
        let request = Request::from_parts(parts, body);
        let (bytes, held) = bytes(request, app, app.options.body_bytes_max).await?;
        if bytes.is_empty() {
            return Ok(Self { text: "{}".to_owned(), held, right: PhantomData });
        }
        if !is_json {
            return Err(Problem::new(UNSUPPORTED_MEDIA_TYPE, "a body has the header `Content-Type: application/json`"));
        }
        let text = String::from_utf8(bytes).map_err(|_| Problem::new(MALFORMED, "the body is not UTF-8"))?;
        Ok(Self { text, held, right: PhantomData })
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json")
}

impl<R: Right, T: DeserializeOwned> FromRequest<App> for Json<R, T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let body = Text::<R>::from_request(request, app).await?;
        Ok(Self(read(&body.text)?, BodyHeld(body.held, PhantomData)))
    }
}

/// Reads JSON into a type; what it cannot be is told by its place, never by its content.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    // A list would be read as the members in their order.
    if !text.trim_start().starts_with('{') {
        return Err(Problem::new(MALFORMED, "the body is a JSON object"));
    }
    serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what);
        // What was there is the caller's; what would do is ours.
        let what = match what.find("expected ") {
            Some(at) if what.starts_with("invalid ") => &what[at..],
            _ => what,
        };
        let place = format!("line {}, column {}", error.line(), error.column());
        if error.is_data() {
            // The name of the member is between the first two backticks, where serde knows it.
            let field = what.split('`').nth(1).filter(|_| what.contains("field"));
            return match field {
                Some(field) => Problem::invalid(field, format!("{what} ({place})")),
                None => Problem::invalid("body", format!("{what} ({place})")),
            };
        }
        Problem::new(MALFORMED, format!("the body is not JSON: {what} ({place})"))
    })
}

/// Reads a list that ends in time: what is too long is not read to its end.
pub(crate) fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MAX: usize>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(AtMost::<T, MAX>(PhantomData))
}

/// The same for a list that may be missing.
pub(crate) fn at_most_maybe<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MAX: usize>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    struct Maybe<T, const MAX: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Maybe<T, MAX> {
        type Value = Option<Vec<T>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list or null")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
            at_most::<D, T, MAX>(from).map(Some)
        }
    }
    from.deserialize_option(Maybe::<T, MAX>(PhantomData))
}

struct AtMost<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for AtMost<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MAX {
                return Err(serde::de::Error::custom(format_args!("a list has at most {MAX} items here")));
            }
            items.push(item);
        }
        Ok(items)
    }
}
