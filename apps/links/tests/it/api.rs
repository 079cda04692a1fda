//! What users ask over HTTP.

use kit::testing::Place;
use kit::{Http, Site};
use links::api::{Api, router};
use links::bookmarks::Limits;
use serde_json::Value;

use crate::bed::{Bed, export};

kit::on_each_store! { links::TABLES;
    a_file_is_imported_watched_and_read_over_http,
    another_users_import_is_not_found,
    an_import_is_canceled_over_http,
    what_is_wrong_is_refused_by_name,
    the_web_side_fetches_nothing,
}

/// A server of the product, and somebody who calls it.
struct Caller {
    site: Site,
    client: reqwest::Client,
}

impl Caller {
    async fn open(bed: &Bed) -> Self {
        let (database, client, settings) = (bed.database().clone(), bed.client.clone(), bed.settings.clone());
        let limits = Limits { bytes_max: 10_000, ..Limits::default() };
        let api = Api { database, client, settings, limits };
        // The kit's client installs what TLS needs.
        Http::new(&kit::http::HttpOptions::default()).unwrap();
        Self { site: Site::open(router(api)).await.unwrap(), client: reqwest::Client::new() }
    }

    /// Status and body of a call.
    async fn call(&self, method: &str, path: &str, user: Option<&str>, body: &str) -> (u16, Value) {
        let url = format!("{}{path}", self.site.url());
        let mut request = self.client.request(method.parse().unwrap(), url).body(body.to_owned());
        if let Some(user) = user {
            request = request.header("X-User", user);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
    }

    async fn import(&self, user: &str, urls: &[&str]) -> String {
        let (status, import) = self.call("POST", "/imports", Some(user), &export(urls)).await;
        assert_eq!(status, 202, "{import}");
        import["id"].as_str().unwrap().to_owned()
    }
}

/// Shows: S1.02 S1.09
async fn a_file_is_imported_watched_and_read_over_http(place: Place) {
    let bed = Bed::open(place).await;
    let caller = Caller::open(&bed).await;
    let id = caller.import("ada", &["http://a.example/", "http://robots.example/", "chrome://settings"]).await;
    let (status, import) = caller.call("GET", &format!("/imports/{id}"), Some("ada"), "").await;
    assert_eq!((status, &import["status"], &import["source_type"]), (200, &"queued".into(), &"chrome_html".into()));
    assert_eq!((&import["total_items"], &import["skipped"]), (&2.into(), &1.into()));

    bed.run_and_settle().await;
    let (_, import) = caller.call("GET", &format!("/imports/{id}"), Some("ada"), "").await;
    let counts = ["total_items", "processed_items", "failed_items"].map(|name| import[name].as_u64().unwrap());
    assert_eq!((import["status"].as_str(), counts), (Some("succeeded"), [2, 2, 1]));
    let (_, links) = caller.call("GET", "/links", Some("ada"), "").await;
    let links = links.as_array().unwrap();
    let of = |domain: &str| links.iter().find(|link| link["domain"] == domain).unwrap();
    assert_eq!(of("a.example")["title"], "/ of a.example");
    assert_eq!((&of("robots.example")["status"], &of("robots.example")["title"]), (&"dead".into(), &Value::Null));
    let (_, page) = caller.call("GET", "/links?limit=1", Some("ada"), "").await;
    let after = page[0]["id"].as_str().unwrap();
    let (_, rest) = caller.call("GET", &format!("/links?after={after}&limit=5"), Some("ada"), "").await;
    assert_eq!((rest.as_array().unwrap().len(), rest[0] == page[0]), (1, false));
    let (status, _) = caller.call("GET", "/report", Some("ada"), "").await;
    assert_eq!(status, 404, "what others bookmarked is not hers to read");
}

/// Shows: S1.05
async fn another_users_import_is_not_found(place: Place) {
    let bed = Bed::open(place).await;
    let caller = Caller::open(&bed).await;
    let id = caller.import("ada", &["http://a.example/"]).await;
    let unknown = "01a1eedb-31e8-7000-9a2e-97a7b2bb8a1f";
    for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/cancel")] {
        let (others, answer) = caller.call(method, &format!("/imports/{id}{path}"), Some("bob"), "").await;
        let (nobodys, other) = caller.call(method, &format!("/imports/{unknown}{path}"), Some("bob"), "").await;
        assert_eq!((others, nobodys), (404, 404), "{method}");
        assert_eq!((&answer["code"], &other["code"]), (&"not_found".into(), &"not_found".into()));
    }
    let (_, links) = caller.call("GET", "/links", Some("bob"), "").await;
    assert_eq!(links, Value::Array(Vec::new()));
    assert_eq!(bed.find("ada", &id).await.status, "queued");
}

/// Shows: S1.08
async fn an_import_is_canceled_over_http(place: Place) {
    let bed = Bed::open(place).await;
    let caller = Caller::open(&bed).await;
    for (method, path) in [("DELETE", ""), ("POST", "/cancel")] {
        let id = caller.import("ada", &["http://a.example/"]).await;
        let (status, import) = caller.call(method, &format!("/imports/{id}{path}"), Some("ada"), "").await;
        assert_eq!((status, &import["status"]), (200, &"canceled".into()));
        let (status, refused) = caller.call(method, &format!("/imports/{id}{path}"), Some("ada"), "").await;
        assert_eq!((status, &refused["code"]), (409, &"has_ended".into()));
    }
}

async fn what_is_wrong_is_refused_by_name(place: Place) {
    let bed = Bed::open(place).await;
    let caller = Caller::open(&bed).await;
    let (status, answer) = caller.call("POST", "/imports", Some("ada"), "<html>no bookmarks</html>").await;
    assert_eq!((status, &answer["code"]), (400, &"invalid".into()));
    assert!(
        answer["message"].as_str().unwrap().starts_with("file `<html>no bookmarks</html>` is refused: "),
        "{answer}"
    );
    let long = "u".repeat(101);
    for (user, code, status) in [(None, "no_user", 401), (Some(long.as_str()), "invalid", 400)] {
        let (answered, answer) = caller.call("POST", "/imports", user, &export(&[])).await;
        assert_eq!((answered, &answer["code"]), (status, &code.into()));
        let (answered, answer) = caller.call("GET", "/links", user, "").await;
        assert_eq!((answered, &answer["code"]), (status, &code.into()));
    }
    let (status, answer) = caller.call("POST", "/imports", Some("ada"), &"x".repeat(10_001)).await;
    assert_eq!((status, &answer["code"]), (413, &"too_large".into()));
    assert!(answer["message"].as_str().unwrap().contains("at most 10000 bytes"), "{answer}");
    let (status, answer) = caller.call("GET", "/links?limit=many", Some("ada"), "").await;
    assert_eq!((status, &answer["code"]), (400, &"invalid".into()));
    let (status, _) = caller.call("GET", "/imports/not-an-id", Some("ada"), "").await;
    assert_eq!(status, 404);
    assert_eq!(bed.place.count("select count(*) as n from link_import").await, 0);
}

/// Shows: S1.02
async fn the_web_side_fetches_nothing(place: Place) {
    let bed = Bed::open(place).await;
    let caller = Caller::open(&bed).await;
    let id = caller.import("ada", &["http://a.example/"]).await;
    caller.call("GET", &format!("/imports/{id}"), Some("ada"), "").await;
    caller.call("GET", "/links", Some("ada"), "").await;
    assert_eq!(bed.world.domains().calls(), 0);
    bed.run_and_settle().await;
    assert_eq!(bed.calls("http://a.example/"), 1, "the worker does");
}
