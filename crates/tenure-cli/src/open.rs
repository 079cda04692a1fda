//! Opens the store that the settings name.
//!
//! The embedded store is set up on first use: nothing to install, nothing to run before. A Postgres database belongs
//! to somebody: it is only changed by `tenure migrate`.

use std::sync::Arc;

use tenure_postgres::{PgOptions, PgStore};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::record::SecondWall;
use tenure_store::{Store, StoreError};

use crate::failure::{Failure, exit};
use crate::settings::{Location, Origin, Setting};

/// A store to work with: its schema is there.
pub(crate) async fn ready(location: &Setting<Location>) -> Result<Arc<dyn Store>, Failure> {
    let store = unmigrated(location).await?;
    let missing = store.list_migrations().await?.iter().filter(|migration| !migration.applied).count();
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

/// Begins a new era of a journal that was restored into another cluster.
pub(crate) async fn rehome(location: &Setting<Location>) -> Result<(), Failure> {
    match &location.value {
        Location::Sqlite(_) => {
            let message = format!("{} needs no new home: an SQLite file is at home wherever it lies", location.value);
            Err(Failure::new("conflict", exit::REFUSED, message))
        }
        Location::Postgres(url) => Ok(PgStore::rehome(url, PgOptions::default()).await?),
    }
}

/// Roles with few rights, and walls between tenants.
pub(crate) async fn install_roles(location: &Setting<Location>) -> Result<SecondWall, Failure> {
    Ok(PgStore::connect(postgres(location)?, PgOptions::default()).await?.install_roles().await?)
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

/// A store as it is found, for `tenure migrate`.
pub(crate) async fn unmigrated(location: &Setting<Location>) -> Result<Arc<dyn Store>, Failure> {
    let opened: Result<Arc<dyn Store>, StoreError> = match &location.value {
        Location::Sqlite(path) => SqliteStore::open(path, SqliteOptions::default()).map(|store| Arc::new(store) as _),
        Location::Postgres(url) => PgStore::connect(url, PgOptions::default()).await.map(|store| Arc::new(store) as _),
    };
    opened.map_err(|error| {
        // A URL that the driver cannot read may hold its password anywhere: only what we show of it is repeated.
        if let StoreError::Invalid(invalid) = &error {
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
