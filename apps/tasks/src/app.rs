//! [`App`]: what handlers share.

use kit::http::HttpOptions;
use kit::{BoxError, Http};
use tenure::Database;

use crate::settings::Settings;

/// Largest document that is fetched.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// Everything a handler needs. Clones share it.
#[derive(Clone)]
pub struct App {
    /// Jobs and our own tables.
    pub(crate) database: Database,
    /// Calls to the outside.
    pub(crate) http: Http,
}

impl App {
    /// On this database, by these settings.
    pub fn new(database: &Database, settings: &Settings) -> Result<Self, BoxError> {
        let options = HttpOptions {
            timeout: settings.fetch_timeout,
            bytes_max: DOCUMENT_BYTES_MAX,
            // Whoever adds tasks chooses where this machine calls.
            guard: Some(settings.guard()),
            user_agent: "tenure-tasks",
            ..HttpOptions::default()
        };
        Ok(Self { database: database.clone(), http: Http::new(&options)? })
    }
}
