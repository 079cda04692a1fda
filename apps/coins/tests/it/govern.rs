//! Limits of a source hold for all workers together, before a job is claimed.

use std::time::Duration;

use coins::intake::Intake;
use coins::source::Source;
use coins::world::Fault;
use kit::testing::Place;
use tenure::core::gate::{Admit, Why};
use tenure::store::gate::{GateAct, OperateGate};
use tenure::store::operate::Word;
use tenure::{JobState, StoreError, row};

use crate::shop::Shop;

kit::on_each_store! { coins::TABLES;
    a_source_is_called_as_often_as_its_limit_says,
    each_further_page_waits_for_a_token_of_its_own,
    five_failures_in_a_row_leave_a_source_alone_for_five_minutes,
    a_success_in_between_begins_the_count_again,
    a_probe_that_fails_leaves_it_alone_again,
    a_kept_answer_says_nothing_of_its_source,
    answers_that_are_of_no_use_count_against_their_source,
    a_source_that_is_switched_off_is_not_asked,
    a_source_that_is_switched_off_while_its_job_is_claimed_is_not_called,
    entering_a_source_again_leaves_pauses_and_holds_alone,
    a_source_whose_name_could_blur_a_key_is_refused,
}

/// Shows: S0.31 S0.32 S0.33
async fn a_source_is_called_as_often_as_its_limit_says(place: Place) {
    let shop = Shop::with(place, &[("CACHE_ENABLED", "false")], 30).await;
    shop.ask_times("c1", "dealer", 3).await;
    // Thirty a minute are one each two seconds; what waits holds no slot.
    for calls in 1..=3 {
        assert_eq!(shop.run().await.claimed, 1);
        assert_eq!(shop.world.pricelist.calls(), calls);
        shop.advance(1);
        assert_eq!(shop.run().await.claimed, 0);
        shop.advance(1);
    }
}

/// Shows: S0.31 S0.33
async fn each_further_page_waits_for_a_token_of_its_own(place: Place) {
    // Ten a second; hammer's six lots are on two pages.
    let shop = Shop::with(place, &[("CACHE_ENABLED", "false")], 600).await;
    shop.ask_times("c1", "hammer", 2).await;
    let began = std::time::Instant::now();
    assert_eq!(shop.run().await.claimed, 1);
    assert!(began.elapsed() >= Duration::from_millis(100), "the second page waited for its token");
    assert_eq!(shop.world.auction.calls(), 2);
    // Both calls were counted: the next job waits for two tokens, not for one.
    shop.place.advance(Duration::from_millis(199));
    assert_eq!(shop.run().await.claimed, 0);
    shop.place.advance(Duration::from_millis(1));
    assert_eq!(shop.run().await.claimed, 1);
}

/// However long a job waits for tokens, that is no failure of its source.
#[test]
fn all_calls_together_have_no_timeout() {
    let defaults = format!("{:?}", <coins::collect::Collect as tenure::Job>::DEFAULTS);
    assert!(defaults.contains("timeout: None"), "{defaults}");
}

/// Shows: S0.34 S0.35 S0.36 S0.37
async fn five_failures_in_a_row_leave_a_source_alone_for_five_minutes(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.fail_next([Fault::Status(500); 5]);
    shop.ask_times("c1", "hammer", 6).await;
    shop.run().await;
    assert_eq!(shop.world.auction.calls(), 5, "the sixth was not let through");
    let gate = shop.gate("hammer").await;
    let until = shop.place.clock.now().plus(Duration::from_secs(300));
    assert_eq!((gate.gate.streak, gate.gate.open_until), (5, Some(until)));
    assert_eq!(gate.admit, Admit::Closed { why: Why::Open, until: Some(until) });
    // The sources beside it are asked.
    let other = shop.ask_one("dealer").await;
    shop.run().await;
    assert_eq!(shop.show(other).await.summary.state, JobState::Succeeded);

    shop.advance(299);
    shop.run().await;
    assert_eq!(shop.world.auction.calls(), 5);
    shop.advance(1);
    shop.run().await;
    let gate = shop.gate("hammer").await.gate;
    assert_eq!((gate.streak, gate.open_until), (0, None), "one probe went well");
    assert_eq!(shop.place.count("select count(*) as n from coin_price_point where source_id = 'hammer'").await, 6);
}

/// Shows: S0.34
async fn a_success_in_between_begins_the_count_again(place: Place) {
    let shop = Shop::with(place, &[("CACHE_ENABLED", "false")], 60_000).await;
    for _ in 0..2 {
        shop.world.pricelist.shelf.fail_next([Fault::Status(500); 4]);
        shop.ask_times("c1", "dealer", 4).await;
        shop.run().await;
        assert_eq!(shop.gate("dealer").await.gate.streak, 4);
        shop.ask_times("c1", "dealer", 1).await;
        shop.run().await;
        let gate = shop.gate("dealer").await.gate;
        assert_eq!((gate.streak, gate.open_until), (0, None));
    }
}

/// Shows: S0.35
async fn a_probe_that_fails_leaves_it_alone_again(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.fail_next([Fault::Status(500); 6]);
    shop.ask_times("c1", "hammer", 6).await;
    shop.run().await;
    shop.advance(300);
    shop.run().await;
    assert_eq!(shop.world.auction.calls(), 6, "one probe, however many jobs wait");
    let until = shop.place.clock.now().plus(Duration::from_secs(300));
    assert_eq!(shop.gate("hammer").await.gate.open_until, Some(until));
}

/// Shows: S0.34 S0.35
async fn a_kept_answer_says_nothing_of_its_source(place: Place) {
    // What fails is due again in an hour: here it fails once.
    let shop = Shop::with(place, &[("RETRY_BASE_SECONDS", "3600")], 60_000).await;
    shop.ask_one("dealer").await;
    shop.run().await;
    let another = Intake { id: "c2".into(), mintmark: "S".into(), ..shop.coin.clone() };
    another.add(&shop.place.database).await.unwrap();
    shop.world.pricelist.shelf.fail_next([Fault::Status(500); 5]);
    shop.ask_times("c2", "dealer", 4).await;
    shop.run().await;
    assert_eq!(shop.gate("dealer").await.gate.streak, 4);
    shop.ask_one("dealer").await;
    assert_eq!(shop.run().await.succeeded, 1);
    assert_eq!((shop.world.pricelist.calls(), shop.gate("dealer").await.gate.streak), (5, 4), "its answer was kept");
    shop.ask_times("c2", "dealer", 1).await;
    shop.run().await;
    let opened = shop.gate("dealer").await.gate;
    assert_eq!((opened.streak, opened.open_until.is_some()), (5, true));

    // Nor does one close the breaker, though it passes as its probe.
    let probe = shop.ask_one("dealer").await;
    shop.advance(300);
    shop.run().await;
    assert_eq!(shop.show(probe).await.summary.state, JobState::Succeeded);
    let gate = shop.gate("dealer").await.gate;
    assert_eq!((shop.world.pricelist.calls(), gate.streak, gate.open_until), (6, 5, opened.open_until));
    assert_eq!(gate.probe, None, "the next one may try");
}

/// Shows: S0.34 S0.35
async fn answers_that_are_of_no_use_count_against_their_source(place: Place) {
    let shop = Shop::open(place).await;
    let faults = [Fault::Nonsense, Fault::Status(404), Fault::Endless, Fault::Nonsense, Fault::Nonsense];
    shop.world.auction.shelf.fail_next(faults);
    // What is not known here says nothing of its source.
    shop.ask_times("c9", "hammer", 5).await;
    assert_eq!(shop.run().await.failed, 5);
    assert_eq!(shop.gate("hammer").await.gate.streak, 0);
    shop.ask_times("c1", "hammer", 6).await;
    assert_eq!(shop.run().await.failed, 5);
    let gate = shop.gate("hammer").await.gate;
    assert_eq!((shop.world.auction.calls(), gate.streak, gate.open_until.is_some()), (5, 5, true));
}

/// Shows: S0.38
async fn a_source_that_is_switched_off_is_not_asked(place: Place) {
    let shop = Shop::open(place).await;
    let waiting = shop.ask_one("hammer").await;
    let hammer = shop.source("hammer");
    hammer.set_enabled(&shop.client, &shop.place.database, false).await.unwrap();
    shop.run().await;
    assert_eq!((shop.show(waiting).await.summary.state, shop.world.auction.calls()), (JobState::Queued, 0));
    // Nor is it asked anew.
    let listed = Source::list(&shop.place.database).await.unwrap();
    let asked = coins::scrape::ask(&shop.client, &shop.coin, &listed, shop.settings.retry_base).await.unwrap();
    assert_eq!(asked.len(), 2);
    hammer.set_enabled(&shop.client, &shop.place.database, true).await.unwrap();
    shop.run().await;
    assert_eq!(shop.show(waiting).await.summary.state, JobState::Succeeded);
}

/// Shows: S0.38
async fn a_source_that_is_switched_off_while_its_job_is_claimed_is_not_called(place: Place) {
    let shop = Shop::open(place).await;
    let job = shop.ask_one("hammer").await;
    // As a worker sees it that has claimed the job before the gate was paused.
    let switch = "update coin_source set enabled = $1 where id = 'hammer'";
    shop.place.database.execute(switch, row![false]).await.unwrap();
    shop.run().await;
    let summary = shop.show(job).await.summary;
    assert_eq!((summary.state, summary.attempt, shop.world.auction.calls()), (JobState::Queued, 0, 0));
    shop.place.database.execute(switch, row![true]).await.unwrap();
    shop.advance(60);
    shop.run().await;
    assert_eq!(shop.show(job).await.summary.state, JobState::Succeeded);
}

async fn entering_a_source_again_leaves_pauses_and_holds_alone(place: Place) {
    let shop = Shop::open(place).await;
    let enter = async |enabled: bool| {
        let again = Source { enabled, rate_limit_per_minute: 7, ..shop.source("hammer").clone() };
        again.set(&shop.client, &shop.place.database, shop.settings.source_pause).await.unwrap();
        shop.gate("hammer").await.gate
    };
    // A source asks for silence, and an operator pauses it.
    shop.world.auction.shelf.fail_next([Fault::TooMany { seconds: 90 }]);
    shop.ask_one("hammer").await;
    shop.run().await;
    let act = GateAct::Pause(Some(Duration::from_secs(600)));
    let operate = OperateGate { gate: "source:hammer".parse().unwrap(), act, word: Word::default() };
    shop.client.store().operate_gate(operate).await.unwrap();
    let before = shop.gate("hammer").await.gate;
    assert!(before.held_until.is_some() && before.paused_until.is_some());
    let after = enter(true).await;
    assert_eq!((after.held_until, after.paused_until), (before.held_until, before.paused_until));
    // What changes is changed.
    assert_eq!(shop.gate("hammer").await.rule.rate.map(|rate| rate.count), Some(7));
    assert_eq!(enter(false).await.paused_until, Some(tenure::Timestamp::MAX));
    assert_eq!(enter(true).await.paused_until, None);
}

async fn a_source_whose_name_could_blur_a_key_is_refused(place: Place) {
    let shop = Shop::open(place).await;
    for id in ["a|b", ""] {
        let source = Source { id: id.into(), ..shop.source("hammer").clone() };
        let refused = source.set(&shop.client, &shop.place.database, shop.settings.source_pause).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{id}: {refused:?}");
    }
    // Pairs that differ only in where one name ends are two.
    let ask = async |intake: &str, source: &str| {
        let intake = Intake { id: intake.into(), ..shop.coin.clone() };
        let source = Source { id: source.into(), ..shop.source("hammer").clone() };
        coins::scrape::ask(&shop.client, &intake, &[source], shop.settings.retry_base).await.unwrap()[0].job()
    };
    assert_ne!(ask("c1:a", "b").await, ask("c1", "a:b").await);
}
