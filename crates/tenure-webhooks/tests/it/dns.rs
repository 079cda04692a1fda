//! Names that lie. Loopback addresses play both parts: 127.0.0.2 is allowed and stands for the public one.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tenure_webhooks::{Guard, GuardOptions, Refused, Resolve, SendError, Stage, SystemResolver};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::canary::Canary;
use crate::receiver::{AMPLE, Receiver, Told, call, read_request, sender};

const PUBLIC: &str = "127.0.0.2";
const PUBLIC_RANGE: &[&str] = &["127.0.0.2/32"];

/// A receiver on the public address and a canary on loopback, on one port.
async fn both() -> (Receiver, Canary) {
    loop {
        let public = TcpListener::bind((PUBLIC, 0)).await.unwrap();
        let port = public.local_addr().unwrap().port();
        // Somebody else may have it there: then another.
        let Ok(inside) = TcpListener::bind(("127.0.0.1", port)).await else { continue };
        let receiver = Receiver::on(public, |mut stream| async move {
            read_request(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await
        });
        return (receiver, Canary::on(inside));
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_name_that_changes_its_answer_never_leads_inside() {
    let (receiver, mut canary) = both().await;
    let resolver = Told::by(|asked| addresses(if asked % 2 == 0 { &[PUBLIC] } else { &["127.0.0.1"] }));
    let asked = resolver.asked();
    let sender = sender(canary.port(), PUBLIC_RANGE, resolver, AMPLE);
    let url = format!("http://hook.example:{}/", canary.port());
    for round in 0..100 {
        let result = call(&sender, &url).await;
        match round % 2 {
            0 => assert_eq!(result.unwrap().status, 204),
            _ => assert!(matches!(result, Err(SendError::Refused { .. })), "{result:?}"),
        }
    }
    assert_eq!(canary.heard().await, (0, 0));
    assert_eq!(receiver.connects(), 50);
    assert_eq!(asked.load(Ordering::SeqCst), 100, "a name is looked up once: what was judged is what is called");
}

#[tokio::test]
async fn one_address_inside_refuses_a_whole_answer() {
    let (receiver, mut canary) = both().await;
    let orders: [&[&str]; 4] = [
        &[PUBLIC, "127.0.0.1"],
        &["127.0.0.1", PUBLIC],
        &[PUBLIC, PUBLIC, PUBLIC, "::ffff:127.0.0.1"],
        &["93.184.215.14", "10.0.0.1"],
    ];
    let sender =
        sender(canary.port(), PUBLIC_RANGE, Told::by(move |asked| addresses(orders[asked % orders.len()])), AMPLE);
    for _ in 0..100 {
        let result = call(&sender, &format!("http://hook.example:{}/", canary.port())).await;
        assert!(matches!(result, Err(SendError::Refused { why: Refused::Address { .. }, .. })), "{result:?}");
    }
    assert_eq!((canary.heard().await, receiver.connects()), ((0, 0), 0));
}

#[tokio::test]
async fn addresses_that_mean_loopback_in_other_words_are_not_called() {
    let mut canary = Canary::everywhere().await;
    let words =
        ["::1", "::", "0.0.0.0", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "127.9.9.9"];
    let sender = sender(canary.port(), &[], Told::by(move |asked| addresses(&[words[asked % words.len()]])), AMPLE);
    for _ in 0..100 {
        let result = call(&sender, &format!("http://hook.example:{}/", canary.port())).await;
        assert!(matches!(result, Err(SendError::Refused { why: Refused::Address { .. }, .. })), "{result:?}");
    }
    assert_eq!(canary.heard().await, (0, 0));
}

/// Linux connects to loopback when it is asked for `0.0.0.0`. Somebody who allows that address has not allowed the other.
#[tokio::test]
async fn a_peer_that_is_not_the_address_asked_for_gets_no_byte() {
    let mut canary = Canary::everywhere().await;
    let sender = sender(canary.port(), &["0.0.0.0/32"], Told::by(|_| addresses(&["0.0.0.0"])), AMPLE);
    let result = call(&sender, &format!("http://hook.example:{}/", canary.port())).await;
    let Err(SendError::Refused { why: Refused::Address { class, .. }, .. }) = result else { panic!("{result:?}") };
    assert_eq!(class, "loopback");
    assert_eq!(canary.heard().await, (1, 0), "the connection was made, and ended before a byte");
}

#[tokio::test]
async fn a_target_of_a_laxer_guard_is_judged_again() {
    let mut canary = Canary::everywhere().await;
    let strict = sender(canary.port(), &[], Told::loopback(), AMPLE);
    let allow = vec!["127.0.0.0/8".parse().unwrap()];
    let lax = Guard::new(GuardOptions { https_only: false, ports: vec![canary.port()], allow });
    for host in ["127.0.0.1", "localhost", "hook.example"] {
        let target = lax.check_url(&format!("http://{host}:{}/", canary.port())).unwrap();
        let result = strict.send(&target, &[], Bytes::new()).await;
        assert!(matches!(result, Err(SendError::Refused { .. })), "{host}: {result:?}");
        // The same addresses, and another port.
        let result = sender(81, &["127.0.0.0/8"], Told::loopback(), AMPLE).send(&target, &[], Bytes::new()).await;
        assert!(matches!(result, Err(SendError::Refused { why: Refused::Url(_), .. })), "{host}: {result:?}");
    }
    assert_eq!(canary.heard().await, (0, 0));
}

#[tokio::test]
async fn a_name_without_an_address_is_not_called() {
    let sender = sender(80, &[], Told::by(|_| Vec::new()), AMPLE);
    let failed = call(&sender, "http://hook.example/").await.unwrap_err();
    assert_eq!(failed.detail(), "hook.example is not called: it has no address");
}

/// What a tenant reads is the same for every name without an address that may be called, so it tells no name of the
/// inside; what an operator reads is not.
#[tokio::test]
async fn no_error_tells_whether_a_name_exists_inside() {
    let answers: [&[&str]; 4] = [&[], &["10.0.0.7"], &["127.0.0.1"], &["fd00::7", "93.184.215.14"]];
    let resolver = Told::by(move |asked| addresses(answers[asked % answers.len()]));
    let sender = sender(80, &[], resolver, AMPLE);
    let mut details = Vec::new();
    for _ in answers {
        let failed = call(&sender, "http://db.prod.example/").await.unwrap_err();
        let text = "db.prod.example cannot be reached: its name leads to no address that may be called";
        assert_eq!(failed.to_string(), text);
        details.push(failed.detail());
    }
    let unresolved = SystemResolver.addresses("no-such-name.invalid", 80).await.unwrap_err();
    let host = || "db.prod.example".to_owned();
    let failed = SendError::Unreachable { host: host(), stage: Stage::Resolve, why: unresolved.to_string() };
    let slow = SendError::TimedOut { host: host(), stage: Stage::Resolve, status: None };
    for failed in [failed, slow] {
        assert!(failed.to_string().ends_with("its name leads to no address that may be called"), "{failed}");
        details.push(failed.detail());
    }
    details.sort();
    details.dedup();
    assert_eq!(details.len(), 6, "operators see each: {details:?}");
    // An address that the URL itself names is told as it is.
    let failed = call(&sender, "http://db.prod.svc/").await.unwrap_err();
    assert!(failed.to_string().contains("a name inside of a network"), "{failed}");
}
