//! [`Traceparent`]: the W3C trace context that a job carries from its producer to its attempts.

use std::fmt;

/// A `traceparent` that is one. Whatever is not is no error anywhere: it is as if nothing had been said.
///
/// ```
/// use tenure_core::Traceparent;
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// assert_eq!(Traceparent::parse(text).unwrap().to_string(), text);
/// assert!(Traceparent::parse("00-0-0-0").is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Traceparent {
    /// The whole story.
    pub trace_id: [u8; 16],
    /// The step that caused this one.
    pub span_id: [u8; 8],
    /// Whether it is recorded, in the lowest bit.
    pub flags: u8,
}

/// Characters of version 00. Later ones may have more behind it.
const CHARS: usize = 55;

impl Traceparent {
    /// Reads a header's text; `None` when it is no trace context.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (head, rest) = bytes.split_at_checked(CHARS)?;
        let dashes = head[2] == b'-' && head[35] == b'-' && head[52] == b'-';
        let version = octets::<1>(&head[..2])?[0];
        let fits = if version == 0 { rest.is_empty() } else { rest.is_empty() || rest[0] == b'-' };
        if !dashes || version == 0xff || !fits {
            return None;
        }
        let (trace_id, span_id) = (octets::<16>(&head[3..35])?, octets::<8>(&head[36..52])?);
        let flags = octets::<1>(&head[53..55])?[0];
        let is_said = trace_id.iter().any(|byte| *byte != 0) && span_id.iter().any(|byte| *byte != 0);
        is_said.then_some(Self { trace_id, span_id, flags })
    }
}

/// Lower-case hexadecimal digits.
fn octets<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut octets = [0; N];
    for (octet, pair) in octets.iter_mut().zip(text.chunks_exact(2)) {
        *octet = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(octets)
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace_id.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str("-")?;
        self.span_id.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_no_trace_context_is_nothing() {
        assert_eq!(Traceparent::parse(GOOD).unwrap().flags, 1);
        let later = format!("01{}-more", &GOOD[2..]);
        assert_eq!(Traceparent::parse(&later), Traceparent::parse(GOOD), "a later version has the same beginning");
        for bad in [
            "",
            "b3: 1",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("ff{}", &GOOD[2..]),
            &format!("01{}more", &GOOD[2..]),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-01",
        ] {
            assert_eq!(Traceparent::parse(bad), None, "{bad}");
        }
    }
}
