//! The lines of a run as one page with plots: a single file that loads nothing, light or dark as the reader's system is.

use std::fmt::Write as _;

use crate::line::{About, Line, Round};
use crate::measure::MEASURES;

const STYLE: &str = "
:root { color-scheme: light dark; --ours: #1f6feb; --floor: #8c959f; --line: #d0d7de; --text: #1f2328; --soft: #59636e; --page: #fff }
@media (prefers-color-scheme: dark) { :root { --ours: #58a6ff; --floor: #6e7681; --line: #30363d; --text: #e6edf3; --soft: #9198a1; --page: #0d1117 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin: 2.2rem 0 0 }
p { margin: .2rem 0 } .soft { color: var(--soft) } svg { display: block; width: 100%; height: auto; margin-top: .4rem }
svg text { font: 13px system-ui, sans-serif; fill: var(--text) } svg .soft { fill: var(--soft) }
table { border-collapse: collapse; width: 100%; margin-top: 2rem; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line) } th:first-child, td:first-child { text-align: left }
.wide { overflow-x: auto }";

/// Geometry of a plot, in its own units.
const WIDTH: f64 = 760.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 130.0;

/// The whole page.
pub fn page(lines: &[Line], about: &About) -> String {
    let mut body = String::new();
    for line in lines {
        let what = MEASURES.iter().find(|measure| measure.name() == line.measure).map_or("", |measure| measure.about());
        let _ = write!(
            body,
            "<h2 id=\"{name}\">{name}</h2>\n<p>{what}</p>\n<p class=\"soft\">{settings}. Floor: {floor}.</p>\n{plot}",
            name = line.measure,
            settings = escape(&line.settings),
            floor = escape(line.floor_is),
            plot = plot(line),
        );
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>tenure bench</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>tenure bench</h1>\n\
         <p class=\"soft\">Tenure {version} {commit}, {server}, {machine}</p>\n\
         <p>Each measure runs beside its raw floor in the same round: plain SQL on the same tables, without checks, history or handlers. \
         Bars are medians, dots are rounds. The ratio is what carries over to another machine.</p>\n{table}\n{body}</body>\n</html>\n",
        version = about.version,
        commit = about.commit,
        server = escape(&about.server),
        machine = escape(&about.machine),
        table = table(lines),
    )
}

fn table(lines: &[Line]) -> String {
    let mut rows = String::new();
    for line in lines {
        let m = &line.median;
        let _ = writeln!(
            rows,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td>{3}</td><td>{4}</td><td>{5}</td></tr>",
            line.measure,
            ours(m),
            m.floor.map_or(String::new(), |floor| unit(m, floor)),
            m.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}")),
            m.of_drain().map_or(String::new(), |part| format!("{part:.2}")),
            m.wal_per_job.map_or(String::new(), |bytes| format!("{bytes:.0} B")),
        );
    }
    format!(
        "<div class=\"wide\"><table>\n<tr><th>measure</th><th>Tenure</th><th>floor</th><th>ratio</th><th>of drain</th><th>WAL a job</th></tr>\n{rows}</table></div>"
    )
}

/// What of a round a bar shows.
type Pick<'p> = &'p dyn Fn(&Round) -> Option<f64>;

/// Two bars, with a dot for every round.
fn plot(line: &Line) -> String {
    let value = |round: &Round| round.rate.or(round.p50_ms);
    let most = line.rounds.iter().flat_map(|round| [value(round), round.floor]).flatten().fold(0.0_f64, f64::max);
    let scale = if most > 0.0 { (WIDTH - LEFT - RIGHT) / most } else { 0.0 };
    let mut marks = String::new();
    let pick_floor = |round: &Round| round.floor;
    let bars: [(&str, &str, f64, Pick<'_>); 2] =
        [("Tenure", "--ours", 4.0, &value), ("floor", "--floor", 34.0, &pick_floor)];
    for (name, color, top, pick) in bars {
        let Some(median) = pick(&line.median) else { continue };
        let _ = writeln!(
            marks,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{name}</text><rect x=\"{LEFT}\" y=\"{top}\" width=\"{width:.1}\" height=\"22\" rx=\"2\" fill=\"var({color})\" opacity=\".75\"/>",
            x = LEFT - 8.0,
            y = top + 16.0,
            width = (median * scale).max(1.0),
        );
        for round in line.rounds.iter().filter_map(pick) {
            let _ = write!(
                marks,
                "<circle cx=\"{:.1}\" cy=\"{}\" r=\"3\" fill=\"var({color})\" stroke=\"var(--page)\"/>",
                round.mul_add(scale, LEFT),
                top + 11.0
            );
        }
        let end = line.rounds.iter().filter_map(pick).fold(median, f64::max).mul_add(scale, LEFT);
        let _ =
            writeln!(marks, "<text x=\"{:.1}\" y=\"{}\">{}</text>", end + 10.0, top + 16.0, unit(&line.median, median));
    }
    format!(
        "<svg viewBox=\"0 0 {WIDTH} 64\" role=\"img\" aria-label=\"{} beside its floor\">\n{marks}</svg>\n",
        line.measure
    )
}

fn ours(round: &Round) -> String {
    match (round.rate, round.p50_ms, round.p99_ms) {
        (Some(rate), ..) => unit(round, rate),
        (None, Some(p50), Some(p99)) => format!("{p50:.2} ms, p99 {p99:.2} ms"),
        _ => String::new(),
    }
}

fn unit(round: &Round, value: f64) -> String {
    match round.rate {
        Some(_) => format!("{}/s", thousands(value)),
        None => format!("{value:.2} ms"),
    }
}

/// `12,345`
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let grouped: Vec<String> =
        digits.as_bytes().rchunks(3).rev().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    grouped.join(",")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0.4, 999.0, 1_000.0, 1_234_567.0].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_page_shows_every_line_and_loads_nothing() {
        let round = Round { rate: Some(50_000.0), floor: Some(100_000.0), ..Round::default() };
        let line = Line::new("drain", "postgres", vec![round], (10, "a < b".into(), "raw"));
        let page = page(&[line], &About::here("PostgreSQL".into()));
        assert!(page.contains("50,000/s") && page.contains("0.50") && page.contains("a &lt; b"), "{page}");
        assert!(!page.contains("http") && !page.contains("<script"), "{page}");
    }
}
