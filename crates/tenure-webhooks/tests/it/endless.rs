//! Receivers that send without end: so much is read and no more.

use std::process::Command;
use std::time::Instant;

use tenure_webhooks::{SendError, Sent};
use tokio::io::{AsyncWriteExt, BufWriter};

use crate::receiver::{AMPLE, Receiver, read_request};

/// Of the body this much is wanted; as much again as a head may have is read ahead at most.
const BODY_BYTES_MAX: usize = 16 << 10;
const READ_BYTES_MAX: usize = BODY_BYTES_MAX + (32 << 10) + 1_000;

/// Sends `head` and then `more` until nobody listens.
async fn flood(head: &'static str, more: &'static str) -> Result<Sent, SendError> {
    let receiver = Receiver::start(move |mut stream| async move {
        read_request(&mut stream).await?;
        let mut stream = BufWriter::with_capacity(64 << 10, stream);
        stream.write_all(head.as_bytes()).await?;
        loop {
            stream.write_all(more.as_bytes()).await?;
        }
    })
    .await;
    let begun = Instant::now();
    let result = receiver.called(AMPLE).await;
    assert!(begun.elapsed() < AMPLE / 2, "it ends by bytes and not by time: {:?}", begun.elapsed());
    result
}

fn unreadable(result: Result<Sent, SendError>) -> String {
    match result {
        Err(SendError::Unreadable { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_endless_body_is_read_as_far_as_it_is_wanted() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 500 Oops\r\ncontent-length: 10000000000\r\n\r\n"] {
        let sent = flood(head, "0123456789abcdef").await.unwrap();
        assert!(sent.status == 200 || sent.status == 500);
        assert_eq!((sent.body_start.len(), sent.truncated), (BODY_BYTES_MAX, true));
        assert!(sent.read_bytes <= READ_BYTES_MAX, "{} bytes were read", sent.read_bytes);
    }
}

#[tokio::test]
async fn endless_chunks_of_one_byte_are_read_as_far_as_they_are_wanted() {
    let sent = flood("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n").await.unwrap();
    assert_eq!((sent.body_start.len(), sent.truncated), (BODY_BYTES_MAX, true));
    assert!(sent.read_bytes <= 6 * READ_BYTES_MAX, "{} bytes were read", sent.read_bytes);
}

#[tokio::test]
async fn endless_interim_answers_are_no_answer() {
    for interim in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n"] {
        let why = unreadable(flood("", interim).await);
        assert!(why.contains("it goes on after"), "{why}");
    }
}

#[tokio::test]
async fn endless_heads_are_no_answer() {
    for (head, more) in [
        ("HTTP/1.1 200 OK\r\nx: ", "0123456789abcdef"),
        ("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
        ("HTTP/1.1 200 ", "OK"),
        ("", "\r\n"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", "extension"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "x: y\r\n"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "0"),
    ] {
        unreadable(flood(head, more).await);
    }
}

#[tokio::test]
async fn a_gzip_bomb_is_not_decoded() {
    let bomb = "import gzip, sys; sys.stdout.buffer.write(gzip.compress(bytes(50_000_000)))";
    let bomb = Command::new("python3").args(["-c", bomb]).output().expect("python3 is installed").stdout;
    assert!((BODY_BYTES_MAX..1 << 20).contains(&bomb.len()), "50 MB as {} bytes", bomb.len());
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    let receiver = Receiver::answering([answer.as_bytes(), &bomb].concat()).await;
    let sent = receiver.called(AMPLE).await.unwrap();
    assert!(sent.truncated && sent.read_bytes <= READ_BYTES_MAX, "{sent:?}");
    assert!(
        sent.body_start.starts_with("\u{fffd}\u{fffd}\u{fffd}"),
        "the bytes of gzip itself, control characters replaced"
    );
    assert!(sent.body_start.chars().count() <= BODY_BYTES_MAX);
}
