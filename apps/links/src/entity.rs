//! Entities: `&amp;`, `&#51060;`, `&#xC774;` become the letters they stand for.
//!
//! Only those that end in `;` are: Chrome writes the `&` of an address as it is, and `?a=1&copy=2` is no copyright sign.
//! Of the names, those of Latin-1 and of usual punctuation are known. Everything else stays as it came.

use std::borrow::Cow;

/// Longest name or number between `&` and `;`, so that no `&` makes us look far.
const NAME_BYTES_MAX: usize = 10;

/// The names of U+00A0 to U+00FF, in order.
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy",
    "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm",
    "raquo", "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig",
    "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
    "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN",
    "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc",
    "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml",
    "divide", "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

const OTHERS: [(&str, char); 26] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("lsaquo", '‹'),
    ("rsaquo", '›'),
    ("hellip", '…'),
    ("bull", '•'),
    ("trade", '™'),
    ("euro", '€'),
    ("larr", '←'),
    ("rarr", '→'),
    ("minus", '−'),
    ("ensp", '\u{2002}'),
    ("emsp", '\u{2003}'),
    ("thinsp", '\u{2009}'),
    ("zwj", '\u{200d}'),
];

/// What the numbers 128 to 159 mean in pages: the letters of Windows, not the controls of Unicode.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text with its entities decoded, once: `&amp;lt;` is `&lt;`.
pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    if !raw.contains('&') {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut parts = raw.split('&');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.bytes().take(NAME_BYTES_MAX + 1).position(|b| b == b';');
        match end.and_then(|end| Some((letter(&part[..end])?, &part[end + 1..]))) {
            Some((letter, behind)) => {
                text.push(letter);
                text.push_str(behind);
            }
            None => {
                text.push('&');
                text.push_str(part);
            }
        }
    }
    Cow::Owned(text)
}

fn letter(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        return numbered(number);
    }
    if let Some((_, letter)) = OTHERS.iter().find(|(known, _)| *known == name) {
        return Some(*letter);
    }
    let at = LATIN.iter().position(|known| *known == name)?;
    char::from_u32(0xa0 + u32::try_from(at).ok()?)
}

fn numbered(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None; // `from_str_radix` would take a sign
    }
    let code = u32::from_str_radix(digits, radix).unwrap_or(0);
    let windows = code.checked_sub(0x80).and_then(|at| WINDOWS.get(usize::try_from(at).ok()?));
    let named = windows.copied().or_else(|| char::from_u32(code).filter(|c| *c != '\0'));
    Some(named.unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_become_letters() {
        for (raw, text) in [
            ("Fish &amp; chips &lt;b&gt; &quot;x&quot; &apos;y&apos; &#39;z&#39;", "Fish & chips <b> \"x\" 'y' 'z'"),
            ("&#51060;&#xC77C;&#XC0BC;", "이일삼"),
            ("&nbsp;&Auml;&szlig;&yuml;&frac12;&AElig;&times;&divide;", "\u{a0}Äßÿ½Æ×÷"),
            ("&hellip;&mdash;&euro;&rarr;", "…—€→"),
            ("&#146;&#128;&#x97;", "’€—"),
            ("&amp;lt;", "&lt;"),
        ] {
            assert_eq!(decode(raw), text);
        }
    }

    #[test]
    fn what_is_no_entity_stays_as_it_came() {
        for raw in
            ["", "plain", "?a=1&copy=2&amp", "&;", "&#;", "&#x;", "&#+9;", "&#xg;", "&Amp;", "& ;", "&&", "&a&b;"]
        {
            assert_eq!(decode(raw), raw);
        }
        let far = format!("&{};", "a".repeat(50));
        assert_eq!(decode(&far), far);
    }

    #[test]
    fn numbers_of_no_letter_become_the_replacement() {
        for raw in ["&#0;", "&#xD800;", "&#x110000;", "&#99999999;", "&#xFFFFFFFF;"] {
            assert_eq!(decode(raw), "\u{fffd}", "{raw}");
        }
    }
}
