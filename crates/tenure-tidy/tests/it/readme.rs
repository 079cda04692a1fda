//! What the README shows is what is built and run.

use std::fs;

use crate::files::root;

/// The code blocks of a language in a Markdown text.
fn blocks<'t>(markdown: &'t str, language: &str) -> Vec<&'t str> {
    let fence = format!("```{language}\n");
    markdown.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// A source file without the lines that say how to run it.
fn body(source: &str) -> &str {
    let header = source.lines().take_while(|line| line.starts_with("//!") || line.is_empty());
    source.get(header.map(|line| line.len() + 1).sum()..).unwrap_or_default()
}

#[test]
fn the_readme_shows_the_quickstart_that_a_test_runs() {
    let readme = fs::read_to_string(root().join("README.md")).expect("read");
    let example = fs::read_to_string(root().join("examples/quickstart/postgres.rs")).expect("read");
    let shown = blocks(&readme, "rust");
    assert_eq!(shown.len(), 1, "one example, and it is the one that is tested");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (shown, tested) in lines(shown[0]).iter().zip(&lines(body(&example))) {
        assert_eq!(shown, tested, "README.md shows this instead of what is in examples/quickstart/postgres.rs");
    }
    assert_eq!(lines(shown[0]).len(), lines(body(&example)).len(), "README.md shows all of the example");
    assert!(readme.contains("](examples/quickstart/sqlite.rs)"), "the README links the embedded version");
}
