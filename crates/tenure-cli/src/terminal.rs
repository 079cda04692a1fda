//! The last step before text reaches a terminal. Every line and table passes through here, so a command that forgets to
//! escape a tenant's text does no harm.

use tenure_core::text::is_deceptive;

/// `text` with its line breaks and tabs, and with the colours of [`crate::paint`] where `color` allows them. Everything else that
/// steers a terminal or hides is written out.
pub(crate) fn shown(text: &str, color: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(paint) = paint(rest).filter(|_| color) {
            shown.push_str(paint);
            rest = &rest[paint.len()..];
            continue;
        }
        match is_deceptive(c) && !matches!(c, '\n' | '\t') {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    shown
}

/// The colour that `text` begins with.
fn paint(text: &str) -> Option<&str> {
    let code = text.strip_prefix("\x1b[")?;
    let digits = code.bytes().take_while(u8::is_ascii_digit).count();
    (digits <= 2 && code.as_bytes().get(digits) == Some(&b'm')).then(|| &text[..digits + 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_ours_pass_and_nothing_else_does() {
        let text = "\x1b[31mred\x1b[0m \x1b[2Jgone \u{202e}exe\nnext\tü";
        assert_eq!(shown(text, true), "\x1b[31mred\x1b[0m \\u{1b}[2Jgone \\u{202e}exe\nnext\tü");
        assert_eq!(shown(text, false), "\\u{1b}[31mred\\u{1b}[0m \\u{1b}[2Jgone \\u{202e}exe\nnext\tü");
    }

    #[test]
    fn a_code_that_is_cut_off_is_written_out() {
        for text in ["\x1b", "\x1b[", "\x1b[3", "\x1b[38;5;1m"] {
            assert!(shown(text, true).starts_with("\\u{1b}"), "{text:?}");
        }
    }
}
