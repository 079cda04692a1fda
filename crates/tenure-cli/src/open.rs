//! Opens the store that the settings name.
//!
//! The embedded store is set up by the first command that stores something: nothing to install, nothing to run before.
//! A command that only looks makes no file, so a path with a typing error is an error. A Postgres database has
//! an owner: only `tenure migrate` changes its schema.

use std::path::Path;
use std::sync::Arc;

use tenure_postgres::PgStore;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::record::SecondWall;
use tenure_store::{AdminStore, Store, StoreError};

use crate::failure::{Failure, exit};
use crate::settings::{Location, Origin, Setting, Settings};

/// How the store names the URL without the pooler in a refusal.
const DIRECT_DATABASE: &str = "direct database";

/// What a command does with a store whose file is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Looks at what is there, or changes it. A missing default store is empty; another one is refused.
    Look,
    /// The same for a command that goes on until Ctrl-C: the default store is made, so that it sees what others store.
    Follow,
    /// Stores something new: the file is made.
    Store,
}

/// A store to work with: its schema is there.
pub(crate) async fn ready(settings: &Settings, purpose: Purpose) -> Result<Arc<dyn Store>, Failure> {
    let location = &settings.location;
    if let Location::Sqlite(path) = &location.value
        && is_missing(path)?
    {
        match (purpose, &location.origin) {
            (Purpose::Store, _) | (Purpose::Follow, Origin::Default) => {}
            (Purpose::Look, Origin::Default) => return empty().await,
            _ => return Err(nothing_at(path, &location.origin, "there is no database at")),
        }
    }
    let store = open(settings).await?;
    let migrations = store.list_migrations().await?;
    let missing = migrations.iter().filter(|migration| !migration.applied).count();
    // An empty file, or a database of another program: looking at it adds no tables.
    if let Location::Sqlite(path) = &location.value
        && missing == migrations.len()
        && purpose != Purpose::Store
        && location.origin != Origin::Default
    {
        return Err(nothing_at(path, &location.origin, "no jobs were ever stored at"));
    }
    if missing == 0 {
        return Ok(store);
    }
    match location.value {
        Location::Sqlite(_) => {
            store.migrate().await?;
            Ok(store)
        }
        Location::Postgres(_) => {
            let message =
                format!("{} is not set up for this version: {missing} migrations are missing", location.value);
            // Typed as it stands it must not set up another database than this one.
            let hint = match location.origin {
                Origin::Flag(_) => "Run `tenure --database URL migrate` once with the same URL, then try again.",
                _ => "Run `tenure migrate` once, then try again.",
            };
            Err(Failure::new("schema", exit::STORE, message).hint(hint))
        }
    }
}

/// A refusal to look at a path without a database, with the way out.
fn nothing_at(path: &Path, origin: &Origin, what: &str) -> Failure {
    let path = path.display();
    let hint = format!(
        "It comes from: {origin}. Is the path right? `tenure --database {path} migrate` makes a new database; so do the \
         commands that store something, such as enqueue, worker, server and dev."
    );
    Failure::new("schema", exit::STORE, format!("{what} {path}")).hint(hint)
}

/// Makes a restored database or a copy safe to work with: stored positions are reset, and numbers leap. Without `leap` only a
/// database that came from another cluster.
pub(crate) async fn rehome(location: &Setting<Location>, leap: bool) -> Result<(), Failure> {
    match &location.value {
        Location::Sqlite(path) if leap => {
            Ok(SqliteStore::open(path, SqliteOptions::default()).map_err(Failure::from)?.rehome().await?)
        }
        Location::Sqlite(_) => {
            let message = format!("{} is an SQLite file: it does not know where it came from", location.value);
            let hint = "If it was copied, or restored from a backup: `tenure migrate rehome --leap`.";
            Err(Failure::new("conflict", exit::REFUSED, message).hint(hint))
        }
        Location::Postgres(url) => Ok(PgStore::rehome(url, leap).await?),
    }
}

/// Roles with few rights, and walls between tenants.
pub(crate) async fn install_roles(settings: &Settings) -> Result<SecondWall, Failure> {
    Ok(PgStore::connect(postgres(&settings.location)?, settings.postgres.options()).await?.install_roles().await?)
}

/// The URL of a server, which alone has roles.
pub(crate) fn postgres(location: &Setting<Location>) -> Result<&str, Failure> {
    match &location.value {
        Location::Sqlite(_) => {
            let message = format!("{} has no roles: whoever can write the file can do everything", location.value);
            Err(Failure::new("conflict", exit::REFUSED, message).hint("Roles are Postgres's: --database postgres://…"))
        }
        Location::Postgres(url) => Ok(url),
    }
}

/// A store whose migrations can be listed. A missing file is not made for that.
pub(crate) async fn to_list_migrations(settings: &Settings) -> Result<Arc<dyn Store>, Failure> {
    match &settings.location.value {
        Location::Sqlite(path) if is_missing(path)? => Ok(Arc::new(SqliteStore::in_memory(SqliteOptions::default())?)),
        _ => open(settings).await,
    }
}

/// What a store that does not exist yet would answer.
async fn empty() -> Result<Arc<dyn Store>, Failure> {
    let store = SqliteStore::in_memory(SqliteOptions::default())?;
    store.migrate().await?;
    Ok(Arc::new(store))
}

/// What a service logs about an existing file that other users of the machine can read. Its mode is the operator's.
pub(crate) fn warn_of_readers(location: &Location) {
    #[cfg(unix)]
    if let Location::Sqlite(path) = location
        && let Ok(found) = std::fs::metadata(path)
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            tracing::warn!(
                file = %path.display(),
                mode = format!("{mode:o}"),
                "other users of this machine can read the database: chmod 600 the file and those beside it"
            );
        }
    }
}

fn is_missing(path: &Path) -> Result<bool, Failure> {
    // A path below a plain file: opening it says what is wrong.
    if path.ancestors().skip(1).any(|above| above.is_file()) {
        return Ok(false);
    }
    path.try_exists().map(|exists| !exists).map_err(|error| {
        Failure::new("unavailable", exit::STORE, format!("{} cannot be looked at", path.display())).caused_by(&error)
    })
}

/// A store as it is found, for `tenure migrate`.
pub(crate) async fn open(settings: &Settings) -> Result<Arc<dyn Store>, Failure> {
    let location = &settings.location;
    let opened: Result<Arc<dyn Store>, StoreError> = match &location.value {
        Location::Sqlite(path) => SqliteStore::open(path, SqliteOptions::default()).map(|store| Arc::new(store) as _),
        Location::Postgres(url) => {
            PgStore::connect(url, settings.postgres.options()).await.map(|store| Arc::new(store) as _)
        }
    };
    opened.map_err(|error| {
        // A URL that the driver cannot read may hold its password anywhere: only what we show of it is repeated.
        if let StoreError::Invalid(invalid) = &error {
            if let Some(direct) = &settings.postgres.direct_database
                && invalid.field == DIRECT_DATABASE
            {
                let said = format!("{}: direct database `{}` is refused", direct.origin, direct.value);
                return Failure::usage("settings", format!("{said}: {}", invalid.limit));
            }
            let message = format!("{}: database `{}` is refused: {}", location.origin, location.value, invalid.limit);
            return Failure::usage("settings", message);
        }
        let (place, hint) = match &location.value {
            Location::Sqlite(path) => (path.display().to_string(), "Can this file be written?"),
            Location::Postgres(_) => (location.value.to_string(), "Is the server running and the URL right?"),
        };
        let failure = Failure::from(error);
        let failure = if failure.message().contains(&place) { failure } else { failure.within(&place) };
        failure.hint(format!("{hint} It comes from: {}.", location.origin))
    })
}
