//! Connections: taken one by one, each with its limits.
//!
//! The loop is our own because the usual one has no timer: whoever opens a connection and says nothing would hold it for
//! ever. Here the head of a request, the first and every later one, has [`Options::head_timeout`], and so has a peer to read on; bodies have theirs
//! (`body.rs`). HTTP/1.1 only: one request at a time on a connection, so a connection costs what a request costs.
//!
//! ```text
//!   accept ──► place ──► task: head ─► handler ─► answer ─► head …     place given back when it ends
//!                ▲             ▲ timeout                      ▲ stop: the answer is the last one
//!                └ where all are taken, the longest idle connection is closed (`lot.rs`)
//! ```

mod lot;
mod patient;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::bodies::Peer;
use crate::options::Options;
use lot::{Lot, Place};
use patient::Patient;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Headers of a request.
const HEADERS_MAX: usize = 100;
/// The wait after an accept that failed for want of something.
const OUT_OF_FILES: Duration = Duration::from_millis(50);

/// The warning about it is given so often at most.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Bytes of answers that the kernel keeps for a peer that does not read.
const UNREAD_BYTES_MAX: u32 = 256 << 10;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1_024;

/// Takes the address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that was just restarted must not wait for connections that are long over.
    socket.set_reuseaddr(true)?;
    // Connections have what their listener has.
    socket.set_send_buffer_size(UNREAD_BYTES_MAX)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop` is ready, then lets requests end for the grace period.
pub(crate) async fn serve(listener: TcpListener, router: Router, options: &Options, stop: impl Future<Output = ()>) {
    let lot = Lot::new(options.connections_max);
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut warned: Option<Instant> = None;
    tokio::pin!(stop);
    loop {
        let next = async {
            let accepted = listener.accept().await;
            match accepted {
                Ok((stream, peer)) => Ok((stream, peer, lot.enter().await)),
                Err(error) => Err(error),
            }
        };
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, peer, place)) => {
                let (router, timeout) = (router.clone(), options.head_timeout);
                connections.spawn(converse(stream, peer.ip(), place, router, timeout, stopped.clone()));
            }
            Err(error) if is_the_peers(&error) => {}
            Err(error) => {
                // No file is left, most likely: an idle connection gives one back.
                lot.close_idle();
                if warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
                    warned = Some(Instant::now());
                    tracing::warn!(error = %error, "connections cannot be accepted; idle ones are closed");
                }
                tokio::time::sleep(OUT_OF_FILES).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let _still_heard = stopping.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(options.grace, all).await.is_err() {
        tracing::warn!(connections = connections.len(), "the grace period is over: what is not answered is cut off");
    }
}

/// One connection until its peer has gone, is too slow, its place is needed, or the server stops.
async fn converse(
    stream: TcpStream,
    peer: IpAddr,
    place: Arc<Place>,
    router: Router,
    head_timeout: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    // Small answers must not wait for each other.
    let _works_without = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_headers(HEADERS_MAX);
    builder.max_buf_size(HEAD_BYTES_MAX).half_close(false);
    let (calls, own) = (TowerToHyperService::new(router), Arc::clone(&place));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let (answered, answer) = (own.begin(), calls.call(request));
        async move { answer.await.map(|response| answered.by(response)) }
    });
    let connection = builder.serve_connection(TokioIo::new(Patient::new(stream, head_timeout)), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = raised(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = place.closed() => {
            if !place.is_busy() {
                return;
            }
            // A request came in the same moment: it is answered, as the last one.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "a connection ended badly");
    }
}

/// Until it is true, or nobody is left to say so.
async fn raised(stopped: &mut watch::Receiver<bool>) {
    let _said_or_gone = stopped.wait_for(|stopped| *stopped).await;
}

/// Errors of the connection that was about to be accepted, not of the socket.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
