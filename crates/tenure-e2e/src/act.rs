//! [`Act`]: the job whose payload says what its handler does.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure_worker::{Ctx, Fail, Job, Returned, State, Stop};

use crate::gate::Gates;
use crate::ledger::Ledger;
use crate::sink::Sink;
use crate::source;

/// How often a gate is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a source may take.
const CALL_TIMEOUT: Duration = Duration::from_millis(500);

/// Stands for a NUL in a text, which no payload can hold.
pub const NUL: char = '\u{2400}';

/// What a handler does between its first row in the ledger and its last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Act {
    /// Waits, as a handler that waits for somebody else does. Dropped when it has to be.
    Wait {
        /// So long.
        ms: u64,
    },
    /// Waits until a gate is open, or until it is told to stop, which it writes down.
    Hold {
        /// The gate.
        gate: String,
    },
    /// The same with its thread blocked, and deaf: nothing but the gate ends it. It tells the runtime so, which moves the
    /// other tasks of that thread elsewhere.
    HoldDeaf {
        /// The gate.
        gate: String,
    },
    /// Blocks its thread, asleep, as it should not: tasks that wait for that very thread wait with it.
    Block {
        /// So long.
        ms: u64,
    },
    /// Blocks its thread and burns the processor.
    Spin {
        /// So long.
        ms: u64,
    },
    /// Panics in the middle.
    Panic,
    /// Ends the whole process.
    Exit,
    /// Ends it by a signal, as a failed assertion of a C library does.
    Abort,
    /// Calls itself until its stack is full.
    Overflow,
    /// Takes memory until there is none.
    Hog,
    /// Returns a result of so many bytes.
    Return {
        /// As large.
        bytes: usize,
    },
    /// Returns this text as its result.
    Say {
        /// Any text, [`NUL`] for a NUL.
        text: String,
    },
    /// Fails, for good, with this text.
    Fail {
        /// Any text, [`NUL`] for a NUL.
        text: String,
    },
    /// Fails, for good, with what these bytes are as a text.
    FailBytes {
        /// Any bytes.
        bytes: Vec<u8>,
    },
    /// Stores a job that waits so long, and ends.
    Spawn {
        /// So long.
        ms: u64,
    },
    /// Calls a [`source`], and fails when that does badly, or does not answer in time.
    Call {
        /// Where it is.
        port: u16,
    },
    /// Fails, and may be tried again.
    Trouble,
    /// Waits until a gate is open, and then fails so.
    HoldTrouble {
        /// The gate.
        gate: String,
    },
}

impl Job for Act {
    const KIND: &'static str = "act";
}

/// What handlers share.
#[derive(Clone)]
pub struct Stagehand {
    /// The process's name.
    pub worker: String,
    /// What they write.
    pub ledger: Ledger,
    /// What they wait for.
    pub gates: Gates,
    /// What they write in their completing transaction.
    pub sink: Sink,
}

/// The handler of [`Act`].
pub async fn act(act: Act, State(hand): State<Stagehand>, ctx: Ctx) -> Result<Returned<Value>, Fail> {
    let (job, fence) = (ctx.job_id(), ctx.fence());
    hand.ledger.write(job, fence, "start").await;
    let mut fall = Fall { hand: &hand, ctx: &ctx, ended: false };
    let returned = match act {
        Act::Wait { ms } => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Value::Null
        }
        Act::Hold { gate } => hold(&hand, &ctx, &gate).await?,
        Act::HoldDeaf { gate } => {
            tokio::task::block_in_place(|| {
                while !hand.gates.is_open(&gate, &hand.worker) {
                    std::thread::sleep(LOOK_EVERY);
                }
            });
            Value::Null
        }
        Act::Block { ms } => {
            std::thread::sleep(Duration::from_millis(ms));
            Value::Null
        }
        Act::Spin { ms } => {
            let since = Instant::now();
            while since.elapsed() < Duration::from_millis(ms) {
                std::hint::spin_loop();
            }
            Value::Null
        }
        Act::Panic => panic!("told to panic"),
        Act::Exit => std::process::exit(70),
        Act::Abort => std::process::abort(),
        Act::Overflow => Value::from(overflow(1)),
        Act::Hog => hog(),
        Act::Return { bytes } => Value::String("x".repeat(bytes)),
        Act::Say { text } => Value::String(text.replace(NUL, "\0")),
        Act::Spawn { ms } => {
            // Once, however often this runs.
            ctx.client().enqueue(Act::Wait { ms }).idempotency_key(job.to_string()).await?;
            Value::Null
        }
        Act::HoldTrouble { gate } => {
            hold(&hand, &ctx, &gate).await?;
            return Err(Fail::transient("told to fail"));
        }
        Act::Call { port } => match tokio::time::timeout(CALL_TIMEOUT, source::call(port)).await?? {
            true => Value::Null,
            false => return Err(Fail::http_status(500, "the source does badly")),
        },
        Act::Trouble => return Err(Fail::transient("told to fail")),
        Act::FailBytes { bytes } => return Err(Fail::permanent(String::from_utf8_lossy(&bytes))),
        Act::Fail { text } => return Err(Fail::permanent(text.replace(NUL, "\0"))),
    };
    fall.ended = true;
    hand.ledger.write(job, fence, "end").await;
    Ok(Returned(returned))
}

/// Deeper and deeper, in a way that no optimizer turns into a loop.
fn overflow(depth: u64) -> u64 {
    let room = std::hint::black_box([depth; 512]);
    if room[0] == u64::MAX { 0 } else { overflow(depth + 1) + room[usize::try_from(depth % 512).unwrap_or(0)] }
}

/// Takes and touches memory, a little at a time.
fn hog() -> Value {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        taken.push(vec![1; 16 << 20]);
        std::hint::black_box(&taken);
    }
}

async fn hold(hand: &Stagehand, ctx: &Ctx, gate: &str) -> Result<Value, Fail> {
    while !hand.gates.is_open(gate, &hand.worker) {
        tokio::select! {
            why = ctx.stopped() => {
                // Not awaited: a handler whose lease is lost is dropped at its next await.
                let word = match why {
                    Stop::Shutdown => "told shutdown",
                    Stop::Canceled => "told canceled",
                    Stop::Timeout => "told timeout",
                    Stop::LeaseLost => "told lease_lost",
                };
                hand.ledger.note(ctx.job_id(), ctx.fence(), word);
                ctx.check()?;
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    Ok(Value::Null)
}

/// Writes down the moment when a handler is gone without having come to its end: dropped, failed or panicked.
struct Fall<'h> {
    hand: &'h Stagehand,
    ctx: &'h Ctx,
    ended: bool,
}

impl Drop for Fall<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.hand.ledger.note(self.ctx.job_id(), self.ctx.fence(), "gone");
        }
    }
}
