//! What a source answered is good for an hour.

use coins::settings::Settings;
use kit::Env;
use kit::testing::Place;
use tenure::SqliteStore;

use crate::shop::Shop;

kit::on_each_store! { coins::TABLES;
    a_question_is_asked_once_an_hour,
    without_the_cache_every_question_is_asked,
    another_coin_is_another_question,
}

/// Shows: S0.28 S0.29
async fn a_question_is_asked_once_an_hour(place: Place) {
    let shop = Shop::open(place).await;
    let ask = async || {
        shop.ask_one("dealer").await;
        shop.run().await;
        shop.world.pricelist.calls()
    };
    assert_eq!(ask().await, 1);
    shop.advance(3_599);
    assert_eq!(ask().await, 1);
    shop.advance(1);
    assert_eq!(ask().await, 2);
    let counts = shop.coins.cache().counts();
    assert_eq!((counts.hits, counts.misses), (1, 2));
}

/// Shows: S0.30
async fn without_the_cache_every_question_is_asked(place: Place) {
    let shop = Shop::with(place, &[("CACHE_ENABLED", "false")], 60_000).await;
    for calls in 1..=2 {
        shop.ask_one("dealer").await;
        shop.run().await;
        assert_eq!(shop.world.pricelist.calls(), calls);
    }
}

/// Shows: S0.28
async fn another_coin_is_another_question(place: Place) {
    let mut shop = Shop::open(place).await;
    shop.ask_one("dealer").await;
    shop.run().await;
    shop.coin.id = "c2".into();
    shop.coin.add(&shop.place.database).await.unwrap();
    shop.ask_one("dealer").await;
    shop.run().await;
    assert_eq!(shop.world.pricelist.calls(), 1, "the same coin, brought twice");
    shop.coin = coins::intake::Intake { id: "c3".into(), mintmark: "S".into(), ..shop.coin.clone() };
    shop.coin.add(&shop.place.database).await.unwrap();
    shop.ask_one("dealer").await;
    shop.run().await;
    assert_eq!(shop.world.pricelist.calls(), 2);
}

/// Shows: S0.30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_cache_there_is_no_file_for_it() {
    let place = Place::sqlite_file(coins::TABLES).await;
    let file = std::path::Path::new(place.url()).with_file_name("cache.db");
    let settings = |enabled| {
        let env = Env::of(&[("CACHE_PATH", file.to_str().unwrap()), ("CACHE_ENABLED", enabled)]);
        Settings::read(&env).unwrap()
    };
    coins::worker::open(&place.database, &settings("false")).await.unwrap();
    assert!(!file.exists());
    coins::worker::open(&place.database, &settings("true")).await.unwrap();
    assert!(file.exists());
}

/// Shows: S0.39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_outlive_the_process_in_a_file() {
    let place = Place::sqlite_file(coins::TABLES).await;
    let file = std::path::Path::new(place.url()).with_file_name("cache.db");
    let path = file.to_str().unwrap().to_owned();
    let shop = Shop::with(place, &[("CACHE_PATH", &path)], 60_000).await;
    for _process in 0..2 {
        let coins = coins::worker::open(&shop.place.database, &shop.settings).await.unwrap();
        let worker = coins::worker::worker(shop.place.worker(), coins, &shop.settings).build().unwrap();
        shop.ask_one("dealer").await;
        worker.run_until_idle().await.unwrap();
        assert_eq!(shop.world.pricelist.calls(), 1);
    }
    let kept = SqliteStore::open(&file, tenure::SqliteOptions::default()).unwrap();
    let rows = kept.query("select count(*) as n from cache", Vec::new()).await.unwrap();
    assert_eq!(rows[0].get::<i64>("n").unwrap(), 1);
}
