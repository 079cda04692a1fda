//! A receiver on loopback that behaves as a test tells it to, and senders that may call it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{future, io};

use async_trait::async_trait;
use bytes::Bytes;
use tenure_webhooks::{Guard, GuardOptions, Resolve, Roots, SendError, SendOptions, Sender, Sent};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Long enough that only a test of time meets it, also on a busy machine.
pub(crate) const AMPLE: Duration = Duration::from_secs(10);
/// The deadline of tests of time.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// Listens, and counts connections.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    connects: Arc<AtomicUsize>,
}

impl Receiver {
    /// Answers each connection by `serve`.
    pub(crate) async fn start<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), serve)
    }

    pub(crate) fn on<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let connects = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connects);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream));
            }
        });
        Self { address, connects }
    }

    /// Reads the request, answers these bytes and closes.
    pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        Self::start(move |mut stream| {
            let bytes = Arc::clone(&bytes);
            async move {
                read_request(&mut stream).await?;
                stream.write_all(&bytes).await?;
                stream.shutdown().await
            }
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook/s3cret?token=s3cret", self.address)
    }

    pub(crate) fn connects(&self) -> usize {
        self.connects.load(Ordering::SeqCst)
    }

    /// Sends it a small event by a sender with this deadline.
    pub(crate) async fn called(&self, timeout: Duration) -> Result<Sent, SendError> {
        let sender = sender(self.address.port(), &["127.0.0.0/8"], Told::loopback(), timeout);
        call(&sender, &self.url()).await
    }
}

/// Reads one request to its end.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    loop {
        if let Some(head) = read.windows(4).position(|end| end == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&read[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            if read.len() >= head + 4 + length {
                return Ok(read);
            }
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// A sender that may call this port by http, and these ranges.
pub(crate) fn sender(port: u16, allow: &[&str], resolver: impl Resolve + 'static, timeout: Duration) -> Sender {
    let allow = allow.iter().map(|range| range.parse().unwrap()).collect();
    let guard = Guard::new(GuardOptions { https_only: false, ports: vec![80, 443, port], allow });
    let roots = Roots::Only(Vec::new());
    Sender::new(guard, resolver, SendOptions { timeout, roots, ..SendOptions::default() }).unwrap()
}

/// Checks the URL and sends a small event there.
pub(crate) async fn call(sender: &Sender, url: &str) -> Result<Sent, SendError> {
    let refused = |why| SendError::Refused { host: "checked".to_owned(), why };
    let target = sender.guard().check_url(url).map_err(refused)?;
    sender.send(&target, &[], Bytes::from_static(br#"{"event_id":"evt_1"}"#)).await
}

/// A resolver that answers what it is told: the argument counts its questions.
pub(crate) struct Told<F> {
    answer: F,
    asked: Arc<AtomicUsize>,
}

impl<F: Fn(usize) -> Vec<IpAddr>> Told<F> {
    pub(crate) fn by(answer: F) -> Self {
        Self { answer, asked: Arc::default() }
    }

    pub(crate) fn asked(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.asked)
    }
}

impl Told<fn(usize) -> Vec<IpAddr>> {
    /// Any name is this machine.
    pub(crate) fn loopback() -> Self {
        Self::by(|_| vec![IpAddr::from([127, 0, 0, 1])])
    }
}

#[async_trait]
impl<F: Fn(usize) -> Vec<IpAddr> + Send + Sync> Resolve for Told<F> {
    async fn addresses(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        Ok((self.answer)(asked).into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// A resolver that never answers.
pub(crate) struct Silent;

#[async_trait]
impl Resolve for Silent {
    async fn addresses(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        future::pending().await
    }
}
