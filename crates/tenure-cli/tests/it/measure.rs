//! `tenure bench`: its lines, its page, and that nothing is left behind.

use serde_json::Value;

use crate::place::Place;

#[test]
fn a_measure_is_a_line_beside_its_floor() {
    let place = Place::new();
    std::fs::create_dir(place.path("tmp")).unwrap();
    let place = place.with_env("TMPDIR", "tmp");
    let page = place.path("bench.html");
    let ran = place.run(&[
        "bench",
        "--quick",
        "--measure",
        "enqueue_bulk",
        "--measure",
        "drain_two",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line["measure"].as_str().unwrap()).collect();
    assert_eq!(names, ["enqueue_bulk", "drain_two"]);
    for line in &lines {
        let number = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name} of {line}"));
        assert!(number("rate") > 0.0 && number("floor") > 0.0, "{line}");
        assert!((number("ratio") - number("rate") / number("floor")).abs() < 0.01, "{line}");
        assert_eq!(line["store"], "sqlite");
    }
    assert!(std::fs::read_to_string(page).unwrap().contains("<svg"));
    let left: Vec<_> = std::fs::read_dir(place.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_unknown_measure_is_answered_with_those_that_are_known() {
    let ran = Place::new().run(&["bench", "--measure", "drian"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("drain_backlog"), "{}", ran.err);
}

#[test]
fn a_file_is_no_place_to_measure() {
    let ran = Place::new().run(&["--database", "jobs.db", "bench", "--quick"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("postgres://"), "{}", ran.err);
}
