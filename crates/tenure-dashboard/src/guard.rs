//! What every answer says to the browser, and which requests are taken.

use axum::extract::{MatchedPath, Request};
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, ORIGIN, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Nothing but our own files, no script or style in the page itself, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Adds the headers, and refuses what a page of somebody else's sends.
pub(crate) async fn watch(request: Request, next: Next) -> Response {
    if request.method() != Method::GET && request.method() != Method::HEAD && !is_own(request.headers()) {
        let text = "This was sent by a page of another origin, and nothing was done.";
        return (StatusCode::FORBIDDEN, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response();
    }
    let page = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    // For the figures: the server knows only that its own paths did not match.
    page.map(|page| response.extensions_mut().insert(page));
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    response
}

/// Whether a page of ours sent this: browsers say where a form is from. One that does not say so is refused.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text(&ORIGIN).and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    origin.is_some_and(|origin| text(&HOST).is_some_and(|host| host.eq_ignore_ascii_case(origin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_forms_of_this_origin_are_taken() {
        for (origin, host, taken) in [
            (Some("http://127.0.0.1:7400"), "127.0.0.1:7400", true),
            (Some("https://jobs.example"), "jobs.example", true),
            (Some("https://jobs.example"), "JOBS.example", true),
            (Some("http://127.0.0.1:7401"), "127.0.0.1:7400", false),
            (Some("https://evil.example"), "jobs.example", false),
            (Some("https://jobs.example.evil.example"), "jobs.example", false),
            (Some("null"), "jobs.example", false),
            (None, "jobs.example", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(is_own(&headers), taken, "{origin:?} {host}");
        }
    }
}
