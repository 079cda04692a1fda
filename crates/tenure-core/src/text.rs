//! Text from outside, made visible before a terminal, a log or a page shows it.
//!
//! A job's payload, an error's message and a name are chosen by a tenant. Control characters steer a terminal and begin
//! new log lines; marks of writing order and characters without width make one text look like another.

/// Whether `c` steers a terminal, turns the order of writing, or has no width.
pub const fn is_deceptive(c: char) -> bool {
    matches!(c,
        // C0 and C1 controls, and DEL.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Soft hyphen, grapheme joiner, Arabic letter mark, fillers of Hangul and Khmer, Mongolian selectors and separator.
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        // Zero-width characters and directional marks.
        | '\u{200b}'..='\u{200f}'
        // Line and paragraph separators, directional embeddings and overrides.
        | '\u{2028}'..='\u{202e}'
        // Invisible operators and directional isolates.
        | '\u{2060}'..='\u{206f}'
        // More fillers, byte order mark, interlinear annotations, tags, and the selectors of rare variants. The selectors
        // U+FE00 to U+FE0F stay: every second emoji has one.
        | '\u{3164}' | '\u{ffa0}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` on one line, with each deceptive character written out: `\n`, `\u{202e}`.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut shown, c);
    }
    shown
}

/// The same for a text of several lines: line breaks and tabs stay.
pub fn printable_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c => push(&mut shown, c),
        }
    }
    shown
}

/// A JSON document whose strings show what they hold: `\u202e`. It is the same document to every reader of JSON, because
/// deceptive characters outside ASCII stand in strings only, and JSON escapes those of ASCII itself.
pub fn printable_json(document: &str) -> String {
    let mut shown = String::with_capacity(document.len());
    for c in document.chars() {
        // DEL is the one control that JSON leaves as it is.
        if c != '\u{7f}' && (c.is_ascii() || !is_deceptive(c)) {
            shown.push(c);
        } else {
            let mut units = [0; 2];
            shown.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    shown
}

fn push(shown: &mut String, c: char) {
    match is_deceptive(c) {
        true => shown.extend(c.escape_default()),
        false => shown.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_is_written_out_and_the_rest_stays() {
        for (text, shown) in [
            ("größer → 大 😀", "größer → 大 😀"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{1b}[2J\u{7f}\u{9b}", "\\u{1b}[2J\\u{7f}\\u{9b}"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
            ("pay\u{200b}pal\u{feff}\u{ad}", "pay\\u{200b}pal\\u{feff}\\u{ad}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(printable_lines("a\nb\tc\u{1b}\u{2028}"), "a\nb\tc\\u{1b}\\u{2028}");
    }

    #[test]
    fn a_document_stays_the_same_document() {
        let document = "{\"a\":\"x\u{202e}y\u{9b}\u{7f}\u{e0041}\\n\",\"ü\": [1]}";
        assert_eq!(printable_json(document), "{\"a\":\"x\\u202ey\\u009b\\u007f\\udb40\\udc41\\n\",\"ü\": [1]}");
    }

    #[test]
    fn each_mark_of_direction_and_each_character_without_width_is_known() {
        let ranges = [
            0x00..=0x1f,
            0x7f..=0x9f,
            0xad..=0xad,
            0x61c..=0x61c,
            0x200b..=0x200f,
            0x202a..=0x202e,
            0x2060..=0x2069,
            0x3164..=0x3164,
            0xfeff..=0xfeff,
            0xe0100..=0xe01ef,
        ];
        for code in ranges.into_iter().flatten() {
            assert!(char::from_u32(code).is_some_and(is_deceptive), "{code:x}");
        }
        for c in ' '..='~' {
            assert!(!is_deceptive(c), "{c}");
        }
    }
}
