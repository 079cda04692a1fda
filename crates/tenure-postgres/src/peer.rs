//! Why no connection could be opened, in words that name the server, the user and the way out. No password is shown.

use std::error::Error;
use std::io;
use std::time::Duration;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tenure_store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::error::translate;

/// The port of a URL without one.
const PORT_DEFAULT: u16 = 5_432;
/// How the standard library begins the message of a host name that was not resolved.
const NOT_RESOLVED: &str = "failed to lookup address information";

/// Whom a connection is opened to, as messages name it.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    server: String,
    hosts: String,
    user: String,
    database: String,
}

impl Peer {
    pub(crate) fn of(config: &Config) -> Self {
        let ports = config.get_ports();
        let names: Vec<String> = config.get_hosts().iter().map(name).collect();
        let places = names.iter().enumerate().map(|(n, host)| {
            // One port counts for all hosts.
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(PORT_DEFAULT);
            format!("{host}:{port}")
        });
        let user = config.get_user().unwrap_or("of the operating system");
        Self {
            server: places.collect::<Vec<_>>().join(", "),
            hosts: names.join("`, `"),
            user: user.to_owned(),
            database: config.get_dbname().unwrap_or(user).to_owned(),
        }
    }

    /// Why a pool gave no connection.
    pub(crate) fn no_connection(&self, error: PoolError, deadline: Duration, connections_max: usize) -> StoreError {
        let why = match error {
            PoolError::Backend(error) => return self.explain(&error),
            // The session was opened; the database is not the one that it claims to be.
            PoolError::PostCreateHook(HookError::Backend(error)) => return translate(error),
            PoolError::Timeout(TimeoutType::Wait) => {
                format!("all {connections_max} connections were in use for {} ms", deadline.as_millis())
            }
            PoolError::Timeout(_) => return self.no_answer(deadline),
            other => return StoreError::unavailable(other),
        };
        StoreError::Unavailable(why, None)
    }

    /// The server did not answer in time.
    pub(crate) fn no_answer(&self, deadline: Duration) -> StoreError {
        let why = format!("{} did not answer within {} ms", self.server, deadline.as_millis());
        StoreError::Unavailable(why, None)
    }

    /// Why the driver opened no connection. Always `Unavailable`: a password or a database may be put right while a worker
    /// waits for it.
    pub(crate) fn explain(&self, error: &tokio_postgres::Error) -> StoreError {
        StoreError::Unavailable(self.sentence(error), None)
    }

    fn sentence(&self, error: &tokio_postgres::Error) -> String {
        let Self { server, hosts, user, database } = self;
        if let Some(said) = error.as_db_error() {
            return match said.code().code() {
                "28P01" => format!(
                    "{server} refused the password of user `{user}`: put the right one into the URL, PGPASSWORD or a PGPASSFILE"
                ),
                "28000" => format!("{server} does not let user `{user}` in: {}", said.message()),
                "3D000" => format!(
                    "{server} has no database `{database}`: create it (createdb {database}), or name another one in the URL"
                ),
                // PgBouncer takes only the parameters that it knows.
                "08P01" if said.message().contains("startup parameter") => format!(
                    "{server} is a pooler that refuses a parameter of the URL ({}): leave it out of the URL, or add it to \
                     ignore_startup_parameters of PgBouncer",
                    said.message()
                ),
                code => format!("{server} opened no connection: {} (SQLSTATE {code})", said.message()),
            };
        }
        let cause = error.source();
        if let Some(io) = cause.and_then(|cause| cause.downcast_ref::<io::Error>()) {
            let text = io.to_string();
            return match io.kind() {
                io::ErrorKind::ConnectionRefused => {
                    format!("{server} refused the connection: no server listens there")
                }
                io::ErrorKind::TimedOut => format!("{server} did not answer in time"),
                io::ErrorKind::NotFound => format!("{server} is no socket of a server"),
                _ if text.starts_with(NOT_RESOLVED) => {
                    let why = text.rsplit(": ").next().unwrap_or_default();
                    format!("host `{hosts}` cannot be found ({why}): is its name right?")
                }
                _ => format!("{server} cannot be reached: {text}"),
            };
        }
        match cause.map(ToString::to_string) {
            Some(cause) if cause == "password missing" => {
                format!("user `{user}` needs a password at {server}: put it into the URL, PGPASSWORD or a PGPASSFILE")
            }
            Some(cause) => format!("{server}: {error}: {cause}"),
            None => format!("{server}: {error}"),
        }
    }
}

fn name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_named_without_its_password() {
        for (url, server, user, database) in [
            ("postgres://ops:secret@db/app", "db:5432", "ops", "app"),
            ("postgres://ops:secret@one,two:6000/app", "one:5432, two:6000", "ops", "app"),
            ("postgres://ops:secret@db:6000", "db:6000", "ops", "ops"),
        ] {
            let peer = Peer::of(&url.parse().unwrap());
            assert_eq!((peer.server.as_str(), peer.user.as_str(), peer.database.as_str()), (server, user, database));
            assert!(!format!("{peer:?}").contains("secret"));
        }
    }
}
