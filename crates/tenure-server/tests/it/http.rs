//! A small HTTP client: one request a connection, nothing hidden.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::conform;

/// Whoever calls.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) address: SocketAddr,
    pub(crate) headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Caller {
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut headers = self.headers.clone();
        headers.retain(|(known, _)| known != name);
        headers.push((name.to_owned(), value.to_owned()));
        Self { headers, ..self.clone() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.call("POST", path, Some(body.to_string().into_bytes())).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.call("PUT", path, Some(body.to_string().into_bytes())).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Reply {
        self.call("PATCH", path, Some(body.to_string().into_bytes())).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.call("DELETE", path, None).await
    }

    /// Sends a request and reads its answer, which has to be what the document says.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Vec<u8>>) -> Reply {
        let reply = self.send(method, path, body.as_deref()).await;
        conform::check(method, path, &reply);
        reply
    }

    /// The same, held against nothing.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.expect("connect");
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head += "host: 127.0.0.1\r\n";
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = body {
            if !self.headers.iter().any(|(name, _)| name == "content-type") {
                head += "content-type: application/json\r\n";
            }
            head += &format!("content-length: {}\r\n", body.len());
        }
        // A server that refuses a head does not read on: a broken pipe is an answer, too.
        let _refused = stream.write_all((head + "\r\n").as_bytes()).await;
        let _refused = stream.write_all(body.unwrap_or_default()).await;
        let mut bytes = Vec::new();
        let _reset = stream.read_to_end(&mut bytes).await;
        Reply::read(&bytes)
    }
}

impl Reply {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let body_value = serde_json::from_str(body).unwrap_or(Value::Null);
        Self { status, head: head.to_ascii_lowercase(), body: body_value, text: body.to_owned() }
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub(crate) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body
    }

    /// The code of a problem with this status.
    #[track_caller]
    pub(crate) fn code(&self, status: u16) -> &str {
        assert_eq!(self.status, status, "{}", self.text);
        assert!(self.head.contains("content-type: application/problem+json"), "{}", self.head);
        self.body["code"].as_str().expect("a problem has a code")
    }
}

/// A text member.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
