//! The show holds what it says, on both stores.

use kit::testing::Place;
use kit::{Env, Product, Stage};

kit::on_each_store_for_processes! { passport::TABLES; every_check_of_the_story_holds, }

async fn every_check_of_the_story_holds(place: Place) {
    let stage =
        Stage::new(place.database.clone(), std::env::temp_dir(), Env::of(&[]), |sentence| println!("{sentence}"));
    let show = passport::story::Demo.show(stage).await.unwrap();
    for check in &show.checks {
        assert!(check.holds, "{}: {}", check.name, check.seen);
        println!("{}: {}", check.name, check.seen);
    }
    assert!(show.checks.len() >= 6);
}
