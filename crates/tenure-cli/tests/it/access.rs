//! Tenants and keys.

use serde_json::json;

use crate::place::Place;

#[test]
fn tenants_are_made_limited_and_listed() {
    let place = Place::new();
    assert!(place.run(&["tenants", "list"]).out.contains("No tenants yet"));
    assert_eq!(place.json(&["tenants", "create", "acme"]), json!({ "name": "acme", "quota": null, "keys": 0 }));
    let told = place.run(&["tenants", "set", "acme", "--quota=500", "--reason=contract"]).out;
    assert_eq!(told, "Tenant acme is there, with at most 500 pending jobs in each fair queue.\n");
    place.json(&["keys", "create", "--tenant=acme", "--name=shop", "--scopes=enqueue"]);
    assert_eq!(place.json(&["tenants", "list"]), json!([{ "name": "acme", "quota": 500, "keys": 1 }]));
    let table = place.run(&["tenants", "list"]).out;
    assert!(table.contains("acme") && table.contains("500"), "{table}");
    assert_eq!(place.run(&["tenants", "set", "acme", "--quota=0"]).code, 2);
    assert_eq!(place.run(&["tenants", "create", "a b"]).code, 2);
    let events = place.run(&["audit", "tail", "--json"]).out;
    assert!(events.contains("tenant_set") && events.contains("contract"), "{events}");
}

#[test]
fn a_key_is_shown_once_listed_without_its_secret_rotated_and_revoked() {
    let place = Place::new();
    place.json(&["tenants", "create", "acme"]);
    let made =
        place.run(&["keys", "create", "--name=web shop", "--tenant=acme", "--scopes=enqueue,read", "--life=90d"]);
    let key = made.out.lines().next().unwrap().to_owned();
    assert!(key.starts_with("tnk_") && made.out.contains("It is shown this once"), "{}", made.out);
    let id = key.split('_').nth(1).unwrap();
    let listed = place.run(&["keys", "list", "--json"]).out;
    assert!(listed.contains(id) && !listed.contains(key.split('_').nth(2).unwrap()), "{listed}");
    let table = place.run(&["keys", "list", "--tenant=acme"]).out;
    assert!(table.contains("web shop") && table.contains("enqueue,read") && table.contains("in 90d"), "{table}");
    let second = place.json(&["keys", "rotate", id, "--overlap=0s"]);
    assert_eq!((&second["name"], &second["tenant"]), (&json!("web shop"), &json!("acme")));
    assert_eq!(place.json(&["keys", "list"]).as_array().unwrap().len(), 1, "the old one has ended");
    let second = second["id"].as_str().unwrap();
    assert_eq!(place.json(&["keys", "revoke", second, "--reason=it leaked"])["revoked"], "now");
    assert_eq!(place.json(&["keys", "revoke", second])["revoked"], "before");
    assert!(place.run(&["keys", "list", "--all"]).out.contains("revoked"));
    let again = place.run(&["keys", "rotate", second]);
    assert!(again.code == 1 && again.err.contains("make a new one"), "{again:?}");
}

#[test]
fn usage_is_summed() {
    let place = Place::new();
    assert!(place.run(&["usage"]).out.contains("No handler has reported"));
    let bench = crate::bench::Bench::new(&place);
    place.json(&["enqueue", "crawl", "--tenant=acme"]);
    // The bench's clock is ten minutes behind, and the job came a moment after it was set up.
    bench.advance(std::time::Duration::from_secs(660));
    let claim = tenure_store::lease::ClaimJobs::new(bench.worker, "default".parse().unwrap(), 1);
    let claimed = bench.wait(bench.store.claim_jobs(claim)).unwrap().unwrap();
    let usage = Some(tenure_core::Json::from_store("{\"bytes\":512}"));
    let end = tenure_store::lease::EndJob::new(
        claimed.jobs[0].id,
        tenure_store::lease::Ending::Succeeded { result: None, usage },
    );
    let report = tenure_store::lease::EndJobs { worker: bench.worker, lease: claimed.lease, jobs: vec![end] };
    bench.wait(bench.store.end_jobs(report)).unwrap();
    let summed = place.json(&["usage", "--tenant=acme"]);
    assert_eq!(
        (&summed[0]["name"], &summed[0]["amount"], &summed[0]["attempts"]),
        (&json!("bytes"), &json!(512.0), &json!(1))
    );
    let table = place.run(&["usage"]).out;
    assert!(table.contains("crawl") && table.contains("512"), "{table}");
}

#[test]
fn keys_that_cannot_be_are_refused_with_the_way_out() {
    let place = Place::new();
    for (args, part) in [
        (vec!["--name=x", "--scopes=root"], "some of enqueue, read, operate, worker and admin"),
        (vec!["--name=x", "--scopes=read", "--tenant=nobody"], "tenure tenants create nobody"),
        (vec!["--name=x", "--scopes=worker", "--tenant=default"], "its key belongs to none"),
        (vec!["--name=", "--scopes=read"], "name"),
        (vec!["--name=x", "--scopes=read", "--life=0s"], "3650d"),
    ] {
        let refused = place.run(&[&["keys", "create"], &args[..]].concat());
        assert!(refused.code != 0 && refused.err.contains(part), "{args:?}: {refused:?}");
    }
    assert_eq!(place.run(&["keys", "revoke", "short"]).code, 2);
    assert_eq!(place.run(&["keys", "revoke", "aaaaaaaaaaaa"]).code, 1);
}
