//! Battery passports from bills of materials, for many tenants: compiled, proven, signed, printed as QR codes, and told to
//! others by webhook.
//!
//! A bill of materials becomes facts; facts of a sealed snapshot and a published rule package become a passport version:
//! canonical JSON, the root of a proof over its facts, and a receipt that names both. The receipt's hash is signed and
//! printed. Whoever has the label can ask for the rest and check it: nothing has to be believed.
//!
//! ```text
//!   document ──PARSE_FACTS──► facts ──► snapshot SEALED ─┐
//!                                                        ├─COMPILE_PASSPORT─► version ─SIGN_PASSPORT─► ─GENERATE_QR─► label
//!                            rule package PUBLISHED ─────┘       │                  │                       │
//!                                                                ▼                  ▼                       ▼
//!                                              events, appended with each step ──DELIVER_WEBHOOK──► the tenant's endpoints
//! ```
//!
//! # Layout
//! - [`jobs`]: the five handlers; [`orders`]: what people ask for; [`records`]: what the database holds
//! - [`inputs`], [`passport`]: from facts and rules to a passport; [`verify`], [`evidence`]: and back, from a label
//! - [`bom`], [`component`], [`csv`], [`country`], [`fact`]: from a document to checked lines, and what is kept of them
//! - [`rules`], [`op`], [`subject`], [`value`], [`decimal`]: typed comparisons, and what they may ask about
//! - [`canonical`], [`digest`], [`base32`], [`id`]: one text, one hash and one id for each value
//! - [`proof`], [`version`], [`receipt`]: what a passport version consists of; [`sign`], [`qr`]: its signature, its label
//! - [`code`], [`halt`]: every error code with its class
//! - [`settings`], [`app`], [`worker`], [`api`]: a process as the seed has it
//! - [`world`]: the simulated outside; [`story`]: the show

pub mod jobs;
pub mod orders;
pub mod records;

pub mod evidence;
pub mod inputs;
pub mod passport;
pub mod verify;

pub mod bom;
pub mod component;
pub mod country;
pub mod csv;
pub mod fact;

pub mod decimal;
pub mod op;
pub mod rules;
pub mod subject;
pub mod value;

pub mod base32;
pub mod canonical;
pub mod digest;
pub mod id;

pub mod proof;
pub mod receipt;
pub mod version;

pub mod qr;
pub mod sign;

pub mod code;
pub mod halt;

pub mod api;
pub mod app;
pub mod settings;
pub mod worker;

pub mod story;
pub mod world;

/// The tables, for [`tenure::Database::make_tables`]; [`worker::prepare`] adds what differs between the stores.
pub const TABLES: &str = include_str!("schema.sql");

/// Where the jobs wait.
pub const QUEUE: &str = "passport";
