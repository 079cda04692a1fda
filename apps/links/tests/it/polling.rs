//! Where nobody is told of anything, workers look for themselves.

use kit::testing::Place;
use kit::{Running, until};
use links::import::Import;
use links::world::World;
use links::{Links, Settings, worker};
use tenure::{Database, Mode, PgOptions, PgStore, SqliteOptions, SqliteStore, Worker};

use crate::processes::import;

kit::on_each_store_for_processes! { links::TABLES; a_worker_finds_its_jobs_by_polling, }

/// The same database, as a process opens it that hears nothing from others.
async fn open_deaf(place: &Place) -> Database {
    match place.database.is_postgres() {
        true => {
            let options = PgOptions { mode: Mode::PollOnly, ..PgOptions::default() };
            PgStore::connect(place.url(), options).await.unwrap().into()
        }
        // Files tell nobody.
        false => SqliteStore::open(place.url(), SqliteOptions::default()).unwrap().into(),
    }
}

/// Shows: S1.03
async fn a_worker_finds_its_jobs_by_polling(place: Place) {
    let world = World::open().await.unwrap();
    let settings = Settings { proxy: Some(world.proxy()), ..Settings::read(&kit::Env::of(&[])).unwrap() };
    let database = open_deaf(&place).await;
    let links = Links::open(&database, &settings).unwrap();
    let running = Running::start(worker::worker(Worker::builder(&database), links).build().unwrap());
    // The first is there when it looks, or it waits for it already; the second comes while it waits.
    for n in 1..=2 {
        let id = import(&place, &[format!("http://a.example/{n}")], &[]).await;
        until("the end of the import", async || {
            let import = Import::find(&place.client(), &place.database, "ada", &id).await?;
            Ok(import.filter(|import| import.status == "succeeded"))
        })
        .await
        .unwrap();
    }
    running.stop().await.unwrap();
}
