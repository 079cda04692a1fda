//! One run at a time, whoever asks for it and however many at once.

use diamonds::GATE;
use diamonds::deliver::{self, Delivered};
use diamonds::monitor::{self, NotResumed};
use diamonds::nightly::Nightly;
use diamonds::schedule::{self, Schedule};
use diamonds::work_item::WorkItem;
use diamonds::world::{Act, Ask, Fault, HELD};
use kit::Valve;
use kit::testing::Place;
use tenure::{JobState, RunId, RunState, Summary, row};
use tokio::task::JoinHandle;

use crate::bed::{Bed, listed};

kit::on_each_store! { diamonds::TABLES;
    there_is_one_run_at_a_time,
    of_two_schedules_at_once_one_makes_a_run,
    of_a_schedule_and_a_resume_at_once_one_opens_a_run,
    a_run_that_failed_stays_so_while_another_goes_on,
    who_dies_before_its_run_is_made_keeps_the_catalogue_for_a_minute,
    the_night_only_asks,
    a_trace_that_no_message_could_carry_is_refused,
}

async fn there_is_one_run_at_a_time(place: Place) {
    let bed = Bed::open(place, 95).await;
    let asked = schedule::ask(&bed.client, None).await.unwrap();
    assert_eq!(schedule::ask(&bed.client, None).await.unwrap(), asked, "it is asked for already");
    bed.control().await;
    let run = bed.result(asked).await["run"].as_str().unwrap().to_owned();
    assert_eq!(run, asked.to_string(), "a run has the id of the job that created it");
    let again = schedule::ask(&bed.client, None).await.unwrap();
    bed.control().await;
    let told = bed.result(again).await;
    assert_eq!((told["run"].as_str(), told["created"].as_bool()), (Some(run.as_str()), Some(false)));
    assert_eq!(bed.place.count("select count(*) as n from diamonds_run").await, 1);
    bed.work().await;
    let next = bed.schedule().await;
    assert_ne!(next.to_string(), run);
}

/// A worker that has begun to schedule, and is kept waiting by the supplier.
fn control(bed: &Bed, name: &str) -> JoinHandle<Summary> {
    let worker = diamonds::worker::control(bed.place.worker().name(name), bed.diamonds.clone()).build().unwrap();
    tokio::spawn(async move { worker.run_until_idle().await.unwrap() })
}

/// Until the valve is opened nobody hears what the latest revision is: whoever asks has seen no open run.
fn hold_latest(bed: &Bed) -> Valve {
    let valve = Valve::shut();
    bed.world.fault(Fault::on(Ask::Latest, Act::Hold(valve.clone())));
    valve
}

/// A run that has failed at 30.
async fn failed(bed: &Bed) -> RunId {
    let run = bed.schedule().await;
    bed.world.fault(Fault::on(Ask::Page { min: None, offset: Some(30) }, Act::Status(404)).times(1));
    bed.work().await;
    assert_eq!(bed.run(run).await.run.state, RunState::Failed);
    run
}

async fn of_two_schedules_at_once_one_makes_a_run(place: Place) {
    let bed = Bed::open(place, 95).await;
    let valve = hold_latest(&bed);
    let (mut jobs, mut working) = (Vec::new(), Vec::new());
    for n in 1..=2 {
        jobs.push(bed.client.enqueue(Schedule { trace_id: None }).gate(GATE).await.unwrap().job());
        working.push(control(&bed, &format!("worker-{n}")));
        bed.world.traffic().wait_for(HELD, |held| held.now == n).await;
    }
    valve.open();
    for worker in working {
        worker.await.unwrap();
    }
    let [one, two] = [bed.result(jobs[0]).await, bed.result(jobs[1]).await];
    assert_ne!(one["created"], two["created"], "{one} {two}");
    assert_eq!((&one["run"], &one["stones"], &one["partitions"]), (&two["run"], &two["stones"], &two["partitions"]));
    assert_eq!(monitor::open_runs(&bed.client).await.unwrap().len(), 1);
    assert_eq!(bed.place.count("select count(*) as n from diamonds_run").await, 1);
    bed.work().await;
    assert_eq!((bed.raw().await, bed.sold().await), (listed(&bed.world), 95));
}

async fn of_a_schedule_and_a_resume_at_once_one_opens_a_run(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = failed(&bed).await;
    let valve = hold_latest(&bed);
    let job = schedule::ask(&bed.client, None).await.unwrap();
    let working = control(&bed, "one");
    bed.world.traffic().wait_for(HELD, |held| held.now == 1).await;
    bed.resume(&bed.partition(run).await).await;
    valve.open();
    working.await.unwrap();
    let told = bed.result(job).await;
    assert_eq!((told["created"].as_bool(), told["run"].as_str()), (Some(false), Some(run.to_string().as_str())));
    let [open] = monitor::open_runs(&bed.client).await.unwrap().try_into().unwrap();
    assert_eq!(open.id, run);
}

async fn a_run_that_failed_stays_so_while_another_goes_on(place: Place) {
    let bed = Bed::open(place, 95).await;
    let early = failed(&bed).await;
    let late = bed.schedule().await;
    let partition = bed.partition(early).await;
    let refused = monitor::resume(&bed.place.database, &bed.client, early, &partition.name).await.unwrap_err();
    assert!(matches!(refused, NotResumed::Busy { run, open } if (run, open) == (early, late)), "{refused}");
    let message = WorkItem::by_hand(&partition, 30).unwrap().to_json().to_string();
    let sent = deliver::send(&bed.client, &bed.settings, message.as_bytes()).await.unwrap().job();
    bed.control().await;
    let delivered: Delivered = serde_json::from_value(bed.result(sent).await).unwrap();
    assert_eq!(delivered, Delivered::Busy { run: late.to_string() });
    assert_eq!(bed.run(early).await.run.state, RunState::Failed);
    bed.work().await;
    bed.resume(&partition).await;
    bed.work().await;
    assert_eq!(bed.run(early).await.run.state, RunState::Succeeded, "when the other one is over it may");
}

async fn who_dies_before_its_run_is_made_keeps_the_catalogue_for_a_minute(place: Place) {
    let bed = Bed::open(place, 95).await;
    let (dead, until) =
        ("019aa0c4-7b5a-7000-8000-000000000001", bed.place.clock.now().plus(std::time::Duration::from_secs(60)));
    let claim = "insert into diamonds_claim (source, run_id, turn, pending_until) values ('catalogue', $1, 1, $2)";
    bed.place.database.execute(claim, row![dead, until]).await.unwrap();
    let note = "insert into diamonds_run (run_id, trace_id, as_of, partitions, stones, created_at, told)
        values ($1, 'dead', 0, 1, 95, $2, false)";
    bed.place.database.execute(note, row![dead, bed.place.clock.now()]).await.unwrap();
    bed.advance(59);
    let job = schedule::ask(&bed.client, None).await.unwrap();
    bed.control().await;
    let told = bed.result(job).await;
    assert_eq!((told["created"].as_bool(), told["run"].as_str()), (Some(false), Some(dead)));
    bed.advance(1);
    bed.schedule().await;
}

async fn the_night_only_asks(place: Place) {
    let bed = Bed::open(place, 95).await;
    let asked = schedule::ask(&bed.client, Some("by-hand".to_owned())).await.unwrap();
    let valve = hold_latest(&bed);
    let working = control(&bed, "one");
    bed.world.traffic().wait_for(HELD, |held| held.now == 1).await;
    let night = bed.client.enqueue(Nightly {}).await.unwrap().job();
    bed.control().await;
    assert_eq!(bed.result(night).await, asked.to_string(), "it is asked for already");
    valve.open();
    working.await.unwrap();
    bed.work().await;
    let night = bed.client.enqueue(Nightly {}).await.unwrap().job();
    bed.work().await;
    let next: RunId = bed.result(night).await.as_str().unwrap().parse().unwrap();
    assert_eq!(bed.run(next).await.run.state, RunState::Succeeded, "and here it was not");
}

/// Its pages would all be refused for good.
async fn a_trace_that_no_message_could_carry_is_refused(place: Place) {
    let bed = Bed::open(place, 95).await;
    for trace in ["".to_owned(), "x".repeat(101), "a\nb".to_owned()] {
        let refused = schedule::ask(&bed.client, Some(trace.clone())).await.unwrap_err().to_string();
        assert!(refused.contains("traceId"), "{refused}");
        let job = bed.client.enqueue(Schedule { trace_id: Some(trace) }).gate(GATE).await.unwrap().job();
        bed.control().await;
        assert_eq!(bed.show(job).await.summary.state, JobState::Failed);
    }
    assert_eq!(bed.place.count("select count(*) as n from diamonds_run").await, 0);
}
