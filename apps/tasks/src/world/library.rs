//! The library: documents by name, some of them hard to get.
//!
//! `words-120` has 120 words, and so has any other number up to a hundred thousand; every other name has whatever was put
//! there, or is not found.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kit::{Traffic, Valve};

/// The longest document of words.
const WORDS_MAX: usize = 100_000;
/// What such a document is made of, in turn.
const WORDS: [&str; 7] = ["lease", "task", "worker", "queue", "claim", "report", "rest"];

/// Documents, and who asks for them. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Library(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    shelves: Mutex<HashMap<String, Shelf>>,
    traffic: Traffic,
}

/// What is said of one name.
#[derive(Debug, Clone, Default)]
struct Shelf {
    text: Option<String>,
    status: Option<u16>,
    valve: Option<Valve>,
}

impl Library {
    /// Puts a document there.
    pub fn put(&self, name: &str, text: &str) {
        self.change(name, |shelf| shelf.text = Some(text.to_owned()));
    }

    /// Answers with this status instead, from now on.
    pub fn fail(&self, name: &str, status: u16) {
        self.change(name, |shelf| shelf.status = Some(status));
    }

    /// Whoever asks for it waits until the valve is opened.
    pub fn hold(&self, name: &str) -> Valve {
        let valve = Valve::shut();
        self.change(name, |shelf| shelf.valve = Some(valve.clone()));
        valve
    }

    /// Who asked for what: by name.
    pub fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// The document of so many words.
    pub fn words(count: usize) -> String {
        WORDS.into_iter().cycle().take(count.min(WORDS_MAX)).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn router(&self) -> Router {
        Router::new().route("/documents/{name}", get(answer)).with_state(self.clone())
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Shelf)) {
        change(self.lock().entry(name.to_owned()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Shelf>> {
        self.0.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(State(library): State<Library>, Path(name): Path<String>) -> Response {
    let _there_until_answered = library.0.traffic.enter(name.as_str());
    let shelf = library.lock().get(&name).cloned().unwrap_or_default();
    if let Some(valve) = &shelf.valve {
        valve.pass().await;
    }
    if let Some(status) = shelf.status.and_then(|status| StatusCode::from_u16(status).ok()) {
        return status.into_response();
    }
    let counted = || name.strip_prefix("words-")?.parse().ok().map(Library::words);
    match shelf.text.or_else(counted) {
        Some(text) => text.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
