//! `task.digest`: a document that was fetched, as a hash and a number of words.

use std::time::Instant;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tenure::{Attempt, Completed, Ctx, Fail, State, row};

use crate::app::App;
use crate::finish::{Done, finish};
use crate::task::Digest;
use crate::usage::Usage;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Digested {
    url: String,
    sha256: String,
    words: u64,
}

/// Reads the document, then keeps its digest in the transaction that completes the task.
pub(crate) async fn digest(
    task: Digest,
    State(app): State<App>,
    ctx: Ctx,
    attempt: Attempt,
) -> Result<Completed, Fail> {
    let since = Instant::now();
    let found = app.database.query("select body from task_document where url = $1", row![task.url.clone()]).await?;
    let body: Vec<u8> = match found.first() {
        Some(document) => document.get("body")?,
        None => {
            return Err(Fail::code("NOT_FETCHED", "the document was not fetched: add task.fetch for its url first"));
        }
    };
    let (sha256, words) = digested(&body);
    let usage = Usage::of_digest(since, body.len() as u64, words);
    let done = Done { ctx, attempt, output: Digested { url: task.url, sha256, words }, usage };
    finish(&app.database, done, |_| Ok(())).await
}

/// The hash in hexadecimal digits, and the words: what stands between white space, whatever the bytes are.
fn digested(body: &[u8]) -> (String, u64) {
    let sha256 = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    (sha256, String::from_utf8_lossy(body).split_whitespace().count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_between_white_space_and_the_hash_is_of_every_byte() {
        assert_eq!(digested(b"").1, 0);
        assert_eq!(digested("  ein  Wort\u{a0}mehr \n".as_bytes()).1, 3);
        assert_eq!(digested(&[0xff, b' ', 0xfe]).1, 2);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digested(b"abc").0, abc);
        assert_ne!(digested(b"abc\n").0, abc);
    }
}
