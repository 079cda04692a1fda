//! Text scripts: a story of jobs and workers, one verb a line, run against any store.
//!
//! ```text
//! enqueue  J1
//! claim    W1  J1  lease=L1
//! expire   J1
//! reclaim  J1
//! claim    W2  J1  lease=L2
//! complete W1  J1  lease=L1  -> lease_lost
//! complete W2  J1  lease=L2  -> completed
//! ```
//!
//! `J1`, `W1` and `L1` are labels. A job gets its id and a worker its number on first use; a lease label is bound by the
//! claim that names it, and its number must be larger than any before. Options are `key=value`, quoted where they hold
//! spaces; `#` begins a comment. What follows `->` is the expected answer; without it the verb's plain success is
//! expected. An answer may say more than expected: `lease_lost` also accepts `lease_lost:lost`.
//!
//! # Layout
//! - `line`: reading a line
//! - `names`: labels and what they stand for
//! - `enqueue`, `hold`, `report`, `operate`, `gate`, `schedule`, `run`, `look`: the verbs

mod enqueue;
mod gate;
mod hold;
mod line;
mod look;
mod names;
mod operate;
mod report;
mod run;
mod schedule;

use std::fmt;

use tenure_store::StoreError;

use self::line::Line;
use self::names::Names;
use crate::fixture::Fixture;

/// Runs a script and panics at the first line whose answer is not the expected one.
pub async fn check(t: &Fixture, script: &str) {
    if let Err(mistake) = run(t, script).await {
        panic!("{mistake}");
    }
}

/// Runs a script up to the first line that is wrong.
pub async fn run(t: &Fixture, script: &str) -> Result<(), Mistake> {
    let mut run = Run { t, names: Names::default() };
    for (at, text) in script.lines().enumerate() {
        let mistake = |what| Mistake { line: at + 1, text: text.trim().into(), what };
        let Some(mut line) = Line::parse(text).map_err(|why| mistake(What::Script(why)))? else { continue };
        let outcome = verb(&mut run, &mut line).await.map_err(|why| mistake(What::Script(why)))?;
        line.finish().map_err(|why| mistake(What::Script(why)))?;
        if !answers(&outcome.expected, &outcome.got) {
            return Err(mistake(What::Differs(outcome)));
        }
    }
    Ok(())
}

/// A script at work.
struct Run<'a> {
    t: &'a Fixture,
    names: Names,
}

/// What a verb should have answered and what it did, word by word.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    expected: Vec<String>,
    got: Vec<String>,
}

/// The first wrong line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    line: usize,
    text: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// The script itself cannot be read.
    Script(String),
    /// The store answered something else.
    Differs(Outcome),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, text, what } = self;
        match what {
            What::Script(why) => write!(f, "script line {line} cannot be read: {text}\n  {why}"),
            What::Differs(Outcome { expected, got }) => {
                let (expected, got) = (expected.join(" "), got.join(" "));
                write!(f, "script line {line}: {text}\n  expected: {expected}\n       got: {got}")
            }
        }
    }
}

async fn verb(at: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    match line.verb.as_str() {
        "enqueue" => enqueue::enqueue(at, line).await,
        "advance" => hold::advance(at, line),
        "expire" => hold::expire(at, line).await,
        "claim" => hold::claim(at, line).await,
        "renew" => hold::renew(at, line).await,
        "reclaim" => hold::reclaim(at, line).await,
        "drop" => hold::drop_leases(at, line).await,
        "release_unknown" => hold::release_unknown(at, line).await,
        "complete" | "fail" | "retry" | "snooze" | "release" | "acknowledge" => report::report(at, line).await,
        "cancel" => operate::cancel(at, line).await,
        "requeue" => operate::requeue(at, line).await,
        "open" => operate::open(at, line).await,
        "hasten" => operate::hasten(at, line).await,
        "pause" | "resume" => operate::pause(at, line).await,
        "queue" => operate::queue(at, line).await,
        "tenant" => operate::tenant(at, line).await,
        "prune" => operate::prune(at, line).await,
        "rule" => gate::rule(at, line).await,
        "patch" => gate::patch(at, line).await,
        "gate" => gate::gate(at, line).await,
        "acquire" => gate::acquire(at, line).await,
        "repair" => gate::repair(at, line).await,
        "run" => run::run(at, line).await,
        "add" => run::add(at, line).await,
        "seal_run" => run::seal(at, line).await,
        "cancel_run" => run::cancel(at, line).await,
        "partition" => run::partition(at, line).await,
        "begin" => run::begin(at, line).await,
        "page" => run::page(at, line).await,
        "fold" => run::fold(at, line).await,
        "told" => run::told(at, line).await,
        "runs" => run::list(at, line).await,
        "partitions" => run::partitions(at, line).await,
        "schedule" => schedule::schedule(at, line).await,
        "scheduled" => schedule::scheduled(at, line).await,
        "look" => schedule::look(at, line).await,
        "fire" => schedule::fire(at, line).await,
        "tick" => schedule::tick(at, line).await,
        "clock" => schedule::clock(at, line),
        "show" => look::show(at, line).await,
        "list" => look::list(at, line).await,
        "queues" => look::queues(at, line).await,
        "journal" => look::journal(at, line).await,
        "seal" => look::seal(at, line).await,
        other => Err(format!("there is no verb {other}")),
    }
}

/// Whether an answer says what was expected, and perhaps more. Of a conflict only what it names is compared.
fn answers(expected: &[String], got: &[String]) -> bool {
    if expected.first().is_some_and(|word| word == "conflict") {
        return expected.iter().all(|word| got.contains(word));
    }
    let word =
        |(e, g): (&String, &String)| g == e || g.strip_prefix(e.as_str()).is_some_and(|more| more.starts_with(':'));
    expected.len() == got.len() && expected.iter().zip(got).all(word)
}

/// An error as a script writes it. A conflict says which jobs its message names.
fn error_words(names: &Names, error: &StoreError) -> Vec<String> {
    match error {
        StoreError::LeaseLost(_) => vec!["lease_lost".into()],
        StoreError::OffsetMismatch { expected, got } => vec![format!("offset_mismatch:{expected}:{got}")],
        StoreError::NotFound(_) => vec!["not_found".into()],
        StoreError::Full(_) => vec!["full".into()],
        StoreError::Limit(_) => vec!["limit".into()],
        StoreError::Conflict(text) => {
            ["conflict".into(), "naming".into()].into_iter().chain(names.in_text(text)).collect()
        }
        StoreError::Invalid(invalid) => vec![format!("invalid:{}", invalid.field.replace(' ', "_"))],
        other => vec![format!("error:{other}")],
    }
}
