//! Where the demo is seen: a live view on a terminal, lines elsewhere, nothing for programs.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use console::Term;

use super::board::{Board, Line};
use super::frame;
use crate::output::Output;
use crate::paint::Paint;

/// Pause between two pictures, or two looks for new lines.
const EVERY: Duration = Duration::from_millis(120);

/// What a terminal does meanwhile: no cursor, no line that wraps by itself.
const BEGIN: &str = "\x1b[?25l\x1b[?7l";
const END: &str = "\x1b[?7h\x1b[?25h";
/// Terminals that know these two show everything between them at once; others ignore them.
const HOLD: &str = "\x1b[?2026h";
const SHOW: &str = "\x1b[?2026l";

/// The screen, or what stands for it.
pub(super) enum Screen {
    Live(Live),
    Plain,
    Silent,
}

/// The live view. The terminal is as before when this is dropped, whatever happened.
pub(super) struct Live {
    color: bool,
    /// Lines of the last picture, which the next one is drawn over.
    drawn: usize,
}

impl Screen {
    pub(super) fn new(out: &Output) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match std::io::stdout().is_terminal() && !dumb {
            _ if out.is_json() => Self::Silent,
            true => Self::Live(Live::begin(out.color())),
            false => Self::Plain,
        }
    }

    pub(super) const fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    /// Shows what the board knows, again and again, until dropped. Over when nobody can see it any more.
    pub(super) async fn show(&mut self, board: &Board, out: &mut Output) {
        loop {
            match self {
                Self::Live(live) => {
                    if live.draw(board).is_err() {
                        return;
                    }
                }
                Self::Plain => {
                    board.take_news().iter().for_each(|line| out.line(plain(line)));
                    if out.flush().is_err() || out.is_closed() {
                        return;
                    }
                }
                Self::Silent => _ = board.take_news(),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Makes room for what is said last.
    pub(super) fn finish(self, board: &Board, out: &mut Output) {
        match self {
            Self::Live(mut live) => live.clear(),
            Self::Plain => {
                board.take_news().iter().for_each(|line| out.line(plain(line)));
                out.line("");
            }
            Self::Silent => {}
        }
    }
}

impl Live {
    fn begin(color: bool) -> Self {
        write(BEGIN);
        Self { color, drawn: 0 }
    }

    /// Draws over the last picture: nothing is erased before its successor is there, so nothing flickers.
    fn draw(&mut self, board: &Board) -> std::io::Result<()> {
        let (rows, columns) = Term::stdout().size();
        let lines = frame::compose(&board.look(), columns.into(), rows.into());
        let mut text = format!("{HOLD}{}", self.to_top());
        for line in &lines {
            text += &line.render(usize::from(columns).saturating_sub(1), self.color);
            // The rest of what stood in this line.
            text += "\x1b[K\r\n";
        }
        // And below, when the last picture was longer.
        text += "\x1b[J";
        text += SHOW;
        self.drawn = lines.len();
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    fn clear(&mut self) {
        write(&format!("{}\x1b[J", self.to_top()));
        self.drawn = 0;
    }

    fn to_top(&self) -> String {
        if self.drawn == 0 { "\r".to_owned() } else { format!("\r\x1b[{}A", self.drawn) }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        write(END);
    }
}

fn write(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A terminal that is gone needs nothing.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// A line for those who read no screen.
fn plain(line: &Line) -> String {
    let Line { at, who, word, paint, text } = line;
    let at = at.as_secs_f64();
    match paint {
        Paint::Bold => format!("{at:5.1} s  {text}"),
        _ => format!("{at:5.1} s    {who:8}  {word:9}  {text}"),
    }
}
