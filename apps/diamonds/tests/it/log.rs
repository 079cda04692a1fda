//! What was logged in this process.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// From now on lines are kept.
pub(crate) fn keep() {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| tracing_subscriber::fmt().with_ansi(false).with_writer(|| Lines).init());
}

/// Lines with all of these words.
pub(crate) fn lines_with(words: &[&str]) -> Vec<String> {
    let log = String::from_utf8_lossy(&LINES.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
    log.lines().filter(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned).collect()
}
