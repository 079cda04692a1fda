//! One verb's turn at the connection, and what is committed together.
//!
//! Turns that wait together share one commit: a commit in a file is a wait for the disk, and two hundred single
//! endings must not wait two hundred times. Each turn has a savepoint of its own, so that one that fails takes nothing
//! with it, and no turn is answered before the commit that holds it. When that commit fails nobody of the group hears
//! what it had found, not even a refusal: a neighbour may have written what it saw.
//!
//! ```text
//!   begin immediate ── savepoint: renew ── savepoint: end ── savepoint: claim (fails, rolled back) ── commit
//!                                                                    answers go out only here ──────────┘
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tenure_store::StoreError;
use tokio::sync::oneshot;

use crate::engine::Shared;
use crate::fault::{Fault, Result, is_busy, is_constraint};
use crate::tx::Tx;

/// A verb waiting for the connection.
pub(crate) struct Turn {
    /// Whether it may share its commit with others. A user's transaction and a bulk do not.
    pub(crate) alone: bool,
    work: Work,
}

/// Called with the transaction, or with the reason why there is none.
type Work = Box<dyn FnOnce(std::result::Result<&Tx<'_>, StoreError>) -> Done + Send>;

/// What a turn left behind.
struct Done {
    keep: bool,
    reply: Reply,
}

/// Sends the answer, or the failure of the commit it depended on.
type Reply = Box<dyn FnOnce(Option<StoreError>) + Send>;

/// A turn's answer; the outer error is a panic to go on in the caller.
pub(crate) type Answer<T, E> = thread::Result<std::result::Result<T, E>>;

impl Turn {
    /// Wraps a verb; the receiver hears its answer.
    pub(crate) fn new<T, E, F>(alone: bool, verb: F) -> (Self, oneshot::Receiver<Answer<T, E>>)
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Tx<'_>) -> std::result::Result<T, E> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let work: Work = Box::new(move |tx| {
            let answer = match tx {
                Ok(tx) => catch_unwind(AssertUnwindSafe(|| verb(tx))),
                Err(error) => Ok(Err(error.into())),
            };
            let keep = matches!(answer, Ok(Ok(_)));
            let reply: Reply = Box::new(move |lost| {
                let answer = match (lost, answer) {
                    (Some(error), Ok(_)) => Ok(Err(error.into())),
                    (_, answer) => answer,
                };
                // A caller that no longer waits does not mind.
                let _ = sender.send(answer);
            });
            Done { keep, reply }
        });
        (Self { alone, work }, receiver)
    }

    fn refuse(self, error: StoreError) {
        let done = (self.work)(Err(error));
        (done.reply)(None);
    }
}

/// How a group of turns is opened.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Takes the file's write lock first, so that no statement meets it half-way.
    Write,
    /// One snapshot for all statements.
    Read,
}

/// Runs turns in one transaction and answers them. Never panics, whatever the verbs do: the thread would be gone and
/// everybody after them would wait for ever.
pub(crate) fn run(conn: &Connection, shared: &Shared, mode: Mode, turns: Vec<Turn>) {
    // A verb's panic is caught in its turn. This one is of a user's value, dropped because nobody waits for it.
    let _ = catch_unwind(AssertUnwindSafe(|| run_group(conn, shared, mode, turns)));
}

fn run_group(conn: &Connection, shared: &Shared, mode: Mode, turns: Vec<Turn>) {
    if let Err(fault) = begin(conn, mode, shared.busy_timeout) {
        let error = StoreError::from(fault);
        for turn in turns {
            turn.refuse(again(&error));
        }
        return;
    }
    let nested = turns.len() > 1;
    let (mut kept, mut woke, mut replies) = (false, false, Vec::with_capacity(turns.len()));
    let mut lost: Option<StoreError> = None;
    for turn in turns {
        if let Some(error) = &lost {
            turn.refuse(again(error));
            continue;
        }
        match one(conn, shared, turn, nested) {
            Ok((done, turn_woke)) => {
                kept |= done.keep;
                woke |= done.keep && turn_woke;
                replies.push(done.reply);
            }
            Err((done, fault)) => {
                match done {
                    // Its own failure says more than that the transaction is gone.
                    Some(done) if !done.keep => (done.reply)(None),
                    done => replies.extend(done.map(|done| done.reply)),
                }
                lost = Some(fault.into());
            }
        }
    }
    if kept && lost.is_none() {
        lost = conn.execute_batch("commit").err().map(|error| match is_constraint(&error) {
            // Ours are checked by each statement; this one is deferred, and the user's.
            true if nested => StoreError::unavailable(error),
            true => StoreError::Conflict(error.to_string()),
            false => Fault::from(error).into(),
        });
    }
    roll_back(conn);
    if woke && lost.is_none() {
        shared.wake.notify_waiters();
    }
    for reply in replies {
        reply(lost.as_ref().map(again));
    }
}

type Broken = (Option<Done>, Fault);

/// Runs one turn; an error means that the whole transaction is gone.
fn one(conn: &Connection, shared: &Shared, turn: Turn, nested: bool) -> std::result::Result<(Done, bool), Broken> {
    if nested && let Err(error) = conn.execute_batch("savepoint turn") {
        let error = StoreError::from(Fault::from(error));
        turn.refuse(again(&error));
        return Err((None, error.into()));
    }
    let tx = shared.tx(conn);
    let done = (turn.work)(Ok(&tx));
    if conn.is_autocommit() {
        // A full disk rolls everything back by itself; so may a user's closure, who is told.
        let error = StoreError::Unavailable("the transaction was ended before its commit".into(), None);
        return Err((Some(done), error.into()));
    }
    if nested {
        let end = if done.keep { "release turn" } else { "rollback to turn; release turn" };
        if let Err(error) = conn.execute_batch(end) {
            return Err((Some(done), error.into()));
        }
    }
    Ok((done, tx.woke()))
}

/// Opens a transaction; waits for other processes until `timeout`.
fn begin(conn: &Connection, mode: Mode, timeout: Duration) -> Result<()> {
    let text = match mode {
        Mode::Write => "begin immediate",
        Mode::Read => "begin deferred",
    };
    roll_back(conn);
    let deadline = Instant::now() + timeout;
    loop {
        match conn.execute_batch(text) {
            // SQLite's own wait grows to 100 ms a try, which starves the polite: it gets a short one, again and again.
            Err(error) if is_busy(&error) && Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            done => return Ok(done?),
        }
    }
}

/// Ends what is still open. Where that fails, the next begin tries again and says what is wrong.
fn roll_back(conn: &Connection) {
    if !conn.is_autocommit() {
        let _ = conn.execute_batch("rollback");
    }
}

/// The same error for another turn of the group.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(what, _) => StoreError::Unavailable(what.clone(), None),
        StoreError::Conflict(what) => StoreError::Conflict(what.clone()),
        StoreError::Full(what) => StoreError::Full(what.clone()),
        StoreError::Limit(what) => StoreError::Limit(what.clone()),
        StoreError::Schema(what) => StoreError::Schema(what.clone()),
        StoreError::Corrupt(what) => StoreError::Corrupt(what.clone()),
        other => StoreError::Unavailable(other.to_string(), None),
    }
}
