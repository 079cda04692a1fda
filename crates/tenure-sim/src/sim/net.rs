//! The network between everybody and the store: each call has a fate, drawn when it is sent.
//!
//! ```text
//!   caller ── request (takes a while, or is lost) ──▶ store: applied, or applied twice
//!   caller ◀── reply (takes a while, or is lost) ───────┘
//! ```
//!
//! A call travels as a task of its own: a caller that crashes, freezes or gives up after [`PATIENCE`] stops nothing that
//! is on its way. In memory the store answers inline, on the one thread of the run, so between being applied and being
//! traced nothing else happens.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_sqlite::SqliteStore;
use tenure_store::StoreError;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::node::{Cut, Node};
use super::world::World;

/// How long a caller waits for an answer, as a store on a server does: then nobody knows what happened.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);
/// A slow way takes at most this long: longer than a caller waits, and within the time that a worker's sweeper allows.
const SLOW_MAX_MS: u64 = 9_000;

/// A verb, and whether the network may deliver it twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb(pub(crate) &'static str, pub(crate) Twice);

/// How late a second copy of a request may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twice {
    /// There is none.
    Never,
    /// Right behind the first.
    AtOnce,
    /// Whenever.
    Later,
}

/// One caller's way to the store.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) store: SqliteStore,
    pub(crate) world: Arc<World>,
    pub(crate) caller: String,
    /// The machine it calls from, unless that is a person's.
    pub(crate) node: Option<Node>,
}

/// Where a call is applied.
pub(crate) struct Site {
    pub(crate) store: SqliteStore,
    pub(crate) world: Arc<World>,
    /// Its caller no longer waits.
    pub(crate) given_up: bool,
}

type Applied<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// What becomes of a call.
#[derive(Default)]
struct Fate {
    request: Duration,
    is_lost_before: bool,
    again: Option<Duration>,
    reply: Duration,
    is_reply_lost: bool,
    /// Who loses something hears nothing until it gives up; otherwise that the connection broke.
    is_silent: bool,
}

impl Wire {
    /// Sends a call: `said` is the request and `tell` the answer, as the trace shows them.
    pub(crate) async fn send<T: Send + 'static>(
        &self,
        verb: Verb,
        said: String,
        tell: impl Fn(&World, &T) -> String + Send + 'static,
        apply: impl Fn(Site) -> Applied<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let fate = self.fate(verb);
        let (reply, answer) = oneshot::channel();
        let this = self.clone();
        tokio::spawn(async move { this.carry(verb.0, &said, fate, reply, tell, apply).await });
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(StoreError::Unavailable("the connection broke".into(), None)),
            Err(_) => Err(StoreError::Unavailable("no answer in time".into(), None)),
        }
    }

    async fn carry<T: Send + 'static>(
        self,
        verb: &'static str,
        said: &str,
        fate: Fate,
        reply: oneshot::Sender<Result<T, StoreError>>,
        tell: impl Fn(&World, &T) -> String,
        apply: impl Fn(Site) -> Applied<T>,
    ) {
        let Self { store, world, caller, .. } = self;
        pass(fate.request).await;
        if fate.is_lost_before {
            world.count("lost_before");
            world.trace(&caller, format_args!("{verb} {said} ~ lost before"));
            return stay_silent(fate.is_silent).await;
        }
        let once = |given_up| apply(Site { store: store.clone(), world: Arc::clone(&world), given_up });
        world.clock.sync();
        let given_up = reply.is_closed();
        if given_up {
            world.count("given_up_and_applied");
        }
        let answer = once(given_up).await;
        let outcome = match &answer {
            Ok(answer) => tell(&world, answer),
            Err(error) => class(error).into(),
        };
        let late = if given_up { " (late)" } else { "" };
        world.trace(&caller, format_args!("{verb} {said} -> {outcome}{late}"));
        if let Some(delay) = fate.again {
            world.count("duplicated");
            let (world, caller, said) = (Arc::clone(&world), caller.clone(), said.to_owned());
            let again = once(true);
            tokio::spawn(async move {
                pass(delay).await;
                world.clock.sync();
                let outcome = match &again.await {
                    Ok(_) => "ok",
                    Err(error) => class(error),
                };
                world.trace(&caller, format_args!("{verb} {said} -> {outcome} (twice)"));
            });
        }
        pass(fate.reply).await;
        if fate.is_reply_lost {
            world.count("reply_lost");
            world.trace(&caller, format_args!("{verb} {said} ~ reply lost"));
            return stay_silent(fate.is_silent).await;
        }
        // Who has given up does not hear it.
        let _ = reply.send(answer);
    }

    /// Draws what becomes of a call that is sent now.
    fn fate(&self, verb: Verb) -> Fate {
        let world = &self.world;
        let net = if world.is_healed() { Default::default() } else { world.plan.net };
        let cut = self.node.as_ref().and_then(Node::cut);
        let is_outage = world.is_outage();
        world.draw(|rng| {
            let mut fate = Fate {
                request: rng.millis(0, net.latency_ms),
                reply: rng.millis(0, net.latency_ms),
                is_silent: rng.chance(400),
                ..Fate::default()
            };
            match cut {
                _ if is_outage => fate.is_lost_before = true,
                Some(Cut::Calls) => fate.is_lost_before = true,
                Some(Cut::Replies) => fate.is_reply_lost = true,
                Some(Cut::Renewals) if verb.0 == "renew" => fate.is_lost_before = true,
                _ if rng.chance(net.lost_before) => fate.is_lost_before = true,
                _ if rng.chance(net.reply_lost) => fate.is_reply_lost = true,
                _ => {}
            }
            if rng.chance(net.slow) {
                let slow = rng.millis(100, SLOW_MAX_MS);
                *(if rng.chance(600) { &mut fate.request } else { &mut fate.reply }) = slow;
            }
            if verb.1 != Twice::Never && rng.chance(net.duplicated) {
                let late = if rng.chance(500) { 0 } else { 6_000 };
                fate.again = Some(if verb.1 == Twice::Later { rng.millis(0, late) } else { Duration::ZERO });
            }
            fate
        })
    }
}

/// What kind of error it is, in one word.
pub(crate) fn class(error: &StoreError) -> &'static str {
    match error {
        StoreError::LeaseLost(_) => "!lease_lost",
        StoreError::NotFound(_) => "!not_found",
        StoreError::Conflict(_) => "!conflict",
        StoreError::Full(_) => "!full",
        StoreError::Limit(_) => "!limit",
        StoreError::Invalid(_) => "!invalid",
        StoreError::Schema(_) => "!schema",
        StoreError::Unavailable(..) => "!unavailable",
        StoreError::Corrupt(_) => "!corrupt",
        _ => "!other",
    }
}

async fn pass(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

/// Keeps the caller waiting until it gives up, or lets go of it now.
async fn stay_silent(silent: bool) {
    if silent {
        sleep(PATIENCE).await;
    }
}
