//! The story that `tenure demo tasks` tells, on Postgres; `tenure demo all` is tested on a file.

use kit::testing::Place;
use kit::{Env, Product, Stage};
use tasks::story::Demo;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_story_is_told_and_every_check_holds() {
    let place = Place::postgres_shared(tasks::TABLES).await;
    let stage = Stage::new(place.database.clone(), std::env::temp_dir(), Env::of(&[]), |told| eprintln!("{told}"));
    let show = Demo.show(stage).await.unwrap();
    for check in &show.checks {
        eprintln!("{}: {}", check.name, check.seen);
    }
    let broken: Vec<_> = show.checks.iter().filter(|check| !check.holds).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert!((6..=12).contains(&show.checks.len()));
}
