//! The protocol under attack: every flaw that was found in an earlier form of it, on our own SQL.
//!
//! Each test is one interleaving, driven by hand: raw connections stand for users' transactions, and a step is taken
//! only once the server shows that the one before has got where it should. Nothing sleeps. What would turn a test red is
//! said beside it, and for some it is tried: a *mutant* is our SQL with one word changed.
//!
//! # Layout
//! - [`scene`]: a store on a fresh database, raw connections, waiting for what the server does
//! - [`endings`], [`keys`], [`leases`], [`floors`]: the flaws S1–S20 of the attack, by noun
//! - [`names`]: names that an open transaction brings
//! - [`transactions`], [`runs`], [`user_tx`]: users' transactions that complete a job or a page and stay open, or are of
//!   another driver
//! - [`sealing`], [`tampering`], [`strays`], [`home`]: the journal
//! - [`unreadable`]: rows written past the verbs, whose JSON is too long for any text
//! - [`failover`], [`restore`]: numbers and positions on another server
//! - [`connections`], [`gathering`], [`keeper`], [`wakeups`], [`migrations`], [`additions`], [`poolers`]: the server around it

#[path = "../it/database.rs"]
#[expect(dead_code, reason = "shared with the contract suite, which uses the rest")]
mod database;
mod scene;

mod endings;
mod floors;
mod gates;
mod keys;
mod leases;
mod names;
mod runs;
mod transactions;
mod user_tx;

mod failover;
mod home;
mod restore;
mod sealing;
mod sealing_in_parts;
mod strays;
mod tampering;

mod unreadable;

mod additions;
mod connections;
mod gathering;
mod keeper;
mod migrations;
mod poolers;
mod wakeups;
