//! Base32 of RFC 4648 without padding: the alphabet `A-Z 2-7`, what a label's hashes are written in.
//!
//! Reading is strict, so that every byte string has exactly one spelling: no small letters, no `=`, no white space, no
//! length that no bytes have, and the bits that are left over at the end are zero.

use data_encoding::{BASE32_NOPAD, DecodeKind};
use tenure::Invalid;

/// Longest text that is read, in letters: a label's hash has 52.
pub const LETTERS_MAX: usize = 1_000;

/// Writes `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    BASE32_NOPAD.encode(bytes)
}

/// Reads `text`; `field` names it in the refusal.
pub fn decode(field: &'static str, text: &str) -> Result<Vec<u8>, Invalid> {
    if text.len() > LETTERS_MAX {
        return Err(Invalid::new(
            field,
            text,
            format!("at most {LETTERS_MAX} letters are read, this is {}", text.len()),
        ));
    }
    BASE32_NOPAD.decode(text.as_bytes()).map_err(|error| {
        let at = error.position + 1;
        let why = match error.kind {
            DecodeKind::Length => "no bytes have so many letters: some are missing or too many".to_owned(),
            DecodeKind::Trailing => format!("letter {at} has bits that belong to no byte"),
            DecodeKind::Symbol | DecodeKind::Padding => {
                format!("letter {at} is none of A-Z 2-7; there are no small letters and no =")
            }
        };
        Invalid::new(field, text, why)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Shows: S4.39
    #[test]
    fn the_examples_of_the_rfc_are_written_without_padding() {
        for (bytes, letters) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), letters);
            assert_eq!(decode("ph", letters).unwrap(), bytes.as_bytes());
        }
    }

    #[test]
    fn a_second_spelling_of_the_same_bytes_is_refused_with_its_place() {
        for (bad, why) in [
            ("my", "letter 1 is none of"),
            ("MY======", "letter 3 is none of"),
            ("M Y", "so many letters"),
            ("MZ XQ", "letter 3 is none of"),
            ("MZ", "letter 2 has bits"),
            ("M", "so many letters"),
            ("MZX", "so many letters"),
            ("MZXW6Y", "so many letters"),
            ("M1", "letter 2 is none of"),
            ("ÄÄ", "letter 1 is none of"),
        ] {
            let refused = decode("ph", bad).unwrap_err();
            assert!(refused.field == "ph" && refused.limit.contains(why), "{refused}");
        }
        assert!(decode("ph", &"A".repeat(LETTERS_MAX + 1)).unwrap_err().limit.contains("at most 1000"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_nothing_else_is_read(bytes: Vec<u8>, text in "[A-Z2-7]{0,40}") {
            prop_assert_eq!(decode("ph", &encode(&bytes)).unwrap(), bytes);
            if let Ok(read) = decode("ph", &text) {
                prop_assert_eq!(encode(&read), text);
            }
        }
    }
}
