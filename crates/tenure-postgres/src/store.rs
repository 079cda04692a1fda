//! [`PgStore`]: a handle to Tenure's schema in one Postgres database.

use std::borrow::Cow;
use std::sync::Arc;

use tenure_store::StoreError;

use crate::floor::Floors;
use crate::options::PgOptions;
use crate::pool::Pools;
use crate::statement::Statement;
use crate::tls;
use crate::value::Moment;
use crate::wake::Listener;

/// Tenure on Postgres. Clones share connections and what they know.
#[derive(Clone)]
pub struct PgStore(Arc<Inner>);

struct Inner {
    options: PgOptions,
    pools: Pools,
    floors: Floors,
    listener: Listener,
}

impl PgStore {
    /// Opens a store and looks whether the server answers. The schema is brought up by `migrate`, not here.
    ///
    /// `Invalid` for a URL that is none, `Unavailable` when the server does not answer, `Schema` when the database was
    /// written by a newer Tenure or restored from another cluster.
    pub async fn connect(url: &str, options: PgOptions) -> Result<Self, StoreError> {
        let target = tls::target(url)?;
        let pools = Pools::new(&target, &options)?;
        let store =
            Self(Arc::new(Inner { options, pools, floors: Floors::default(), listener: Listener::new(target) }));
        store.check_home().await?;
        Ok(store)
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

    pub(crate) fn listener(&self) -> &Listener {
        &self.0.listener
    }

    /// The time to pass to a statement; null means the server's own clock.
    pub(crate) fn now(&self) -> Option<Moment> {
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
