//! What fails is tried again after five minutes, once; who refuses us is dead at once, or at the second time.

use std::time::Duration;

use kit::testing::Place;
use links::enrich::Enrich;
use links::failure::{Failure, record};
use links::verdict::Met;
use links::world::Manner;
use tenure::{Ctx, Database, Fail, How, JobState, State, Tx, row};

use crate::bed::Bed;

kit::on_each_store! { links::TABLES;
    an_error_is_tried_again_after_five_minutes_and_then_it_is_dead,
    every_sort_of_error_waits_the_same_five_minutes,
    a_second_attempt_that_goes_well_is_a_success,
    a_robots_refusal_is_dead_at_once,
    a_captcha_is_dead_at_once,
    two_403s_in_a_row_are_dead_at_the_second,
    the_second_403_of_a_domain_is_dead_at_its_first_attempt,
    a_403_between_good_answers_is_no_row,
    block_candidates_are_counted_per_domain_and_reason,
    domains_that_fail_are_reported_the_worst_first,
    a_site_that_asks_for_silence_gets_it,
    an_attempt_that_is_written_down_twice_counts_once,
    what_is_over_and_what_a_later_attempt_said_stays,
    what_failed_long_ago_is_not_reported,
}

/// Shows: S1.15 S1.16 S1.17 S1.19 S1.26 S1.27 S1.28 S1.32 S1.45 S1.47
async fn an_error_is_tried_again_after_five_minutes_and_then_it_is_dead(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://broken.example/";
    bed.import("ada", &[url]).await;
    bed.run().await;
    let failed_at = bed.place.clock.now();
    let record = bed.show(url).await;
    assert_eq!((record.summary.state, record.summary.attempt), (JobState::Retryable, 1));
    assert_eq!(record.summary.run_at, failed_at.plus(Duration::from_secs(300)));
    assert!(record.summary.error.unwrap().as_str().contains("answered with status 500"));

    bed.advance(299);
    bed.run().await;
    assert_eq!(bed.calls(url), 1, "not a second earlier");
    bed.advance(1);
    bed.run().await;
    let record = bed.show(url).await;
    assert_eq!((record.summary.state, record.summary.attempt, bed.calls(url)), (JobState::Dead, 2, 2));
    assert_eq!(record.attempts.iter().map(|it| it.how).collect::<Vec<_>>(), [How::Retry, How::Dead]);
    bed.run_and_settle().await;
    assert_eq!(bed.state(url).await, "dead");
}

/// Shows: S1.14 S1.46
async fn every_sort_of_error_waits_the_same_five_minutes(place: Place) {
    let bed = Bed::with(place, &[("LINKS_FETCH_TIMEOUT_MS", "300")]).await;
    let urls = [
        "http://broken.example/",
        "http://gone.example/",
        "http://busy.example/",
        "http://hanging.example/",
        "http://circle.example/",
        "http://forbidden.example/",
        // No simulated web speaks TLS: nobody is reached.
        "https://unreachable.example/",
    ];
    bed.import("ada", &urls).await;
    bed.run().await;
    let due = bed.place.clock.now().plus(Duration::from_secs(300));
    for url in urls {
        let job = bed.show(url).await.summary;
        assert_eq!((job.state, job.run_at), (JobState::Retryable, due), "{url}");
    }
    let codes = ["http_500", "http_404", "http_503", "timeout", "http_302", "http_403", "connection"];
    for (url, code) in urls.into_iter().zip(codes) {
        let error = bed.show(url).await.summary.error.unwrap();
        assert!(error.as_str().contains(code), "{url} {error}");
    }
    assert!(bed.report().await.block_candidates.is_empty(), "none of this is a refusal yet");
}

/// Shows: S1.25 S1.27
async fn a_second_attempt_that_goes_well_is_a_success(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://once.example/";
    let id = bed.import("ada", &[url]).await;
    bed.run().await;
    bed.advance(300);
    bed.run_and_settle().await;
    let record = bed.show(url).await;
    assert_eq!(record.attempts.iter().map(|it| it.how).collect::<Vec<_>>(), [How::Retry, How::Succeeded]);
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 1, 1, 0));
    assert_eq!(bed.links("ada").await[0].last_error, None);
    assert_eq!(bed.place.count("select streak as n from link_domain where domain = 'once.example'").await, 0);
}

/// Shows: S1.48 S1.51
async fn a_robots_refusal_is_dead_at_once(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://robots.example/page";
    bed.import("ada", &[url]).await;
    let met_at = bed.place.clock.now();
    bed.run().await;
    let record = bed.show(url).await;
    assert_eq!((record.summary.state, record.attempts.len()), (JobState::Dead, 1));
    assert!(record.summary.error.unwrap().as_str().contains("ROBOTS_REFUSED"));
    assert_eq!(bed.calls(url), 0, "the page was not called");
    assert_eq!(bed.state(url).await, "dead", "its import knows it at the first look");
    let [candidate] = bed.report().await.block_candidates.try_into().unwrap();
    assert_eq!(
        (candidate.domain.as_str(), candidate.reason.as_str(), candidate.count),
        ("robots.example", "robots", 1)
    );
    assert_eq!((&candidate.first_seen, &candidate.last_seen), (&met_at.to_string(), &met_at.to_string()));
    assert_eq!(candidate.last_job, record.summary.id.to_string());
}

/// Shows: S1.49 S1.51
async fn a_captcha_is_dead_at_once(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://captcha.example/";
    bed.import("ada", &[url]).await;
    bed.run().await;
    let record = bed.show(url).await;
    assert_eq!((record.summary.state, record.attempts.len()), (JobState::Dead, 1));
    assert!(record.summary.error.unwrap().as_str().contains("CAPTCHA"));
    let [candidate] = bed.report().await.block_candidates.try_into().unwrap();
    assert_eq!((candidate.domain.as_str(), candidate.reason.as_str()), ("captcha.example", "captcha"));
}

/// Shows: S1.50 S1.51
async fn two_403s_in_a_row_are_dead_at_the_second(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://forbidden.example/";
    bed.import("ada", &[url]).await;
    bed.run().await;
    assert_eq!(bed.show(url).await.summary.state, JobState::Retryable, "the first is tried again");
    assert!(bed.report().await.block_candidates.is_empty());
    bed.advance(300);
    bed.run().await;
    assert_eq!(bed.show(url).await.summary.state, JobState::Dead);
    let [candidate] = bed.report().await.block_candidates.try_into().unwrap();
    let seen = (candidate.domain.as_str(), candidate.reason.as_str(), candidate.count);
    assert_eq!(seen, ("forbidden.example", "forbidden", 1));
}

/// Shows: S1.50
async fn the_second_403_of_a_domain_is_dead_at_its_first_attempt(place: Place) {
    let bed = Bed::open(place).await;
    let urls = ["http://forbidden.example/1", "http://forbidden.example/2"];
    bed.import("ada", &urls[..1]).await;
    bed.run().await;
    bed.import("bob", &urls[1..]).await;
    bed.run().await;
    assert_eq!(bed.show(urls[0]).await.summary.state, JobState::Retryable);
    let second = bed.show(urls[1]).await;
    assert_eq!((second.summary.state, second.summary.attempt), (JobState::Dead, 1));
    assert_eq!(bed.place.count("select streak as n from link_domain").await, 2);
}

/// Shows: S1.50
async fn a_403_between_good_answers_is_no_row(place: Place) {
    let bed = Bed::open(place).await;
    let domain = "moody.example";
    for (n, manner) in
        [Manner::Forbidden, Manner::Good, Manner::Forbidden, Manner::Gone, Manner::Forbidden].iter().enumerate()
    {
        bed.world.set(domain, *manner);
        let url = format!("http://{domain}/{n}");
        bed.import("ada", &[url.as_str()]).await;
        bed.run().await;
        let state = if *manner == Manner::Good { JobState::Succeeded } else { JobState::Retryable };
        assert_eq!(bed.show(&url).await.summary.state, state, "{n} {manner:?}");
    }
    assert!(bed.report().await.block_candidates.is_empty());
}

/// Shows: S1.51
async fn block_candidates_are_counted_per_domain_and_reason(place: Place) {
    let bed = Bed::open(place).await;
    bed.import("ada", &["http://robots.example/1", "http://robots.example/2"]).await;
    let first = bed.place.clock.now();
    bed.run().await;
    bed.advance(60);
    bed.import("bob", &["http://robots.example/3", "http://captcha.example/"]).await;
    bed.run().await;
    let report = bed.report().await;
    let seen: Vec<(&str, &str, u64)> =
        report.block_candidates.iter().map(|it| (it.domain.as_str(), it.reason.as_str(), it.count)).collect();
    assert_eq!(seen, [("robots.example", "robots", 3), ("captcha.example", "captcha", 1)]);
    let robots = &report.block_candidates[0];
    assert_eq!(robots.first_seen, first.to_string());
    assert_eq!(robots.last_seen, first.plus(Duration::from_secs(60)).to_string());
    assert_eq!(robots.last_job, bed.job("http://robots.example/3").await.to_string());
}

/// Shows: S1.55
async fn domains_that_fail_are_reported_the_worst_first(place: Place) {
    let bed = Bed::open(place).await;
    bed.import(
        "ada",
        &["http://broken.example/", "http://gone.example/1", "http://gone.example/2", "http://a.example/"],
    )
    .await;
    bed.run().await;
    bed.advance(300);
    bed.run().await;
    let report = bed.report().await;
    let seen: Vec<(&str, u64)> = report.failing.iter().map(|it| (it.domain.as_str(), it.failures)).collect();
    assert_eq!(seen, [("gone.example", 4), ("broken.example", 2)], "each attempt once");
}

async fn a_site_that_asks_for_silence_gets_it(place: Place) {
    let bed = Bed::open(place).await;
    bed.import("ada", &["http://busy.example/1"]).await;
    bed.run().await;
    assert_eq!(bed.calls("http://busy.example/1"), 1);
    bed.import("ada", &["http://busy.example/2", "http://a.example/"]).await;
    bed.run().await;
    assert_eq!((bed.calls("http://busy.example/2"), bed.calls("http://a.example/")), (0, 1), "for a minute");
    bed.advance(60);
    bed.run().await;
    assert_eq!(bed.calls("http://busy.example/2"), 1);
}

/// A handler that cannot know whether it was heard, and says it again.
async fn stutter(job: Enrich, State(database): State<Database>, ctx: Ctx) -> Result<(), Fail> {
    for _ in 0..2 {
        let failure =
            Failure::new(&ctx, job.link.clone(), "stutter.example".to_owned(), Met::Status(403), "no".to_owned());
        let verdict = database.transaction(move |tx| record(tx, &failure)).await?;
        assert_eq!(verdict.block, None, "one 403 is no row");
    }
    Err(Fail::http_status(403, "no"))
}

/// Shows: S1.50
async fn an_attempt_that_is_written_down_twice_counts_once(place: Place) {
    let bed = Bed::open(place).await;
    bed.import("ada", &["http://stutter.example/"]).await;
    let builder = bed.place.worker().state(bed.database().clone()).queue("links", 10).handle(stutter);
    builder.build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(bed.place.count("select streak as n from link_domain").await, 1);
    assert_eq!(bed.report().await.failing[0].failures, 1);
}

/// A handler that is late: its link is dead, or an attempt behind it has failed.
async fn come_late(job: Enrich, State(database): State<Database>, ctx: Ctx) -> Result<(), Fail> {
    let domain = "late.example".to_owned();
    let failure = Failure::new(&ctx, job.link.clone(), domain, Met::Captcha, "late".to_owned());
    let (link, at, later) = (job.link, ctx.job_id(), ctx.fence().0 + 1);
    let before = move |tx: &Tx<'_>| match job.url.ends_with("/dead") {
        true => tx.execute("update link_canonical set state = 'dead' where id = $1", row![link.as_str()]),
        false => {
            let insert = "insert into link_failure (job, fence, domain, met, at) values ($1, $2, 'x', 'x', $3)";
            tx.execute(insert, row![at, later, tx.now()?])
        }
    };
    database.transaction(before).await?;
    database.transaction(move |tx| record(tx, &failure)).await?;
    Ok(())
}

/// Shows: S1.36
async fn what_is_over_and_what_a_later_attempt_said_stays(place: Place) {
    let bed = Bed::open(place).await;
    let urls = ["http://late.example/dead", "http://late.example/later"];
    bed.import("ada", &urls).await;
    let builder = bed.place.worker().state(bed.database().clone()).queue("links", 10).handle(come_late);
    builder.build().unwrap().run_until_idle().await.unwrap();
    for (url, state) in urls.into_iter().zip(["dead", "open"]) {
        let row = bed.row(url).await;
        let seen = (row.get::<String>("state").unwrap(), row.get::<Option<String>>("last_error").unwrap());
        assert_eq!(seen, (state.to_owned(), None), "{url}");
    }
}

/// Shows: S1.55
async fn what_failed_long_ago_is_not_reported(place: Place) {
    let bed = Bed::open(place).await;
    bed.import("ada", &["http://gone.example/", "http://robots.example/"]).await;
    bed.run().await;
    assert_eq!(bed.report().await.failing.len(), 2);
    bed.advance(2 * 86_400);
    let report = bed.report().await;
    assert_eq!((report.failing.len(), report.block_candidates.len()), (0, 1), "a candidate stays one");
}
