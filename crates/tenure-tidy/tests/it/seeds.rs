//! docs/SEEDS.md: every rule and number of the five design documents, and the tests that show it.
//!
//! A product's rules are in `apps/<name>/seed.txt`. A test says which of them it shows by a line above it,
//! `/// Shows: S0.01 S0.02`. The page is made of both: `./x generate` writes it, and a rule that no test shows, a test
//! that shows a rule that is none, and a page that is stale turn this red.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use crate::files::{root, with_ending};

const PAGE: &str = "docs/SEEDS.md";
const MARK: &str = "/// Shows: ";

/// One rule of one product.
struct Rule {
    id: String,
    section: String,
    text: String,
}

/// The products in the order of the seeds, with their rules.
fn products() -> Vec<(String, Vec<Rule>)> {
    let mut products = Vec::new();
    for path in with_ending("txt").into_iter().filter(|path| path.ends_with("seed.txt")) {
        let name = path.parent().and_then(|dir| dir.file_name()).expect("a product").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("read");
        let rules = text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
            let parts: Vec<&str> = line.splitn(3, " | ").collect();
            let [id, section, text] = parts[..] else { panic!("{name}: `{line}` is no `id | section | rule`") };
            Rule { id: id.to_owned(), section: section.to_owned(), text: text.to_owned() }
        });
        let rules: Vec<Rule> = rules.collect();
        products.push((name, rules));
    }
    products.sort_by_key(|(_, rules)| rules.first().map(|rule| rule.id.clone()));
    products
}

/// Which tests show which rule, as `file::test`.
fn shown() -> BTreeMap<String, Vec<String>> {
    let mut shown = BTreeMap::<String, Vec<String>>::new();
    let root = root();
    for path in with_ending("rs") {
        let text = fs::read_to_string(&path).expect("read");
        let file = path.strip_prefix(&root).expect("ours").display().to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(ids) = line.strip_prefix(MARK) else { continue };
            let test = lines[at..].iter().find_map(|line| name_of(line));
            let test = test.unwrap_or_else(|| panic!("{file}:{}: no test below this line", at + 1));
            for id in ids.split_whitespace() {
                shown.entry(id.to_owned()).or_default().push(format!("{file}::{test}"));
            }
        }
    }
    shown
}

/// The name of a function that begins in this line.
fn name_of(line: &str) -> Option<&str> {
    let line = line.trim_start_matches("pub(crate) ").trim_start_matches("async ");
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

fn page(products: &[(String, Vec<Rule>)], shown: &BTreeMap<String, Vec<String>>) -> String {
    let mut page = String::from(
        "# Seeds\n\n\
         Five design documents describe the same system from the side of one product each, and each product runs here as \
         an application in `apps/`.\n\
         This page has every rule and number of theirs, and the tests that show it; it is generated from `apps/*/seed.txt` \
         and from the tests' own `/// Shows:` lines by `./x generate`, and a test fails when one is not shown.\n\
         Tests in `tests/it` run on SQLite and on PostgreSQL.\n",
    );
    for (name, rules) in products {
        let seed = rules.first().and_then(|rule| rule.id.split('.').next()).unwrap_or_default();
        let _text = write!(
            page,
            "\n## {seed}: [{name}](../apps/{name}/README.md)\n\n| id | rule | shown by |\n|---|---|---|\n"
        );
        for rule in rules {
            let tests = shown.get(&rule.id).map(Vec::as_slice).unwrap_or_default();
            let tests: Vec<String> = tests.iter().map(|test| link(test)).collect();
            let text = rule.text.replace('|', "\\|");
            let _text = writeln!(page, "| {} | {text} ({}) | {} |", rule.id, rule.section, tests.join(", "));
        }
    }
    page
}

/// A test by its name, that leads to its file.
fn link(test: &str) -> String {
    let (file, name) = test.split_once("::").expect("a file and a name");
    format!("[`{name}`](../{file})")
}

#[test]
fn every_rule_of_every_seed_is_shown_by_a_test() {
    let (products, shown) = (products(), shown());
    let rules: Vec<&Rule> = products.iter().flat_map(|(_, rules)| rules).collect();
    let holes: Vec<&str> =
        rules.iter().filter(|rule| !shown.contains_key(&rule.id)).map(|rule| rule.id.as_str()).collect();
    assert!(holes.is_empty(), "no test shows {holes:?}");
    for (id, tests) in &shown {
        let known = rules.iter().filter(|rule| rule.id == *id).count();
        assert_eq!(known, 1, "{id} is a rule of {known} products, says {}", tests[0]);
    }
}

#[test]
fn the_page_of_seeds_is_up_to_date() {
    let made = page(&products(), &shown());
    let path = root().join(PAGE);
    if std::env::var_os("TENURE_GENERATE").is_some() {
        fs::write(&path, &made).expect("write");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{PAGE} is stale: ./x generate writes it");
}
