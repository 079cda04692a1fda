//! Every promise names its tests, and they exist.

use std::fs;

use crate::files::{root, with_ending};

/// Names between back-quotes on lines that begin with `Shown by:`.
fn named() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("docs/GUARANTEES.md")).expect("docs/GUARANTEES.md");
    let promises = text.split("\n## ").skip(1);
    promises
        .filter(|promise| promise.starts_with('P'))
        .map(|promise| {
            let shown = promise.lines().filter(|line| line.starts_with("Shown by:"));
            let names = shown.flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
            (promise.split_whitespace().next().unwrap_or_default().to_owned(), names)
        })
        .collect()
}

#[test]
fn every_promise_is_shown_by_tests_that_exist() {
    let mut code = String::new();
    for path in with_ending("rs").into_iter().chain(with_ending("txt")) {
        code += &fs::read_to_string(path).expect("a source file");
    }
    let promises = named();
    let ids: Vec<&str> = promises.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11", "P12"]);
    for (id, names) in &promises {
        // What is not promised needs no test.
        assert!(names.len() >= 3 || id == "P8", "{id} names {} tests", names.len());
        for name in names {
            let there = code.contains(&format!("fn {name}(")) || code.contains(&format!("== {name}\n"));
            assert!(there, "{id} names `{name}`, which is no test");
        }
    }
}
