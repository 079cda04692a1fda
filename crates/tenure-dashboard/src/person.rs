//! Who looks at a page, and how one signs in.
//!
//! One signs in with an API key. The browser gets a session of its own: 32 random bytes in a cookie that no script reads
//! and no other site sends; the store keeps their hash, the key's id and an end. With each request the key is looked up
//! again: a key that is revoked ends its sessions, and what it allows is what its person may do.

use std::time::Duration;

use askama::Template;
use axum::extract::{FromRequestParts, Query, Request, State};
use axum::http::header::{COOKIE, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tenure_core::Scope;
use tenure_server::caller::Caller;
use tenure_server::problem::Problem;
use tenure_store::access::NewSession;

use crate::bits::encoded;
use crate::desk::{Desk, bits_of};
use crate::frame::{self, Bare, Trouble};

/// The cookie of a session. The prefix makes browsers insist: over TLS or on this machine, for this host alone.
const COOKIE_NAME: &str = "__Host-tenure";
/// Largest form of somebody whom nobody knows yet.
const FORM_BYTES_MAX: usize = 4 << 10;
/// A session lasts a working day.
const LASTS: Duration = Duration::from_secs(12 * 3_600);

/// Whoever looks at a page.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    /// What they may do, as the API sees them.
    pub(crate) caller: Caller,
    /// What they are called.
    pub(crate) name: String,
    /// What their forms have to show: another site cannot know it.
    pub(crate) token: String,
}

impl FromRequestParts<Desk> for Person {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Desk) -> Result<Self, Response> {
        match find(&parts.headers, desk).await {
            Ok(Some(person)) => Ok(person),
            Ok(None) => {
                let here = parts.uri.path_and_query().map_or("/", |path| path.as_str());
                Err(to(&format!("/sign-in?next={}", encoded(here))))
            }
            Err(problem) => Err(Trouble(problem).into_response()),
        }
    }
}

/// Who sent these headers; `None` when they have to sign in.
async fn find(headers: &HeaderMap, desk: &Desk) -> Result<Option<Person>, Problem> {
    if desk.is_open() {
        let caller = Caller::anybody(headers, "dashboard")?;
        return Ok(Some(Person { caller, name: "everybody".to_owned(), token: desk.open_token.to_string() }));
    }
    let Some(token) = session_of(headers) else { return Ok(None) };
    let Some(session) = desk.store().find_session(&hash_of(token)).await? else { return Ok(None) };
    let Some(key) = desk.app.look_up_key(&session.key).await? else { return Ok(None) };
    let name = key.name.clone();
    Ok(Some(Person { caller: Caller::of(key), name, token: form_token(token) }))
}

/// The page to sign in on.
#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    bare: Bare,
    next: String,
    refused: Option<&'static str>,
}

#[derive(Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    next: String,
    #[serde(default)]
    entered: bool,
}

pub(crate) async fn show(State(desk): State<Desk>, headers: HeaderMap, Query(asked): Query<Asked>) -> Response {
    let next = own_path(&asked.next);
    match find(&headers, &desk).await {
        Ok(Some(_)) => to(&next),
        // The cookie was set a moment ago and did not come back.
        Ok(None) if asked.entered => sign_in(
            StatusCode::OK,
            next,
            Some(
                "Your browser did not keep the session. Beyond this machine the dashboard needs https: put something that speaks TLS before the server.",
            ),
        ),
        Ok(None) => sign_in(StatusCode::OK, next, None),
        Err(problem) => Trouble(problem).into_response(),
    }
}

pub(crate) async fn enter(State(desk): State<Desk>, request: Request) -> Result<Response, Trouble> {
    let form = desk.app.read_form(request, FORM_BYTES_MAX).await?;
    let entered = |name: &str| form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
    let next = own_path(entered("next"));
    let refuse = |why| Ok(sign_in(StatusCode::FORBIDDEN, own_path(entered("next")), Some(why)));
    if desk.is_open() {
        return Ok(to(&next));
    }
    let Some(key) = desk.app.find_key(entered("key")).await? else {
        return refuse("This is no key, or it has ended. `tenure keys list` shows those that are good.");
    };
    if !key.scopes.allow(Scope::Read) {
        return refuse("This key is good, but it may not read: sign in with one that has the scope read.");
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| Problem::internal("no random bits for a session", &error))?;
    let token = bits_of(&random);
    desk.store().begin_session(NewSession { token_hash: hash_of(&token), key: key.id, lasts: LASTS }).await?;
    let cookie = cookie(&token, LASTS.as_secs());
    Ok(with_cookie(to(&format!("/sign-in?entered=true&next={}", encoded(&next))), &cookie))
}

pub(crate) async fn leave(State(desk): State<Desk>, headers: HeaderMap) -> Result<Response, Trouble> {
    if let Some(token) = session_of(&headers) {
        desk.store().end_session(&hash_of(token)).await?;
    }
    Ok(with_cookie(to("/sign-in"), &cookie("", 0)))
}

fn sign_in(status: StatusCode, next: String, refused: Option<&'static str>) -> Response {
    frame::html(status, &SignIn { bare: Bare::new("Sign in"), next, refused })
}

/// The session that the cookie names.
fn session_of(headers: &HeaderMap) -> Option<&str> {
    cookie_of(headers, COOKIE_NAME).filter(|token| token.len() == 64)
}

/// A cookie's value.
pub(crate) fn cookie_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn hash_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// What forms of this session show: whoever sees it in a page cannot get back to the cookie.
fn form_token(token: &str) -> String {
    bits_of(&Sha256::digest(format!("form {token}").as_bytes())[..16])
}

fn cookie(token: &str, seconds: u64) -> String {
    format!("{COOKIE_NAME}={token}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax")
}

/// Sends the browser elsewhere, with GET.
pub(crate) fn to(path: &str) -> Response {
    let place = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}

pub(crate) fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// A path of this server's, whatever was asked for: nobody is sent elsewhere.
pub(crate) fn own_path(path: &str) -> String {
    let is_own = path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n', '\t']);
    if is_own { path.to_owned() } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_site() {
        for (asked, path) in [
            ("/jobs?state=dead", "/jobs?state=dead"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("javascript:alert(1)", "/"),
            ("/\t/evil.example", "/"),
            ("", "/"),
        ] {
            assert_eq!(own_path(asked), path);
        }
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; __Host-tenure=abc"));
        headers.append(COOKIE, HeaderValue::from_static("b=2"));
        assert_eq!(cookie_of(&headers, "__Host-tenure"), Some("abc"));
        assert_eq!(cookie_of(&headers, "b"), Some("2"));
        assert_eq!(cookie_of(&headers, "tenure"), None);
    }
}
