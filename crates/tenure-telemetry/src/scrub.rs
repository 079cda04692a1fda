//! [`scrub`]: takes out of a text what may be somebody's: addresses, numbers, tokens, keys, what is behind `?` in a URL.
//!
//! It takes out too much rather than too little: a date or a long name may go with it. Ids of jobs stay.
//! Rounds are repeated until nothing changes, so that what was scrubbed once is scrubbed for good.

mod find;

use find::{bearers, digits, emails, keys, secrets, urls};

/// Longest text that is left, in bytes.
pub const SCRUBBED_BYTES_MAX: usize = 1_000;

/// More of a text is not even looked at.
const READ_BYTES_MAX: usize = 16 << 10;
/// Each round only takes out; a text that needs more of them is one that somebody has made for it.
const ROUNDS_MAX: usize = 20;
/// What is left of such a text.
const NOTHING: &str = "[scrubbed]";

/// The text without what may be personal or secret, and not longer than [`SCRUBBED_BYTES_MAX`].
///
/// ```
/// use tenure_telemetry::scrub;
/// assert_eq!(scrub("GET https://ann:pw@shop.test/a?token=x: 500"), "GET https://shop.test/a?[query] 500");
/// assert_eq!(scrub("ann@example.com called +49 30 1234567"), "[email] called [number]");
/// ```
pub fn scrub(text: &str) -> String {
    let mut now = whole_words(text).to_owned();
    for _ in 0..ROUNDS_MAX {
        let next = cut(&digits(&secrets(&keys(&bearers(&emails(&urls(&now)))))), SCRUBBED_BYTES_MAX).to_owned();
        if next == now {
            return now;
        }
        now = next;
    }
    NOTHING.to_owned()
}

/// As much as is looked at, without a word that was cut: half of a secret is not known as one.
fn whole_words(text: &str) -> &str {
    let kept = cut(text, READ_BYTES_MAX);
    match kept.len() < text.len() {
        true => kept.rsplit_once(char::is_whitespace).map_or("", |(whole, _)| whole),
        false => kept,
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_may_be_somebodys_goes_and_the_rest_stays() {
        for (text, scrubbed) in [
            ("the order is gone", "the order is gone"),
            ("503 Service Unavailable: try later", "503 Service Unavailable: try later"),
            (
                "job 01933c5e-7b5a-7000-8000-000000000001 at 127.0.0.1:5432",
                "job 01933c5e-7b5a-7000-8000-000000000001 at 127.0.0.1:5432",
            ),
            ("no user ann.smith+x@example.co.uk here", "no user [email] here"),
            ("<ann@example.com>, 'bob@x'", "<[email]>, '[email]'"),
            ("https://h.test/a/b?x=1&y=2#z", "https://h.test/a/b?[query]"),
            ("see (https://h.test/a#frag) now", "see (https://h.test/a?[query]) now"),
            ("postgres://app:hunter2@db.test:5432/shop", "postgres://db.test:5432/shop"),
            ("amqp://app:hunter2", "amqp://[secret]"),
            ("redis://:p@ss@db/0", "redis://db/0"),
            ("GET /hook?token=abc failed", "GET /hook?[query] failed"),
            ("why? because", "why? because"),
            ("Authorization: Bearer abc.def", "Authorization: [secret]"),
            ("sent bearer abc and went", "sent bearer [secret] and went"),
            ("Basic dXNlcjpwYXNz refused", "Basic [secret] refused"),
            ("a basic error", "a basic error"),
            ("password=hunter2, user=ann", "password=[secret], user=ann"),
            ("password=ab,cd user=ann", "password=[secret] user=ann"),
            (r#"{"password": "abc'def", "user": "ann"}"#, r#"{"password": "[secret]", "user": "ann"}"#),
            (r#"{"api_key": "a b c", "n": 1}"#, r#"{"api_key": "[secret]", "n": 1}"#),
            (r#"{\"secret\":\"abc\"}"#, r#"{\"secret\":\"[secret]\"}"#),
            ("Cookie: a=1; b=2\nnext", "Cookie: [secret]\nnext"),
            ("with sk_live_abcdef and tnk_abcdefgh", "with [secret] and [secret]"),
            ("key AKIAIOSFODNN7EXAMPLE was used", "key [secret] was used"),
            ("jwt eyJhbGciOi.eyJzdWIi.sig-na_ture end", "jwt [secret] end"),
            ("hash 0af7651916cd43dd8448eb211c80319c", "hash [secret]"),
            ("-----BEGIN PRIVATE KEY-----\nMIIE", "[secret]"),
            ("card 4111 1111 1111 1111 declined", "card [number] declined"),
            ("call (030) 123-4567.", "call [number]."),
            ("iban DE89370400440532013000", "iban [secret]"),
            ("took 1500 ms in 3 tries", "took 1500 ms in 3 tries"),
        ] {
            assert_eq!(scrub(text), scrubbed, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_no_half_of_a_secret_is_left() {
        assert_eq!(scrub(&"ü ".repeat(2_000)).len(), 999);
        let edge = format!("{} ann.smith@example.com", "a ".repeat(READ_BYTES_MAX / 2 - 4));
        assert!(!scrub(&edge).contains("ann"));
    }

    /// Each kind of secret with what of it must not be left.
    fn canary() -> impl Strategy<Value = (String, String)> {
        let word = "[a-z]{3,8}";
        prop_oneof![
            (word, word).prop_map(|(a, b)| (format!("zq{a}@{b}.com"), format!("zq{a}"))),
            word.prop_map(|a| (format!("Bearer zq{a}9"), format!("zq{a}9"))),
            word.prop_map(|a| (format!("https://h.test/p?x=zq{a}"), format!("zq{a}"))),
            word.prop_map(|a| (format!("https://u:zq{a}@h.test/p"), format!("zq{a}"))),
            word.prop_map(|a| (format!("password: zq{a}"), format!("zq{a}"))),
            word.prop_map(|a| (format!("sk_live_zq{a}"), format!("zq{a}"))),
            "[1-9][0-9]{6,18}".prop_map(|a| (a.clone(), a)),
            "[1-9]{4} [1-9]{4} [1-9]{4} [1-9]{4}".prop_map(|a| (a.clone(), a)),
            "[a-z]{12}[0-9]{2}[a-z]{12}".prop_map(|a| (a.clone(), a)),
        ]
    }

    proptest! {
        #[test]
        fn no_canary_survives(before in "\\PC{0,40}", (said, canary) in canary(), after in "\\PC{0,40}") {
            let scrubbed = scrub(&format!("{before} {said} {after}"));
            prop_assert!(!scrubbed.contains(&canary), "{scrubbed}");
        }

        #[test]
        fn scrubbing_twice_is_scrubbing_once_and_the_length_is_bounded(text in "(\\PC|[ @?:=/.\"'0-9]|Bearer|key|://|\n){0,80}") {
            let once = scrub(&text);
            prop_assert!(once.len() <= SCRUBBED_BYTES_MAX);
            prop_assert_eq!(scrub(&once), once);
        }
    }
}
