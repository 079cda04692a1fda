//! The products of `apps/`, all together on one file.

use serde_json::Value;

use crate::place::Place;

#[test]
fn all_products_together_show_what_they_promise() {
    let place = Place::new();
    let ran = place.run(&["demo", "all", "--once", "--json"]);
    let demo: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    for (name, product) in demo["products"].as_object().unwrap() {
        let checks = product["checks"].as_array().unwrap();
        assert!(checks.len() >= 6, "{name}: {product}");
        for check in checks {
            assert_eq!(check["holds"], true, "{name}: {check}");
        }
    }
    assert_eq!((&demo["holds"], &demo["audit"]["verified"]), (&Value::Bool(true), &Value::Bool(true)), "{demo}");
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn a_product_that_is_not_known_is_refused_with_those_that_are() {
    let ran = Place::new().run(&["demo", "tulips"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("coins") && ran.err.contains("all"), "{}", ran.err);
}
