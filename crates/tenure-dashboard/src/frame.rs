//! What is around every page: the menu, who looks, what was just done.

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tenure_core::name::TenantName;
use tenure_core::text::printable_lines;
use tenure_core::{Scope, Timestamp};
use tenure_server::problem::Problem;
use tenure_store::record::Sight;

use crate::act::Act;
use crate::assets;
use crate::bits::Markup;
use crate::desk::Desk;
use crate::person::{Person, cookie_of, own_path, with_cookie};

/// The cookie that carries a sentence from what was done to the page that is shown next.
const SAID: &str = "__Host-tenure-said";

/// One look at a page: by whom, where, when.
pub(crate) struct Visit {
    pub(crate) person: Person,
    /// Path and query, for coming back.
    pub(crate) here: String,
    /// The store's clock.
    pub(crate) now: Timestamp,
    said: Option<Said>,
    is_open: bool,
}

/// What became of what was just done.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) is_good: bool,
    pub(crate) text: String,
}

impl FromRequestParts<Desk> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Desk) -> Result<Self, Response> {
        let person = Person::from_request_parts(parts, desk).await?;
        if let Err(problem) = person.caller.need(Scope::Read) {
            return Err(Trouble(problem).into_response());
        }
        let here = own_path(parts.uri.path_and_query().map_or("/", |path| path.as_str()));
        let now = desk.store().now().await.map_err(|error| Trouble(error.into()).into_response())?;
        let said = cookie_of(&parts.headers, SAID).and_then(Said::parse);
        Ok(Self { person, here, now, said, is_open: desk.is_open() })
    }
}

impl Visit {
    /// What this person sees, or one tenant's part of it.
    pub(crate) fn sight(&self, tenant: &Option<TenantName>) -> Result<Sight, Problem> {
        self.person.caller.sight(tenant.clone())
    }

    /// Refuses who is no operator.
    pub(crate) fn need_operator(&self) -> Result<(), Problem> {
        self.person.caller.need_operator(Scope::Read)
    }

    /// The frame of a page of this name.
    pub(crate) fn frame(&self, title: impl Into<String>, place: &'static str) -> Frame {
        let caller = &self.person.caller;
        Frame {
            bare: Bare::new(title),
            place,
            name: self.person.name.clone(),
            tenant: caller.tenant.as_ref().map(ToString::to_string),
            is_open: self.is_open,
            is_operator: caller.tenant.is_none(),
            can_operate: caller.scopes.allow(Scope::Operate),
            can_admin: caller.scopes.allow(Scope::Admin),
            token: self.person.token.clone(),
            here: self.here.clone(),
            said: self.said.clone(),
            now: self.now,
        }
    }

    /// A page, and the sentence in it is said once.
    pub(crate) fn show(&self, page: &impl Template) -> Response {
        self.show_as(StatusCode::OK, page)
    }

    /// A list, or the page of a filter that was refused.
    pub(crate) fn show_list(&self, refused: bool, page: &impl Template) -> Response {
        self.show_as(if refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK }, page)
    }

    fn show_as(&self, status: StatusCode, page: &impl Template) -> Response {
        let response = html(status, page);
        match self.said {
            Some(_) => with_cookie(response, &said_cookie("", 0)),
            None => response,
        }
    }
}

/// What every page has, also one for nobody in particular.
pub(crate) struct Bare {
    pub(crate) title: String,
    pub(crate) css: String,
    pub(crate) js: String,
    pub(crate) icon: String,
}

impl Bare {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        let (css, js, icon) = (assets::path("css"), assets::path("js"), assets::path("svg"));
        Self { title: title.into(), css, js, icon }
    }
}

/// What a page of somebody has around it.
pub(crate) struct Frame {
    pub(crate) bare: Bare,
    /// Which entry of the menu it belongs to.
    pub(crate) place: &'static str,
    pub(crate) name: String,
    pub(crate) tenant: Option<String>,
    pub(crate) is_open: bool,
    pub(crate) is_operator: bool,
    pub(crate) can_operate: bool,
    pub(crate) can_admin: bool,
    pub(crate) token: String,
    pub(crate) here: String,
    pub(crate) said: Option<Said>,
    pub(crate) now: Timestamp,
}

/// One entry of the menu.
pub(crate) struct Entry {
    pub(crate) place: &'static str,
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
    operators: bool,
    admins: bool,
}

const fn entry(place: &'static str, path: &'static str, name: &'static str) -> Entry {
    Entry { place, path, name, operators: false, admins: false }
}

const fn operators(place: &'static str, path: &'static str, name: &'static str) -> Entry {
    Entry { operators: true, ..entry(place, path, name) }
}

const fn admins(place: &'static str, path: &'static str, name: &'static str) -> Entry {
    Entry { admins: true, ..entry(place, path, name) }
}

const MENU: [Entry; 13] = [
    entry("overview", "/", "Overview"),
    entry("jobs", "/jobs", "Jobs"),
    operators("queues", "/queues", "Queues"),
    entry("dead", "/dead", "Dead letters"),
    entry("operations", "/operations", "Operations"),
    entry("runs", "/runs", "Runs"),
    entry("schedules", "/schedules", "Schedules"),
    operators("gates", "/gates", "Gates"),
    operators("workers", "/workers", "Workers"),
    entry("webhooks", "/webhooks", "Webhooks"),
    operators("audit", "/audit", "Audit"),
    Entry { operators: true, ..admins("tenants", "/tenants", "Tenants") },
    admins("keys", "/keys", "Keys"),
];

impl Frame {
    /// The entries that this person may open.
    pub(crate) fn menu(&self) -> impl Iterator<Item = &'static Entry> {
        let (operator, admin) = (self.is_operator, self.can_admin);
        MENU.iter().filter(move |entry| (operator || !entry.operators) && (admin || !entry.admins))
    }

    /// A button with its form, for those who may press it.
    pub(crate) fn act(&self, act: &Act) -> Markup {
        if self.can_operate { act.markup(&self.token, &self.here) } else { Markup::default() }
    }

    /// A button of administrators'.
    pub(crate) fn admin_act(&self, act: &Act) -> Markup {
        if self.can_admin { act.markup(&self.token, &self.here) } else { Markup::default() }
    }
}

impl Said {
    fn parse(text: &str) -> Option<Self> {
        let (tone, text) = text.split_once('.')?;
        let bytes: Option<Vec<u8>> =
            (0..text.len() / 2).map(|at| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()).collect();
        Some(Self { is_good: tone == "y", text: String::from_utf8(bytes?).ok()? })
    }

    /// Lets the next page say it.
    pub(crate) fn on(&self, response: Response) -> Response {
        let tone = if self.is_good { "y" } else { "n" };
        let text: String = self.text.chars().take(600).collect();
        with_cookie(response, &said_cookie(&format!("{tone}.{}", crate::desk::bits_of(text.as_bytes())), 60))
    }
}

fn said_cookie(value: &str, seconds: u32) -> String {
    format!("{SAID}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax")
}

/// A page as it is sent. Texts of tenants that turn the order of writing or hide are written out here, whatever the template
/// that shows them.
fn written(page: &impl Template) -> askama::Result<String> {
    page.render().map(|text| printable_lines(&text))
}

/// Renders a page.
pub(crate) fn html(status: StatusCode, page: &impl Template) -> Response {
    match written(page) {
        Ok(text) => {
            (status, [(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], text).into_response()
        }
        Err(error) => Problem::internal("a page cannot be written", &error).into_response(),
    }
}

/// A page that cannot be shown.
pub(crate) struct Trouble(pub(crate) Problem);

#[derive(Template)]
#[template(path = "trouble.html")]
struct TroublePage {
    bare: Bare,
    status: u16,
    detail: String,
    /// What can be done about it.
    hint: &'static str,
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let code = self.0.code();
        let hint = match code.word {
            "not_found" => "It may have been pruned, it may be another tenant's, or the address has a mistake in it.",
            "forbidden" => "Sign in with a key that allows it.",
            "unavailable" | "busy" => "Nothing is lost: reload the page in a moment.",
            "internal" => "The server's log says what it was.",
            _ => "Go back and change it.",
        };
        let page =
            TroublePage { bare: Bare::new(code.title), status: code.status, detail: self.0.detail().to_owned(), hint };
        let mut response = html(StatusCode::from_u16(code.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &page);
        self.0.mark().map(|mark| response.extensions_mut().insert(mark));
        response
    }
}

impl<E: Into<Problem>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Template)]
    #[template(source = "<p title=\"{{ text }}\">{{ text }}\n</p>", ext = "html")]
    struct Shown {
        text: &'static str,
    }

    #[test]
    fn no_template_shows_text_that_turns_around_or_hides() {
        let page = written(&Shown { text: "a\u{202e}b\u{200b}\u{9b}\u{1b}c" }).unwrap();
        let text = "a\\u{202e}b\\u{200b}\\u{9b}\\u{1b}c";
        assert_eq!(page, format!("<p title=\"{text}\">{text}\n</p>"));
    }
}
