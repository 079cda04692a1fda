//! Durations as people write them: `30s`, `5m`, `24h`, `1500ms`, `7d`.

use std::time::Duration;

use crate::invalid::Invalid;

/// Longest duration accepted from outside: a thousand years of 365 days.
pub const DURATION_MAX: Duration = Duration::from_secs(1_000 * 365 * 86_400);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a whole number with a unit; `field` names it in the refusal.
pub fn parse(field: &'static str, text: &str) -> Result<Duration, Invalid> {
    let refuse =
        || Invalid::new(field, text, "a duration is a whole number with ms, s, m, h or d, such as 90s, up to 365000d");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?;
    let number: u64 = number.parse().map_err(|_| refuse())?;
    let duration = Duration::from_millis(number.checked_mul(*ms).ok_or_else(refuse)?);
    if duration > DURATION_MAX { Err(refuse()) } else { Ok(duration) }
}

/// Writes a duration with the largest unit that holds it exactly; what is below a millisecond is dropped.
pub fn format(duration: Duration) -> String {
    let total = duration.as_millis();
    let (unit, ms) = UNITS
        .iter()
        .rev()
        .find(|(_, ms)| total >= u128::from(*ms) && total.is_multiple_of(u128::from(*ms)))
        .unwrap_or(&UNITS[1]);
    format!("{}{unit}", total / u128::from(*ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_survive_writing_and_reading() {
        for text in ["0s", "1ms", "1500ms", "90s", "5m", "24h", "36h", "7d", "365000d"] {
            let duration = parse("delay", text).unwrap();
            assert_eq!(parse("delay", &format(duration)).unwrap(), duration, "{text}");
        }
        assert_eq!(format(Duration::from_secs(86_400)), "1d");
        assert_eq!(format(Duration::from_secs(90)), "90s");
        assert_eq!(format(Duration::ZERO), "0s");
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for bad in
            ["", "s", "5", "-5s", "1.5s", "5 s", "5w", "365001d", "99999999999999999999s", "18446744073709551615d"]
        {
            assert_eq!(parse("delay", bad).unwrap_err().field, "delay", "{bad}");
        }
    }
}
