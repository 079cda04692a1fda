//! Every statement is a file, and every such file is used exactly once.

use std::fs;

use crate::files::{root, with_ending};

#[test]
fn every_sql_file_is_used_exactly_once() {
    let sources: Vec<(String, String)> = with_ending("rs")
        .into_iter()
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).expect("read")))
        .collect();
    for path in with_ending("sql") {
        // `crates/tenure-postgres/…`, `apps/coins/…`
        let inside = path.strip_prefix(root()).expect("ours");
        let krate: Vec<&str> = inside.components().take(2).filter_map(|c| c.as_os_str().to_str()).collect();
        let krate = krate.join("/");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        // Named in full, or in one of the two lists that add folder and ending: `CLAIM_JOBS = "claim_jobs";` and
        // `1 "0001_tables"`.
        let number = name.split('_').next().and_then(|digits| digits.parse::<u32>().ok()).unwrap_or_default();
        let quoted = [
            format!("/{name}.sql\""),
            format!("(\"{name}.sql\")"),
            format!(" = \"{name}\";"),
            format!("{number} \"{name}\"\n"),
        ];
        let uses: usize = sources
            .iter()
            .filter(|(file, _)| file.contains(&format!("/{krate}/src/")) || file.contains(&format!("/{krate}/tests/")))
            .map(|(_, text)| quoted.iter().map(|q| text.matches(q.as_str()).count()).sum::<usize>())
            .sum();
        assert_eq!(uses, 1, "{} is used {uses} times", path.display());
    }
}

#[test]
fn a_statement_says_first_what_it_is() {
    for path in with_ending("sql") {
        let text = fs::read_to_string(&path).expect("read");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with(&format!("-- {name}")), "{} begins with `{first}`", path.display());
    }
}
