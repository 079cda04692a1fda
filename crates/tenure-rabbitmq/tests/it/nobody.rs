//! No broker at all, and what only looks like one.

use std::time::Duration;

use tenure_rabbitmq::{Broker, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};
use tracing::Level;

use crate::{AMPLE, driver_threads, eventually, job, lines, still};

fn options(port: u16) -> Options {
    let url = format!("amqp://ops:canary-4111@127.0.0.1:{port}/jobs");
    Options { publish: true, connect_timeout: Duration::from_millis(300), ..Options::new(url) }
}

/// Tried so often that a flood of lines would be seen, and told once.
async fn told_once(port: u16, why: &str) {
    let tries = || lines::told(Level::DEBUG, port).len();
    eventually("tried three times", || tries() >= 2).await;
    let told = lines::told(Level::WARN, port);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(why), "{told:?}");
    let leaked = lines::all().into_iter().find(|line| line.text.contains("canary-4111"));
    assert!(leaked.is_none(), "{leaked:?}");
}

#[tokio::test]
async fn nobody_there_is_one_warning_and_nothing_waits() {
    lines::keep();
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let broker = Broker::start(options(port)).unwrap();
    broker.publish(job(1));
    told_once(port, "refused").await;
    assert!(!broker.is_up());
    still(&broker).await;
    assert_eq!(broker.counts().dropped, 1);
    assert!(!format!("{broker:?}").contains("canary"), "{broker:?}");
    let since = Instant::now();
    broker.close().await;
    assert!(since.elapsed() < Duration::from_secs(1), "it waited for nobody: {:?}", since.elapsed());
}

#[tokio::test]
async fn a_listener_that_stays_silent_is_given_up_and_let_go() {
    lines::keep();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let broker = Broker::start(options(port)).unwrap();
    for _ in 0..2 {
        let (mut stream, _) = timeout(AMPLE, listener.accept()).await.expect("tried again").unwrap();
        let mut said = Vec::new();
        // To the end: it hangs up.
        timeout(AMPLE, stream.read_to_end(&mut said)).await.expect("let go").unwrap();
        assert_eq!(said, b"AMQP\x00\x00\x09\x01");
    }
    eventually("tried again", || !lines::told(Level::DEBUG, port).is_empty()).await;
    let told = lines::told(Level::WARN, port);
    assert!(told.len() == 1 && told[0].contains("no answer within 300ms"), "{told:?}");
    assert!(!broker.is_up());
    still(&broker).await;
    broker.close().await;
    // In a process of its own, where no other test has any.
    if std::env::var_os("NEXTEST").is_some() {
        eventually("no thread of the driver waits for it", || driver_threads() == 0).await;
    }
}

#[tokio::test]
async fn a_listener_that_speaks_something_else_is_no_broker() {
    lines::keep();
    let words: [&[u8]; 4] = [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"AMQP\x03\x01\x00\x00", &[0; 64]];
    for word in words {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _gone = stream.write_all(word).await;
            }
        });
        let broker = Broker::start(options(port)).unwrap();
        eventually("told", || !lines::told(Level::WARN, port).is_empty()).await;
        eventually("tried again", || !lines::told(Level::DEBUG, port).is_empty()).await;
        assert_eq!(lines::told(Level::WARN, port).len(), 1);
        assert!(!broker.is_up());
        broker.close().await;
    }
}

#[tokio::test]
async fn nothing_is_published_unless_it_is_wanted() {
    let broker = Broker::start(Options::new("amqp://127.0.0.1:1")).unwrap();
    broker.publish(job(1));
    assert_eq!(broker.counts().dropped, 0);
    let clone = broker.clone();
    broker.close().await;
    assert!(!clone.is_up());
    still(&clone).await;
}
