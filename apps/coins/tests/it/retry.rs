//! What fails is tried again after 1, 2, 4 … minutes, by the seed's own numbers, with a clock that the test moves.

use std::time::Duration;

use coins::world::Fault;
use kit::testing::Place;
use tenure::{How, JobState};

use crate::shop::Shop;

kit::on_each_store! { coins::TABLES;
    a_transient_error_waits_twice_as_long_each_time_and_five_are_the_end,
    errors_of_connection_and_rate_are_tried_again,
    a_source_that_hangs_is_a_timeout_and_is_tried_again,
    a_wait_is_a_day_at_most,
    a_later_attempt_that_does_well_is_a_success,
}

/// Shows: S0.04 S0.06 S0.14 S0.15 S0.17
async fn a_transient_error_waits_twice_as_long_each_time_and_five_are_the_end(place: Place) {
    let shop = Shop::with(place, &[("SOURCE_PAUSE_SECONDS", "1")], 60_000).await;
    shop.world.auction.shelf.fail_next([Fault::Status(500); 5]);
    let job = shop.ask_one("hammer").await;
    for (attempt, minutes) in (1..).zip([1, 2, 4, 8]) {
        shop.run().await;
        let record = shop.show(job).await;
        assert_eq!((record.summary.state, record.summary.attempt), (JobState::Retryable, attempt));
        assert_eq!(record.summary.run_at, shop.place.clock.now().plus(Duration::from_secs(minutes * 60)));
        // Not a second earlier.
        shop.advance(minutes * 60 - 1);
        assert_eq!(shop.run().await.claimed, 0, "attempt {attempt}");
        shop.advance(1);
    }
    shop.run().await;
    let record = shop.show(job).await;
    assert_eq!((record.summary.state, record.attempts.len()), (JobState::Dead, 5));
}

/// Shows: S0.04
async fn errors_of_connection_and_rate_are_tried_again(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.fail_next([Fault::TooMany { seconds: 90 }]);
    let limited = shop.ask_one("hammer").await;
    shop.run().await;
    let record = shop.show(limited).await;
    assert_eq!(record.summary.state, JobState::Retryable);
    // Not after the job's own minute: when the source said.
    assert_eq!(record.summary.run_at, shop.place.clock.now().plus(Duration::from_secs(90)));

    let job = shop.ask_one("bazaar").await;
    let Shop { world, client, worker, .. } = shop;
    world.market.site.close().await;
    worker.run_until_idle().await.unwrap();
    let record = client.show(job).await.unwrap();
    assert_eq!(record.summary.state, JobState::Retryable);
    assert!(record.summary.error.expect("an error").as_str().contains("\"connection\""));
}

/// Shows: S0.04
async fn a_source_that_hangs_is_a_timeout_and_is_tried_again(place: Place) {
    let shop = Shop::with(place, &[("HTTP_TIMEOUT_MS", "50")], 60_000).await;
    shop.world.slow_down(Duration::from_secs(60));
    let job = shop.ask_one("dealer").await;
    shop.run().await;
    let record = shop.show(job).await;
    assert_eq!((record.summary.state, shop.gate("dealer").await.gate.streak), (JobState::Retryable, 1));
    assert!(record.summary.error.expect("an error").as_str().contains("\"timeout\""));
}

/// Shows: S0.16
async fn a_wait_is_a_day_at_most(place: Place) {
    let shop = Shop::with(place, &[("RETRY_BASE_SECONDS", "40000"), ("SOURCE_PAUSE_SECONDS", "1")], 60_000).await;
    shop.world.auction.shelf.fail_next([Fault::Status(503); 3]);
    let job = shop.ask_one("hammer").await;
    for seconds in [40_000, 80_000, 86_400] {
        shop.run().await;
        let due = shop.place.clock.now().plus(Duration::from_secs(seconds));
        assert_eq!(shop.show(job).await.summary.run_at, due);
        shop.advance(seconds);
    }
}

/// Shows: S0.06
async fn a_later_attempt_that_does_well_is_a_success(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.fail_next([Fault::Status(500)]);
    let job = shop.ask_one("hammer").await;
    shop.run().await;
    shop.advance(60);
    shop.run().await;
    let record = shop.show(job).await;
    assert_eq!(record.summary.state, JobState::Succeeded);
    assert_eq!(record.attempts.iter().map(|attempt| attempt.how).collect::<Vec<_>>(), [How::Retry, How::Succeeded]);
}
