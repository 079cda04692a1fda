//! Receivers that take their time: none holds a sender for longer than its deadline.

use std::future;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tenure_webhooks::send::Stage;
use tenure_webhooks::{Guard, GuardOptions, Roots, SendError, SendOptions, Sender};
use tokio::io::AsyncWriteExt;

use crate::receiver::{Receiver, SHORT, Silent, Told, call, read_request, sender};

/// More than the deadline by what a busy machine may add.
const LATE: Duration = Duration::from_millis(1_500);

fn held(failed: &SendError, begun: Instant) -> (Stage, Option<u16>) {
    let took = begun.elapsed();
    assert!((SHORT..SHORT + LATE).contains(&took), "it took {took:?}");
    match failed {
        SendError::TimedOut { stage, status, .. } => (*stage, *status),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_accepts_and_hangs_is_left_at_the_deadline() {
    let receiver = Receiver::start(|stream| async move {
        future::pending::<()>().await;
        drop(stream);
        Ok(())
    })
    .await;
    let begun = Instant::now();
    let failed = receiver.called(SHORT).await.unwrap_err();
    assert_eq!(held(&failed, begun), (Stage::Head, None));
    assert_eq!(failed.to_string(), "127.0.0.1 took too long: the request did not end in time");
}

#[tokio::test]
async fn who_drips_a_body_is_left_at_the_deadline() {
    let receiver = Receiver::start(|mut stream| async move {
        read_request(&mut stream).await?;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await?;
        loop {
            stream.write_all(b".").await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let begun = Instant::now();
    assert_eq!(held(&receiver.called(SHORT).await.unwrap_err(), begun), (Stage::Body, Some(200)));
}

#[tokio::test]
async fn who_drips_a_head_is_left_at_the_deadline() {
    let receiver = Receiver::start(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await?;
        loop {
            stream.write_all(b".").await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let begun = Instant::now();
    assert_eq!(held(&receiver.called(SHORT).await.unwrap_err(), begun), (Stage::Head, None));
}

#[tokio::test]
async fn who_never_reads_the_request_is_left_at_the_deadline() {
    let receiver = Receiver::start(|stream| async move {
        future::pending::<()>().await;
        drop(stream);
        Ok(())
    })
    .await;
    let sender = sender(receiver.address.port(), &["127.0.0.0/8"], Told::loopback(), SHORT);
    let target = sender.guard().check_url(&receiver.url()).unwrap();
    let begun = Instant::now();
    let failed = sender.send(&target, &[], Bytes::from(vec![b'x'; 32 << 20])).await.unwrap_err();
    assert_eq!(held(&failed, begun), (Stage::Head, None));
}

#[tokio::test]
async fn a_lookup_that_never_ends_is_left_at_the_deadline() {
    let sender = sender(80, &[], Silent, SHORT);
    let begun = Instant::now();
    let failed = call(&sender, "http://hook.example/").await.unwrap_err();
    assert_eq!(held(&failed, begun), (Stage::Resolve, None));
}

#[tokio::test]
async fn a_handshake_that_never_begins_is_left_at_the_deadline() {
    let receiver = Receiver::start(|stream| async move {
        future::pending::<()>().await;
        drop(stream);
        Ok(())
    })
    .await;
    let allow = vec!["127.0.0.0/8".parse().unwrap()];
    let guard = Guard::new(GuardOptions { ports: vec![receiver.address.port()], allow, ..GuardOptions::default() });
    let roots = Roots::Only(vec![crate::tls::Authority::new().root()]);
    let options = SendOptions { timeout: SHORT, roots, ..SendOptions::default() };
    let sender = Sender::new(guard, Told::loopback(), options).unwrap();
    let begun = Instant::now();
    let failed = call(&sender, &format!("https://hook.example:{}/", receiver.address.port())).await.unwrap_err();
    assert_eq!(held(&failed, begun), (Stage::Tls, None));
}
