//! The show holds what it says, on both stores, also where it was shown before.

use std::sync::{Arc, Mutex};

use kit::testing::Place;
use kit::{Env, Product, Stage};

kit::on_each_store_for_processes! { links::TABLES; every_check_of_the_story_holds_also_the_second_time, }

async fn every_check_of_the_story_holds_also_the_second_time(place: Place) {
    for _ in 0..2 {
        let told = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&told);
        let stage = Stage::new(place.database.clone(), std::env::temp_dir(), Env::of(&[]), move |sentence| {
            hear.lock().unwrap().push(sentence.to_owned());
        });
        let show = links::story::Demo.show(stage).await.unwrap();
        for check in &show.checks {
            assert!(check.holds, "{}: {}", check.name, check.seen);
        }
        assert!(show.checks.len() >= 6);
        assert!((5..=12).contains(&told.lock().unwrap().len()), "{told:?}");
    }
}
