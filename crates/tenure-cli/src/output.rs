//! Standard output, gathered while a command works and written once at its end.

use std::io::{IsTerminal, Write};

use serde::Serialize;

use crate::failure::{Failure, exit};
use crate::table::Table;

/// What a command prints. Text for people and JSON for programs never mix.
pub(crate) struct Output {
    json: bool,
    color: bool,
    text: String,
}

impl Output {
    /// Colours only on a terminal, and not where NO_COLOR is set (<https://no-color.org>).
    pub(crate) fn new(json: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = !json && wanted && !dumb && std::io::stdout().is_terminal();
        Self { json, color, text: String::new() }
    }

    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) const fn color(&self) -> bool {
        self.color
    }

    /// A line for people.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// A table for people.
    pub(crate) fn table(&mut self, table: &Table) {
        self.text.push_str(&table.render(self.color));
    }

    /// A document for programs.
    pub(crate) fn json(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        let unprintable = |error| Failure::new("output", exit::STORE, "the answer is no JSON").caused_by(&error);
        let text = serde_json::to_string(document).map_err(unprintable)?;
        self.line(text);
        Ok(())
    }

    /// Writes everything out. A reader that has seen enough (`| head`) is no error.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(self.text.as_bytes()).and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::new("output", exit::REFUSED, "the answer could not be written").caused_by(&error))
            }
            _ => Ok(()),
        }
    }
}
