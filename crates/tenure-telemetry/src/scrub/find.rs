//! What a round takes out, one kind a function. Everything looked for begins and ends at an ASCII byte, so that no
//! character is cut.

const SECRET: &str = "[secret]";
const QUERY: &str = "?[query]";
const EMAIL: &str = "[email]";
const NUMBER: &str = "[number]";

/// Parts of names whose value is nobody's business.
const SENSITIVE: [&str; 13] = [
    "key",
    "token",
    "secret",
    "passw",
    "pwd",
    "passphrase",
    "auth",
    "cookie",
    "session",
    "credential",
    "signature",
    "dsn",
    "pin",
];
/// How keys of well-known makers begin.
const PREFIXES: [&str; 16] = [
    "sk_",
    "pk_",
    "rk_",
    "sk-",
    "tnk_",
    "tnw_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "AIza",
    "eyJ",
];
/// A key that begins so has at least so many bytes.
const KEY_BYTES_MIN: usize = 10;
/// Letters and digits in one go of this length are no word.
const TOKEN_BYTES_MIN: usize = 20;
/// Digits of a telephone number, at least.
const DIGITS_MIN: usize = 7;

/// URLs lose who logs in, and what is behind `?` or `#`; so does everything else that has a `?` inside.
pub(super) fn urls(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')' | '`');
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends) {
        let word = piece.trim_end_matches(ends);
        out += &url(word);
        out += &piece[word.len()..];
    }
    out
}

fn url(word: &str) -> String {
    let (plain, query) = match word.find("://") {
        Some(at) => {
            let (scheme, rest) = (&word[..at], &word[at + 3..]);
            let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            // A password whose at-sign was forgotten, or is behind a slash of its own, looks like a port.
            let port = host.rsplit_once(':').map(|(_, port)| port);
            let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
            let host = if host.starts_with('[') || port.is_none_or(is_port) { host } else { SECRET };
            let end = path.find(['?', '#']).unwrap_or(path.len());
            (format!("{scheme}://{host}{}", &path[..end]), &path[end..])
        }
        None => {
            let end = word.find('?').unwrap_or(word.len());
            (word[..end].to_owned(), &word[end..])
        }
    };
    match query.len() {
        0 => plain,
        // A question.
        1 => plain + query,
        _ => plain + QUERY,
    }
}

/// Everything around an at-sign.
pub(super) fn emails(text: &str) -> String {
    let local = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-');
    let domain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let before = rest[..at].trim_end_matches(local);
        let after = rest[at + 1..].trim_start_matches(domain);
        let is_address = before.len() < at && after.len() < rest.len() - at - 1;
        out += if is_address { before } else { &rest[..at] };
        out += if is_address { EMAIL } else { "@" };
        // A full stop behind it is the sentence's.
        let taken = &rest[at + 1..rest.len() - after.len()];
        let stop = is_address && taken.ends_with('.');
        out += if stop { "." } else { "" };
        rest = if is_address { after } else { &rest[at + 1..] };
    }
    out + rest
}

/// What follows `Bearer` or `Basic`.
pub(super) fn bearers(text: &str) -> String {
    replace(text, is_name, |text, at, end| {
        let word = &text[at..end];
        let gap = text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
        let begins = end + gap;
        let ends = begins + until(&text[begins..], |byte| matches!(byte, b'"' | b'\'' | b',' | b';' | b'<' | b'>'));
        let is_token = gap > 0
            && ends > begins
            && (word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic") && ends - begins >= 8);
        (is_token && !text[begins..].starts_with('[')).then_some((begins, ends))
    })
}

/// The values of names that sound like secrets: `password=…`, `"api_key": "…"`, whole lines of some headers.
pub(super) fn keys(text: &str) -> String {
    replace(text, is_name, |text, at, end| {
        let name = text[at..end].to_ascii_lowercase();
        if !SENSITIVE.iter().any(|part| name.contains(part)) {
            return None;
        }
        let quotes = ['"', '\'', '\\'];
        let rest = text[end..].trim_start_matches(quotes).trim_start_matches(' ');
        let rest = rest.strip_prefix([':', '='])?.trim_start_matches('>').trim_start_matches([' ', '\t']);
        let value = rest.trim_start_matches(quotes);
        let begins = text.len() - value.len();
        let is_line = name.contains("authorization") || name.contains("cookie");
        let length = match (is_line, value.len() < rest.len()) {
            (true, _) => value.find('\n').unwrap_or(value.len()),
            (false, true) => {
                // Up to the quote it began with; another kind of quote is a part of it.
                let quote = rest[..rest.len() - value.len()].chars().find(|c| *c != '\\').unwrap_or('"');
                let length = value.find(['\n', quote]).unwrap_or(value.len());
                value[..length].trim_end_matches('\\').len()
            }
            // A comma inside is a part of it, the one behind it is not.
            (false, false) => {
                let length = until(value, |byte| b"\"';&}])<>".contains(&byte));
                value[..length].trim_end_matches(',').len()
            }
        };
        let is_done =
            value.starts_with(SECRET) && (!is_line || length == SECRET.len()) || value.starts_with('[') && !is_line;
        (length > 0 && !is_done).then_some((begins, begins + length))
    })
}

/// Keys by how they begin, private keys, and long runs of letters and digits that are no id of a job.
pub(super) fn secrets(text: &str) -> String {
    let text = text.find("-----BEGIN").map_or_else(|| text.to_owned(), |at| text[..at].to_owned() + SECRET);
    let is_part = |byte: u8| is_name(byte) || matches!(byte, b'+' | b'=' | b'.' | b'~');
    let whole = replace(&text, is_part, |text, at, end| {
        let word = &text[at..end];
        let is_key = PREFIXES.iter().any(|prefix| word.starts_with(prefix)) && word.len() >= KEY_BYTES_MIN;
        is_key.then_some((at, end - (word.len() - word.trim_end_matches('.').len())))
    });
    replace(
        &whole,
        |byte| is_name(byte) || matches!(byte, b'+' | b'='),
        |text, at, end| {
            let word = &text[at..end];
            let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
            let is_token = word.len() >= TOKEN_BYTES_MIN
                && has(u8::is_ascii_digit)
                && has(u8::is_ascii_alphabetic)
                && !is_uuid(word);
            is_token.then_some((at, end))
        },
    )
}

/// Runs of digits, however they are grouped, that may be a telephone's or a card's number.
pub(super) fn digits(text: &str) -> String {
    let is_part = |byte: u8| is_name(byte) || matches!(byte, b' ' | b'.' | b'(' | b')' | b'/' | b'+');
    let mut out = String::with_capacity(text.len());
    let (mut kept, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        // The id of a job is passed over as a whole.
        let word = bytes[at..].iter().take_while(|byte| is_name(**byte)).count();
        let begins = at == 0 || !is_name(bytes[at - 1]);
        if begins && word > 0 && is_uuid(&text[at..at + word]) {
            at += word;
            continue;
        }
        if !(bytes[at].is_ascii_digit() || matches!(bytes[at], b'+' | b'(')) {
            at += 1;
            continue;
        }
        let run = |byte: &&u8| is_part(**byte) && !byte.is_ascii_alphabetic() && **byte != b'_';
        let length = bytes[at..].iter().take_while(run).count();
        let length = bytes[at..at + length].iter().rposition(u8::is_ascii_digit).map_or(1, |last| last + 1);
        let count = bytes[at..at + length].iter().filter(|byte| byte.is_ascii_digit()).count();
        if count >= DIGITS_MIN {
            out += &text[kept..at];
            out += NUMBER;
            kept = at + length;
        }
        at += length;
    }
    out + &text[kept..]
}

/// Asks of each run of such bytes what is to go, and puts a mark there.
fn replace(
    text: &str,
    is_part: impl Fn(u8) -> bool,
    find: impl Fn(&str, usize, usize) -> Option<(usize, usize)>,
) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut kept, mut at) = (0, 0);
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|byte| is_part(**byte)).count();
        if end == at {
            at += 1;
            continue;
        }
        at = match find(text, at, end) {
            Some((from, to)) => {
                out += &text[kept..from];
                out += SECRET;
                kept = to;
                to
            }
            None => end,
        };
    }
    out + &text[kept..]
}

/// Bytes until white space or one of these.
fn until(text: &str, is_end: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|byte| byte.is_ascii_whitespace() || is_end(byte)).unwrap_or(text.len())
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_uuid(word: &str) -> bool {
    let parts: Vec<usize> = word.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && word.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}
