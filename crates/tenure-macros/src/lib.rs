//! `#[derive(Job)]`. Users take it from the crate `tenure`, where its keys are listed.
//!
//! Values are checked while the user's program is compiled, by the very code that checks them when it runs: this crate
//! depends on `tenure-core`. All mistakes of a type are reported at once, each at the literal that has to change.
//!
//! # Layout
//! - `expand`: a type becomes its `impl Job`
//! - `said`: what `#[job(…)]` says, checked key by key
//! - `pairs`: `key = value, …` read so that one mistake does not hide the next
//! - `mistakes`: where they are gathered

mod expand;
mod mistakes;
mod pairs;
mod said;

// Described where it is re-exported: only there can an example name the crate `tenure`.
#[expect(missing_docs, reason = "see crates/tenure/src/job.md")]
#[proc_macro_derive(Job, attributes(job))]
pub fn derive_job(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand::expand(input.into()).into()
}
