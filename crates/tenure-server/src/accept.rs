//! Connections: taken one by one, each with its limits.
//!
//! The loop is our own because the usual one has no timer: whoever opens a connection and says nothing would hold it for
//! ever. Here the head of a request, the first and every later one, has [`Options::head_timeout`], and so has a peer to read on; bodies have theirs
//! (`body.rs`). HTTP/1.1 only: one request at a time on a connection, so a connection costs what a request costs.
//!
//! ```text
//!   permit ──► accept ──► task: head ─► handler ─► answer ─► head …     permit given back when it ends
//!                           ▲ timeout                          ▲ stop: the answer is the last one
//! ```

mod patient;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::options::Options;
use patient::Patient;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Headers of a request.
const HEADERS_MAX: usize = 100;
/// The wait after an accept that failed for want of something.
const OUT_OF_FILES: Duration = Duration::from_millis(50);

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
    let permits = Arc::new(Semaphore::new(options.connections_max));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let next = async {
            // Never closed.
            let permit = Arc::clone(&permits).acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            biased;
            () = &mut stop => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = converse(stream, router.clone(), options.head_timeout, stopped.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            Err(error) if is_the_peers(&error) => {}
            Err(error) => {
                tracing::warn!(error = %error, "a connection cannot be accepted");
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

/// One connection until its peer has gone, is too slow, or the server stops.
async fn converse(stream: TcpStream, router: Router, head_timeout: Duration, mut stopped: watch::Receiver<bool>) {
    // Small answers must not wait for each other.
    let _works_without = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_headers(HEADERS_MAX);
    builder.max_buf_size(HEAD_BYTES_MAX).half_close(false);
    let connection =
        builder.serve_connection(TokioIo::new(Patient::new(stream, head_timeout)), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = raised(&mut stopped) => {
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
