//! Somebody who is told things over HTTP: takes everything, and answers 200.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

/// Long enough for anything that comes at all.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Receiver {
    pub(crate) address: String,
    got: mpsc::Receiver<Got>,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) path: String,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (tell, got) = mpsc::channel();
        // Both go with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, tell) = (stream.unwrap(), tell.clone());
                std::thread::spawn(move || while take(&stream, &tell).is_some() {});
            }
        });
        Self { address, got }
    }

    /// The next request.
    pub(crate) fn next(&self) -> Got {
        self.got.recv_timeout(PATIENCE).expect("nobody came")
    }

    /// All that came so far.
    pub(crate) fn all(&self) -> Vec<Got> {
        self.got.try_iter().collect()
    }
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

/// Takes one request of a connection; `None` when it is over.
fn take(stream: &TcpStream, tell: &mpsc::Sender<Got>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).ok()? > 0 && line != "\r\n" {
        head += &std::mem::take(&mut line).to_ascii_lowercase();
    }
    let mut got = Got { path: head.split(' ').nth(1)?.to_owned(), head, body: Vec::new() };
    got.body.resize(got.header("content-length")?.parse().ok()?, 0);
    reader.read_exact(&mut got.body).ok()?;
    // Told first: who waits for the answer may end at once.
    tell.send(got).ok()?;
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}
