//! docs/LIFECYCLE.md is what the tables say.

use std::path::Path;

use tenure_core::lifecycle_doc::render;

#[test]
fn the_page_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/LIFECYCLE.md");
    if std::env::var_os("TENURE_GENERATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, render()).unwrap();
        return;
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == render(), "docs/LIFECYCLE.md is stale: run ./x generate");
}
