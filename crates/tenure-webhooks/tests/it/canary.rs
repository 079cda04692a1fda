//! A listener that must never be connected to, and counts who does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Counts connections and the bytes that came by them.
pub(crate) struct Canary {
    pub(crate) address: SocketAddr,
    bytes: Arc<AtomicUsize>,
    connected: mpsc::UnboundedReceiver<SocketAddr>,
}

impl Canary {
    /// Listens on every address of the machine.
    pub(crate) async fn everywhere() -> Self {
        let listener = match TcpListener::bind("[::]:0").await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind("0.0.0.0:0").await.unwrap(),
        };
        Self::on(listener)
    }

    pub(crate) fn on(listener: TcpListener) -> Self {
        let address = listener.local_addr().unwrap();
        let (tell, connected) = mpsc::unbounded_channel();
        let bytes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&bytes);
        tokio::spawn(async move {
            while let Ok((mut stream, peer)) = listener.accept().await {
                let mut read = Vec::new();
                // Until the other side is gone: then all that it sent is here.
                let _ = stream.read_to_end(&mut read).await;
                counted.fetch_add(read.len(), Ordering::SeqCst);
                let _ = tell.send(peer);
            }
        });
        Self { address, bytes, connected }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many connected before now, and how many bytes they sent. Connections are accepted in order: ours is the last.
    pub(crate) async fn heard(&mut self) -> (usize, usize) {
        let ours = TcpStream::connect(("127.0.0.1", self.port())).await.unwrap();
        let us = ours.local_addr().unwrap();
        drop(ours);
        let mut before = 0;
        loop {
            let peer = self.connected.recv().await.unwrap();
            // Seen by a listener for both families our address is a mapped one.
            if peer.ip().to_canonical() == us.ip() && peer.port() == us.port() {
                return (before, self.bytes.load(Ordering::SeqCst));
            }
            before += 1;
        }
    }
}
