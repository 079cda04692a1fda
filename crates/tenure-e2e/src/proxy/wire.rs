//! As much of Postgres' protocol as the proxy has to understand: which statement a reply belongs to, and where it ends.
//!
//! Everything a client sends up to a `Sync` (or one simple query) is one cycle, and the server ends each with one
//! `ReadyForQuery`. It commits before it says so.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a client may send before the startup message.
const SSL_REQUEST: i32 = 80_877_103;
const GSS_REQUEST: i32 = 80_877_104;

/// The statement that answers with what it did not do, and so with nothing when it has done everything.
const TELLS_THE_REST: &str = "-- complete_jobs.sql";

/// Bytes on their way to whole messages: a kind, a length that counts itself, and so much less four.
#[derive(Default)]
pub(super) struct Frames(Vec<u8>);

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let length = self.0.get(1..5)?;
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        let whole = usize::try_from(length).ok()? + 1;
        if self.0.len() < whole {
            return None;
        }
        let rest = self.0.split_off(whole);
        Some(std::mem::replace(&mut self.0, rest))
    }
}

/// What one client has asked and was not answered yet. Both directions of a connection share it.
#[derive(Clone)]
pub(super) struct Asked(Arc<Mutex<Cycles>>);

#[derive(Default)]
struct Cycles {
    /// The text of each prepared statement, by its name.
    prepared: HashMap<Vec<u8>, String>,
    /// The texts of the cycle that is being sent.
    sending: String,
    /// Those of the cycles that wait for their answers.
    sent: VecDeque<String>,
}

impl Default for Asked {
    fn default() -> Self {
        // The startup itself ends with a `ReadyForQuery`.
        Self(Arc::new(Mutex::new(Cycles { sent: VecDeque::from([String::new()]), ..Cycles::default() })))
    }
}

impl Asked {
    /// A message of the client.
    pub(super) fn request(&self, frame: &[u8]) {
        let mut cycles = self.0.lock().unwrap();
        let words: Vec<&[u8]> = frame[5..].splitn(3, |byte| *byte == 0).collect();
        match frame[0] {
            b'P' => {
                let text = String::from_utf8_lossy(words.get(1).copied().unwrap_or_default()).into_owned();
                cycles.prepared.insert(words[0].to_vec(), text);
            }
            // Only what is bound is run; what is merely prepared did nothing.
            b'B' => {
                let name = words.get(1).copied().unwrap_or_default();
                let text = cycles.prepared.get(name).cloned().unwrap_or_default();
                cycles.sending.push_str(&text);
            }
            b'S' => {
                let sent = std::mem::take(&mut cycles.sending);
                cycles.sent.push_back(sent);
            }
            b'Q' => {
                let text = String::from_utf8_lossy(words[0]).into_owned();
                cycles.sent.push_back(text);
            }
            _ => {}
        }
    }

    fn first(&self) -> String {
        self.0.lock().unwrap().sent.front().cloned().unwrap_or_default()
    }

    fn answered(&self) {
        self.0.lock().unwrap().sent.pop_front();
    }
}

/// The server's side of one connection.
pub(super) struct Heard {
    asked: Asked,
    /// Whether the cycle that is being answered is watched; known from its first message on.
    watched: Option<bool>,
    /// Whether its rows are what it did not do.
    tells_the_rest: bool,
    held: Vec<u8>,
    rows: usize,
}

/// What may be passed on: one message, or a whole cycle that was watched.
pub(super) struct Reply {
    pub(super) bytes: Vec<u8>,
    /// A watched cycle, outside of any transaction, whose rows say that it changed something: it is committed.
    pub(super) did_something: bool,
}

impl Heard {
    pub(super) fn new(asked: Asked) -> Self {
        Self { asked, watched: None, tells_the_rest: false, held: Vec::new(), rows: 0 }
    }

    /// A message of the server; `None` while it is held.
    pub(super) fn reply(&mut self, frame: Vec<u8>, is_watched: impl FnOnce(&str) -> bool) -> Option<Reply> {
        // What the server says by itself (a notice, a notification, a parameter) belongs to nobody.
        let asynchronous = matches!(frame[0], b'N' | b'A' | b'S');
        if self.watched.is_none() && !asynchronous {
            let statement = self.asked.first();
            self.watched = Some(is_watched(&statement));
            self.tells_the_rest = statement.contains(TELLS_THE_REST);
        }
        let watched = self.watched == Some(true);
        let (ready, idle) = (frame[0] == b'Z', frame.get(5) == Some(&b'I'));
        self.rows += usize::from(frame[0] == b'D');
        self.held.extend(frame);
        if watched && !ready {
            return None;
        }
        let did_something = watched && idle && (self.rows > 0) != self.tells_the_rest;
        let reply = Reply { bytes: std::mem::take(&mut self.held), did_something };
        if ready {
            self.asked.answered();
            (self.watched, self.rows) = (None, 0);
        }
        Some(reply)
    }
}

/// The startup message, length and all. Requests for encryption are answered with no.
pub(super) async fn read_startup(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    loop {
        let length = client.read_i32().await?;
        let mut body = vec![0; usize::try_from(length - 4).unwrap_or(0)];
        client.read_exact(&mut body).await?;
        let code = i32::from_be_bytes([body[0], body[1], body[2], body[3]]);
        if code == SSL_REQUEST || code == GSS_REQUEST {
            client.write_all(b"N").await?;
            continue;
        }
        return Ok([length.to_be_bytes().as_slice(), &body].concat());
    }
}

/// The parameter of the startup message, or nothing.
pub(super) fn application_name(startup: &[u8]) -> String {
    let words: Vec<&[u8]> = startup[8..].split(|byte| *byte == 0).collect();
    let pair = words.chunks(2).find(|pair| pair[0] == b"application_name");
    pair.and_then(|pair| pair.get(1)).map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
}
