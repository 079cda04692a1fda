//! [`PgStore`]: a handle to Tenure's schema in one Postgres database.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_store::lines::Lines;
use tenure_store::record::SecondWall;
use tenure_store::{IntoStore, Store, StoreError};

use crate::careful::CarefulQueues;
use crate::floor::Floors;
use crate::gather::Gather;
use crate::held_keys::HeldKeys;
use crate::options::{Mode, PgOptions};
use crate::pool::Pools;
use crate::pooler;
use crate::statement::Statement;
use crate::tls::{self, Target};
use crate::value::Moment;
use crate::wake::Listener;
use crate::wall::NOT_INSTALLED;

/// How the connections of a [separate](tenure_store::AdminStore::separate) store show in `pg_stat_activity`.
const KEEPER: &str = "tenure-keeper";
/// When one of its calls is given up.
const KEEPER_DEADLINE: Duration = Duration::from_secs(3);
/// Most of them: one renews while another is given up.
const KEEPER_CONNECTIONS_MAX: usize = 2;

/// How a store behind a transaction pooler is opened.
const POOLED_WAY_OUT: &str = "set pooler = \"transaction\" (--pooler transaction, TENURE_POOLER=transaction, or Mode::Pooled \
                              in a program), or name the server itself";

/// Tenure on Postgres. Clones share connections and what they know.
#[derive(Clone)]
pub struct PgStore(Arc<Inner>);

struct Inner {
    options: PgOptions,
    target: Target,
    pools: Pools,
    floors: Floors,
    careful: CarefulQueues,
    lines: Lines,
    /// `None` where workers only poll.
    listener: Option<Listener>,
    gather: Gather,
    held_keys: HeldKeys,
    wall: OnceLock<SecondWall>,
}

impl PgStore {
    /// Opens a store and looks whether the server answers. The schema is brought up by `migrate`, not here. A URL without a
    /// password takes it from `PGPASSWORD`, or from the password file that `PGPASSFILE` names, or from `~/.pgpass`.
    ///
    /// `Invalid` for a URL that is none, or that leads to a transaction pooler in another mode than [`Mode::Pooled`];
    /// `Unavailable` when the server does not answer; `Schema` when this program is too old for the database, or the
    /// database was restored from another cluster.
    pub async fn connect(url: &str, options: PgOptions) -> Result<Self, StoreError> {
        let store = Self::open(tls::target(url)?, options)?;
        if store.options().mode != Mode::Pooled && store.pools().find_pooler().await? {
            return Err(pooler::refuse("database", &tls::without_password(url), POOLED_WAY_OUT));
        }
        store.check_home().await?;
        Ok(store)
    }

    /// The same store over connections of its own, which tell what they are for. None is open yet: each is opened, and
    /// driven, by the runtime of whoever needs it first.
    pub(crate) fn keeper(&self) -> Result<Self, StoreError> {
        let mut target = self.0.target.clone();
        target.config.application_name(KEEPER);
        // What it asks is answered in a millisecond or not at all, and a lease's end does not wait for a long deadline.
        let deadline = self.0.options.deadline.min(KEEPER_DEADLINE);
        let options = self.0.options.clone();
        let keeper = Self::open(target, PgOptions { connections_max: KEEPER_CONNECTIONS_MAX, deadline, ..options })?;
        keeper.set_wall(self.wall());
        Ok(keeper)
    }

    fn open(target: Target, options: PgOptions) -> Result<Self, StoreError> {
        let pools = Pools::new(&target, &options)?;
        let listener = match (options.mode, &options.direct_url) {
            (Mode::Direct, _) => Some(Listener::new(target.clone())),
            (Mode::Pooled, Some(url)) => Some(Listener::behind_no_pooler(url)?),
            (Mode::Pooled, None) | (Mode::PollOnly, _) => None,
        };
        let manual = options.clock.now().is_some();
        Ok(Self(Arc::new(Inner {
            options,
            target,
            pools,
            lines: Lines::new(manual),
            floors: Floors::default(),
            careful: CarefulQueues::default(),
            listener,
            gather: Gather::default(),
            held_keys: HeldKeys::default(),
            wall: OnceLock::new(),
        })))
    }

    pub(crate) fn options(&self) -> &PgOptions {
        &self.0.options
    }

    pub(crate) fn pools(&self) -> &Pools {
        &self.0.pools
    }

    pub(crate) fn floors(&self) -> &Floors {
        &self.0.floors
    }

    pub(crate) fn careful(&self) -> &CarefulQueues {
        &self.0.careful
    }

    pub(crate) fn lines(&self) -> &Lines {
        &self.0.lines
    }

    pub(crate) fn gather(&self) -> &Gather {
        &self.0.gather
    }

    pub(crate) fn held_keys(&self) -> &HeldKeys {
        &self.0.held_keys
    }

    /// `None` where workers only poll.
    pub(crate) fn listener(&self) -> Option<&Listener> {
        self.0.listener.as_ref()
    }

    /// How the second wall stood when the store was opened.
    pub(crate) fn wall(&self) -> SecondWall {
        self.0.wall.get().copied().unwrap_or(SecondWall::Missing(NOT_INSTALLED))
    }

    pub(crate) fn set_wall(&self, wall: SecondWall) {
        // Looked at once, right after it is opened.
        let _first_word_stands = self.0.wall.set(wall);
    }

    /// The time to pass to a statement; null means the server's own clock.
    pub(crate) fn moment(&self) -> Option<Moment> {
        self.0.options.clock.now().map(Moment)
    }

    /// A statement's text, or a test's version of it.
    #[cfg(feature = "mutants")]
    pub(crate) fn text(&self, statement: Statement) -> Cow<'static, str> {
        match &self.0.options.mutant {
            Some(mutant) => mutant.apply(statement),
            None => Cow::Borrowed(statement.sql),
        }
    }

    /// A statement's text.
    #[cfg(not(feature = "mutants"))]
    #[expect(clippy::unused_self, reason = "a test build chooses by the store's options")]
    pub(crate) fn text(&self, statement: Statement) -> Cow<'static, str> {
        Cow::Borrowed(statement.sql)
    }
}

impl IntoStore for PgStore {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

impl IntoStore for &PgStore {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }
}
