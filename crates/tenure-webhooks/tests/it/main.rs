//! Webhooks against what the outside may be: hostile URLs, names that lie, receivers that never end.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod addresses;
mod canary;
mod delivering;
mod dns;
mod endless;
mod hostile;
mod receiver;
mod secrets;
mod signing;
mod slow;
mod stage;
mod telling;
mod tls;
mod urls;
mod verifying;
