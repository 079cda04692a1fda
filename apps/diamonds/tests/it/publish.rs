//! The stones we sell: what becomes of them when the catalogue changes, and when runs overtake each other.

use diamonds::price_range::PriceRange;
use diamonds::schedule::{self, Schedule};
use diamonds::settings::Settings;
use diamonds::split::{Plan, split};
use diamonds::worker::Diamonds;
use diamonds::world::{Act, Ask, Fault, World};
use diamonds::{GATE, worker};
use kit::testing::Place;
use serde_json::{Value, json};
use tenure::{JobState, RunId, RunState, row};

use crate::bed::{Bed, listed};

kit::on_each_store! { diamonds::TABLES;
    a_later_run_updates_stones_and_removes_those_that_were_withdrawn,
    a_raw_stone_is_all_that_the_supplier_said_of_it,
    a_run_that_was_resumed_late_undoes_nothing,
    a_run_publishes_nothing_that_another_one_has_left_behind,
    a_schedule_that_is_tried_again_finds_the_run_that_it_made,
    what_is_published_is_the_revision_that_was_read,
    stones_that_change_while_they_are_read_are_neither_lost_nor_doubled,
    a_supplier_whose_revisions_went_back_is_refused,
    a_catalogue_in_too_many_partitions_is_refused_with_a_size_that_would_do,
}

/// A stone of revision 0 that nobody lists any more.
const LEFT_BEHIND: &str = "
  insert into diamonds_stone (supplier_stone_id, offer_id, origin, shape, carat_points, colour, clarity, cut, price_cents,
    retail_cents, available, changed_at, run_id, as_of)
  select 'withdrawn', offer_id, origin, shape, carat_points, colour, clarity, cut, price_cents,
    retail_cents, available, changed_at, $1, 0
  from diamonds_stone order by supplier_stone_id limit 1";

/// Price by id, of the stones we sell.
async fn sold(bed: &Bed) -> Vec<(String, u64)> {
    let select = "select supplier_stone_id, price_cents from diamonds_stone order by supplier_stone_id";
    let rows = bed.place.database.query(select, row![]).await.unwrap();
    rows.iter().map(|row| (row.get("supplier_stone_id").unwrap(), row.get("price_cents").unwrap())).collect()
}

fn asked(world: &World) -> Vec<(String, u64)> {
    listed(world).into_iter().map(|(id, stone)| (id, stone.price_cents)).collect()
}

/// Shows: S2.46
async fn a_later_run_updates_stones_and_removes_those_that_were_withdrawn(place: Place) {
    let bed = Bed::open(place, 600).await;
    bed.schedule().await;
    bed.work().await;
    assert_eq!(sold(&bed).await, asked(&bed.world));
    for _ in 0..5 {
        bed.world.advance();
    }
    let run = bed.schedule().await;
    bed.work().await;
    assert_eq!(bed.raw().await, listed(&bed.world));
    assert_eq!(sold(&bed).await, asked(&bed.world));
    let raw = "select supplier_stone_id, run_id, offer_id from diamonds_raw";
    let (rows, expected) = (bed.place.database.query(raw, row![]).await.unwrap(), listed(&bed.world));
    assert_eq!(rows.len(), expected.len());
    for row in rows {
        let stone = &expected[&row.get::<String>("supplier_stone_id").unwrap()];
        assert_eq!(
            (row.get("run_id").unwrap(), row.get("offer_id").unwrap()),
            (run.to_string(), stone.offer_id.clone())
        );
    }
    let published = bed.result(bed.run(run).await.consolidate.unwrap()).await;
    assert_eq!(published["stones"].as_u64().unwrap() as usize, listed(&bed.world).len());
    assert!(published["withdrawn"].as_u64().unwrap() > 0, "{published}");
}

/// Shows: S2.46
async fn a_raw_stone_is_all_that_the_supplier_said_of_it(place: Place) {
    let bed = Bed::open(place, 1).await;
    let mut told = listed(&bed.world).into_values().next().unwrap().to_json();
    told["mine"] = json!({ "name": "Karowe", "depth_m": [324, null], "ratio": 1.5 });
    bed.world.fault(Fault::on_pages(Act::Say(json!({ "stones": [told] }).to_string())));
    bed.schedule().await;
    bed.work().await;
    let rows = bed.place.database.query("select payload from diamonds_raw", row![]).await.unwrap();
    let kept: Value = serde_json::from_str(&rows[0].get::<String>("payload").unwrap()).unwrap();
    assert_eq!((rows.len(), kept), (1, told));
    assert_eq!(sold(&bed).await, asked(&bed.world));
}

async fn a_run_that_was_resumed_late_undoes_nothing(place: Place) {
    let bed = Bed::open(place, 300).await;
    let early = bed.schedule().await;
    bed.world.fault(Fault::on(Ask::Page { min: None, offset: Some(90) }, Act::Status(404)).times(1));
    bed.work().await;
    assert_eq!(bed.run(early).await.run.state, RunState::Failed);
    bed.world.advance();
    bed.world.advance();
    let late = bed.schedule().await;
    bed.work().await;
    assert_eq!(bed.run(late).await.run.state, RunState::Succeeded);

    // On Postgres a batch of the early one may be stored beside the later publication: a stone that was withdrawn since.
    bed.place.database.execute(LEFT_BEHIND, row![early]).await.unwrap();
    bed.resume(&bed.partition(early).await).await;
    bed.work().await;
    let record = bed.run(early).await;
    assert_eq!(record.run.state, RunState::Succeeded);
    let told = bed.result(record.consolidate.unwrap()).await;
    assert_eq!((&told["published_before"], &told["stones"], &told["withdrawn"]), (&json!(2), &json!(0), &json!(1)));
    assert_eq!(sold(&bed).await, asked(&bed.world), "the later revision stays");
    assert_eq!(bed.raw().await, listed(&bed.world), "in the raw table as well");
}

async fn a_run_publishes_nothing_that_another_one_has_left_behind(place: Place) {
    let bed = Bed::open(place, 300).await;
    let fail_at = |offset| Fault::on(Ask::Page { min: None, offset: Some(offset) }, Act::Status(404)).times(1);
    let (early, as_it_was) = (bed.schedule().await, asked(&bed.world));
    bed.world.fault(fail_at(90));
    bed.work().await;
    for _ in 0..5 {
        bed.world.advance();
    }
    let late = bed.schedule().await;
    bed.world.fault(fail_at(210));
    bed.work().await;
    assert_eq!((bed.run(late).await.run.state, bed.run(late).await.rows), (RunState::Failed, 210));
    assert_ne!(asked(&bed.world), as_it_was);

    bed.resume(&bed.partition(early).await).await;
    bed.work().await;
    assert_eq!(bed.run(early).await.run.state, RunState::Succeeded);
    assert_eq!(sold(&bed).await, as_it_was, "every stone and price of the early revision, and none of the late one");
    bed.resume(&bed.partition(late).await).await;
    bed.work().await;
    assert_eq!((sold(&bed).await, bed.raw().await), (asked(&bed.world), listed(&bed.world)));
}

/// The latest revision, cut as the bed's settings say.
async fn plan(bed: &Bed) -> Plan {
    let count = |range| {
        let stones = bed.world.latest().count(range);
        async move { Ok::<_, std::convert::Infallible>(stones) }
    };
    split(PriceRange::ALL, bed.settings.limits, count).await.unwrap()
}

/// A job that will be tried in an hour, and what its first attempt made before its worker died.
async fn half_scheduled(bed: &Bed) -> RunId {
    let later = std::time::Duration::from_secs(3_600);
    let job = bed.client.enqueue(Schedule { trace_id: None }).gate(GATE).delay(later).await.unwrap().job();
    let run = RunId::from_uuid(*job.as_uuid());
    let made = schedule::create(&bed.diamonds, &bed.client, run, "trace-7", 0, &plan(bed).await).await.unwrap();
    assert_eq!(made, None);
    run
}

async fn a_schedule_that_is_tried_again_finds_the_run_that_it_made(place: Place) {
    let bed = Bed::open(place, 95).await;
    let (run, as_it_was) = (half_scheduled(&bed).await, asked(&bed.world));
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, sold(&bed).await), (RunState::Succeeded, as_it_was.clone()));
    bed.world.advance();
    bed.advance(3_600);
    bed.work().await;
    let told = bed.result(run.to_string().parse().unwrap()).await;
    let expected = json!({
        "run": run.to_string(), "created": true, "as_of": 0, "partitions": 1, "stones": 95, "queries": 0,
    });
    assert_eq!((told, bed.world.traffic().of("latest").calls), (expected, 0), "the supplier was not asked");
    assert_eq!(sold(&bed).await, as_it_was);
    assert_eq!(bed.place.count("select max(as_of) as n from diamonds_run").await, 0);
}

/// Two attempts of one schedule may run at once, when the lease of the first is lost: the second one notes a later revision,
/// and the run is the first one's.
async fn what_is_published_is_the_revision_that_was_read(place: Place) {
    let bed = Bed::open(place, 95).await;
    let (run, as_it_was) = (half_scheduled(&bed).await, asked(&bed.world));
    bed.world.advance();
    schedule::create(&bed.diamonds, &bed.client, run, "trace-7", 1, &plan(&bed).await).await.unwrap();
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, sold(&bed).await), (RunState::Succeeded, as_it_was));
    assert_eq!(bed.place.count("select as_of as n from diamonds_run").await, 0);
}

/// Shows: S2.04
async fn stones_that_change_while_they_are_read_are_neither_lost_nor_doubled(place: Place) {
    let bed = Bed::with(place, 1_000, &[("DIAMONDS_PARTITION_SIZE", "200")]).await;
    let run = bed.schedule().await;
    let as_it_was = listed(&bed.world);
    let held = bed.work_until_held_of(&bed.partitions(run).await.pop().unwrap(), 30).await;
    for _ in 0..3 {
        bed.world.advance(); // prices move from range to range, stones come and go
    }
    held.go_on().await;
    assert_eq!((bed.raw().await, bed.run(run).await.rows), (as_it_was, 1_000));
    bed.schedule().await;
    bed.work().await;
    assert_eq!(bed.raw().await, listed(&bed.world), "the next run finds what has changed");
}

async fn a_supplier_whose_revisions_went_back_is_refused(place: Place) {
    let bed = Bed::open(place, 95).await;
    bed.world.advance();
    bed.schedule().await;
    bed.work().await;
    let other = World::new(8, 95).unwrap();
    let site = other.open().await.unwrap();
    let settings = Settings { supplier_url: site.url(), ..bed.settings.clone() };
    let diamonds = Diamonds::new(&bed.place.database, &settings).unwrap();
    let job = schedule::ask(&bed.client, None).await.unwrap();
    worker::control(bed.place.worker(), diamonds).build().unwrap().run_until_idle().await.unwrap();
    let record = bed.show(job).await;
    assert_eq!(record.summary.state, JobState::Failed);
    let told = record.summary.error.unwrap();
    assert!(told.as_str().contains("the supplier is at revision 0, and 1 is published"), "{told}");
}

async fn a_catalogue_in_too_many_partitions_is_refused_with_a_size_that_would_do(place: Place) {
    let bed = Bed::with(place, 1_000, &[("DIAMONDS_PARTITION_SIZE", "10")]).await;
    let job = schedule::ask(&bed.client, None).await.unwrap();
    bed.control().await;
    let record = bed.show(job).await;
    assert_eq!(record.summary.state, JobState::Failed);
    let told = record.summary.error.unwrap();
    assert!(told.as_str().contains("take at least 21"), "{told}");
}
