//! Families, samples and how they are written.

use std::collections::BTreeMap;
use std::fmt;

/// A metric: what docs/METRICS.md has a line for.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

/// What a metric's values are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only grows, until the process starts again.
    Counter,
    /// How many took how long.
    Histogram,
}

/// Most values of a label that users invent.
pub(super) const VALUES_MAX: usize = 100;
/// The value of all the others.
pub(super) const OTHER: &str = "other";

/// Metrics with their samples. One that has none is told of all the same.
pub(super) struct Families(Vec<(&'static Metric, Vec<String>)>);

impl Families {
    /// These, in this order, without samples.
    pub(super) fn new(metrics: impl IntoIterator<Item = &'static Metric>) -> Self {
        Self(metrics.into_iter().map(|metric| (metric, Vec::new())).collect())
    }

    /// Adds a sample. A metric that is not among these is a mistake of ours, and left out.
    pub(super) fn put(&mut self, metric: &'static Metric, labels: &[(&str, &str)], value: f64) {
        self.put_part(metric, "", labels, value);
    }

    /// Adds a sample of a histogram's part, such as `_sum`.
    pub(super) fn put_part(&mut self, metric: &'static Metric, part: &str, labels: &[(&str, &str)], value: f64) {
        let family = self.0.iter_mut().find(|(known, _)| known.name == metric.name);
        debug_assert!(family.is_some(), "{} has no place", metric.name);
        let Some((_, samples)) = family else { return };
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        samples.push(format!("{}{part}{labels} {value}", metric.name));
    }
}

impl fmt::Display for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (Metric { name, kind, help }, samples) in &self.0 {
            let kind = match kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
                Kind::Histogram => "histogram",
            };
            writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
            samples.iter().try_for_each(|sample| writeln!(f, "{sample}"))?;
        }
        Ok(())
    }
}

/// What users invented, by name: the first hundred, and the others as one.
pub(super) fn bounded<T>(all: impl IntoIterator<Item = (String, T)>, join: impl Fn(&mut T, T)) -> Vec<(String, T)> {
    let sorted: BTreeMap<String, T> = all.into_iter().collect();
    let mut kept: Vec<(String, T)> = Vec::new();
    for (place, (name, value)) in sorted.into_iter().enumerate() {
        match kept.last_mut() {
            Some((_, others)) if place > VALUES_MAX => join(others, value),
            _ if place == VALUES_MAX => kept.push((OTHER.to_owned(), value)),
            _ => kept.push((name, value)),
        }
    }
    kept
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    static DUE: Metric = Metric { name: "due", kind: Kind::Gauge, help: "Jobs." };

    #[test]
    fn samples_follow_their_metric_and_values_are_quoted() {
        let mut families = Families::new([&DUE]);
        families.put(&DUE, &[("queue", "a\"b\\c\nd"), ("state", "x")], 2.0);
        families.put(&DUE, &[], 0.25);
        let text = "# HELP due Jobs.\n# TYPE due gauge\ndue{queue=\"a\\\"b\\\\c\\nd\",state=\"x\"} 2\ndue 0.25\n";
        assert_eq!(families.to_string(), text);
    }

    #[test]
    fn whatever_users_invent_has_a_hundred_series_and_one() {
        let all = |count: usize| (0..count).map(|no| (format!("q{no:04}"), 1)).collect::<Vec<_>>();
        let kept = |count| bounded(all(count), |sum, one| *sum += one);
        assert_eq!(kept(100).len(), 100);
        assert_eq!(kept(100)[99].0, "q0099");
        assert_eq!(kept(101)[100], (OTHER.to_owned(), 1));
        assert_eq!((kept(5_000).len(), kept(5_000)[100].1), (101, 4_900));
    }
}
