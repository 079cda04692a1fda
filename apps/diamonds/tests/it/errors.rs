//! What goes wrong at the supplier's, and what becomes of pages, partitions and the run.

use std::time::Duration;

use diamonds::price_range::PriceRange;
use diamonds::schedule;
use diamonds::settings::Settings;
use diamonds::worker::Diamonds;
use diamonds::world::{Act, Ask, Fault};
use kit::Valve;
use kit::testing::Place;
use serde_json::{Value, json};
use tenure::{How, JobState, RunState, row};

use crate::bed::{Bed, listed, prices};

kit::on_each_store! { diamonds::TABLES;
    a_transient_error_is_tried_again_and_stores_nothing_twice,
    after_five_tries_the_partition_has_failed_and_nothing_is_published,
    how_often_a_page_is_tried_can_be_set,
    a_completed_partition_that_is_reset_and_fails_says_so,
    a_run_that_was_never_made_hides_no_other_and_is_given_up_after_a_day,
    a_permanent_error_fails_the_partition_at_once_and_says_why,
    a_stone_of_another_price_range_is_refused,
    a_page_that_takes_too_long_is_stopped_and_tried_again,
    an_answer_has_as_long_as_a_page,
    a_supplier_that_asks_for_silence_gets_it_from_all,
    a_supplier_that_is_away_for_a_moment_is_left_alone_and_then_asked_again,
    a_supplier_that_is_gone_for_long_loses_nothing,
    a_revision_that_is_gone_fails_the_run_and_the_next_one_reads_the_latest,
}

fn at(offset: u64) -> Ask {
    Ask::Page { min: None, offset: Some(offset) }
}

/// Shows: S2.36
async fn a_transient_error_is_tried_again_and_stores_nothing_twice(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    bed.world.fault(Fault::on(at(30), Act::Status(503)).times(2));
    bed.world.fault(Fault::on(at(90), Act::Status(500)).times(4));
    bed.work().await;
    let tries: Vec<usize> = bed.pages().await.iter().map(|page| page.attempts.len()).collect();
    assert_eq!(tries, [1, 3, 1, 5]);
    assert_eq!((bed.raw().await, bed.partition(run).await.rows), (listed(&bed.world), 95));
    assert_eq!((bed.run(run).await.run.state, bed.work_done().await.len()), (RunState::Succeeded, 1));
}

/// Shows: S2.37 S2.39 S2.40 S2.41 S2.48 S2.57
async fn after_five_tries_the_partition_has_failed_and_nothing_is_published(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "200")]).await;
    let run = bed.schedule().await;
    let broken = bed.partitions(run).await.into_iter().find(|it| it.expected > Some(60)).unwrap();
    bed.world.fault(Fault::on(Ask::page_of(prices(&broken), 30), Act::Status(503)));
    bed.work().await;

    let calls = bed.world.traffic().of(&format!("{} 30", broken.name)).calls;
    let partitions = bed.partitions(run).await;
    let failed: Vec<_> = partitions.iter().filter(|it| it.state == RunState::Failed).collect();
    assert_eq!((calls, failed.len(), failed[0].name.clone()), (5, 1, broken.name.clone()));
    assert_eq!((failed[0].next_offset, failed[0].rows), (30, 30));
    let record = bed.run(run).await;
    let (done, lost) = (record.run.done, record.run.failed);
    assert_eq!((record.run.state, done, lost), (RunState::Failed, partitions.len() as u64 - 1, 1));
    assert_eq!(bed.show(record.consolidate.unwrap()).await.summary.state, JobState::Canceled);
    assert_eq!(bed.sold().await, 0);

    for _ in 0..3 {
        bed.advance(10); // somebody looks every ten seconds, and says it once
        bed.work().await;
        let told = bed.work_done().await;
        assert_eq!(told.len(), partitions.len());
        let [failed] = told.into_iter().filter(|it| it["status"] == "failed").collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(
            (failed["partitionId"].as_str(), &failed["recordsProcessed"]),
            (Some(broken.name.as_str()), &json!(30))
        );
        assert_eq!(failed["traceId"], "trace-7");
        assert!(failed["error"].as_str().unwrap().contains("503"));
    }

    bed.world.heal();
    bed.resume(&broken).await;
    bed.work().await;
    let record = bed.run(run).await;
    assert_eq!((record.run.state, record.run.failed, record.rows), (RunState::Succeeded, 0, 600));
    assert_eq!(bed.raw().await, listed(&bed.world));
    assert_eq!(bed.sold().await, 600);
    assert!(bed.work_done().await.iter().all(|it| it["status"] == "completed"), "it has completed after all");
}

/// Shows: S2.61
async fn how_often_a_page_is_tried_can_be_set(place: Place) {
    let bed = Bed::with(place, 95, &[("DIAMONDS_DELIVERIES", "2")]).await;
    let run = bed.schedule().await;
    bed.world.fault(Fault::on(at(30), Act::Status(503)));
    bed.work().await;
    let tries: Vec<usize> = bed.pages().await.iter().map(|page| page.attempts.len()).collect();
    assert_eq!((tries, bed.partition(run).await.state), (vec![1, 2], RunState::Failed), "a later page as well");
}

/// Shows: S2.40 S2.57
async fn a_completed_partition_that_is_reset_and_fails_says_so(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "200")]).await;
    let run = bed.schedule().await;
    let long: Vec<_> = bed.partitions(run).await.into_iter().filter(|it| it.expected > Some(60)).collect();
    bed.world.fault(Fault::on(Ask::page_of(prices(&long[0]), 30), Act::Status(404)));
    bed.work().await;
    let status = async |name: &str| {
        let told = bed.work_done().await.into_iter().find(|it| it["partitionId"] == name).unwrap();
        (told["status"].as_str().unwrap().to_owned(), told["recordsProcessed"].as_u64().unwrap())
    };
    bed.advance(10);
    bed.work().await;
    assert_eq!(status(long[0].name.as_str()).await, ("failed".to_owned(), 30));
    assert_eq!(status(long[1].name.as_str()).await, ("completed".to_owned(), long[1].expected.unwrap()));

    bed.reset(&long[1], 0).await;
    bed.world.fault(Fault::on(Ask::page_of(prices(&long[1]), 30), Act::Status(404)));
    bed.work().await;
    bed.advance(10);
    bed.work().await;
    assert_eq!(bed.run(run).await.run.failed, 2);
    assert_eq!(status(long[1].name.as_str()).await, ("failed".to_owned(), 30));
}

async fn a_run_that_was_never_made_hides_no_other_and_is_given_up_after_a_day(place: Place) {
    let bed = Bed::open(place, 95).await;
    let never = "insert into diamonds_run (run_id, trace_id, as_of, partitions, stones, created_at, told)
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 120)
        select '019aa0c4-7b5a-7000-8000-' || cast(100000000000 + i as text), 'never', 0, 1, 0, $1, false from n";
    bed.place.database.execute(never, row![bed.place.clock.now()]).await.unwrap();
    bed.advance(1);
    bed.schedule().await;
    bed.world.fault(Fault::on_pages(Act::Status(404)));
    bed.work().await;
    bed.advance(10);
    bed.work().await;
    assert_eq!(bed.work_done().await.len(), 1, "the newest is looked at first");
    let untold = async || bed.place.count("select count(*) as n from diamonds_run where not told").await;
    assert_eq!(untold().await, 121);
    bed.advance(86_400);
    bed.work().await;
    bed.advance(10);
    bed.work().await;
    assert_eq!(untold().await, 0);
}

/// Shows: S2.38
async fn a_permanent_error_fails_the_partition_at_once_and_says_why(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let stone = |field: &str, value: Value| {
        let mut stone = bed.world.latest().page(PriceRange::ALL, 0, 1).remove(0).to_json();
        stone[field] = value;
        stone
    };
    let faults = [
        (Act::Status(404), "status 404"),
        (Act::Status(400), "status 400"),
        (Act::Say("{".to_owned()), "makes no sense"),
        (Act::Say(json!({ "stones": "all" }).to_string()), "no list of stones"),
        (Act::Say(json!({ "stones": [stone("price_cents", json!(0))] }).to_string()), "price_cents `0` is refused"),
        (Act::Say(json!({ "stones": [stone("shape", json!("trilliant"))] }).to_string()), "it is one of round oval"),
        (
            Act::Say(json!({ "stones": vec![stone("price_cents", json!(1)); 31] }).to_string()),
            "31 stones came, and 30 were asked for",
        ),
    ];
    for (calls, (act, why)) in faults.into_iter().enumerate() {
        bed.world.fault(Fault::on_pages(act).times(1));
        bed.work().await;
        let partition = bed.partition(run).await;
        let told = partition.last_error.as_ref().unwrap();
        assert_eq!((partition.state, partition.next_offset), (RunState::Failed, 0), "{why}");
        assert!(told.as_str().contains(why), "{why}: {told}");
        assert_eq!((bed.calls(), bed.raw().await.len()), (calls as u64 + 1, 0), "one try");
        assert_eq!(bed.pages().await[0].attempts.last().unwrap().how, How::Failed);
        bed.resume(&partition).await;
    }
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
}

/// Shows: S2.15
async fn a_stone_of_another_price_range_is_refused(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "200")]).await;
    let run = bed.schedule().await;
    let dearest = bed.world.latest().page(PriceRange::new(1_000_000, PriceRange::ALL.max_cents()).unwrap(), 0, 1);
    let stray = json!({ "stones": [dearest[0].to_json()] }).to_string();
    bed.world.fault(Fault::on(Ask::Page { min: Some(0), offset: Some(0) }, Act::Say(stray)));
    bed.work().await;
    let failed = bed.partitions(run).await.into_iter().find(|it| it.state == RunState::Failed).unwrap();
    let told = failed.last_error.unwrap();
    assert!(failed.name.as_str().starts_with("0-") && told.as_str().contains("was asked for"), "{told}");
    let others: u64 = bed.partitions(run).await.iter().map(|it| it.rows).sum();
    assert_eq!((failed.rows, bed.raw().await.len() as u64), (0, others));
}

/// Shows: S2.02
async fn a_page_that_takes_too_long_is_stopped_and_tried_again(place: Place) {
    let bed = Bed::open(place, 95).await;
    assert_eq!(bed.settings.page_timeout, Duration::from_secs(60));
    let run = bed.schedule().await;
    bed.world.fault(Fault::on(at(30), Act::Hold(Valve::shut())).times(1));
    // Not a minute: the supplier never answers, and nobody wants to wait for that.
    let settings = Settings { page_timeout: Duration::from_millis(500), ..bed.settings.clone() };
    let diamonds = Diamonds::new(&bed.place.database, &settings).unwrap();
    let worker = diamonds::worker::worker(bed.place.worker(), diamonds).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let attempts = &bed.pages().await[1].attempts;
    assert_eq!(attempts[0].how, How::Retry);
    assert!(attempts[0].error.as_ref().unwrap().as_str().contains("stopped after its timeout"), "{attempts:?}");
    assert_eq!((bed.partition(run).await.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
}

/// A count has no limit of its own but its job's ten minutes.
async fn an_answer_has_as_long_as_a_page(place: Place) {
    let bed = Bed::open(place, 95).await;
    bed.world.fault(Fault::on(Ask::Count, Act::Hold(Valve::shut())));
    let settings = Settings { page_timeout: Duration::from_millis(100), ..bed.settings.clone() };
    let diamonds = Diamonds::new(&bed.place.database, &settings).unwrap();
    let job = schedule::ask(&bed.client, None).await.unwrap();
    let worker = diamonds::worker::control(bed.place.worker(), diamonds).build().unwrap();
    tokio::time::timeout(Duration::from_secs(15), worker.run_until_idle()).await.unwrap().unwrap();
    let record = bed.show(job).await;
    assert_eq!((record.summary.state, record.attempts[0].how), (JobState::Retryable, How::Retry));
    assert!(record.attempts[0].error.as_ref().unwrap().as_str().contains("timed out"), "{:?}", record.attempts);
}

async fn a_supplier_that_asks_for_silence_gets_it_from_all(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "200")]).await;
    let run = bed.schedule().await;
    bed.world.fault(Fault::on_pages(Act::RetryAfter(30)).times(1));
    bed.work().await;
    assert_eq!(bed.calls(), 1, "of all partitions");
    bed.advance(29);
    bed.work().await;
    assert_eq!(bed.calls(), 1);
    bed.advance(1);
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
}

async fn a_supplier_that_is_away_for_a_moment_is_left_alone_and_then_asked_again(place: Place) {
    let mut bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "200"), ("DIAMONDS_PAUSE_SECONDS", "5")]).await;
    let run = bed.schedule().await;
    let address = bed.stop_supplier().await;
    bed.work().await;
    let tries = async |bed: &Bed| bed.pages().await.iter().map(|page| page.attempts.len()).sum::<usize>();
    assert_eq!(tries(&bed).await, 1, "one page of all of them has found out");
    bed.start_supplier(address).await;
    bed.advance(4);
    bed.work().await;
    assert_eq!((tries(&bed).await, bed.calls()), (1, 0));
    bed.advance(1);
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
}

/// Shows: S2.37 S2.41
async fn a_supplier_that_is_gone_for_long_loses_nothing(place: Place) {
    let mut bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let held = bed.work_until_held(30).await;
    let address = bed.stop_supplier().await;
    // Who is being served is served; whoever comes then is refused.
    held.go_on().await;
    let partition = bed.partition(run).await;
    assert_eq!((partition.state, partition.next_offset, bed.calls()), (RunState::Failed, 60, 2));
    assert_eq!(bed.pages().await[2].attempts.len(), 5);
    assert_eq!((bed.raw().await.len(), bed.sold().await), (60, 0));
    bed.start_supplier(address).await;
    bed.resume(&partition).await;
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
    assert_eq!(bed.calls(), 4, "it went on where it stopped");
}

async fn a_revision_that_is_gone_fails_the_run_and_the_next_one_reads_the_latest(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let held = bed.work_until_held(30).await;
    for _ in 0..diamonds::catalogue::REVISIONS_KEPT {
        bed.world.advance();
    }
    held.go_on().await;
    let partition = bed.partition(run).await;
    assert_eq!((partition.state, partition.next_offset, bed.calls()), (RunState::Failed, 30, 2));
    assert!(partition.last_error.unwrap().as_str().contains("410"));
    assert_eq!(bed.sold().await, 0);
    let next = bed.schedule().await;
    bed.work().await;
    assert_eq!((bed.run(next).await.run.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
}
