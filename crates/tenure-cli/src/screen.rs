//! A view that is drawn again and again in the same place.
//!
//! It lives on the terminal's second screen, so that what was there before comes back at the end, followed by the last
//! picture. Each picture is written in one piece over the one before it, and only the rest of each line is erased:
//! nothing flickers.

use std::io::{self, Write};

use crate::terminal;

/// Second screen, no cursor, no line wrapping.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Terminals that know these show a picture only when it is whole; others ignore them.
const BEGIN: &str = "\x1b[?2026h\x1b[H";
const END: &str = "\x1b[J\x1b[?2026l";

/// The terminal's second screen; left when this goes.
pub(crate) struct Screen {
    last: Option<String>,
}

impl Screen {
    pub(crate) fn enter() -> io::Result<Self> {
        write(ENTER)?;
        Ok(Self { last: None })
    }

    /// Rows and columns, as they are now.
    pub(crate) fn size() -> (usize, usize) {
        let (rows, columns) = console::Term::stdout().size();
        (rows.into(), columns.into())
    }

    /// Draws a picture; what does not fit is left out.
    pub(crate) fn draw(&mut self, picture: &str) -> io::Result<()> {
        let (rows, columns) = Self::size();
        let picture = terminal::shown(picture, true);
        let lines: Vec<String> = picture.lines().take(rows).map(|line| cut(line, columns)).collect();
        // A line that fills its row is not erased: the cursor stays on its last character.
        let erase = |line: &String| if visible(line) < columns { "\x1b[K" } else { "" };
        let drawn = lines.iter().map(|line| format!("{line}{}", erase(line))).collect::<Vec<_>>().join("\r\n");
        self.last = Some(lines.join("\n"));
        write(&format!("{BEGIN}{drawn}{END}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let last = self.last.take().map_or_else(String::new, |picture| picture + "\n");
        // A terminal that has gone needs no tidying.
        let _ = write(&format!("{LEAVE}{last}"));
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The first `columns` characters, with a mark where something is missing. Colours take no room, and end with the line.
fn cut(line: &str, columns: usize) -> String {
    let mut text = String::with_capacity(line.len());
    let mut width = 0;
    let mut painted = false;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            let code: String = chars.by_ref().take_while(|c| *c != 'm').collect();
            painted = code != "[0";
            text.push_str(&format!("\x1b{code}m"));
            continue;
        }
        if width + 1 == columns && visible(chars.as_str()) > 0 {
            text.push('…');
            break;
        }
        text.push(c);
        width += 1;
    }
    if painted {
        text.push_str("\x1b[0m");
    }
    text
}

/// Characters that take room.
fn visible(text: &str) -> usize {
    let mut parts = text.split('\x1b');
    let plain = parts.next().map_or(0, |part| part.chars().count());
    plain + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_where_the_terminal_ends_and_colours_take_no_room() {
        for (line, columns, expected) in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("", 6, ""),
            ("\x1b[31mabc\x1b[0mdef", 6, "\x1b[31mabc\x1b[0mdef"),
            ("\x1b[31mabc\x1b[0mdefg", 6, "\x1b[31mabc\x1b[0mde…"),
            ("ab\x1b[31mcdefg\x1b[0m", 4, "ab\x1b[31mc…\x1b[0m"),
            ("abc\x1b[31md\x1b[0m", 4, "abc\x1b[31md\x1b[0m"),
            ("größer…", 4, "grö…"),
        ] {
            assert_eq!(cut(line, columns), expected, "{line:?}");
        }
    }
}
