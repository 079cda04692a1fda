//! Addresses of the inside: a user names them, and nobody calls them.

use kit::testing::Place;
use kit::{Env, Site, Traffic};
use links::{Links, Settings, worker};
use tenure::{JobState, Worker};

use crate::bed::Bed;

kit::on_each_store! { links::TABLES;
    an_address_of_the_inside_is_refused_for_good,
}

/// Somebody on this machine who should never be called.
async fn secret(traffic: Traffic) -> Site {
    let answer = move || {
        let visit = traffic.enter("secret");
        async move {
            drop(visit);
            "<title>secret</title>"
        }
    };
    Site::open(axum::Router::new().fallback(answer)).await.unwrap()
}

async fn an_address_of_the_inside_is_refused_for_good(place: Place) {
    let bed = Bed::open(place).await;
    let traffic = Traffic::default();
    let site = secret(traffic.clone()).await;
    let port = site.address().port();
    // Without a proxy: it would be the proxy's to refuse.
    let settings = Settings { proxy: None, ..Settings::read(&Env::of(&[])).unwrap() };
    let links = Links::open(bed.database(), &settings).unwrap();
    let direct: Worker = worker::worker(bed.place.worker(), links).build().unwrap();

    let urls = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.1:{port}/a"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://localhost:{port}/"),
        "http://10.0.0.1/".to_owned(),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://printer.local/".to_owned(),
    ];
    let id = bed.import("ada", &urls.each_ref().map(String::as_str)).await;
    direct.run_until_idle().await.unwrap();
    for url in &urls {
        let job = bed.show(url).await.summary;
        assert_eq!((job.state, job.attempt), (JobState::Failed, 1), "{url}");
    }
    assert_eq!(traffic.calls(), 0);
    bed.run_and_settle().await;
    assert_eq!(bed.counts("ada", &id).await, ("failed", 8, 8, 8));
}
