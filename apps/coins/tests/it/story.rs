//! The show holds what it says, on both stores, whatever is set.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use kit::testing::Place;
use kit::{Env, Product, Stage};

kit::on_each_store_for_processes! { coins::TABLES; every_check_of_the_story_holds, }

/// A folder of a test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("coins-story-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean: it is in its temporary directory.
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

async fn every_check_of_the_story_holds(place: Place) {
    let folder = Folder::make();
    let set = Env::of(&[("CACHE_ENABLED", "false"), ("CACHE_TTL_SECONDS", "1"), ("HTTP_TIMEOUT_MS", "1")]);
    let stage = Stage::new(place.database.clone(), folder.0.clone(), set, |_| {});
    let show = coins::story::Demo.show(stage).await.unwrap();
    for check in &show.checks {
        assert!(check.holds, "{}: {}", check.name, check.seen);
    }
    assert!(show.checks.len() >= 6);
}
