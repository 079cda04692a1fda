//! The dashboard: pages that the server renders, and that stay true while somebody looks.
//!
//! A page reads the store as the one who signed in may see it. Whatever is done on a page is a call of the API, made in
//! this process with that person's key: the same checks, the same journal, nothing that a program could not do as well.
//! Pages work without a script; with ours they follow what happens.
//!
//! ```text
//!  browser ── GET /jobs ────────► pages/jobs.rs ──► store            read, with the sight of the session's key
//!          ── POST /do ─────────► act.rs ─────────► API /v1/…        Origin and token checked, then as that key
//!          ◄─ GET /live (SSE) ──  live.rs ◄──────── journal          "something happened": the page is fetched again
//! ```
//!
//! # Layout
//! - `desk`: what pages share; `person`: who looks, and how one signs in; `guard`: headers and origins
//! - `frame`: what is around every page; `bits`: small pieces of markup; `act`: buttons, and what they do
//! - `live`: who is told that a page is out of date; `chart`: figures as pictures
//! - `pages`: one file per page

#![cfg_attr(not(test), warn(missing_docs))]

mod act;
mod asked;
mod assets;
mod bits;
mod chart;
mod desk;
mod frame;
mod guard;
mod live;
mod pages;
mod person;
mod search;
mod sent;

use axum::Router;
use tenure_server::App;

/// Every page, for [`Server::with_pages`](tenure_server::Server::with_pages).
pub fn router(app: App) -> Router {
    pages::router(desk::Desk::new(app))
}
