//! What the worker process of the end-to-end tests and the tests themselves share. For tests only.
//!
//! The tests start whole processes, do to them what happens to processes, and hold the store's record against a
//! [`ledger`] that knows nothing of the store.
//!
//! # Layout
//! - [`act`]: the job whose payload says what its handler does, and the handler
//! - [`ledger`]: who started which job under which fence, and what became of it; a database of its own
//! - [`gate`]: what a handler that holds waits for
//! - [`place`]: a store by its URL or path
//! - `main.rs`: the process `tenure-e2e-worker`; `tests/it`: the tests

pub mod act;
pub mod gate;
pub mod ledger;
pub mod place;

pub use act::Act;
pub use gate::Gates;
pub use ledger::{Entry, Ledger, Reader};
pub use place::Place;
