//! Figures as pictures: SVG that the server draws. A picture is for the eye; the numbers are in a table under it.

use std::fmt::Write as _;
use std::time::Duration;

use tenure_core::Timestamp;
use tenure_server::moment;

use crate::bits::{Markup, count, escaped, moment_text};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 22.0;

/// One column of stacked bars.
pub(crate) struct Column {
    pub(crate) at: Timestamp,
    /// What was good, tried again, bad.
    pub(crate) parts: [u64; 3],
}

/// One point of two lines.
pub(crate) struct Point {
    pub(crate) at: Timestamp,
    pub(crate) values: [Option<Duration>; 2],
}

const PARTS: [(&str, &str); 3] = [("good", "succeeded"), ("warn", "tried again"), ("bad", "failed or dead")];
const LINES: [(&str, &str); 2] = [("p50", "half within"), ("p95", "95 % within")];

/// Stacked bars over time.
pub(crate) fn bars(columns: &[Column], width: Duration, label: &str) -> Markup {
    let most = columns.iter().map(|column| column.parts.iter().sum::<u64>()).max().unwrap_or(0);
    let top = nice(most);
    let mut svg = begin(label);
    let ticks = [0, top / 2, top];
    for value in ticks.iter().skip(usize::from(top < 2)).chain((top < 2).then_some(&0)) {
        grid(&mut svg, y(*value as f64, top as f64), &count(*value));
    }
    let step = (WIDTH - LEFT - RIGHT) / columns.len().max(1) as f64;
    for (place, column) in columns.iter().enumerate() {
        let x = LEFT + place as f64 * step;
        let mut below = 0;
        let _ = write!(svg, "<g><title>{}</title>", said(column, width));
        for ((class, _), part) in PARTS.iter().zip(column.parts) {
            if part > 0 {
                let (from, to) = (y(below as f64, top as f64), y((below + part) as f64, top as f64));
                // What happened at all is seen.
                let height = (from - to).max(1.5);
                let bar = (step - 1.0).max(1.0);
                let _ = write!(
                    svg,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{bar:.1}\" height=\"{height:.1}\"/>",
                    from - height
                );
            }
            below += part;
        }
        let empty = HEIGHT - TOP - BOTTOM;
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{TOP}\" width=\"{step:.1}\" height=\"{empty}\" fill=\"none\" pointer-events=\"all\"/></g>"
        );
    }
    times(&mut svg, &columns.iter().map(|column| column.at).collect::<Vec<_>>(), step);
    svg.push_str("</svg>");
    Markup(svg)
}

/// Two lines over time, on a scale where ten times as long is one step up.
pub(crate) fn lines(points: &[Point], label: &str) -> Markup {
    let longest = points.iter().flat_map(|point| point.values).flatten().max().unwrap_or_default();
    let top = log(longest).ceil().max(1.0);
    let mut svg = begin(label);
    for power in 0..=(top as u32) {
        let time = Duration::from_millis(10_u64.saturating_pow(power));
        grid(&mut svg, y(f64::from(power), top), &if power == 0 { "1ms".to_owned() } else { short(time) });
    }
    let step = (WIDTH - LEFT - RIGHT) / points.len().max(1) as f64;
    for (line, (class, _)) in LINES.iter().enumerate() {
        let mut path = String::new();
        let mut pen_down = false;
        for (place, point) in points.iter().enumerate() {
            let Some(value) = point.values[line] else {
                pen_down = false;
                continue;
            };
            let (x, y) = (LEFT + (place as f64 + 0.5) * step, y(log(value), top));
            let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { "L" } else { "M" });
            if !pen_down {
                // A point alone is a short line.
                let _ = write!(path, "h2");
            }
            pen_down = true;
        }
        let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    times(&mut svg, &points.iter().map(|point| point.at).collect::<Vec<_>>(), step);
    svg.push_str("</svg>");
    Markup(svg)
}

/// A box of a strip.
pub(crate) struct Cell<'s> {
    pub(crate) state: &'s str,
    /// How much of it is filled, of 1.
    pub(crate) done: f64,
    pub(crate) title: String,
}

/// One small box for each, in order, filled as far as it is done.
pub(crate) fn strip<'s>(boxes: impl ExactSizeIterator<Item = Cell<'s>>, label: &str) -> Markup {
    let many = boxes.len().max(1);
    let width = 1_000.0 / many as f64;
    let gap = if many <= 200 { 1.5 } else { 0.0 };
    let mut svg = format!(
        "<svg class=\"strip\" viewBox=\"0 0 1000 22\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        escaped(label)
    );
    for (place, cell) in boxes.enumerate() {
        let (x, wide, state) = (place as f64 * width, (width - gap).max(0.4), escaped(cell.state));
        let filled = 22.0 * cell.done.clamp(0.0, 1.0);
        let _ = write!(
            svg,
            "<g class=\"is-{state}\"><title>{}</title>\
             <rect class=\"rest\" x=\"{x:.2}\" y=\"0\" width=\"{wide:.2}\" height=\"22\"/>\
             <rect x=\"{x:.2}\" y=\"{:.2}\" width=\"{wide:.2}\" height=\"{filled:.2}\"/></g>",
            escaped(&cell.title),
            22.0 - filled,
        );
    }
    svg.push_str("</svg>");
    Markup(svg)
}

fn begin(label: &str) -> String {
    format!("<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", escaped(label))
}

fn grid(svg: &mut String, y: f64, text: &str) {
    let (right, beside, under) = (WIDTH - RIGHT, LEFT - 6.0, y + 4.0);
    let _ = write!(
        svg,
        "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
         <text x=\"{beside}\" y=\"{under:.1}\" text-anchor=\"end\">{text}</text>"
    );
}

/// The times below, as many as fit, and their zone.
fn times(svg: &mut String, at: &[Timestamp], step: f64) {
    let (end, y) = (WIDTH - RIGHT, HEIGHT - 6.0);
    let _ = write!(svg, "<text x=\"{end}\" y=\"{y}\" text-anchor=\"end\">UTC</text>");
    let every = at.len().div_ceil(6).max(1);
    let is_long = match (at.first(), at.last()) {
        (Some(first), Some(last)) => last.since(*first) > Duration::from_secs(2 * 86_400),
        _ => false,
    };
    for (place, at) in at.iter().enumerate().step_by(every) {
        let text = moment::absolute(*at);
        let text = if is_long { text.get(5..10) } else { text.get(11..16) }.unwrap_or_default();
        let (x, y) = (LEFT + place as f64 * step, HEIGHT - 6.0);
        let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y}\">{text}</text>");
    }
}

fn said(column: &Column, width: Duration) -> String {
    let from = moment_text(&column.at);
    let parts: Vec<String> = PARTS
        .iter()
        .zip(column.parts)
        .filter(|(_, part)| *part > 0)
        .map(|((_, name), part)| format!("{} {name}", count(part)))
        .collect();
    let parts = if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
    format!("{from}, {}: {parts}", moment::span(width))
}

fn y(value: f64, top: f64) -> f64 {
    let share = if top > 0.0 { value / top } else { 0.0 };
    HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
}

/// How many times ten, from a millisecond on.
fn log(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000.0).max(1.0).log10()
}

/// The next round number: 1, 2 or 5 and zeros, and even where it is halved.
fn nice(most: u64) -> u64 {
    let mut size = 1_u64;
    loop {
        for factor in [1, 2, 4, 6, 8] {
            let candidate = size.saturating_mul(factor);
            if candidate >= most && (candidate == 1 || candidate % 2 == 0) {
                return candidate;
            }
        }
        size = size.saturating_mul(10);
    }
}

/// `100ms`, `10s`, `17m`.
fn short(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{}ms", time.as_millis()),
        seconds @ 1..100 => format!("{seconds}s"),
        seconds @ 100..10_000 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_on_round_numbers() {
        for (most, top) in [(0, 1), (1, 1), (2, 2), (3, 4), (7, 8), (9, 10), (11, 20), (450, 600), (1_000, 1_000)] {
            assert_eq!(nice(most), top, "{most}");
        }
    }

    #[test]
    fn a_chart_of_nothing_is_a_chart() {
        assert!(bars(&[], Duration::from_secs(60), "none").0.ends_with("</svg>"));
        assert!(lines(&[], "none").0.ends_with("</svg>"));
        assert!(strip(Vec::new().into_iter(), "none").0.ends_with("</svg>"));
    }

    #[test]
    fn a_bar_is_as_high_as_its_share() {
        let column = |parts| Column { at: Timestamp::EPOCH, parts };
        let svg = bars(&[column([8, 0, 0]), column([4, 2, 2]), column([0; 3])], Duration::from_secs(60), "jobs").0;
        assert!(svg.contains("class=\"good\" x=\"46.0\" y=\"10.0\" width=\"221.0\" height=\"158.0\""), "{svg}");
        assert!(svg.contains("height=\"79.0\"") && svg.matches("height=\"39.5\"").count() == 2, "{svg}");
        assert!(svg.contains("4 succeeded, 2 tried again, 2 failed or dead") && svg.contains(": nothing"));
    }
}
