//! What stands between this program and its Postgres server: nothing, or a transaction pooler such as PgBouncer.

use std::path::Path;

use tenure_core::Invalid;
use tenure_postgres::{Mode, PgOptions};

use super::file::SettingsFile;
use super::{Location, Lookup, Origin, Setting, first, variable};
use crate::args::Global;
use crate::failure::Failure;

/// The setting for a URL without the pooler.
const DIRECT_VARIABLE: &str = "TENURE_DIRECT_DATABASE_URL";
const DIRECT_KEY: &str = "direct_database";

/// How the store is opened where it is a Postgres server.
#[derive(Debug, Clone)]
pub(crate) struct PoolerSettings {
    pub(crate) pooler: Setting<Pooler>,
    /// URL of the same database without the pooler, for `LISTEN`.
    pub(crate) direct_database: Option<Setting<Location>>,
}

/// The pooler in front of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pooler {
    /// No pooler, or one that keeps a session for each connection.
    #[default]
    None,
    /// Each transaction gets any session.
    Transaction,
}

impl PoolerSettings {
    pub(super) fn resolve(flags: &Global, env: Lookup, file: Option<&SettingsFile>) -> Result<Self, Failure> {
        let flag = flags.pooler.clone().map(|value| Setting { value, origin: Origin::Flag("--pooler") });
        let said = match flag {
            said @ Some(_) => said,
            None => first("TENURE_POOLER", "pooler", env, file)?,
        };
        let pooler = match said {
            Some(said) => said.check(|text| Pooler::parse(&text))?,
            None => Setting { value: Pooler::default(), origin: Origin::Default },
        };
        let direct = variable(DIRECT_VARIABLE, env)?.or_else(|| file.and_then(|file| file.get(DIRECT_KEY)));
        let direct_database = direct.map(|said| said.check(|text| read_direct(&text))).transpose()?;
        if let Some(direct) = &direct_database
            && pooler.value == Pooler::None
        {
            let why = "it is used only with pooler = \"transaction\"; without a pooler leave it out";
            return Err(Failure::usage("settings", format!("{}: {why}", direct.origin)));
        }
        Ok(Self { pooler, direct_database })
    }

    /// The options of a Postgres store.
    pub(crate) fn options(&self) -> PgOptions {
        let mode = match self.pooler.value {
            Pooler::None => Mode::Direct,
            Pooler::Transaction => Mode::Pooled,
        };
        let direct_url = self.direct_database.as_ref().and_then(|direct| match &direct.value {
            Location::Postgres(url) => Some(url.clone()),
            Location::Sqlite(_) => None,
        });
        PgOptions { mode, direct_url, ..PgOptions::default() }
    }
}

impl Pooler {
    const ALL: [Self; 2] = [Self::None, Self::Transaction];

    fn parse(text: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|pooler| pooler.as_str() == text);
        let limit = "it is none (no pooler, or PgBouncer with pool_mode = session) or transaction";
        known.ok_or_else(|| Invalid::new("pooler", text, limit))
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Transaction => "transaction",
        }
    }
}

/// A URL of a server. Nothing else is repeated: it may hold a password.
fn read_direct(text: &str) -> Result<Location, Invalid> {
    let limit = "it is the URL of the same database without the pooler, such as postgres://user@host/database";
    match Location::parse(text, Path::new("")) {
        Ok(location) if location.is_server() => Ok(location),
        _ => Err(Invalid::new("direct database", "…", limit)),
    }
}
