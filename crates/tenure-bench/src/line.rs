//! What a measure answers: one line of JSON, medians of its rounds.

use std::time::Duration;

use serde::Serialize;

/// One round of one measure.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// Jobs per second.
    pub rate: Option<f64>,
    /// What the floor reached, in the same unit as what it is held against.
    pub floor: Option<f64>,
    /// Bytes of write-ahead log for each job.
    pub wal_per_job: Option<f64>,
    /// Half of the jobs took no longer, and 99 of 100.
    pub p50_ms: Option<f64>,
    /// See above.
    pub p99_ms: Option<f64>,
    /// What an empty table drains at, in the same round.
    pub drain: Option<f64>,
}

/// The medians of a measure's rounds, and what they were made with.
#[derive(Debug, Clone)]
pub struct Line {
    /// Which measure.
    pub measure: &'static str,
    /// Which store.
    pub store: &'static str,
    /// Medians.
    pub median: Round,
    /// Every round.
    pub rounds: Vec<Round>,
    /// Jobs of one round.
    pub jobs: u32,
    /// How it was set up.
    pub settings: String,
    /// What the floor is here.
    pub floor_is: &'static str,
}

impl Round {
    /// `jobs` in `ours`, beside the same in `floor`.
    pub(crate) fn rates(jobs: u32, ours: Duration, floor: Duration) -> Self {
        let rate = |took: Duration| Some(f64::from(jobs) / took.as_secs_f64());
        Self { rate: rate(ours), floor: rate(floor), ..Self::default() }
    }

    /// How near it comes to its floor: 1 is as fast. A time is better when it is shorter.
    pub fn ratio(&self) -> Option<f64> {
        match (self.rate, self.p50_ms, self.floor) {
            (Some(rate), _, Some(floor)) => Some(rate / floor),
            (None, Some(p50), Some(floor)) => Some(floor / p50),
            _ => None,
        }
    }

    /// How much of an empty table's rate is left.
    pub fn of_drain(&self) -> Option<f64> {
        Some(self.rate? / self.drain?)
    }
}

impl Line {
    pub(crate) fn new(
        measure: &'static str,
        store: &'static str,
        rounds: Vec<Round>,
        made: (u32, String, &'static str),
    ) -> Self {
        let of = |pick: fn(&Round) -> Option<f64>| median(rounds.iter().filter_map(pick).collect());
        let median = Round {
            rate: of(|round| round.rate),
            floor: of(|round| round.floor),
            wal_per_job: of(|round| round.wal_per_job),
            p50_ms: of(|round| round.p50_ms),
            p99_ms: of(|round| round.p99_ms),
            drain: of(|round| round.drain),
        };
        let (jobs, settings, floor_is) = made;
        Self { measure, store, median, rounds, jobs, settings, floor_is }
    }

    /// One line, with what is known of the machine and the build in `about`.
    pub fn to_json<'l>(&'l self, about: &'l About) -> impl Serialize + 'l {
        let median = &self.median;
        let digits = if median.rate.is_some() { 0 } else { 3 };
        Document {
            measure: self.measure,
            store: self.store,
            rate: whole(median.rate),
            floor: rounded(median.floor, digits),
            ratio: rounded(median.ratio(), 3),
            of_drain: rounded(median.of_drain(), 3),
            wal_per_job: whole(median.wal_per_job),
            p50_ms: rounded(median.p50_ms, 3),
            p99_ms: rounded(median.p99_ms, 3),
            jobs: self.jobs,
            rounds: self.rounds.len(),
            settings: &self.settings,
            floor_is: self.floor_is,
            version: about.version,
            commit: about.commit,
            server: &about.server,
            machine: &about.machine,
        }
    }
}

/// A line as it is printed.
#[derive(Serialize)]
struct Document<'l> {
    measure: &'l str,
    store: &'l str,
    rate: Option<i64>,
    floor: Option<f64>,
    ratio: Option<f64>,
    of_drain: Option<f64>,
    wal_per_job: Option<i64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    jobs: u32,
    rounds: usize,
    settings: &'l str,
    floor_is: &'l str,
    version: &'l str,
    commit: &'l str,
    server: &'l str,
    machine: &'l str,
}

/// What every line of a run has in common.
#[derive(Debug, Clone)]
pub struct About {
    /// Ours.
    pub version: &'static str,
    /// What it was built from.
    pub commit: &'static str,
    /// Of Postgres or SQLite.
    pub server: String,
    /// Cores, memory and processor.
    pub machine: String,
}

impl About {
    /// This build on this machine, on a store of that version.
    pub fn here(server: String) -> Self {
        let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("TENURE_COMMIT"));
        Self { version, commit, server, machine: machine() }
    }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let read = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let memory = read("/proc/meminfo", "MemTotal").and_then(|kb| kb.split(' ').next()?.parse::<u64>().ok());
    let memory = memory.map_or_else(String::new, |kb| format!(", {} GiB", (kb + 524_288) / 1_048_576));
    let processor = read("/proc/cpuinfo", "model name").map_or_else(String::new, |name| format!(", {name}"));
    format!("{cores} cores{memory}{processor}, {}", std::env::consts::OS)
}

/// The middle one, or between the two middle ones.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

/// The value below which `part` of them lie.
pub(crate) fn percentile(values: &[Duration], part: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.iter().map(|value| value.as_secs_f64() * 1_000.0).collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = (values.len() as f64 * part) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied()
}

fn rounded(value: Option<f64>, digits: i32) -> Option<f64> {
    let scale = 10_f64.powi(digits);
    value.map(|value| (value * scale).round() / scale)
}

fn whole(value: Option<f64>) -> Option<i64> {
    value.map(|value| value.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&values, 0.5), Some(51.0));
        assert_eq!(percentile(&values, 0.99), Some(100.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_time_is_held_against_its_floor_the_other_way_round() {
        let rate = Round { rate: Some(50.0), floor: Some(100.0), ..Round::default() };
        let time = Round { p50_ms: Some(2.0), floor: Some(1.0), ..Round::default() };
        assert_eq!((rate.ratio(), time.ratio()), (Some(0.5), Some(0.5)));
    }
}
