//! The document and the pages about it are those of the code.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tenure_server::new_job::line::FIELDS;
use tenure_server::problem::CODES;

use crate::conform::{document, operations};

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// `./x generate` writes it again.
#[test]
fn the_checked_in_document_is_that_of_the_code() {
    let made = tenure_server::api::openapi();
    if std::env::var_os("TENURE_GENERATE").is_some() {
        std::fs::write(page("openapi.json"), &made).unwrap();
    }
    let kept = std::fs::read_to_string(page("openapi.json")).expect("docs/openapi.json");
    assert!(kept == made, "docs/openapi.json is stale: ./x generate");
}

#[test]
fn every_operation_says_what_it_is_for() {
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations() {
        let of = format!("{method} {path}");
        assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 3), "{of} has no summary");
        assert!(operation["tags"][0].is_string(), "{of} has no tag");
        assert!(operation["security"].is_array(), "{of} does not say who may");
        assert!(names.insert(operation["operationId"].as_str().unwrap_or_default()), "{of}: its name is taken");
    }
}

#[test]
fn the_document_knows_every_member_of_a_new_job() {
    let members = document()["components"]["schemas"]["NewJobBody"]["properties"].as_object().unwrap();
    let documented: BTreeSet<&str> = members.keys().map(String::as_str).collect();
    assert_eq!(documented, FIELDS.into_iter().collect());
}

#[test]
fn every_error_code_has_its_paragraph() {
    let api = std::fs::read_to_string(page("API.md")).expect("docs/API.md");
    for code in CODES {
        assert!(api.contains(&format!("### `{}`", code.word)), "docs/API.md says nothing of {}", code.word);
        assert!(api.contains(code.about), "docs/API.md: the paragraph of {} is not that of the code", code.word);
    }
    assert!(CODES.windows(2).all(|pair| pair[0].status <= pair[1].status), "in the order of their status");
    let words: BTreeSet<&str> = CODES.iter().map(|code| code.word).collect();
    assert_eq!(words.len(), CODES.len());
}

#[test]
fn every_call_is_in_the_page_of_the_api_or_of_workers() {
    let read = |name: &str| std::fs::read_to_string(page(name)).unwrap_or_else(|error| panic!("docs/{name}: {error}"));
    let pages = read("API.md") + &read("WORKER-PROTOCOL.md");
    for (method, path, _) in operations() {
        assert!(pages.contains(&format!("`{method} {path}`")), "no page tells of {method} {path}");
    }
}

/// Two schemas of one name would become one in the document.
#[test]
fn every_schema_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for after in text.split("ToSchema)]").skip(1) {
                let name =
                    after.split("struct ").nth(1).and_then(|rest| rest.split([' ', '<', ';', '(']).next()).unwrap();
                assert!(names.insert(name.to_owned()), "{name} in {}", path.display());
            }
        }
    }
    assert!(names.len() > 50, "{}", names.len());
}

#[test]
fn every_answer_has_a_description() {
    for (method, path, operation) in operations() {
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let told = answer["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(told || answer["$ref"].is_string(), "{method} {path} {status}");
        }
    }
}
