//! The product on both stores, with real HTTP between it and a simulated web; and its parts against what nobody wrote by
//! hand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod api;
mod bed;
mod cancel;
mod commands;
mod enrich;
mod exports;
mod failing;
mod guard;
mod hostile;
mod import;
mod lease;
mod looks;
mod once;
mod polling;
mod processes;
mod sentry;
mod story;
