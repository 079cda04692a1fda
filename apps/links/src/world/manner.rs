//! [`Manner`]: what a domain of the simulated web does when it is called.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_LANGUAGE, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body::Frame;

/// What a domain does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Pages with everything.
    Good,
    /// Pages in Korean, and in the encoding of old Korean pages.
    Korean,
    /// Its robots.txt refuses everybody.
    Robots,
    /// Its robots.txt is another site's, which refuses everybody.
    RobotsElsewhere,
    /// Its robots.txt sends readers in a circle.
    RobotsCircle,
    /// It asks for a person, with status 403, as such sites do.
    Captcha,
    /// It answers 403, always.
    Forbidden,
    /// It answers 403 to the first call for a page.
    ForbiddenOnce,
    /// It answers 404.
    Gone,
    /// It answers 500.
    Broken,
    /// It answers 503 and asks for a minute of silence.
    Busy,
    /// It does not answer.
    Hanging,
    /// Its pages have moved, to others of its own.
    Moved,
    /// Its pages have moved, to another domain.
    Away,
    /// Its pages have moved, to the same name with `www.` before it.
    Www,
    /// Its pages send readers in a circle.
    Circle,
    /// Its pages never end.
    Huge,
    /// It has no pages, but files.
    Paper,
}

impl Manner {
    /// Every manner.
    pub const ALL: [Self; 18] = [
        Self::Good,
        Self::Korean,
        Self::Robots,
        Self::RobotsElsewhere,
        Self::RobotsCircle,
        Self::Captcha,
        Self::Forbidden,
        Self::ForbiddenOnce,
        Self::Gone,
        Self::Broken,
        Self::Busy,
        Self::Hanging,
        Self::Moved,
        Self::Away,
        Self::Www,
        Self::Circle,
        Self::Huge,
        Self::Paper,
    ];

    /// The domain that does so without being told.
    pub const fn domain(self) -> &'static str {
        match self {
            Self::Good => "good.example",
            Self::Korean => "korean.example",
            Self::Robots => "robots.example",
            Self::RobotsElsewhere => "delegating.example",
            Self::RobotsCircle => "dizzy.example",
            Self::Captcha => "captcha.example",
            Self::Forbidden => "forbidden.example",
            Self::ForbiddenOnce => "once.example",
            Self::Gone => "gone.example",
            Self::Broken => "broken.example",
            Self::Busy => "busy.example",
            Self::Hanging => "hanging.example",
            Self::Moved => "moved.example",
            Self::Away => "away.example",
            Self::Www => "bare.example",
            Self::Circle => "circle.example",
            Self::Huge => "huge.example",
            Self::Paper => "paper.example",
        }
    }

    /// In a few words.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Good => "A good page",
            Self::Korean => "A page in EUC-KR",
            Self::Robots => "No robots, please",
            Self::RobotsElsewhere => "No robots, says another",
            Self::RobotsCircle => "Robots go round and round",
            Self::Captcha => "Are you human?",
            Self::Forbidden => "Forbidden",
            Self::ForbiddenOnce => "Forbidden, once",
            Self::Gone => "Gone",
            Self::Broken => "Broken",
            Self::Busy => "Too busy",
            Self::Hanging => "No answer",
            Self::Moved => "Moved next door",
            Self::Away => "Moved away",
            Self::Www => "Moved to www.",
            Self::Circle => "Round and round",
            Self::Huge => "A page without an end",
            Self::Paper => "A paper",
        }
    }

    /// What a domain does that nobody has set.
    pub(super) fn of(domain: &str) -> Self {
        Self::ALL.into_iter().find(|manner| manner.domain() == domain).unwrap_or(Self::Good)
    }

    pub(super) fn robots(self) -> Response {
        match self {
            Self::Robots => "User-agent: *\nDisallow: /\n".into_response(),
            Self::RobotsElsewhere => to("http://robots.example/robots.txt"),
            Self::RobotsCircle => to("/robots.txt"),
            Self::Good => "User-agent: *\nDisallow: /private\n".into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    /// The answer to the `call`-th call for a page; 1 is the first.
    pub(super) fn page(self, domain: &str, path: &str, call: u64) -> Response {
        let html = |body: String| ([(CONTENT_TYPE, "text/html; charset=utf-8")], body).into_response();
        match self {
            Self::Good | Self::Hanging | Self::Robots | Self::RobotsElsewhere | Self::RobotsCircle => {
                html(good(domain, path))
            }
            Self::ForbiddenOnce if call > 1 => html(good(domain, path)),
            Self::Korean => {
                let (body, _, _) = encoding_rs::EUC_KR.encode("<html><title>한국어 페이지</title><p>본문");
                let mut headers = header(CONTENT_TYPE, "text/html; charset=euc-kr");
                headers.extend(header(CONTENT_LANGUAGE, "ko-KR"));
                (headers, body.into_owned()).into_response()
            }
            Self::Captcha => {
                let page = html("<title>Just a moment...</title><form id=challenge-form>".to_owned());
                (StatusCode::FORBIDDEN, page).into_response()
            }
            Self::Forbidden | Self::ForbiddenOnce => StatusCode::FORBIDDEN.into_response(),
            Self::Gone => (StatusCode::NOT_FOUND, "<title>No such page</title>").into_response(),
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, header(RETRY_AFTER, "60")).into_response(),
            Self::Moved if path.ends_with("/new") => html(good(domain, path)),
            Self::Moved => to(&format!("{}/new", path.trim_end_matches('/'))),
            Self::Away => to("http://elsewhere.example/"),
            Self::Www => to(&format!("http://www.{domain}{path}")),
            Self::Circle => to(&format!("{path}x")),
            Self::Huge => {
                let body = Endless(good(domain, path).into());
                ([(CONTENT_TYPE, "text/html; charset=utf-8")], Body::new(body)).into_response()
            }
            Self::Paper => ([(CONTENT_TYPE, "application/pdf")], "%PDF-1.7").into_response(),
        }
    }
}

/// A text, again and again, for as long as somebody reads.
struct Endless(Bytes);

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(self.0.clone()))))
    }
}

fn good(domain: &str, path: &str) -> String {
    let language = ["en", "ko", "de", "fr"].get(domain.len() % 4).copied().unwrap_or("en");
    format!(
        "<!doctype html><html lang={language}><head><title>{path} of {domain}</title>\
         <meta name=description content=\"All about {path}\"><link rel=canonical href=\"{path}\"></head>\
         <body><h1>{domain}</h1><p>A text that nobody keeps.</body></html>"
    )
}

fn to(place: &str) -> Response {
    (StatusCode::FOUND, header(LOCATION, place)).into_response()
}

fn header(name: HeaderName, value: &str) -> HeaderMap {
    let value = HeaderValue::from_str(value).ok();
    value.map(|value| (name, value)).into_iter().collect()
}
