//! Which of its addresses a name is called at.

use std::net::IpAddr;

use tenure_webhooks::send::Stage;
use tenure_webhooks::{Resolve, SendError, SystemResolver};

use crate::receiver::{AMPLE, Receiver, Told, call, sender};

#[tokio::test]
async fn the_next_address_is_tried_when_one_is_dead() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let port = receiver.address.port();
    let two = [IpAddr::from([127, 0, 0, 3]), IpAddr::from([127, 0, 0, 1])];
    let sender = sender(port, &["127.0.0.0/8"], Told::by(move |_| two.to_vec()), AMPLE);
    assert_eq!(call(&sender, &format!("http://hook.example:{port}/")).await.unwrap().body_start, "ok");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let sender = sender(port, &["127.0.0.0/8"], Told::loopback(), AMPLE);
    let failed = call(&sender, &format!("http://hook.example:{port}/s3cret?token=s3cret")).await.unwrap_err();
    assert!(matches!(failed, SendError::Unreachable { stage: Stage::Connect, .. }), "{failed:?}");
    assert!(failed.to_string().starts_with("hook.example cannot be reached: the connection failed: "), "{failed}");
    assert!(!format!("{failed} {failed:?}").contains("s3cret"));
}

#[tokio::test]
async fn the_system_knows_this_machine() {
    let found = SystemResolver.addresses("localhost", 7).await.unwrap();
    assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback() && address.port() == 7));
}
