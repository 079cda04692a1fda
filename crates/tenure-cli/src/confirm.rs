//! A question before something large, asked only where a person can answer.

use std::io::{IsTerminal, Write};

use crate::failure::{Failure, exit};
use crate::output::Output;

/// Asks on a terminal; a script, which cannot answer, has said what it wants. Anything but yes is a refusal.
pub(crate) fn ask(question: &str, out: &Output) -> Result<(), Failure> {
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    if out.is_json() || !stdin.is_terminal() || !stderr.is_terminal() {
        return Ok(());
    }
    let mute = |error| Failure::new("input", exit::REFUSED, "the question could not be asked").caused_by(&error);
    write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush()).map_err(mute)?;
    let mut answer = String::new();
    stdin.read_line(&mut answer).map_err(mute)?;
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::new("declined", exit::REFUSED, "nothing was done: it was not confirmed").hint("--yes confirms it."))
}
