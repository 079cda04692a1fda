//! The statement files themselves.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use tenure_sqlite::{FENCES, Mutation, SqliteOptions, SqliteStore};
use tenure_store::AdminStore;

/// Names and texts of the files in a folder and those below it.
fn source(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (more, here): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        folders.extend(more);
        files.extend(here);
    }
    let mut found: Vec<_> = files
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn every_statement_file_is_used_once_and_says_its_name() {
    let code: String = source("src", ".rs").into_iter().map(|(_, text)| text).collect();
    for (name, text) in source("src/sql", ".sql") {
        assert_eq!(code.matches(&format!("sql/{name}\")")).count(), 1, "{name}");
        assert!(text.starts_with(&format!("-- {name}: ")), "{name}");
    }
}

#[test]
fn every_fence_stands_in_a_statement_under_a_name_of_its_own() {
    let statements: String = source("src/sql", ".sql").into_iter().map(|(_, text)| text).collect();
    let mut names = HashMap::new();
    for (name, find, replace) in FENCES {
        assert!(statements.contains(find), "{name}");
        assert_ne!(find, replace);
        assert!(names.insert(name, find).is_none(), "{name}");
    }
}

#[test]
fn every_statement_can_be_prepared_without_any_of_its_fences() {
    let schema = source("migrations", ".sql");
    let conn = rusqlite::Connection::open_in_memory().unwrap();
    schema.iter().for_each(|(_, sql)| conn.execute_batch(sql).unwrap());
    for (name, text) in source("src/sql", ".sql") {
        conn.prepare(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (fence, find, replace) in FENCES.iter().filter(|(_, find, _)| text.contains(find)) {
            let names = |sql: &str| {
                let statement = conn.prepare(sql).unwrap_or_else(|error| panic!("{name} without {fence}: {error}"));
                let count = statement.parameter_count();
                (1..=count)
                    .map(|i| statement.parameter_name(i).unwrap().to_owned())
                    .collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(names(&text), names(&text.replace(find, replace)), "{name} without {fence}");
        }
    }
}

#[tokio::test]
async fn a_mutation_changes_what_is_run() {
    let mutation = Mutation { find: "order by queue.name", replace: "order by queue.no_such_column" };
    let options = SqliteOptions { mutation: Some(mutation), ..SqliteOptions::default() };
    let store = SqliteStore::in_memory(options).unwrap();
    store.migrate().await.unwrap();
    assert!(store.list_queues().await.unwrap_err().to_string().contains("no_such_column"));
}
