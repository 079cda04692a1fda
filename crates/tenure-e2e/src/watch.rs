//! Waiting for what can only be seen by looking.

use std::time::{Duration, Instant};

/// Long enough for a busy machine: nothing is ever said about time by this.
const DEADLINE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(10);

/// Looks again and again until there is something to see.
pub async fn watch<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(since.elapsed() < DEADLINE, "waited for {} s: {what}", DEADLINE.as_secs());
        tokio::time::sleep(PAUSE).await;
    }
}
