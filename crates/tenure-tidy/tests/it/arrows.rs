//! The folders say the architecture: who may depend on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate and those of ours it may name, tests apart. A new crate is placed here by hand.
const ARROWS: &[(&str, &[&str])] = &[
    ("tenure-core", &[]),
    ("tenure-store", &["tenure-core"]),
    ("tenure-cluster", &[]),
    ("tenure-contract", &["tenure-core", "tenure-store", "tenure-cluster"]),
    ("tenure-postgres", &["tenure-core", "tenure-store"]),
    ("tenure-sqlite", &["tenure-core", "tenure-store"]),
    ("tenure-worker", &["tenure-core", "tenure-store"]),
    ("tenure-server", &["tenure-core", "tenure-store", "tenure-webhooks", "tenure-worker"]),
    ("tenure-dashboard", &["tenure-core", "tenure-store", "tenure-server"]),
    ("tenure-macros", &["tenure-core"]),
    (
        "tenure",
        &[
            "tenure-core",
            "tenure-store",
            "tenure-worker",
            "tenure-macros",
            "tenure-postgres",
            "tenure-sqlite",
            "tenure-rabbitmq",
            "tenure-telemetry",
            "tenure-webhooks",
        ],
    ),
    // The products stand on what every user has.
    ("kit", &["tenure", "tenure-cluster"]),
    ("coins", &["tenure"]),
    ("links", &["tenure"]),
    ("diamonds", &["tenure"]),
    ("tasks", &["tenure"]),
    ("passport", &["tenure"]),
    (
        "tenure-bench",
        &[
            "tenure-core",
            "tenure-store",
            "tenure-worker",
            "tenure-server",
            "tenure-dashboard",
            "tenure-postgres",
            "tenure-sqlite",
            "tenure-cluster",
        ],
    ),
    (
        "tenure-cli",
        &[
            "tenure",
            "tenure-core",
            "tenure-store",
            "tenure-worker",
            "tenure-server",
            "tenure-dashboard",
            "tenure-postgres",
            "tenure-sqlite",
            "tenure-rabbitmq",
            "tenure-bench",
            "tenure-telemetry",
            "tenure-webhooks",
        ],
    ),
    (
        "tenure-e2e",
        &[
            "tenure-core",
            "tenure-store",
            "tenure-worker",
            "tenure-postgres",
            "tenure-sqlite",
            "tenure-rabbitmq",
            "tenure-cluster",
        ],
    ),
    ("tenure-sim", &["tenure-core", "tenure-store", "tenure-worker", "tenure-sqlite", "tenure-contract"]),
    ("tenure-telemetry", &["tenure-core", "tenure-worker"]),
    ("tenure-tidy", &[]),
    ("tenure-webhooks", &["tenure-core", "tenure-store", "tenure-worker"]),
    ("tenure-rabbitmq", &["tenure-core", "tenure-store"]),
];

/// What the pure crate must never reach, directly: I/O, time, randomness, wire formats.
const NOT_IN_CORE: &[&str] = &["tokio", "serde", "serde_json", "rusqlite", "tokio-postgres", "getrandom", "rand"];

fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("run cargo metadata");
    serde_json::from_slice(&output.stdout).expect("cargo metadata speaks JSON")
}

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let text = |value: &serde_json::Value| value.as_str().expect("a name").to_owned();
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().expect("dependencies");
            let ours = all.iter().filter(|d| d["kind"] != "dev").map(|d| text(&d["name"])).collect();
            (text(&package["name"]), ours)
        })
        .collect()
}

#[test]
fn crates_depend_only_along_the_arrows() {
    let dependencies = dependencies();
    let placed: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let there: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(placed, there, "every crate has its place in ARROWS");
    for (name, allowed) in ARROWS {
        for dependency in dependencies[*name].iter().filter(|d| d.starts_with("tenure")) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

/// No product reaches into Tenure: what one misses belongs into the crate that every user has. Tests may start servers.
#[test]
fn products_stand_on_the_facade_alone() {
    let metadata = metadata();
    for package in metadata["packages"].as_array().expect("packages") {
        let path = package["manifest_path"].as_str().expect("a path");
        if !path.contains("/apps/") || path.ends_with("/apps/kit/Cargo.toml") {
            continue;
        }
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = dependency["name"].as_str().expect("a name");
            let for_tests = dependency["kind"] == "dev" && name == "tenure-cluster";
            assert!(!name.starts_with("tenure-") || for_tests, "{path} must not depend on {name}");
        }
    }
}

#[test]
fn the_core_is_pure() {
    for dependency in &dependencies()["tenure-core"] {
        assert!(!NOT_IN_CORE.contains(&dependency.as_str()), "tenure-core must not depend on {dependency}");
    }
}

#[test]
fn folder_and_package_have_one_name() {
    let metadata = metadata();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let path = package["manifest_path"].as_str().expect("a path");
        assert!(path.ends_with(&format!("/{name}/Cargo.toml")), "{name} lives in {path}");
    }
}
