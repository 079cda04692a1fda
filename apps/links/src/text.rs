//! Texts for people: what is left of a piece of markup when it is one line that somebody reads.

use crate::entity::decode;

/// Entities decoded, then white space and control characters folded: none around it, one space for each run inside.
pub(crate) fn plain(raw: &str) -> String {
    let decoded = decode(raw);
    let mut text = String::with_capacity(decoded.len());
    for word in decoded.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// At most so many characters; a text that was longer ends in `…`.
pub(crate) fn cut(mut text: String, chars_max: usize) -> String {
    if text.char_indices().nth(chars_max).is_some() {
        let keep = text.char_indices().nth(chars_max.saturating_sub(1)).map_or(0, |(at, _)| at);
        text.truncate(keep);
        text.truncate(text.trim_end().len());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_controls_are_folded_after_decoding() {
        assert_eq!(plain(" \n Two&nbsp;&#9;\0 words\u{3000}\r\n"), "Two words");
        assert_eq!(plain("&#32;&nbsp;"), "");
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(cut("한국어".to_owned(), 3), "한국어");
        assert_eq!(cut("한국어!".to_owned(), 3), "한국…");
        assert_eq!(cut("ab cd".to_owned(), 4), "ab…", "no space before the dots");
    }
}
