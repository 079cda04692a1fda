//! A source that counts who calls it, answers well, badly or not at all, and can be told otherwise in between.
//!
//! One line comes in, one line goes out. It is as small as a server can be, so that what it counts is when callers came.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// As it should.
    Well = 0,
    /// With an error.
    Badly = 1,
    /// Never.
    Hangs = 2,
}

/// One that runs until it is dropped.
pub struct Source {
    /// Where.
    pub port: u16,
    mood: Arc<AtomicU8>,
    calls: Arc<Mutex<Vec<Instant>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Source {
    /// On a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mood, calls) = (Arc::new(AtomicU8::new(Mood::Well as u8)), Arc::new(Mutex::new(Vec::new())));
        let (its_mood, its_calls) = (Arc::clone(&mood), Arc::clone(&calls));
        let serving = tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(answer(caller, Arc::clone(&its_mood), Arc::clone(&its_calls)));
            }
        });
        Self { port, mood, calls, serving }
    }

    /// Answers so from now on.
    pub fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }

    /// When each call came.
    pub fn calls(&self) -> Vec<Instant> {
        self.calls.lock().unwrap().clone()
    }

    /// The most that came within any stretch of this length.
    pub fn most_within(&self, window: Duration) -> usize {
        let calls = self.calls();
        let from = |n: usize| calls[n..].iter().take_while(|call| call.duration_since(calls[n]) < window).count();
        (0..calls.len()).map(from).max().unwrap_or(0)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(caller: TcpStream, mood: Arc<AtomicU8>, calls: Arc<Mutex<Vec<Instant>>>) {
    let mut caller = BufReader::new(caller);
    let mut line = String::new();
    // Whoever is killed in between is no caller.
    if caller.read_line(&mut line).await.unwrap_or(0) == 0 {
        return;
    }
    calls.lock().unwrap().push(Instant::now());
    let word = match mood.load(Ordering::SeqCst) {
        0 => "well\n",
        1 => "badly\n",
        // Until the caller gives up.
        _ => return drop(caller.read_to_end(&mut Vec::new()).await),
    };
    // It may have gone meanwhile.
    drop(caller.write_all(word.as_bytes()).await);
}

/// Calls the source on this port; answers whether it did well.
pub async fn call(port: u16) -> std::io::Result<bool> {
    let mut source = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
    source.write_all(b"hello\n").await?;
    let mut line = String::new();
    source.read_line(&mut line).await?;
    Ok(line == "well\n")
}
