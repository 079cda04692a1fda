//! Everything that can be set when a store is opened.

use std::time::Duration;

use tenure_store::clock::Clock;

/// How the store talks to its server. `PgOptions::default()` is right for a direct connection.
#[derive(Debug, Clone)]
pub struct PgOptions {
    /// Straight to Postgres, or through a pooler.
    pub mode: Mode,
    /// URL of the same database without the pooler, for `LISTEN`. Only [`Mode::Pooled`] reads it; without it workers poll.
    pub direct_url: Option<String>,
    /// Most connections for the short verbs; as many again may be used for lists, seals and bulk work, and as many once more
    /// for what users do themselves.
    pub connections_max: usize,
    /// A verb that has no answer by then is given up: its outcome is unknown.
    pub deadline: Duration,
    /// The same for lists, seals, pruning and bulk enqueues, and for a statement of the user's own.
    pub long_deadline: Duration,
    /// Enqueues that come at the same time share a transaction; each is answered by itself.
    pub share_enqueues: bool,
    /// Whose time it is; a test may move it.
    pub clock: Clock,
    /// A predicate to drop, to prove that a test notices.
    #[cfg(feature = "mutants")]
    pub mutant: Option<crate::mutant::Mutant>,
}

/// What lies between us and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing: prepared statements, session settings and `LISTEN` work.
    #[default]
    Direct,
    /// Nothing, but no `LISTEN`: every worker polls.
    PollOnly,
    /// A pooler that hands out a session per transaction, such as PgBouncer: every verb is one transaction that sets
    /// what it needs, statements have no names, and workers poll or listen at [`PgOptions::direct_url`].
    Pooled,
}

impl Default for PgOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Direct,
            direct_url: None,
            connections_max: 8,
            deadline: Duration::from_secs(10),
            long_deadline: Duration::from_secs(120),
            share_enqueues: true,
            clock: Clock::Store,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}
