//! The stories of the suite, as text: each begins with `== its_name` in one of these files.

use crate::fixture::Fixture;
use crate::script;

/// The texts, by topic.
const FILES: [(&str, &str); 12] = [
    ("lifecycle", include_str!("scenarios/lifecycle.txt")),
    ("leases", include_str!("scenarios/leases.txt")),
    ("order", include_str!("scenarios/order.txt")),
    ("retry", include_str!("scenarios/retry.txt")),
    ("cancel", include_str!("scenarios/cancel.txt")),
    ("unique", include_str!("scenarios/unique.txt")),
    ("prune", include_str!("scenarios/prune.txt")),
    ("gates", include_str!("scenarios/gates.txt")),
    ("quotas", include_str!("scenarios/quotas.txt")),
    ("schedules", include_str!("scenarios/schedules.txt")),
    ("runs", include_str!("scenarios/runs.txt")),
    ("sight", include_str!("scenarios/sight.txt")),
];

/// Every story: its file, its name and its script.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FILES.into_iter().flat_map(|(file, text)| {
        let stories = text.split("\n== ").skip(1);
        stories.filter_map(move |story| story.split_once('\n').map(|(name, script)| (file, name.trim(), script)))
    })
}

/// Runs one story.
pub async fn run(name: &str, t: Fixture) {
    let (file, _, script) = all().find(|(_, other, _)| *other == name).expect("the story is in a file");
    if let Err(mistake) = script::run(&t, script).await {
        panic!("scenarios/{file}.txt, {name}, {mistake}");
    }
}
