//! The show holds what it says, on both stores.

use diamonds::story::Demo;
use kit::testing::Place;
use kit::{Env, Product, Stage};

kit::on_each_store_for_processes! { diamonds::TABLES; every_check_of_the_story_holds, }

async fn every_check_of_the_story_holds(place: Place) {
    let stage = Stage::new(place.database.clone(), std::env::temp_dir(), Env::of(&[]), |said| println!("{said}"));
    let show = Demo.show(stage).await.unwrap();
    for check in &show.checks {
        println!("{}  {}: {}", check.holds, check.name, check.seen);
    }
    assert!(show.checks.len() >= 6 && show.checks.iter().all(|check| check.holds));
}
