//! A store by its URL or path.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_postgres::{Mode, PgOptions, PgStore};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{Store, StoreError};

/// Where jobs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A Postgres database.
    Postgres(String),
    /// One SQLite file.
    Sqlite(PathBuf),
}

impl Place {
    /// A URL, or else a path.
    pub fn parse(text: &str) -> Self {
        match text.starts_with("postgres://") {
            true => Self::Postgres(text.to_owned()),
            false => Self::Sqlite(text.into()),
        }
    }

    /// As [`parse`](Self::parse) reads it.
    pub fn text(&self) -> String {
        match self {
            Self::Postgres(url) => url.clone(),
            Self::Sqlite(path) => path.display().to_string(),
        }
    }

    /// Opens the store.
    pub async fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.open_as(Mode::Direct).await
    }

    /// Opens it with this between us and the server.
    pub async fn open_as(&self, mode: Mode) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Postgres(url) => Arc::new(PgStore::connect(url, PgOptions { mode, ..PgOptions::default() }).await?),
            Self::Sqlite(path) => Arc::new(SqliteStore::open(path, SqliteOptions::default())?),
        })
    }
}
