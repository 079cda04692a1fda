//! Progress of long work, on stderr and only on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

const THINGS_KNOWN: &str = "{bar:30} {human_pos}/{human_len} {prefix}  {eta} left";
const THINGS_UNKNOWN: &str = "{spinner} {human_pos} {prefix}  {elapsed}";
const BYTES_KNOWN: &str = "{bar:30} {percent}%  {msg}  {eta} left";
const BYTES_UNKNOWN: &str = "{spinner} {bytes}  {msg}  {elapsed}";

/// A bar or a counter that vanishes when the work is done.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// `total` things called `what`; a counter where the total is unknown.
    pub(crate) fn of_things(total: Option<u64>, what: &'static str) -> Self {
        let progress = Self::new(total, if total.is_some() { THINGS_KNOWN } else { THINGS_UNKNOWN });
        progress.0.set_prefix(what);
        progress
    }

    /// Bytes of a file that are read; the message counts what came of them.
    pub(crate) fn of_bytes(total: Option<u64>) -> Self {
        Self::new(total, if total.is_some() { BYTES_KNOWN } else { BYTES_UNKNOWN })
    }

    fn new(total: Option<u64>, template: &str) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::new_spinner(),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(bar.with_style(style.progress_chars("━╸─")))
    }

    pub(crate) fn set(&self, position: u64) {
        self.0.set_position(position);
    }

    pub(crate) fn message(&self, message: String) {
        self.0.set_message(message);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_well_formed() {
        for template in [THINGS_KNOWN, THINGS_UNKNOWN, BYTES_KNOWN, BYTES_UNKNOWN] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
