//! What the compiler says to somebody who made a mistake is part of the interface.
//!
//! The texts in `tests/ui/*.stderr` are those of the compiler that the workspace names in `rust-version`; after a change,
//! `TRYBUILD=overwrite cargo test -p tenure ui::` writes them anew, to be read before they are committed.

#[test]
fn mistakes_are_pointed_at_and_explained() {
    // One for all: they share one build of everything below them.
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
