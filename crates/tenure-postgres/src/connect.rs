//! How the pools connect, and why a connection ends when a commit was not confirmed.
//!
//! Under synchronous replication a commit waits for the standby. A backend that is canceled meanwhile reports success
//! with a warning: the transaction is there, and a failover may lose it. No success may be acknowledged that rests on
//! such a commit, whichever verb it was. So the warning ends the connection: the driver then answers every call on its
//! way with an error, the store with [`StoreError::Unavailable`](tenure_store::StoreError), and the caller repeats.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::error::DbError;
use tokio_postgres::{AsyncMessage, Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connection and the task that drives it.
pub(crate) type Opened = (Client, JoinHandle<()>);

/// Opens the connections of the pools.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: MakeRustlsConnect,
    /// Connections that the check for a pooler has opened. The pools use them first.
    spare: Arc<Mutex<Vec<Opened>>>,
}

impl Connector {
    pub(crate) fn new(tls: MakeRustlsConnect) -> Self {
        Self { tls, spare: Arc::default() }
    }

    /// Opens a new connection.
    pub(crate) async fn open(&self, config: &Config) -> Result<Opened, Error> {
        let (client, mut connection) = config.connect(self.tls.clone()).await?;
        let driver = tokio::spawn(async move {
            // An error reaches the callers on the connection, who report it.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if matches!(&message, AsyncMessage::Notice(notice) if is_unconfirmed_commit(notice)) {
                    tracing::warn!(
                        "postgres: a commit was canceled while it waited for the synchronous standby; \
                         the call is reported as unavailable and may be repeated"
                    );
                    break;
                }
            }
        });
        Ok((client, driver))
    }

    /// Keeps an open connection for the next pool that needs one.
    pub(crate) fn keep(&self, opened: Opened) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(opened);
    }

    fn take_spare(&self) -> Option<Opened> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.retain(|(client, _)| !client.is_closed());
        spare.pop()
    }
}

impl Connect for Connector {
    fn connect(&self, config: &Config) -> Pin<Box<dyn Future<Output = Result<Opened, Error>> + Send + '_>> {
        let config = config.clone();
        Box::pin(async move {
            match self.take_spare() {
                Some(opened) => Ok(opened),
                None => self.open(&config).await,
            }
        })
    }
}

/// Whether the server stopped waiting for the synchronous standby. Messages are translated; the name of the server's
/// function is not.
fn is_unconfirmed_commit(notice: &DbError) -> bool {
    notice.routine() == Some("SyncRepWaitForLSN")
}
