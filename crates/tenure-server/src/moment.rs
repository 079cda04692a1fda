//! Moments and durations as people read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_core::Timestamp;

/// This machine's clock: for what people read and for new ids, never for a deadline.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH.plus(since)
}

/// `3m ago`, `in 20s`, `now`.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let (past, future) = (now.since(at), at.since(now));
    match (past.as_secs(), future.as_secs()) {
        (0, 0) => "now".to_owned(),
        (_, 0) => format!("{} ago", coarse(past)),
        _ => format!("in {}", coarse(future)),
    }
}

/// `2026-11-15 09:30:00Z`.
pub fn absolute(at: Timestamp) -> String {
    let text = at.to_string().replace('T', " ");
    let seconds = text.split(['.', 'Z']).next().unwrap_or_default();
    format!("{seconds}Z")
}

/// The two largest units: `1m 20s`, `350ms`, `3d 4h`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let two = |big: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit} {small}{small_unit}"),
    };
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// The nearest whole number of the largest unit: lists are skimmed.
fn coarse(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_millis() >= 500);
    let (unit, size) = match seconds {
        0..60 => ("s", 1),
        60..3_600 => ("m", 60),
        3_600..86_400 => ("h", 3_600),
        _ => ("d", 86_400),
    };
    format!("{}{unit}", (seconds + size / 2) / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_like_speech() {
        let now = Timestamp::EPOCH.plus(Duration::from_secs(1_000_000));
        for (offset, text) in [(0, "now"), (45, "45s ago"), (200, "3m ago"), (7_300, "2h ago"), (200_000, "2d ago")] {
            assert_eq!(relative(now.minus(Duration::from_secs(offset)), now), text);
        }
        assert_eq!(relative(now.plus(Duration::from_millis(599_900)), now), "in 10m");
        assert_eq!(absolute(now), "1970-01-12 13:46:40Z");
        assert_eq!(absolute(now.plus(Duration::from_millis(5))), "1970-01-12 13:46:40Z");
    }

    #[test]
    fn spans_show_two_units() {
        for (ms, text) in
            [(0, "0ms"), (350, "350ms"), (59_000, "59s"), (80_000, "1m 20s"), (3_600_000, "1h"), (273_600_000, "3d 4h")]
        {
            assert_eq!(span(Duration::from_millis(ms)), text);
        }
    }
}
