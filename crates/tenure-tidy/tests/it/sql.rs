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

/// Text of a statement without its comments.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// What a statement says about a table's columns without their names: `select *`, `t.*`, `returning *`, and an `insert`
/// without its columns.
fn unnamed_columns(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let star = words.iter().enumerate().find(|(at, word)| {
        let is_list = *at > 0 && matches!(words[at - 1], "select" | "distinct" | "returning");
        let is_listed = *at > 0 && words[at - 1].ends_with(',');
        let is_row = word.split(',').any(|part| part.ends_with(".*"));
        is_row || (word.trim_end_matches(',') == "*" && (is_list || is_listed)) || word.starts_with("*,")
    });
    let insert = words.windows(4).find(|window| {
        window[..2] == ["insert", "into"]
            && !window[2].contains('(')
            && !window[3].starts_with('(')
            && window[3] != "as"
    });
    star.map(|(at, word)| format!("{} {word}", words[at.saturating_sub(1)]))
        .or_else(|| insert.map(|found| found.join(" ")))
}

/// A program goes on while a newer one adds columns. With `*` its prepared statements would answer something else than when
/// they were prepared, which the server refuses.
#[test]
fn no_statement_of_a_store_leaves_columns_unnamed() {
    let mut seen = 0;
    for path in with_ending("sql") {
        let shown = path.display().to_string();
        if !["/tenure-postgres/src/sql/", "/tenure-sqlite/src/sql/"].iter().any(|folder| shown.contains(folder)) {
            continue;
        }
        seen += 1;
        let text = without_comments(&fs::read_to_string(&path).expect("read"));
        let found = unnamed_columns(&text);
        assert!(found.is_none(), "{shown} leaves columns unnamed: {found:?}");
    }
    assert!(seen > 150, "{seen} statements");
}

#[test]
fn unnamed_columns_are_found() {
    for text in [
        "select * from a",
        "select a.* from a",
        "select x, a.*, y from a",
        "select b, * from a",
        "select *, b from a",
        "insert into a (b) values (1) returning *",
        "insert into a values (1)",
        "insert into a select b from c",
        "select distinct * from a",
    ] {
        assert!(unnamed_columns(text).is_some(), "{text}");
    }
    for text in [
        "select count(*) from a where b * 2 > c",
        "select 2 * interval '1 ms' from a",
        "insert into a (b) select c from d",
        "insert into a\n    (b) values (1)",
        "insert into a(b) values (1)",
        "insert into a as t (b) values (1)",
        "select a, b * c from d",
    ] {
        assert_eq!(unnamed_columns(text), None, "{text}");
    }
}
