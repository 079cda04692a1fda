//! What sources say becomes points, each known once, and one valuation.

use coins::source::Source;
use coins::world::{Fault, Listing};
use kit::testing::Place;
use tenure::{JobState, row};

use crate::shop::Shop;

kit::on_each_store! { coins::TABLES;
    three_shapes_become_points_and_one_valuation,
    a_pair_that_is_asked_already_is_found,
    the_stronger_match_stays_and_the_weaker_changes_nothing,
    changed_prices_change_the_one_valuation,
    the_table_itself_refuses_a_second_point_and_a_second_valuation,
    what_makes_no_sense_fails_for_good_and_stores_nothing,
    one_bad_listing_spoils_no_other,
    an_answer_of_bad_listings_only_fails_for_good,
    what_a_table_refuses_fails_for_good,
    more_pages_than_are_asked_for_are_told_of,
    unknown_coins_and_sources_fail_for_good,
}

/// Shows: S0.01 S0.02 S0.05 S0.18 S0.24 S0.27
async fn three_shapes_become_points_and_one_valuation(place: Place) {
    let shop = Shop::open(place).await;
    let jobs = shop.ask().await;
    for job in &jobs {
        assert_eq!(shop.show(*job).await.summary.state, JobState::Queued);
    }
    assert_eq!(shop.run().await.succeeded, 3);
    for job in &jobs {
        assert_eq!(shop.show(*job).await.summary.state, JobState::Succeeded);
    }
    let by_kind = "select source_id, kind, count(*) as n from coin_price_point group by source_id, kind order by 1";
    let rows = shop.place.database.query(by_kind, row![]).await.unwrap();
    let seen: Vec<(String, String, i64)> = rows
        .iter()
        .map(|row| (row.get("source_id").unwrap(), row.get("kind").unwrap(), row.get("n").unwrap()))
        .collect();
    let expected = [("bazaar", "ask", 4), ("dealer", "bid", 2), ("hammer", "sold", 6)];
    assert_eq!(seen, expected.map(|(source, kind, n)| (source.to_owned(), kind.to_owned(), n)));
    // Six offers were told, three of them the same one.
    assert_eq!((shop.result(jobs[0]).await.found, shop.result(jobs[0]).await.new), (6, 4));
    // Two pages of six lots, two of six offers, one list.
    assert_eq!([&shop.world.auction, &shop.world.market, &shop.world.pricelist].map(|feed| feed.calls()), [2, 2, 1]);
    let value = shop.place.count("select cents as n from coin_valuation where intake_id = 'c1'").await;
    assert_eq!(value, Listing::fair_cents(0));
    assert_eq!(shop.place.count("select outliers as n from coin_valuation").await, 2);
}

async fn a_pair_that_is_asked_already_is_found(place: Place) {
    let shop = Shop::open(place).await;
    let first = shop.ask().await;
    assert_eq!(shop.ask().await, first);
    shop.run().await;
    assert_ne!(shop.ask().await, first, "what has ended is asked again");
}

/// Shows: S0.25 S0.26
async fn the_stronger_match_stays_and_the_weaker_changes_nothing(place: Place) {
    let shop = Shop::with(place, &[("CACHE_ENABLED", "false")], 60_000).await;
    shop.ask_one("hammer").await;
    shop.run().await;
    let lot = "select title, cents, match_strength from coin_price_point where dedupe_key = 'ext_auction-c1-0'";
    let look = async || {
        let rows = shop.place.database.query(lot, row![]).await.unwrap();
        (rows[0].get::<i64>("cents").unwrap(), rows[0].get::<i64>("match_strength").unwrap())
    };
    assert_eq!(look().await, (14_700, 100));
    let tell = |title: &'static str, cents| {
        shop.world.auction.shelf.change(|listings| {
            listings[0].title = title.to_owned();
            listings[0].cents = cents;
        });
    };
    tell("1921 something", 99);
    let weaker = shop.ask_one("hammer").await;
    shop.run().await;
    assert_eq!((look().await, shop.result(weaker).await.better), ((14_700, 100), 0));
    // As strong is not stronger.
    tell("1921-D Morgan dollar again", 98);
    shop.ask_one("hammer").await;
    shop.run().await;
    assert_eq!(look().await, (14_700, 100));
    // A point that was weak gives way to a strong one.
    shop.world.auction.shelf.change(|listings| listings[4].title = "1921-D Morgan Dollar toned".into());
    let stronger = shop.ask_one("hammer").await;
    shop.run().await;
    assert_eq!(shop.result(stronger).await.better, 1);
}

/// Shows: S0.27
async fn changed_prices_change_the_one_valuation(place: Place) {
    let shop = Shop::with(place, &[("CACHE_ENABLED", "false")], 60_000).await;
    shop.ask().await;
    shop.run().await;
    let before = shop.place.count("select cents as n from coin_valuation").await;
    shop.world.auction.shelf.change(|listings| {
        for (listing, at) in listings.iter_mut().zip(0..) {
            listing.id = Some(format!("later-{at}"));
            listing.cents = 30_000;
        }
    });
    shop.ask_one("hammer").await;
    shop.run().await;
    assert_eq!(shop.place.count("select count(*) as n from coin_valuation").await, 1);
    let after = shop.place.count("select cents as n from coin_valuation").await;
    assert!(after > before, "{before} became {after}");
}

/// Shows: S0.24 S0.27
async fn the_table_itself_refuses_a_second_point_and_a_second_valuation(place: Place) {
    let shop = Shop::open(place).await;
    shop.ask().await;
    shop.run().await;
    for again in [
        "insert into coin_price_point select * from coin_price_point",
        "insert into coin_valuation select * from coin_valuation",
    ] {
        let refused = shop.place.database.execute(again, row![]).await;
        assert!(matches!(refused, Err(tenure::StoreError::Conflict(_))), "{refused:?}");
    }
}

/// Shows: S0.03
async fn what_makes_no_sense_fails_for_good_and_stores_nothing(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.fail_next([Fault::Nonsense]);
    let job = shop.ask_one("hammer").await;
    shop.run().await;
    let record = shop.show(job).await;
    assert_eq!((record.summary.state, record.attempts.len()), (JobState::Failed, 1));
    let error = record.summary.error.expect("an error");
    assert!(error.as_str().contains("the auction makes no sense"), "{error}");
    assert_eq!(shop.place.count("select count(*) as n from coin_price_point").await, 0);
    // The next one is asked anew: nonsense is not kept.
    let again = shop.ask_one("hammer").await;
    shop.run().await;
    assert_eq!(shop.show(again).await.summary.state, JobState::Succeeded);
}

async fn one_bad_listing_spoils_no_other(place: Place) {
    let shop = Shop::open(place).await;
    for (at, title) in [(1, "with a \0 in it".to_owned()), (5, "x".repeat(3_000))] {
        shop.world.auction.shelf.change(|listings| listings[at].title = title);
    }
    for _asked_then_kept in 0..2 {
        let job = shop.ask_one("hammer").await;
        shop.run().await;
        assert_eq!(shop.show(job).await.summary.state, JobState::Succeeded);
        assert_eq!((shop.result(job).await.found, shop.result(job).await.skipped), (4, 2));
    }
    assert_eq!(shop.world.auction.calls(), 2, "what makes sense is kept");
    assert_eq!(shop.place.count("select count(*) as n from coin_price_point").await, 4);
}

async fn an_answer_of_bad_listings_only_fails_for_good(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.change(|listings| {
        for listing in listings {
            listing.day = "yesterday";
        }
    });
    let job = shop.ask_one("hammer").await;
    shop.run().await;
    let summary = shop.show(job).await.summary;
    assert_eq!((summary.state, shop.gate("hammer").await.gate.streak), (JobState::Failed, 1));
    let error = summary.error.expect("an error");
    assert!(error.as_str().contains("the auction makes no sense: number 1: day `yesterday"), "{error}");
    // It is not kept: the next one is asked anew.
    shop.ask_one("hammer").await;
    shop.run().await;
    assert_eq!(shop.world.auction.calls(), 4);
}

/// Shows: S0.03
async fn what_a_table_refuses_fails_for_good(place: Place) {
    const STRICTER: &str = "drop table coin_price_point;
        create table coin_price_point (intake_id text, source_id text, dedupe_key text, kind text,
        cents bigint check (cents < 0), currency text, day text, title text, url text, seen_at timestamptz,
        match_strength bigint, unique (intake_id, source_id, dedupe_key))";
    let shop = Shop::open(place).await;
    shop.place.database.make_tables(STRICTER).await.unwrap();
    let job = shop.ask_one("dealer").await;
    shop.run().await;
    let record = shop.show(job).await;
    assert_eq!((record.summary.state, record.attempts.len()), (JobState::Failed, 1));
    assert_eq!(shop.gate("dealer").await.gate.streak, 0, "its source answered");
}

async fn more_pages_than_are_asked_for_are_told_of(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.market.shelf.change(|listings| {
        for number in 0..80 {
            let again = Listing { id: Some(format!("more-{number}")), ..listings[0].clone() };
            listings.push(again);
        }
    });
    let job = shop.ask_one("bazaar").await;
    shop.run().await;
    let collected = shop.result(job).await;
    // Twenty pages of four; six more are there.
    assert_eq!((shop.world.market.calls(), collected.found, collected.truncated), (20, 80, true));
    let whole = shop.ask_one("hammer").await;
    shop.run().await;
    assert!(!shop.result(whole).await.truncated);
}

async fn unknown_coins_and_sources_fail_for_good(place: Place) {
    let shop = Shop::open(place).await;
    let nowhere = Source { id: "nowhere".into(), ..shop.sources[0].clone() };
    coins::scrape::ask_times(&shop.client, "c1", &nowhere, 1, shop.settings.retry_base).await.unwrap();
    shop.ask_times("c9", "hammer", 1).await;
    assert_eq!(shop.run().await.failed, 2);
    let jobs = coins::monitor::recent_jobs(&shop.client).await.unwrap();
    assert!(jobs.iter().all(|job| job.status == JobState::Failed), "{jobs:?}");
}
