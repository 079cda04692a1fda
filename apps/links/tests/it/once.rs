//! A link is enriched once, for ever, whoever imports it and however often.

use std::time::Duration;

use kit::testing::Place;
use links::world::Manner;
use tenure::store::operate::PruneJobs;
use tenure::{How, JobFilter, JobState, KindName};

use crate::bed::{Bed, another_worker};

kit::on_each_store! { links::TABLES;
    a_link_that_two_users_import_is_fetched_once,
    a_link_that_is_running_gets_no_new_job,
    an_import_of_known_links_ends_at_once,
    a_dead_link_is_requeued_and_never_created_again,
    a_link_that_an_operator_requeues_is_fetched,
    an_import_waits_for_a_link_that_an_operator_requeued,
    a_link_whose_job_was_forgotten_gets_another_one,
    two_imports_wait_for_one_link,
    two_workers_fetch_each_link_once,
}

async fn jobs_of_links(bed: &Bed) -> usize {
    let kind = Some(KindName::new("link.enrich").unwrap());
    bed.client.store().list_jobs(&JobFilter { kind, limit: 1_000, ..JobFilter::default() }).await.unwrap().len()
}

/// Shows: S1.13 S1.21 S1.23
async fn a_link_that_two_users_import_is_fetched_once(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    bed.import("ada", &[url, "http://a.example/#part", "http://A.example/?utm_source=x"]).await;
    bed.run_and_settle().await;
    bed.import("bob", &[url]).await;
    bed.run_and_settle().await;
    assert_eq!((bed.calls(url), jobs_of_links(&bed).await), (1, 1));
    assert_eq!(bed.show(url).await.attempts.len(), 1);
    for user in ["ada", "bob"] {
        assert_eq!(bed.links(user).await[0].title.as_deref(), Some("/ of a.example"));
    }
}

/// Shows: S1.20
async fn a_link_that_is_running_gets_no_new_job(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    bed.import("ada", &[url]).await;
    bed.world.valve().close();
    let meanwhile = async {
        bed.world.pages().wait_for(url, |calls| calls.now == 1).await;
        let job = bed.show(url).await.summary;
        assert_eq!(job.state, JobState::Running);
        bed.import("bob", &[url]).await;
        assert_eq!((bed.job(url).await, jobs_of_links(&bed).await), (job.id, 1));
        bed.world.valve().open();
    };
    tokio::join!(bed.run(), meanwhile);
    assert_eq!(bed.calls(url), 1);
}

/// Shows: S1.21
async fn an_import_of_known_links_ends_at_once(place: Place) {
    let bed = Bed::open(place).await;
    let urls = ["http://a.example/1", "http://a.example/2", "http://b.example/"];
    bed.import("ada", &urls).await;
    bed.run_and_settle().await;
    let id = bed.import("bob", &urls).await;
    bed.run_and_settle().await;
    assert_eq!(bed.counts("bob", &id).await, ("succeeded", 3, 3, 0));
    let kind = Some(KindName::new("link.settle").unwrap());
    let pages = bed.client.store().list_jobs(&JobFilter { kind, ..JobFilter::default() }).await.unwrap();
    // The newest is first. It looked once: nothing was waited for.
    assert_eq!(bed.client.show(pages[0].id).await.unwrap().attempts.len(), 1);
    assert_eq!((bed.world.pages().calls(), jobs_of_links(&bed).await), (3, 3));
}

/// Shows: S1.22
async fn a_dead_link_is_requeued_and_never_created_again(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://captcha.example/";
    let first = bed.import("ada", &[url]).await;
    bed.run_and_settle().await;
    let job = bed.job(url).await;
    assert_eq!((bed.state(url).await.as_str(), bed.show(url).await.summary.state), ("dead", JobState::Dead));

    bed.world.set("captcha.example", Manner::Good);
    bed.advance(60);
    let second = bed.import("bob", &[url]).await;
    assert_eq!(bed.find("bob", &second).await.last_error, None, "what went wrong before is not his");
    bed.run_and_settle().await;
    assert_eq!((bed.job(url).await, jobs_of_links(&bed).await), (job, 1), "the very same job");
    let attempts = bed.show(url).await.attempts;
    assert_eq!(attempts.iter().map(|it| it.how).collect::<Vec<_>>(), [How::Dead, How::Succeeded]);
    assert_eq!(bed.counts("bob", &second).await, ("succeeded", 1, 1, 0));
    assert_eq!(bed.counts("ada", &first).await, ("failed", 1, 1, 1), "what was over stays over");
}

/// Shows: S1.22
async fn a_link_that_an_operator_requeues_is_fetched(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://captcha.example/";
    let id = bed.import("ada", &[url]).await;
    bed.run_and_settle().await;
    for state in ["dead", "enriched"] {
        let calls = bed.calls(url);
        bed.client.requeue(bed.job(url).await).await.unwrap();
        bed.run().await;
        assert_eq!((bed.calls(url), bed.state(url).await.as_str()), (calls + 1, state), "nobody waits for it any more");
        bed.world.set("captcha.example", Manner::Good);
    }
    assert_eq!(bed.counts("ada", &id).await, ("failed", 1, 1, 1), "what was over stays over");
}

/// Shows: S1.22
async fn an_import_waits_for_a_link_that_an_operator_requeued(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://captcha.example/";
    bed.import("ada", &[url]).await;
    bed.run_and_settle().await;
    bed.client.requeue(bed.job(url).await).await.unwrap();
    bed.world.set("captcha.example", Manner::Good);
    let id = bed.import("bob", &[url]).await;
    assert_eq!(bed.state(url).await, "open");
    bed.run_and_settle().await;
    assert_eq!((bed.calls(url), bed.counts("bob", &id).await), (2, ("succeeded", 1, 1, 0)));
}

/// Shows: S1.13 S1.22
async fn a_link_whose_job_was_forgotten_gets_another_one(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://captcha.example/";
    bed.import("ada", &[url]).await;
    bed.run_and_settle().await;
    for (calls, manner, status) in [(2, Manner::Captcha, "failed"), (3, Manner::Good, "succeeded")] {
        let job = bed.job(url).await;
        forget_jobs(&bed).await;
        bed.world.set("captcha.example", manner);
        let imports = [bed.import("bob", &[url]).await, bed.import("bob", &[url]).await];
        bed.run_and_settle().await;
        assert_eq!((bed.calls(url), jobs_of_links(&bed).await), (calls, 1), "one, and not one for each");
        assert_ne!(bed.job(url).await, job);
        for id in imports {
            assert_eq!(bed.find("bob", &id).await.status, status);
        }
    }
    forget_jobs(&bed).await;
    let id = bed.import("carol", &[url]).await;
    bed.run_and_settle().await;
    assert_eq!((bed.calls(url), bed.counts("carol", &id).await), (3, ("succeeded", 1, 1, 0)), "it is known");
}

/// Somebody removes what has ended, dead letters too.
async fn forget_jobs(bed: &Bed) {
    bed.advance(60);
    let older_than = Duration::from_secs(1);
    bed.client.store().prune_jobs(PruneJobs { older_than, dead_too: true, limit: 1_000 }).await.unwrap();
    assert_eq!(jobs_of_links(bed).await, 0);
}

/// Shows: S1.23
async fn two_imports_wait_for_one_link(place: Place) {
    let bed = Bed::open(place).await;
    let shared = "http://broken.example/";
    let ada = bed.import("ada", &[shared, "http://a.example/"]).await;
    let bob = bed.import("bob", &[shared, "http://b.example/"]).await;
    bed.run_and_settle().await;
    for (user, id) in [("ada", &ada), ("bob", &bob)] {
        assert_eq!(bed.counts(user, id).await, ("running", 2, 1, 0));
    }
    bed.world.set("broken.example", Manner::Good);
    bed.advance(300);
    bed.run_and_settle().await;
    for (user, id) in [("ada", &ada), ("bob", &bob)] {
        assert_eq!(bed.counts(user, id).await, ("succeeded", 2, 2, 0));
    }
    assert_eq!(bed.calls(shared), 2);
}

/// Shows: S1.36
async fn two_workers_fetch_each_link_once(place: Place) {
    let bed = Bed::open(place).await;
    let urls: Vec<String> = (0..40).map(|n| format!("http://site-{}.example/{n}", n % 20)).collect();
    bed.import("ada", &urls.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let other = another_worker(&bed.place, &bed.settings);
    let (one, two) = tokio::join!(bed.run(), async { other.run_until_idle().await.unwrap() });
    assert!(one.claimed > 0 && two.claimed > 0, "{one:?} {two:?}");
    for url in &urls {
        assert_eq!(bed.calls(url), 1, "{url}");
    }
}
