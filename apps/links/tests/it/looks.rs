//! An import looks after its links: what does not go on by itself is helped, once, and each link is counted once.

use std::time::Duration;

use kit::testing::Place;
use links::Links;
use links::begin::begin;
use links::settle::settle;
use links::worker::IMPORTS;
use tenure::store::operate::{CancelJob, Word};
use tenure::{How, JobFilter, JobState, KindName, Sight};

use crate::bed::Bed;

kit::on_each_store! { links::TABLES;
    a_link_whose_job_a_person_canceled_counts_as_failed_and_is_revived_by_an_import,
    an_import_that_waits_looks_less_and_less_often,
    a_failure_that_was_written_down_but_never_reported_is_tried_again,
    pages_of_one_import_count_each_link_once,
}

async fn a_link_whose_job_a_person_canceled_counts_as_failed_and_is_revived_by_an_import(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    let first = bed.import("ada", &[url, "http://b.example/"]).await;
    let job = bed.job(url).await;
    let word = Word { actor: Some("operator".into()), reason: None };
    bed.client.store().cancel_job(CancelJob { sight: Sight::All, job, force: false, word }).await.unwrap();
    for _ in 0..3 {
        bed.run_and_settle().await;
    }
    assert_eq!(bed.counts("ada", &first).await, ("succeeded", 2, 2, 1));
    let second = bed.import("bob", &[url]).await;
    bed.run_and_settle().await;
    assert_eq!(bed.counts("bob", &second).await, ("succeeded", 1, 1, 0));
    assert_eq!(bed.job(url).await, job);
}

async fn an_import_that_waits_looks_less_and_less_often(place: Place) {
    let bed = Bed::open(place).await;
    bed.import("ada", &["http://broken.example/", "http://a.example/"]).await;
    bed.run_and_settle().await;
    let kind = Some(KindName::new("link.settle").unwrap());
    let page = bed.client.store().list_jobs(&JobFilter { kind, ..JobFilter::default() }).await.unwrap()[0].id;
    // From look to look, until its link is tried again.
    let (mut rests, began) = (Vec::new(), bed.place.clock.now());
    while bed.place.clock.now().since(began) < Duration::from_secs(250) {
        let rest = bed.client.show(page).await.unwrap().summary.run_at.since(bed.place.clock.now());
        rests.push(rest.as_millis());
        bed.place.advance(rest);
        bed.run().await;
    }
    assert!(rests.is_sorted() && rests[0] < 3_000 && *rests.last().unwrap() == 10_000, "{rests:?}");
}

/// Shows: S1.26
async fn a_failure_that_was_written_down_but_never_reported_is_tried_again(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://captcha.example/";
    let id = bed.import("ada", &[url]).await;
    // The process ends between the two: what it wrote is there, what it wanted to say is not.
    bed.database().execute("update link_canonical set state = 'doomed', last_error = 'x'", Vec::new()).await.unwrap();
    bed.world.set("captcha.example", links::world::Manner::Good);
    // The import looks, and nobody has the link.
    let links = Links::open(bed.database(), &bed.settings).unwrap();
    let imports = bed.place.worker().state(links).queue(IMPORTS, 1).handle(begin).handle(settle).build().unwrap();
    imports.run_until_idle().await.unwrap();
    assert_eq!(bed.state(url).await, "doomed", "its job has not ended");
    bed.run_and_settle().await;
    assert_eq!(bed.show(url).await.summary.state, JobState::Succeeded);
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 1, 1, 0), "the job has the last word");
}

/// Shows: S1.09
async fn pages_of_one_import_count_each_link_once(place: Place) {
    let bed = Bed::open(place).await;
    let urls: Vec<String> = (0..30).map(|n| format!("http://site-{n}.example/")).collect();
    let id = bed.import("ada", &urls.iter().map(String::as_str).collect::<Vec<_>>()).await;
    // One second, and a look at the import, after each few links.
    for url in &urls {
        let busy = url.len() % 3 == 0;
        bed.world.set(
            url.trim_start_matches("http://").trim_end_matches('/'),
            match busy {
                true => links::world::Manner::Captcha,
                false => links::world::Manner::Good,
            },
        );
    }
    let mut seen = 0;
    for _ in 0..20 {
        bed.run().await;
        bed.place.advance(Duration::from_secs(2));
        let import = bed.find("ada", &id).await;
        let run = bed.client.show_run(id.parse().unwrap()).await.unwrap();
        assert_eq!(import.processed_items, run.rows, "the import and its run agree at every moment");
        assert!(import.processed_items >= seen);
        seen = import.processed_items;
    }
    let failed = urls.iter().filter(|url| url.len() % 3 == 0).count() as u64;
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 30, 30, failed));
    let kind = Some(KindName::new("link.settle").unwrap());
    let pages = bed.client.store().list_jobs(&JobFilter { kind, limit: 100, ..JobFilter::default() }).await.unwrap();
    for page in pages {
        let ended = bed.client.show(page.id).await.unwrap().attempts;
        assert_eq!(ended.iter().filter(|it| it.how == How::Succeeded).count(), 1);
    }
}
