//! What is learned of a link, by the manner of its site.

use kit::testing::Place;
use links::world::Manner;
use tenure::{How, JobState};

use crate::bed::Bed;

kit::on_each_store! { links::TABLES;
    title_description_canonical_address_and_language_are_kept,
    pages_of_every_manner_are_understood,
    a_redirect_is_followed_at_home_and_told_elsewhere,
    with_www_before_its_name_a_site_is_at_home,
    a_robots_file_is_read_wherever_it_has_moved_to,
    robots_is_asked_once_for_all_pages_of_a_site,
    nothing_but_the_four_fields_is_kept,
}

/// Shows: S1.24 S1.25
async fn title_description_canonical_address_and_language_are_kept(place: Place) {
    let bed = Bed::open(place).await;
    bed.import("ada", &["http://site.example/a/../page?x=1"]).await;
    let url = "http://site.example/page?x=1";
    assert_eq!(bed.show(url).await.summary.state, JobState::Queued);
    bed.run_and_settle().await;
    let [link] = bed.links("ada").await.try_into().unwrap();
    assert_eq!((link.url.as_str(), link.status, link.domain.as_str()), (url, "enriched", "site.example"));
    assert_eq!(link.title.as_deref(), Some("/page of site.example"));
    assert_eq!(link.description.as_deref(), Some("All about /page"));
    assert_eq!(link.canonical_url.as_deref(), Some("http://site.example/page"));
    assert_eq!(link.language.as_deref(), Some("en"));
    let record = bed.show(url).await;
    assert_eq!((record.summary.state, record.summary.attempt), (JobState::Succeeded, 1));
}

async fn pages_of_every_manner_are_understood(place: Place) {
    let bed = Bed::open(place).await;
    let manners = [Manner::Good, Manner::Korean, Manner::Huge, Manner::Paper];
    let urls = manners.map(|manner| format!("http://{}/", manner.domain()));
    bed.import("ada", &urls.each_ref().map(String::as_str)).await;
    bed.run_and_settle().await;
    let links = bed.links("ada").await;
    let read: Vec<(&str, Option<&str>, Option<&str>)> =
        links.iter().map(|link| (link.domain.as_str(), link.title.as_deref(), link.language.as_deref())).collect();
    let expected = [
        ("good.example", Some("/ of good.example"), Some("en")),
        ("huge.example", Some("/ of huge.example"), Some("en")),
        ("korean.example", Some("한국어 페이지"), Some("ko-kr")),
        ("paper.example", None, None),
    ];
    assert_eq!(read, expected);
    assert!(links.iter().all(|link| link.status == "enriched"));
}

async fn a_redirect_is_followed_at_home_and_told_elsewhere(place: Place) {
    let bed = Bed::open(place).await;
    bed.import("ada", &["http://moved.example/a", "http://away.example/", "http://circle.example/"]).await;
    bed.run_and_settle().await;
    let links = bed.links("ada").await;
    let [away, circle, moved] = links.try_into().unwrap();
    assert_eq!((moved.status, moved.title.as_deref()), ("enriched", Some("/a/new of moved.example")));
    assert_eq!((away.status, away.title), ("enriched", None));
    assert_eq!(away.redirects_to.as_deref(), Some("http://elsewhere.example/"));
    assert_eq!(bed.world.domains().of("elsewhere.example").calls, 0, "it has a gate of its own");
    assert_eq!(circle.status, "waiting");
    assert_eq!(circle.last_error.as_deref(), Some("it was redirected more than 5 times"));
    let calls: u64 =
        bed.world.pages().all().iter().filter(|(url, _)| url.contains("circle")).map(|(_, it)| it.calls).sum();
    assert_eq!(calls, 6);
}

/// Shows: S1.43
async fn with_www_before_its_name_a_site_is_at_home(place: Place) {
    let bed = Bed::open(place).await;
    let urls = ["http://bare.example/a", "http://www.bare.example/b"];
    bed.import("ada", &urls).await;
    for url in urls {
        let gate = bed.show(url).await.summary.gate.unwrap();
        assert_eq!(gate.as_str(), "domain:bare.example", "two at once, of both together");
    }
    bed.run_and_settle().await;
    let [bare, www] = bed.links("ada").await.try_into().unwrap();
    assert_eq!((bare.title.as_deref(), bare.redirects_to), (Some("/a of www.bare.example"), None));
    assert_eq!((bare.domain.as_str(), www.domain.as_str()), ("bare.example", "www.bare.example"));
}

/// Shows: S1.48
async fn a_robots_file_is_read_wherever_it_has_moved_to(place: Place) {
    let bed = Bed::open(place).await;
    let (refused, unknown) = ("http://delegating.example/", "http://dizzy.example/");
    bed.import("ada", &[refused, unknown]).await;
    bed.run().await;
    assert_eq!(bed.show(refused).await.summary.state, JobState::Dead);
    assert_eq!(bed.report().await.block_candidates[0].domain, "delegating.example", "not who wrote it");
    let dizzy = bed.show(unknown).await.summary;
    assert_eq!(dizzy.state, JobState::Retryable, "what nobody knows is no permission");
    assert!(dizzy.error.unwrap().as_str().contains("robots.txt was answered with status 302"));
    assert_eq!((bed.calls(refused), bed.calls(unknown)), (0, 0));
    assert_eq!(bed.world.domains().of("dizzy.example").calls, 6, "it, and five redirects");
}

async fn robots_is_asked_once_for_all_pages_of_a_site(place: Place) {
    let bed = Bed::open(place).await;
    let urls: Vec<String> = (0..6).map(|n| format!("http://good.example/{n}")).collect();
    let mut urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    urls.push("http://good.example/private/diary");
    let id = bed.import("ada", &urls).await;
    bed.run_and_settle().await;
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 7, 7, 1));
    assert_eq!(bed.world.domains().of("good.example").calls, 6 + 1, "six pages and one robots.txt");
    assert_eq!(bed.calls("http://good.example/private/diary"), 0);
}

/// Shows: S1.59 S1.60
async fn nothing_but_the_four_fields_is_kept(place: Place) {
    let bed = Bed::open(place).await;
    bed.import("ada", &["http://site.example/"]).await;
    bed.run_and_settle().await;
    // Every column of every table of the product, and all that the job has of its own.
    for table in [
        "select * from link_canonical",
        "select * from link_import",
        "select * from link_item",
        "select * from link_placement",
    ] {
        for row in bed.database().query(table, Vec::new()).await.unwrap() {
            for (column, value) in row.fields() {
                let text = format!("{value:?}");
                assert!(!text.contains("nobody keeps") && !text.contains("<h1>"), "{column}: {text}");
                assert!(!text.contains("Bytes"), "{column} holds bytes, a picture perhaps");
            }
        }
    }
    let record = bed.show("http://site.example/").await;
    let [attempt] = record.attempts.try_into().unwrap();
    assert_eq!((attempt.how, attempt.result), (How::Succeeded, None));
}
