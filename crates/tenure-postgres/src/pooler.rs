//! Detection of a transaction pooler, such as PgBouncer with `pool_mode = transaction`, in front of the server.
//!
//! A transaction pooler gives each transaction any session of the server. Session settings, prepared statements and `LISTEN`
//! then reach other sessions than the ones that need them, and other programs that share the pooler inherit them. So
//! [`Mode::Direct`](crate::Mode) and `PollOnly` refuse such a connection before they send anything that outlives a
//! transaction.
//!
//! The check asks two connections in turn which process of the server answers. Without a transaction pooler the two answers
//! differ and never change. With one, an idle pooler gives both connections the session that was used last, and a busy pooler
//! gives a connection different sessions over time.

use tenure_core::Invalid;
use tenure_store::StoreError;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// Names the process of the server, also among several servers. A simple query leaves no prepared statement behind.
const SESSION: &str = "select pg_backend_pid() || '@' || pg_postmaster_start_time()";
/// The order of the questions. It is not regular: a pooler that hands out its sessions in turn would keep pace with it.
const QUESTIONS: [usize; 6] = [0, 1, 1, 0, 0, 1];

/// Whether the sessions of two connections are shared or change.
pub(crate) async fn is_between(one: &Client, other: &Client) -> Result<bool, Error> {
    let clients = [one, other];
    let mut seen: [Option<String>; 2] = [None, None];
    for asked in QUESTIONS {
        let session = session_of(clients[asked]).await?;
        let has_changed = seen[asked].as_ref().is_some_and(|before| *before != session);
        let is_shared = seen[1 - asked].as_ref() == Some(&session);
        if has_changed || is_shared {
            return Ok(true);
        }
        seen[asked] = Some(session);
    }
    Ok(false)
}

async fn session_of(client: &Client) -> Result<String, Error> {
    let messages = client.simple_query(SESSION).await?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(row.unwrap_or_default().to_owned())
}

/// The refusal of a URL that leads to a transaction pooler in a mode that needs sessions.
pub(crate) fn refuse(field: &'static str, shown: &str, way_out: &str) -> StoreError {
    let limit = format!("it leads to a transaction pooler such as PgBouncer, which does not keep sessions: {way_out}");
    StoreError::Invalid(Invalid::new(field, shown, limit))
}
