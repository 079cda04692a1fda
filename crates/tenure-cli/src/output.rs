//! Standard output, gathered while a command works and written at its end, or at each turn of a command that goes on.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use tenure_core::text::printable_json;

use crate::failure::{Failure, exit};
use crate::screen::Screen;
use crate::table::Table;
use crate::terminal;

/// What a command prints. Text for people and JSON for programs never mix.
pub(crate) struct Output {
    json: bool,
    live: bool,
    color: bool,
    text: String,
    closed: bool,
}

impl Output {
    /// Colours only on a terminal, and not where NO_COLOR is set (<https://no-color.org>).
    pub(crate) fn new(json: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let live = !json && !dumb && std::io::stdout().is_terminal();
        Self { json, live, color: live && wanted, text: String::new(), closed: false }
    }

    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person sees it as it comes, on a terminal that can be drawn on.
    pub(crate) const fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) const fn color(&self) -> bool {
        self.color
    }

    /// A line for people.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(&terminal::shown(line.as_ref(), self.color));
        self.text.push('\n');
    }

    /// A table for people.
    pub(crate) fn table(&mut self, table: &Table) {
        self.text.push_str(&terminal::shown(&table.render(self.color), self.color));
    }

    /// A table whose last column is prose: on a terminal it is cut where the line ends.
    pub(crate) fn table_with_note(&mut self, mut table: Table) {
        if self.live {
            table.shorten_last(Screen::size().1);
        }
        self.table(&table);
    }

    /// A document for programs.
    pub(crate) fn json(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        let unprintable = |error| Failure::new("output", exit::STORE, "the answer is no JSON").caused_by(&error);
        let text = serde_json::to_string(document).map_err(unprintable)?;
        // The same document, with nothing in it that a terminal obeys.
        self.text.push_str(&printable_json(&text));
        self.text.push('\n');
        Ok(())
    }

    /// Whether the reader has gone: a command that goes on should end.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes what was gathered. A reader that has seen enough (`| head`) is no error.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(self.text.as_bytes()).and_then(|()| stdout.flush());
        self.text.clear();
        match written {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                return Err(Failure::new("output", exit::REFUSED, "the answer could not be written").caused_by(&error));
            }
            Ok(()) => {}
        }
        Ok(())
    }
}
