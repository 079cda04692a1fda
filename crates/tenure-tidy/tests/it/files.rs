//! Files are small, named after one noun, and speak of no machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file longer than this usually holds a second noun. Shorter is better, but no code is packed to stay below it.
const LINES_MAX: usize = 600;
/// Names of drawers: whatever goes in is never found again.
const DRAWERS: &[&str] = &["utils", "util", "common", "types", "helpers", "helper", "misc", "manager"];
/// Where machines show: home directories and work trees of whoever wrote the file. Split, so that this file is clean.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/Use", "rs/")];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's folder")
}

/// The project's own files, as git knows them.
pub(crate) fn files() -> Vec<PathBuf> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .expect("run git");
    let listed = String::from_utf8(listed.stdout).expect("names in UTF-8");
    let files: Vec<PathBuf> = listed.lines().map(|name| root.join(name)).filter(|path| path.is_file()).collect();
    assert!(files.len() > 50, "git lists the project's files");
    files
}

pub(crate) fn with_ending(ending: &str) -> Vec<PathBuf> {
    files().into_iter().filter(|path| path.extension().is_some_and(|e| e == ending)).collect()
}

#[test]
fn no_file_is_a_drawer_or_has_a_second_noun() {
    for path in with_ending("rs") {
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(!DRAWERS.contains(&stem.as_str()), "{} is a drawer: name the noun", path.display());
        let lines = fs::read_to_string(&path).expect("read").lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines: look for the second noun", path.display());
    }
}

#[test]
fn no_file_names_a_machine_path() {
    for path in files() {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            let named = MACHINE_PATHS.iter().find(|machine| line.contains(**machine));
            assert!(named.is_none(), "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

#[test]
fn nothing_is_left_undone_or_ignored() {
    const MARKS: &[&str] = &[
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[ign", "ore"),
        concat!("should_", "panic"),
        concat!("FIX", "ME"),
    ];
    for path in with_ending("rs") {
        let text = fs::read_to_string(&path).expect("read");
        let found = MARKS.iter().find(|mark| text.contains(**mark));
        assert!(found.is_none(), "{} has a {found:?}", path.display());
    }
}
