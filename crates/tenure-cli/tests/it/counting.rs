//! An HTTP server that counts: every request is a line of the ledger, and answers can be held back.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What must happen within this; reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(120);

/// One handler start, as the receiver of its request saw it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Start {
    pub(crate) job: String,
    pub(crate) fence: i64,
}

/// The server. It ends with the test's process.
#[derive(Clone)]
pub(crate) struct Counting {
    port: u16,
    shared: Arc<(Mutex<Ledger>, Condvar)>,
}

#[derive(Default)]
struct Ledger {
    starts: Vec<Start>,
    /// Requests that came since the last opening and wait for their answer.
    held: usize,
    openings: u64,
    closed: bool,
    /// What is answered: status line and headers beyond the usual.
    answer: Option<String>,
    headers: HashMap<String, String>,
}

impl Counting {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), shared: Arc::default() };
        let counting = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counting = counting.clone();
                // A connection that breaks was a worker that was killed.
                std::thread::spawn(move || counting.serve(&stream).ok());
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Answers nobody from now on.
    pub(crate) fn close(&self) {
        self.shared.0.lock().unwrap().closed = true;
    }

    /// Answers everybody, also those who wait.
    pub(crate) fn open(&self) {
        let mut ledger = self.shared.0.lock().unwrap();
        (ledger.closed, ledger.held, ledger.openings) = (false, 0, ledger.openings + 1);
        self.shared.1.notify_all();
    }

    /// Answers with this status line and headers.
    pub(crate) fn answer(&self, head: &str) {
        self.shared.0.lock().unwrap().answer = Some(head.to_owned());
    }

    /// Waits until so many requests wait for their answer.
    pub(crate) fn until_held(&self, count: usize) {
        let (ledger, bell) = &*self.shared;
        let waiting = bell.wait_timeout_while(ledger.lock().unwrap(), PATIENCE, |ledger| ledger.held < count);
        let (ledger, timeout) = waiting.unwrap();
        assert!(!timeout.timed_out(), "{} of {count} requests came", ledger.held);
    }

    pub(crate) fn starts(&self) -> Vec<Start> {
        self.shared.0.lock().unwrap().starts.clone()
    }

    /// The headers of the last request, names in small letters.
    pub(crate) fn headers(&self) -> HashMap<String, String> {
        self.shared.0.lock().unwrap().headers.clone()
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let Some(headers) = read_head(&mut reader)? else { return Ok(()) };
            let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            reader.read_exact(&mut vec![0; length])?;
            let head = self.record(headers);
            (&*stream).write_all(format!("{head}\r\nContent-Length: 2\r\n\r\nok").as_bytes())?;
        }
    }

    /// Writes the start down and waits until it may be answered.
    fn record(&self, headers: HashMap<String, String>) -> String {
        let (ledger, bell) = &*self.shared;
        let mut ledger = ledger.lock().unwrap();
        let text = |name: &str| headers.get(name).cloned().unwrap_or_default();
        ledger.starts.push(Start { job: text("tenure-job"), fence: text("tenure-fence").parse().unwrap() });
        ledger.headers = headers;
        if ledger.closed {
            ledger.held += 1;
            let came = ledger.openings;
            bell.notify_all();
            // One opening answers all who waited, however soon it closes again.
            ledger = bell.wait_while(ledger, |ledger| ledger.openings == came).unwrap();
        }
        ledger.answer.clone().unwrap_or_else(|| "HTTP/1.1 200 OK".into())
    }
}

/// The headers of the next request; `None` when there is none any more.
fn read_head(reader: &mut impl BufRead) -> std::io::Result<Option<HashMap<String, String>>> {
    let mut headers = HashMap::new();
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(Some(headers));
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
}
