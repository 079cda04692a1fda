//! Each row of the fault matrix, small, under a name that says what it shows. A run whose fault did not really hit is
//! void, and a void run fails here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod blocked_thread;
mod rows;
