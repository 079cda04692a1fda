//! The program from outside: its server, a worker, and the check of a label.

use kit::testing::Place;
use kit::until;
use passport::digest::Digest;
use passport::qr::Label;
use serde_json::json;
use tenure::row;

use crate::plant::{BILL, Plant, RULES, battery};
use crate::process::{ask, call, run, run_on, server, worker};

kit::on_each_store_for_processes! { passport::TABLES;
    a_passport_is_ordered_over_http_and_verified_on_the_command_line,
    what_is_refused_over_http_has_its_code,
}

/// Shows: S4.12 S4.43
async fn a_passport_is_ordered_over_http_and_verified_on_the_command_line(place: Place) {
    let plant = Plant::open(place).await;
    let (mut server, at) = server(&plant.place, &[]).await;
    let _worker = worker(&plant.place, "worker-1", &[]);
    assert_eq!(ask(&at, "GET /v1/health/live", "", "").0, 200);
    assert_eq!(ask(&at, "GET /v1/health/ready", "", ""), (200, json!({"status": "ready", "queue": null})));

    let post = |path: &str, body: &str| {
        let (status, answer) = ask(&at, &format!("POST {path}"), "acme", body);
        assert!((200..300).contains(&status), "{path}: {answer}");
        answer
    };
    let endpoint = post("/v1/endpoints", &json!({"url": plant.receiver.url()}).to_string());
    plant.receiver.trust(endpoint["secret"].as_str().unwrap().parse().unwrap());
    let rules = post("/v1/rules", RULES)["rules_id"].as_str().unwrap().to_owned();
    post(&format!("/v1/rules/{rules}/publish"), "");
    let passport = post("/v1/passports", &serde_json::to_string(&battery("SN-1")).unwrap());
    let passport = passport["passport_id"].as_str().unwrap().to_owned();
    let uploaded = post(&format!("/v1/documents?format=csv&passport_id={passport}&rules_id={rules}"), BILL);
    let version = uploaded["passport_version_id"].as_str().unwrap().to_owned();
    let shown = until("a labeled passport", async || {
        let (_, shown) = ask(&at, &format!("GET /v1/versions/{version}"), "acme", "");
        Ok((shown["status"] == "LABELED").then_some(shown))
    })
    .await
    .unwrap();
    plant.receiver.traffic().wait_for("QR_GENERATED", |calls| calls.calls == 1 && calls.now == 0).await;
    assert!(plant.receiver.received().iter().all(|call| call.is_genuine));
    let (status, png) = call(&at, &format!("GET /v1/versions/{version}/qr.png"), "acme", b"");
    assert!(status == 200 && png.starts_with(b"\x89PNG"), "{status}");
    let (_, events) = ask(&at, "GET /v1/events", "acme", "");
    assert_eq!(events.as_array().unwrap().len(), 6);
    let (_, deliveries) = ask(&at, "GET /v1/deliveries", "acme", "");
    assert_eq!(deliveries.as_array().unwrap().len(), 6);
    for (path, nothing) in [(format!("/v1/versions/{version}"), 404), ("/v1/events".to_owned(), 200)] {
        let (status, seen) = ask(&at, &format!("GET {path}"), "volt", "");
        assert!(status == nothing && (status == 404 || seen == json!([])), "another tenant: {seen}");
    }

    let label = shown["qr_text"].as_str().unwrap();
    let verified = run(&plant.place, &["verify", label], &[]);
    let said = String::from_utf8(verified.stdout).unwrap();
    assert!(verified.status.success() && said.contains("is genuine"), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("ok")).count(), 7);
    // What is returned is what was hashed, byte by byte.
    let hash = |text: &str| Digest::of(shown[text].as_str().unwrap().as_bytes());
    let printed = Label::parse(label).unwrap();
    assert_eq!((hash("payload_text"), hash("receipt_text")), (printed.payload_hash, printed.receipt_hash));
    // One fact without the others, checked by the label alone.
    let proof = run(&plant.place, &["prove", &version, "cathode/cobalt"], &[]);
    assert!(proof.status.success() && !String::from_utf8_lossy(&proof.stdout).contains("graphite"));
    let checked = run_on(&plant.place, &["check-proof", label], &proof.stdout);
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.status.success() && said.contains("was made of this fact, one of 3"), "{said}");
    let heavier = String::from_utf8(proof.stdout).unwrap().replace("4800000", "4800001");
    assert_eq!(run_on(&plant.place, &["check-proof", label], heavier.as_bytes()).status.code(), Some(1));
    let unknown = run(&plant.place, &["prove", &version, "cathode/gold"], &[]);
    let said = String::from_utf8(unknown.stderr).unwrap();
    assert!(unknown.status.code() == Some(1) && said.contains("cathode/cobalt"), "{said}");
    // Elsewhere, with the public key alone.
    let key = run(&plant.place, &["key", "dev-key-1"], &[]);
    let key = String::from_utf8(key.stdout).unwrap();
    let elsewhere = ["verify", label, "--public-key", key.trim()];
    assert!(run(&plant.place, &elsewhere, &[("BPC_SIGNING_KEYS", "")]).status.success());

    let change = "update passport_fact set payload = replace(payload, '4800000', '4800001')";
    plant.place.database.execute(change, row![]).await.unwrap();
    let verified = run(&plant.place, &["verify", label], &[]);
    let said = String::from_utf8(verified.stdout).unwrap();
    assert_eq!(verified.status.code(), Some(1));
    assert!(said.contains("WRONG proof root: ") && said.contains("WRONG payload: it cannot be compiled"), "{said}");
    assert!(said.contains("ok    payload hash") && said.contains("ok    receipt\n"), "{said}");
    for wrong in ["BPC1|pv=x", &label.replace("pv=", "pv=0")[..label.len()]] {
        assert_eq!(run(&plant.place, &["verify", wrong], &[]).status.code(), Some(1), "{wrong}");
    }
    server.terminate();
    assert!(server.ended().await.success());
}

#[test]
fn a_mistyped_path_is_told_and_no_database_is_made() {
    let missing = std::env::temp_dir().join(format!("no-passports-{}.db", std::process::id()));
    let label = format!("BPC1|pv={}|ph={A}|pr={A}|rh={A}", uuid::Uuid::nil(), A = "A".repeat(52));
    let missing_text = missing.to_str().unwrap();
    for arguments in [
        ["verify", &label, "--database", missing_text].as_slice(),
        &["prove", &uuid::Uuid::nil().to_string(), "a/b", "--database", missing_text],
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_passport"));
        let refused = command.args(arguments).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(1) && said.contains("there is no database"), "{said}");
        assert!(!missing.exists());
    }
}

async fn what_is_refused_over_http_has_its_code(place: Place) {
    let plant = Plant::open(place).await;
    // In production, and without what seals secrets.
    let (_server, at) = server(&plant.place, &[("BPC_ENV", "production"), ("BPC_MASTER_KEYS", "")]).await;
    let nil = "00000000-0000-0000-0000-000000000000";
    let type_error = r#"{"rules":[{"id":"r","op":"<=","path":"components","value":"x"}]}"#;
    let large = " ".repeat(passport::bom::DOCUMENT_BYTES_MAX + 1);
    let larger = " ".repeat(passport::bom::DOCUMENT_BYTES_MAX + 10);
    for (what, tenant, body, expected, code) in [
        ("POST /v1/documents?format=xml", "acme", BILL, 422, "VALIDATION_ERROR"),
        ("POST /v1/documents", "acme", BILL, 422, "VALIDATION_ERROR"),
        ("POST /v1/documents?format=csv", "a tenant", BILL, 422, "VALIDATION_ERROR"),
        ("POST /v1/documents?format=csv", "acme", &large, 413, "PAYLOAD_TOO_LARGE"),
        ("POST /v1/documents?format=csv", "acme", &larger, 413, "PAYLOAD_TOO_LARGE"),
        (&format!("POST /v1/documents?format=csv&rules_id={nil}"), "acme", BILL, 422, "VALIDATION_ERROR"),
        ("POST /v1/rules", "acme", type_error, 422, "RULE_TYPE_ERROR"),
        ("POST /v1/rules", "acme", &large[2..], 422, "VALIDATION_ERROR"),
        ("POST /v1/rules", "acme", &large, 413, "PAYLOAD_TOO_LARGE"),
        ("POST /v1/passports", "acme", &large, 413, "PAYLOAD_TOO_LARGE"),
        (&format!("POST /v1/rules/{nil}/publish"), "acme", "", 422, "VALIDATION_ERROR"),
        (&format!("POST /v1/snapshots/{nil}/seal"), "acme", "", 422, "VALIDATION_ERROR"),
        ("POST /v1/passports", "acme", r#"{"serial": 7}"#, 422, "VALIDATION_ERROR"),
        ("POST /v1/endpoints", "acme", r#"{"url": "http://127.0.0.1/"}"#, 422, "VALIDATION_ERROR"),
        ("POST /v1/endpoints", "acme", r#"{"url": "https://example.com/"}"#, 500, "SIGNING_KEY_MISSING"),
        (&format!("POST /v1/endpoints/{nil}/rotate"), "acme", "", 500, "SIGNING_KEY_MISSING"),
        (&format!("DELETE /v1/endpoints/{nil}"), "acme", "", 404, "NOT_FOUND"),
        (&format!("GET /v1/versions/{nil}"), "acme", "", 404, "NOT_FOUND"),
        ("GET /v1/versions/x", "acme", "", 422, "VALIDATION_ERROR"),
    ] {
        let (status, answer) = ask(&at, what, tenant, body);
        assert_eq!((status, answer["code"].as_str()), (expected, Some(code)), "{what}: {answer}");
    }
    let uploaded = ask(&at, "POST /v1/documents?format=csv", "acme", BILL).1;
    let seal = format!("POST /v1/snapshots/{}/seal", uploaded["snapshot_id"].as_str().unwrap());
    let (status, answer) = ask(&at, &seal, "acme", "");
    assert_eq!((status, answer["code"].as_str()), (409, Some("SNAPSHOT_NOT_READY")), "{answer}");

    let refused = run(&plant.place, &["worker"], &[("BPC_JOBS_LEASE_SECONDS", "10")]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("BPC_JOBS_LEASE_RENEW_SECONDS"), "{said}");
    let refused = run(&plant.place, &["serve"], &[("BPC_LISTEN", "0.0.0.0:0")]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && said.contains("only addresses of this machine"), "{said}");
}
