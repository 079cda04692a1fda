//! [`serve`]: a product's own API, until it is told to stop.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::BoxError;

/// How long calls may go on after the signal.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until SIGTERM or SIGINT, and lets calls that have begun finish. Says on standard output where it listens: a port
/// 0 is any that is free. The products trust a header for who is calling, so only this machine may call: whoever lets
/// others in puts something before it that knows them.
pub async fn serve(listen: SocketAddr, router: Router) -> Result<(), BoxError> {
    if !listen.ip().is_loopback() {
        return Err(format!(
            "listen on {listen} is refused: it has no keys, so only addresses of this machine will do"
        )
        .into());
    }
    let listener = TcpListener::bind(listen).await.map_err(|error| format!("listen on {listen}: {error}"))?;
    // Before the line that others wait for: they may send the signal at once.
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    println!("listening on http://{}", listener.local_addr()?);
    let (told, stop) = tokio::sync::oneshot::channel::<()>();
    let serving = axum::serve(listener, router).with_graceful_shutdown(async {
        let _told_or_gone = stop.await;
    });
    let mut serving = tokio::spawn(serving.into_future());
    tokio::select! {
        ended = &mut serving => return Ok(ended??),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    drop(told);
    // Who has not finished by then is cut off.
    let _over = tokio::time::timeout(GRACE, serving).await;
    Ok(())
}
