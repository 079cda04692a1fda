//! What this process did: requests by route, and what the store could not do for them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;

use super::catalogue as is;
use super::text::Families;
use crate::app::App;
use crate::problem::FromStore;

/// Upper bounds of the histogram, in seconds: from a read of one row to a claim that waits.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];
/// Requests for a path that is none.
const UNMATCHED: &str = "unmatched";

/// Counts since the process began.
pub(crate) struct Process {
    started: SystemTime,
    /// By route and method.
    routes: Mutex<BTreeMap<String, BTreeMap<&'static str, Route>>>,
    /// By the code of the problem.
    store_errors: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Default)]
struct Route {
    /// Of 1xx, 2xx, 3xx, 4xx and 5xx.
    classes: [u64; 5],
    /// Not longer than each bound, and longer than the one before; the last is beyond all.
    within: [u64; BOUNDS.len() + 1],
    seconds: f64,
}

impl Default for Process {
    fn default() -> Self {
        Self { started: SystemTime::now(), routes: Mutex::default(), store_errors: Mutex::default() }
    }
}

/// Counts a request and how it was answered.
pub(crate) async fn measure(State(app): State<App>, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), word(request.method()));
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let process = &app.metrics.process;
    if let Some(FromStore(code)) = response.extensions().get() {
        *process.store_errors.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }
    // A page tells in its answer which one it is.
    let route = route.or_else(|| response.extensions().get().cloned());
    let route = route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    process.count(route, method, response.status(), began.elapsed());
    response
}

impl Process {
    fn count(&self, route: &str, method: &'static str, status: StatusCode, took: Duration) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        if !routes.contains_key(route) {
            routes.insert(route.to_owned(), BTreeMap::new());
        }
        let Some(methods) = routes.get_mut(route) else { return };
        let counts = methods.entry(method).or_default();
        let seconds = took.as_secs_f64();
        counts.classes[usize::from(status.as_u16() / 100).clamp(1, 5) - 1] += 1;
        counts.within[BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len())] += 1;
        counts.seconds += seconds;
    }

    /// All counts.
    pub(super) fn families(&self) -> Families {
        let mut families = Families::new(is::OF_PROCESS);
        families.put(&is::BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let started = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        families.put(&is::STARTED, &[], started.as_secs_f64());
        for (route, methods) in &*self.routes.lock().unwrap_or_else(PoisonError::into_inner) {
            for (method, counts) in methods {
                counts.put(&mut families, route, method);
            }
        }
        for (code, count) in &*self.store_errors.lock().unwrap_or_else(PoisonError::into_inner) {
            families.put(&is::STORE_ERRORS, &[("code", code)], *count as f64);
        }
        families
    }
}

impl Route {
    fn put(&self, families: &mut Families, route: &str, method: &str) {
        let labels = [("route", route), ("method", method)];
        for (class, count) in self.classes.iter().enumerate().filter(|(_, count)| **count > 0) {
            let class = format!("{}xx", class + 1);
            families.put(&is::REQUESTS, &[labels[0], labels[1], ("status", &class)], *count as f64);
        }
        let mut sum = 0;
        for (place, count) in self.within.iter().enumerate() {
            sum += count;
            let bound = BOUNDS.get(place).map_or("+Inf".to_owned(), f64::to_string);
            let labels = [labels[0], labels[1], ("le", &bound)];
            families.put_part(&is::REQUEST_SECONDS, "_bucket", &labels, sum as f64);
        }
        families.put_part(&is::REQUEST_SECONDS, "_sum", &labels, self.seconds);
        families.put_part(&is::REQUEST_SECONDS, "_count", &labels, sum as f64);
    }
}

/// A method's word; those that callers invent share one.
fn word(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
