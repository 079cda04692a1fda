//! Three pools of one server: one for the short verbs, one for everything long, one for what users do themselves.
//!
//! The short verbs run on sessions of their own kind: their statements are written for generic plans, so the planner is
//! told not to plan each call anew and never to scan a table (a plan made while a table was empty would otherwise scan
//! it when it is not). Lists, seals and bulk work keep the planner's own judgement and a longer deadline.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime};
use tenure_store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::error::SqlState;

use crate::connect::{Connector, Opened};
use crate::error::translate;
use crate::options::{Mode, PgOptions};
use crate::peer::Peer;
use crate::pooler;
use crate::tls::Target;

/// How a connection is to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Desk {
    /// Short verbs: claim, renew, end, cancel.
    Short,
    /// The same, but what is locked is not waited for: it has been waited for before.
    Hasty,
    /// Lists, seals, pruning, bulk enqueues.
    Long,
    /// Statements of the user's own.
    Own,
}

#[derive(Clone)]
pub(crate) struct Pools {
    short: Pool,
    long: Pool,
    own: Pool,
    connector: Connector,
    config: Config,
    peer: Peer,
    deadline: Duration,
    connections_max: usize,
}

impl Desk {
    /// When a call is given up.
    pub(crate) fn deadline(self, options: &PgOptions) -> Duration {
        match self {
            Self::Short | Self::Hasty => options.deadline,
            Self::Long | Self::Own => options.long_deadline,
        }
    }

    /// What a transaction or a session of this kind sets. `local` is `set local` or `set`.
    pub(crate) fn settings(self, options: &PgOptions, local: &str) -> String {
        // Below our own deadline, so that the server gives up first and says so.
        let statement_ms = self.deadline(options).as_millis() * 9 / 10;
        // Warnings are read (`connect.rs`), so a role or a database must not switch them off.
        let mut settings = format!(
            "{local} statement_timeout = {statement_ms}; {local} jit = off; {local} client_min_messages = warning"
        );
        // An open transaction of a user may own a key we need; that is waited for, but not long.
        let lock_ms = match self {
            Self::Short => 1_000,
            Self::Hasty => 20,
            Self::Long | Self::Own => return settings,
        };
        settings += &format!(
            "; {local} lock_timeout = {lock_ms}; {local} plan_cache_mode = force_generic_plan; {local} enable_seqscan = off"
        );
        settings
    }
}

impl Pools {
    pub(crate) fn new(target: &Target, options: &PgOptions) -> Result<Self, StoreError> {
        let (connector, config) = (Connector::new(target.tls.clone()), config(target, options));
        let pool = |desk| pool(&connector, &config, options, desk);
        Ok(Self {
            short: pool(Desk::Short)?,
            long: pool(Desk::Long)?,
            own: pool(Desk::Own)?,
            connector,
            config,
            peer: Peer::of(&target.config),
            deadline: options.deadline,
            connections_max: options.connections_max,
        })
    }

    /// A connection, within the deadline.
    pub(crate) async fn get(&self, desk: Desk) -> Result<Object, StoreError> {
        let pool = match desk {
            Desk::Short | Desk::Hasty => &self.short,
            Desk::Long => &self.long,
            Desk::Own => &self.own,
        };
        pool.get().await.map_err(|error| self.peer.no_connection(error, self.deadline, self.connections_max))
    }

    /// Whether the server is behind a transaction pooler. The two connections of the check are the pools' first ones.
    pub(crate) async fn find_pooler(&self) -> Result<bool, StoreError> {
        let look = async {
            let explain = |error| self.peer.explain(&error);
            let open = || self.connector.open(&self.config);
            let (one, other) = tokio::try_join!(open(), open()).map_err(explain)?;
            let found = pooler::is_between(&one.0, &other.0).await.map_err(translate)?;
            Ok::<(bool, [Opened; 2]), StoreError>((found, [one, other]))
        };
        let answer = tokio::time::timeout(self.deadline, look).await;
        let (found, opened) = answer.map_err(|_| self.peer.no_answer(self.deadline))??;
        if !found {
            opened.into_iter().for_each(|opened| self.connector.keep(opened));
        }
        Ok(found)
    }
}

fn config(target: &Target, options: &PgOptions) -> Config {
    let mut config = target.config.clone();
    if config.get_application_name().is_none() {
        config.application_name("tenure");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5).min(options.deadline));
    }
    config
}

fn pool(connector: &Connector, config: &Config, options: &PgOptions, desk: Desk) -> Result<Pool, StoreError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(config.clone(), connector.clone(), recycling);
    let mut builder = Pool::builder(manager)
        .max_size(options.connections_max)
        // The one that was used last has its plans and pages at hand.
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(options.deadline))
        .create_timeout(Some(options.deadline));
    if options.mode != Mode::Pooled {
        let settings =
            format!("set default_transaction_isolation = 'read committed'; {}", desk.settings(options, "set"));
        builder = builder.post_create(Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
            let settings = settings.clone();
            Box::pin(async move {
                client.batch_execute(&settings).await.map_err(HookError::Backend)?;
                check_home(client).await.map_err(HookError::Backend)
            })
        }));
    }
    builder.build().map_err(StoreError::unavailable)
}

/// Looks whether a new session leads to the cluster that the database belongs to, and follows its timeline before anything
/// else: the server behind an address may be another one than before. The database checks again at each number it draws; here
/// no open transaction keeps others waiting.
async fn check_home(client: &tokio_postgres::Client) -> Result<(), tokio_postgres::Error> {
    // Not set up yet, by an older program, or not for this user.
    const UNKNOWN: [SqlState; 3] =
        [SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_FUNCTION, SqlState::INSUFFICIENT_PRIVILEGE];
    match client.batch_execute("select tenure.check_home()").await {
        Err(error) if error.code().is_some_and(|code| UNKNOWN.contains(code)) => Ok(()),
        checked => checked,
    }
}
