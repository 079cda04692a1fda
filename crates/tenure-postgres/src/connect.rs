//! How the pools connect, and why a connection ends when a commit was not confirmed.
//!
//! Under synchronous replication a commit waits for the standby. A backend that is canceled meanwhile reports success
//! with a warning: the transaction is there, and a failover may lose it. No success may be acknowledged that rests on
//! such a commit, whichever verb it was. So the warning ends the connection: the driver then answers every call on its
//! way with an error, the store with [`StoreError::Unavailable`](tenure_store::StoreError), and the caller repeats.

use std::future::{Future, poll_fn};
use std::pin::Pin;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::error::DbError;
use tokio_postgres::{AsyncMessage, Client, Config, Error};

use crate::tls::Target;

impl Connect for Target {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let (config, tls) = (config.clone(), self.tls.clone());
        Box::pin(async move {
            let (client, mut connection) = config.connect(tls).await?;
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
        })
    }
}

/// Whether the server stopped waiting for the synchronous standby. Messages are translated; the name of the server's
/// function is not.
fn is_unconfirmed_commit(notice: &DbError) -> bool {
    notice.routine() == Some("SyncRepWaitForLSN")
}
