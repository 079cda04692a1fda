//! Files on their way in: what is stored, what is counted, and when an import is over.

use kit::testing::Place;
use links::bookmarks::write::Writer;
use links::bookmarks::{self, Limits};
use links::import::{self, Import};
use tenure::core::Json;
use tenure::{JobFilter, RunState, row};

use crate::bed::{Bed, export};

kit::on_each_store! { links::TABLES;
    an_import_goes_from_queued_to_succeeded_with_its_counts_and_times,
    every_placement_is_stored_and_every_link_once,
    an_import_without_links_ends_at_once,
    an_import_of_which_nothing_could_be_enriched_has_failed,
    an_import_is_the_users_own,
    the_run_of_an_import_counts_as_the_import_does,
    a_begin_that_is_repeated_changes_nothing,
    an_address_that_is_none_is_counted_as_unreadable,
    an_import_that_was_not_committed_is_nowhere,
}

/// Shows: S1.06 S1.07 S1.08 S1.09 S1.10
async fn an_import_goes_from_queued_to_succeeded_with_its_counts_and_times(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://a.example/1", "http://a.example/2", "http://gone.example/"]).await;
    assert!(id.parse::<tenure::RunId>().is_ok(), "a uuid");
    let import = bed.find("ada", &id).await;
    assert_eq!((import.status, import.source_type.as_str(), import.user.as_str()), ("queued", "chrome_html", "ada"));
    assert_eq!((import.total_items, import.processed_items, import.failed_items), (3, 0, 0));
    assert_eq!((import.started_at, import.finished_at), (None, None));

    bed.run_and_settle().await;
    let import = bed.find("ada", &id).await;
    assert_eq!((import.status, import.processed_items, import.failed_items), ("running", 2, 0), "one is tried again");
    assert!(import.started_at.is_some() && import.finished_at.is_none());

    bed.advance(300);
    bed.run_and_settle().await;
    let import = bed.find("ada", &id).await;
    assert_eq!((import.status, import.processed_items, import.failed_items), ("succeeded", 3, 1));
    let (started, finished) = (import.started_at.unwrap(), import.finished_at.unwrap());
    assert!(started < finished, "{started} {finished}");
    assert_eq!(import.last_error.as_deref(), Some("answered with status 404"));
}

/// Shows: S1.13 S1.23
async fn every_placement_is_stored_and_every_link_once(place: Place) {
    let bed = Bed::open(place).await;
    let mut file = Writer::new();
    file.open_folder("Work", true);
    file.link("http://a.example/x?utm_source=mail", "First", Some(1_700_000_000), None);
    file.open_folder("Deep / er", false);
    file.link("http://A.example:80/x#part", "Second", None, None);
    file.close_folder();
    file.link("http://a.example/y", "Third", None, None);
    let id = bed.import_file("ada", &file.finish()).await;

    let select = "select placement.folder, placement.title, placement.added_at, link.url \
                  from link_placement placement join link_canonical link on link.id = placement.link order by position";
    let rows = bed.database().query(select, row![]).await.unwrap();
    let shown: Vec<String> = rows
        .iter()
        .map(|row| {
            let folder = row.get::<Json>("folder").unwrap().as_str().replace("\", \"", "\",\"");
            format!("{folder} {} {}", row.get::<String>("title").unwrap(), row.get::<String>("url").unwrap())
        })
        .collect();
    let expected = [
        "[\"Work\"] First http://a.example/x",
        "[\"Work\",\"Deep / er\"] Second http://a.example/x",
        "[\"Work\"] Third http://a.example/y",
    ];
    assert_eq!(shown, expected);
    assert_eq!(bed.counts("ada", &id).await, ("queued", 2, 0, 0));

    bed.run_and_settle().await;
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 2, 2, 0));
    assert_eq!((bed.calls("http://a.example/x"), bed.calls("http://a.example/y")), (1, 1));
    let links = bed.links("ada").await;
    let placements: Vec<(&str, u32)> = links.iter().map(|link| (link.url.as_str(), link.placements)).collect();
    assert_eq!(placements, [("http://a.example/x", 2), ("http://a.example/y", 1)]);
}

async fn an_import_without_links_ends_at_once(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["javascript:alert(1)"]).await;
    bed.run().await;
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 0, 0, 0));
    assert_eq!(bed.find("ada", &id).await.skipped, 1);
}

/// Shows: S1.08 S1.11
async fn an_import_of_which_nothing_could_be_enriched_has_failed(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://robots.example/1", "http://captcha.example/"]).await;
    bed.run_and_settle().await;
    assert_eq!(bed.counts("ada", &id).await, ("failed", 2, 2, 2));
    let import = bed.find("ada", &id).await;
    assert_eq!(import.last_error.as_deref(), Some("none of its 2 links could be enriched"));
    assert!(import.finished_at.is_some());
}

/// Shows: S1.05 S1.06
async fn an_import_is_the_users_own(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://a.example/"]).await;
    let found = async |user: &str, id: &str| Import::find(&bed.client, bed.database(), user, id).await.unwrap();
    assert!(found("ada", &id).await.is_some());
    assert!(found("bob", &id).await.is_none());
    assert!(found("ada", "no-such-import").await.is_none());
    assert_eq!(Import::cancel(&bed.client, bed.database(), "bob", &id).await.unwrap(), None);
    assert_eq!(bed.find("ada", &id).await.status, "queued", "nobody else canceled it");
    bed.run_and_settle().await;
    assert_eq!((bed.links("ada").await.len(), bed.links("bob").await.len()), (1, 0));
}

/// Shows: S1.09
async fn the_run_of_an_import_counts_as_the_import_does(place: Place) {
    let bed = Bed::open(place).await;
    let urls: Vec<String> = (0..25).map(|n| format!("http://site-{}.example/{n}", n % 5)).collect();
    let id = bed.import("ada", &urls.iter().map(String::as_str).collect::<Vec<_>>()).await;
    bed.run_and_settle().await;
    let run = bed.client.show_run(id.parse().unwrap()).await.unwrap();
    assert_eq!((run.run.state, run.rows), (RunState::Succeeded, 25));
    assert_eq!((run.owner.as_deref(), run.source.as_deref()), (Some("ada"), Some("chrome_html")));
    let [partition] = bed.client.partitions_of(run.id).await.unwrap().try_into().unwrap();
    assert_eq!((partition.rows, partition.expected), (25, Some(25)));
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 25, 25, 0));
}

async fn a_begin_that_is_repeated_changes_nothing(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://a.example/"]).await;
    bed.client.enqueue(links::begin::Begin { import: id.clone() }).await.unwrap();
    bed.run_and_settle().await;
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 1, 1, 0));
    assert_eq!(bed.client.show_run(id.parse().unwrap()).await.unwrap().rows, 1);
}

async fn an_address_that_is_none_is_counted_as_unreadable(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://a b/", "http://a.example/"]).await;
    let import = bed.find("ada", &id).await;
    assert_eq!((import.total_items, import.unreadable), (1, 1));
}

/// Shows: S1.01
async fn an_import_that_was_not_committed_is_nowhere(place: Place) {
    let bed = Bed::open(place).await;
    // The last of its rows cannot be stored, when its jobs have been.
    bed.database().execute("drop table link_placement", row![]).await.unwrap();
    let found = bookmarks::parse(export(&["http://a.example/"]).as_bytes(), &Limits::default()).unwrap();
    import::store(bed.database(), &bed.client, &bed.settings, "ada", found).await.unwrap_err();
    assert_eq!(bed.place.count("select count(*) as n from link_import").await, 0);
    assert_eq!(bed.place.count("select count(*) as n from link_canonical").await, 0);
    assert!(bed.client.store().list_jobs(&JobFilter::default()).await.unwrap().is_empty());
    assert_eq!((bed.run().await.claimed, bed.world.domains().calls()), (0, 0));
}
