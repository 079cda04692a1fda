//! Whole cents from the ways people write prices. Never through a float.

/// Cents from units and two digits behind `point`: `189.50`, `1,895.00` with `,` between thousands. Positive, below ten
/// billion units.
pub(super) fn cents(text: &str, point: char, thousands: char) -> Result<i64, String> {
    let refuse = || format!("`{}` is no price such as 189{point}50", text.escape_debug());
    let (units, cents) = text.trim().split_once(point).unwrap_or((text.trim(), "00"));
    let units: String = units.chars().filter(|c| *c != thousands).collect();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(&units) || units.len() > 10 || !digits(cents) || cents.len() != 2 {
        return Err(refuse());
    }
    let total: i64 = format!("{units}{cents}").parse().map_err(|_| refuse())?;
    if total == 0 { Err(refuse()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::cents;

    #[test]
    fn prices_are_read_to_the_cent() {
        for (text, expected) in [("189.50", 18_950), ("1,895.00", 189_500), (" 7 ", 700), ("0.01", 1)] {
            assert_eq!(cents(text, '.', ','), Ok(expected), "{text}");
        }
        assert_eq!(cents("1.895,50", ',', '.'), Ok(189_550));
        for bad in ["", "0", "-5.00", "1.5", "1.505", "abc", "1e3", "12345678901.00", "1.-5", "٣.٠٠"] {
            assert!(cents(bad, '.', ',').is_err(), "{bad}");
        }
    }
}
