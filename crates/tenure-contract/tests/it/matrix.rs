//! The matrix is whole, and the list is what it says.

use std::collections::{HashMap, HashSet};

use tenure_contract::CASES;
use tenure_contract::matrix::{Cover, MATRIX, Situation, Verb, print_matrix};
use tenure_contract::scenarios;

#[test]
fn every_verb_meets_every_situation_once() {
    let mut seen = HashMap::new();
    for cell in MATRIX {
        *seen.entry((cell.verb, cell.situation)).or_insert(0) += 1;
    }
    for verb in Verb::ALL {
        for situation in Situation::ALL {
            assert_eq!(seen.remove(&(verb, situation)), Some(1), "{verb:?} {situation:?}");
        }
    }
    assert!(seen.is_empty(), "{seen:?}");
}

#[test]
fn every_covered_cell_names_a_case_of_its_own() {
    let listed: HashSet<&str> = CASES.iter().map(|(name, _)| *name).collect();
    let mut used = HashSet::new();
    for cell in MATRIX {
        match cell.cover {
            Cover::Case(name) => assert!(listed.contains(name) && used.insert(name), "{cell:?}"),
            Cover::Hole(reason) => assert!(reason.len() > 10, "{cell:?}"),
        }
    }
    println!("{}", print_matrix());
}

#[test]
fn every_name_is_there_once() {
    let mut names = HashSet::new();
    for (name, _) in CASES {
        assert!(names.insert(*name), "{name} is there twice");
    }
    for (file, story, _) in scenarios::all() {
        assert!(names.contains(story), "{story} in {file}.txt is not in the list");
    }
}

/// Each `pub async fn` of the case files is in the list: a case that nobody runs is no case.
#[test]
fn every_case_in_the_source_is_in_the_list() {
    let listed: HashSet<&str> = CASES.iter().map(|(name, _)| *name).collect();
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cases");
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    // A directory holds what belongs to one case.
    for file in files.filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(file).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
            let name = line.split('(').next().unwrap();
            assert!(listed.contains(name), "{name} is not in the list");
        }
    }
}
