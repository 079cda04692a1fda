//! What else a receiver may answer, and what a well-behaved one sees.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use tenure_webhooks::SendError;
use tenure_webhooks::send::Stage;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;

use crate::canary::Canary;
use crate::receiver::{AMPLE, Receiver, Told, read_request, sender};

#[tokio::test]
async fn a_redirect_is_an_answer_and_never_followed() {
    let mut canary = Canary::everywhere().await;
    for (status, location) in [
        (301, "http://169.254.169.254/latest/meta-data/".to_owned()),
        (302, format!("http://127.0.0.1:{}/", canary.port())),
        (303, format!("http://127.0.0.1:{}/", canary.port())),
        (307, format!("//127.0.0.1:{}/", canary.port())),
        (308, "/elsewhere".to_owned()),
    ] {
        let answer = format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let receiver = Receiver::answering(answer).await;
        assert_eq!(receiver.called(AMPLE).await.unwrap().status, status);
        assert_eq!(receiver.connects(), 1, "{location}");
    }
    assert_eq!(canary.heard().await, (0, 0));
}

#[tokio::test]
async fn a_body_that_ends_too_early_is_unreadable_and_its_status_is_told() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nonly this",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nwhat",
    ] {
        let failed = Receiver::answering(answer).await.called(AMPLE).await.unwrap_err();
        assert!(matches!(failed, SendError::Unreadable { status: Some(200), .. }), "{failed:?}");
        assert!(failed.to_string().starts_with("127.0.0.1 answered what cannot be read: "), "{failed}");
        assert!(failed.to_string().ends_with(" (status 200)"), "{failed}");
    }
}

#[tokio::test]
async fn who_closes_without_an_answer_is_unreachable() {
    for answer in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nx: y\r\n"] {
        let failed = Receiver::answering(answer).await.called(AMPLE).await.unwrap_err();
        assert!(matches!(failed, SendError::Unreachable { stage: Stage::Head, .. }), "{answer:?}: {failed:?}");
        assert!(!format!("{failed} {failed:?}").contains("s3cret"));
    }
    // And who does not even read.
    let failed = Receiver::start(|_| async { Ok(()) }).await.called(AMPLE).await.unwrap_err();
    assert!(matches!(failed, SendError::Unreachable { stage: Stage::Head, .. }), "{failed:?}");
}

#[tokio::test]
async fn what_is_no_http_is_unreadable() {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(10_000));
    let hundred_and_one = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    for answer in [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03\r\n\r\n",
        "-ERR unknown command 'POST'\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 999999 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\na\0b: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        &huge,
        &many,
        &hundred_and_one,
    ] {
        let shown: String = answer.chars().take(40).collect();
        let failed = Receiver::answering(answer).await.called(AMPLE).await.unwrap_err();
        assert!(matches!(failed, SendError::Unreadable { status: None, .. }), "{shown:?}: {failed:?}");
    }
}

#[tokio::test]
async fn a_hundred_headers_are_fine_and_few_are_kept() {
    let many = "x: y\r\n".repeat(96);
    let told = "content-type: text/plain\r\nretry-after: 120\r\nset-cookie: a=b\r\ncontent-length: 4\r\n";
    let answer = format!("HTTP/1.1 429 Slow down\r\n{many}{told}\r\nsoon");
    let sent = Receiver::answering(answer).await.called(AMPLE).await.unwrap();
    assert_eq!((sent.status, sent.body_start.as_str(), sent.truncated), (429, "soon", false));
    assert_eq!(sent.retry_after.unwrap().as_secs(), 120);
    let kept: Vec<&str> = sent.headers.iter().map(|(name, _)| *name).collect();
    assert_eq!(kept, ["content-type", "retry-after"]);
}

#[tokio::test]
async fn a_body_is_read_to_its_end_however_that_is_marked() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nfi\r\n2\r\nne\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nfine",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine",
    ] {
        let sent = Receiver::answering(answer).await.called(AMPLE).await.unwrap();
        assert_eq!((sent.status, sent.body_start.as_str(), sent.truncated), (200, "fine", false), "{answer:?}");
    }
    for (answer, status) in [
        ("HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\nhello", 101),
    ] {
        let sent = Receiver::answering(answer).await.called(AMPLE).await.unwrap();
        assert_eq!((sent.status, sent.body_start.as_str()), (status, ""));
    }
}

/// A server that has a limit says so before it has read everything.
#[tokio::test]
async fn an_answer_that_comes_before_the_request_has_ended_is_read() {
    let receiver = Receiver::start(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\n\r\nlarge").await?;
        read_request(&mut stream).await.map(drop)
    })
    .await;
    let sender = sender(receiver.address.port(), &["127.0.0.0/8"], Told::loopback(), AMPLE);
    let target = sender.guard().check_url(&receiver.url()).unwrap();
    let sent = sender.send(&target, &[], Bytes::from(vec![b'x'; 8 << 20])).await.unwrap();
    assert_eq!((sent.status, sent.body_start.as_str()), (413, "large"));
}

#[tokio::test]
async fn a_receiver_sees_the_request_and_no_header_that_is_not_ours_to_give() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    let receiver = Receiver::start(move |mut stream| {
        let keep = Arc::clone(&keep);
        async move {
            *keep.lock().await = read_request(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await
        }
    })
    .await;
    let sender = sender(receiver.address.port(), &["127.0.0.0/8"], Told::loopback(), AMPLE);
    let port = receiver.address.port();
    let target = sender.guard().check_url(&format!("http://hook.example:{port}/a%20b?c=d")).unwrap();
    let given = [
        ("x-tenure-event-type", "job.succeeded"),
        ("host", "127.0.0.1"),
        ("connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("content-length", "3"),
        ("expect", "100-continue"),
        ("accept-encoding", "gzip"),
    ];
    let given = given.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    sender.send(&target, &given, Bytes::from_static(b"{\"a\": 1}")).await.unwrap();
    let seen = String::from_utf8(seen.lock().await.clone()).unwrap();
    let (head, body) = seen.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.split("\r\n").collect();
    lines[1..].sort_unstable();
    let host = format!("host: hook.example:{port}");
    let agent = format!("user-agent: tenure/{}", env!("CARGO_PKG_VERSION"));
    let wanted = [
        "POST /a%20b?c=d HTTP/1.1",
        "accept-encoding: identity",
        "connection: close",
        "content-length: 8",
        "content-type: application/json",
        &host,
        &agent,
        "x-tenure-event-type: job.succeeded",
    ];
    assert_eq!(lines, wanted);
    assert_eq!(body, "{\"a\": 1}");
}
