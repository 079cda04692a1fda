//! One picture of the live view: what is known, as lines for a screen of a given size.

use std::time::Instant;

use tenure_core::State;

use super::board::{Headline, Known, Line, Member, Mood};
use super::styled::{Styled, wrap};
use crate::paint::Paint;

/// Newest events shown, where there is room.
const EVENTS: usize = 8;
/// Lines for the headline, so that what is below it stays where it is.
const HEADLINE_LINES: usize = 2;
/// Wider is not easier to read.
const WIDTH_MAX: usize = 110;

/// The states that are shown, in the order of the bar: what has ended first.
const STATES: [State; 7] =
    [State::Succeeded, State::Failed, State::Dead, State::Canceled, State::Running, State::Retryable, State::Queued];

/// Lines for a screen of so many columns and rows.
pub(super) fn compose(known: &Known, columns: usize, rows: usize) -> Vec<Styled> {
    let width = columns.saturating_sub(1).min(WIDTH_MAX);
    let mut lines = vec![title(known, width), dashboard(known), Styled::new()];
    lines.extend(headline(&known.headline, width));
    lines.push(Styled::new());
    lines.extend(known.workers.iter().map(member));
    lines.push(Styled::new());
    lines.push(bar(known, width));
    lines.push(counts(known));
    lines.push(Styled::new());
    // One row is the cursor's.
    let room = rows.saturating_sub(lines.len() + 1).min(EVENTS);
    let newest = known.lines.iter().skip(known.lines.len().saturating_sub(room));
    lines.extend(newest.map(event));
    lines.truncate(rows.saturating_sub(1));
    lines
}

fn title(known: &Known, width: usize) -> Styled {
    let elapsed = format!("{:.1} s", known.began.elapsed().as_secs_f64());
    let title =
        Styled::new().paint(" tenure demo", Paint::Bold).paint("  a shop, one SQLite file, real processes", Paint::Dim);
    title.to(width.saturating_sub(elapsed.len())).paint(elapsed, Paint::Dim)
}

fn dashboard(known: &Known) -> Styled {
    let line = Styled::new().plain(" ");
    match &known.dashboard {
        Some(url) => line.paint("dashboard  ", Paint::Dim).paint(url, Paint::Cyan),
        None => line,
    }
}

fn headline(headline: &Headline, width: usize) -> Vec<Styled> {
    let mut text = headline.text.clone();
    if let Some(ends) = headline.lease_ends {
        text += &match ends.saturating_duration_since(Instant::now()) {
            left if left.is_zero() => "; the lease is over, and any worker may take over".to_owned(),
            left => format!("; the lease ends in {:.1}\u{a0}s", left.as_secs_f64()),
        };
    }
    let mut lines: Vec<Styled> = wrap(&text, width.saturating_sub(1))
        .iter()
        .map(|line| Styled::new().plain(" ").paint(line, Paint::Bold))
        .collect();
    lines.resize_with(lines.len().max(HEADLINE_LINES), Styled::new);
    lines
}

fn member(member: &Member) -> Styled {
    let (word, paint) = match member.mood {
        Mood::Running => ("running", Paint::Green),
        Mood::Killed => ("killed", Paint::Red),
        Mood::Frozen => ("frozen", Paint::Cyan),
        Mood::Refused => ("refused", Paint::Yellow),
        Mood::Stopped => ("stopped", Paint::Dim),
    };
    let held = match member.mood {
        Mood::Running | Mood::Refused | Mood::Stopped => Paint::Cyan,
        Mood::Killed | Mood::Frozen => paint,
    };
    let line = Styled::new().plain(" ").plain(member.name).to(11).paint(format!("pid {}", member.pid), Paint::Dim);
    let line = line.to(24).paint(word, paint).to(33).paint("■".repeat(member.running.min(9)), held);
    line.to(43).paint(&member.note, Paint::Dim)
}

/// All jobs as one bar: what has ended from the left, what waits to the right.
fn bar(known: &Known, width: usize) -> Styled {
    let total: u64 = known.counts.values().sum();
    let width = u64::try_from(width.saturating_sub(1)).unwrap_or(0);
    let mut line = Styled::new().plain(" ");
    let (mut jobs, mut drawn) = (0, 0);
    for state in STATES {
        jobs += known.counts.get(&state).copied().unwrap_or(0);
        // Up to here, rounded: the parts always add up to the whole.
        let until = (jobs * width).checked_div(total).unwrap_or(0);
        let glyph = match state {
            State::Running => "▓",
            State::Queued | State::Retryable | State::Waiting => "░",
            State::Succeeded | State::Failed | State::Dead | State::Canceled => "█",
        };
        let cells = usize::try_from(until.saturating_sub(drawn)).unwrap_or(0);
        line = line.paint(glyph.repeat(cells), Paint::of_state(state));
        drawn = until;
    }
    line
}

fn counts(known: &Known) -> Styled {
    STATES.into_iter().fold(Styled::new(), |line, state| {
        let count = known.counts.get(&state).copied().unwrap_or(0);
        let paint = if count == 0 { Paint::Dim } else { Paint::of_state(state) };
        line.plain(" ").paint(state.as_str(), paint).plain(format!(" {count} "))
    })
}

fn event(line: &Line) -> Styled {
    let Line { at, who, word, paint, text } = line;
    let styled = Styled::new().paint(format!("{:6.1} s ", at.as_secs_f64()), Paint::Dim);
    styled.plain(" ").plain(who).to(20).paint(*word, *paint).to(31).plain(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::demo::board::Board;

    #[test]
    fn a_frame_fits_its_screen_and_keeps_its_height() {
        let board = Board::new();
        board.say("worker-2 (pid 4711) was killed with -9 while it held 5 jobs, which others will have to do again");
        for name in ["worker-1", "worker-2", "worker-3", "worker-4", "worker-5"] {
            board.hire(name, 4_000_000, "in the place of somebody with a very long name who was killed before");
        }
        let mut known = board.look();
        for (n, state) in STATES.into_iter().enumerate() {
            known.counts.insert(state, n as u64 * 7);
        }
        for n in 0..20 {
            let text = format!("page.fetch /a/rather/long/path/{n}: 503 service unavailable, attempt 2 of 3, again");
            let (at, who) = (known.began.elapsed(), "worker-1".to_owned());
            known.lines.push_back(Line { at, who, word: "retry", paint: Paint::Yellow, text });
        }
        for (columns, rows) in [(80, 24), (120, 40), (200, 60), (40, 12)] {
            let lines = compose(&known, columns, rows);
            assert!(lines.len() < rows, "{columns}×{rows}");
            let drawn: Vec<String> = lines.iter().map(|line| line.render(columns - 1, false)).collect();
            assert!(drawn.iter().all(|line| line.chars().count() < columns), "{columns}×{rows}: {drawn:#?}");
        }
        assert_eq!(compose(&known, 80, 24).len(), 23, "two lines of headline, eight of events");
    }
}
