//! The protocol as a state machine, searched whole.
//!
//! A test tries what somebody thought of. This tries everything that can happen to two jobs and two workers: every
//! order of claims, reports, lost replies, crashes, late heartbeats, reclaims, open transactions, cancels and requeues.
//! What must hold is asked at every step ([`invariant`]); that all of it comes to an end is asked from every state.
//!
//! ```text
//!                    ┌────────────── search ──────────────┐
//!   lease ─ machine ─┤ every state, breadth first         ├─► table: states, edges, and "holds"
//!   gates ─ machine ─┤ safety at every step               │
//!   run   ─ machine ─┤ liveness backwards from the end    ├─► a mutant: the shortest story that breaks a promise
//!                    └────────────────────────────────────┘                       │
//!                                                                                 ▼
//!   the same machine beside the real SQL (tests/it): random walks,     replayed: our SQL refuses the step
//!   every answer and every row compared                                that breaks it
//! ```
//!
//! A checker that never finds anything proves nothing, so every mistake that a peer has shipped is here as a mutant, one
//! switch each, and a test fails unless the search finds it and names the invariant it was expected to break.
//!
//! What is authoritative: `tenure_core` for the rules of one job, the stores for what is really done. This model holds
//! what neither can show alone, the interleavings; the walks hold it and the stores together.
//!
//! # Layout
//! - [`lease`]: the lease protocol; its tables, its alphabet, its mutants
//! - [`gate`], [`breaker`], [`run`], [`schedule`]: one small model each of what is built on it
//! - [`invariant`]: what must hold
//! - [`search`]: the checker
//! - [`table`]: every variant, and what `./x model` prints

pub mod lease;

pub mod breaker;
mod crew;
pub mod gate;
pub mod run;
pub mod schedule;

pub mod invariant;
pub mod search;
pub mod table;
