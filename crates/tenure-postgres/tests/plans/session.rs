//! A raw connection that prepares the shipped statements as they are.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use tenure_postgres::statement::Statement;
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

use crate::database::Database;

/// What the store sets on sessions for the short verbs, as far as it bears on plans (`pool.rs`).
pub(crate) const SHORT: &str = "set jit = off; set plan_cache_mode = force_generic_plan; set enable_seqscan = off";
/// The same for lists.
pub(crate) const LONG: &str = "set jit = off";

/// One connection, and what the server said beside its answers.
pub(crate) struct Session {
    client: Client,
    notices: Arc<Mutex<Vec<String>>>,
}

/// Rows as text, null as `None`.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

impl Session {
    /// Connects and applies settings.
    pub(crate) async fn open(database: &Database, settings: &str) -> Self {
        let (client, mut connection) = tokio_postgres::connect(&database.url, NoTls).await.expect("connect");
        let notices: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&notices);
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notice(notice) = message {
                    heard.lock().expect("a plain list").push(notice.message().to_owned());
                }
            }
        });
        let session = Self { client, notices };
        session.run(settings).await;
        session
    }

    /// Gives a shipped statement a name of its own: `execute claim_jobs(…)`.
    pub(crate) async fn prepare(&self, statement: Statement) {
        self.run(&format!("prepare {} as\n{}", statement.name, statement.sql)).await;
    }

    /// Runs SQL for its effect.
    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{error:?}\nin: {sql}"));
    }

    /// Runs statements in one round trip; answers the rows of each.
    pub(crate) async fn ask(&self, sql: &str) -> Vec<Rows> {
        let messages = self.client.simple_query(sql).await.unwrap_or_else(|error| panic!("{error:?}\nin: {sql}"));
        let mut answers = vec![Rows::new()];
        for message in messages {
            match message {
                SimpleQueryMessage::Row(row) => {
                    let columns = (0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect();
                    answers.last_mut().expect("never empty").push(columns);
                }
                SimpleQueryMessage::CommandComplete(_) => answers.push(Rows::new()),
                _ => {}
            }
        }
        answers.pop();
        answers
    }

    /// The first column of the rows of the one statement.
    pub(crate) async fn column(&self, sql: &str) -> Vec<String> {
        let answer = self.ask(sql).await.pop().expect("an answer");
        answer.into_iter().map(|row| row.into_iter().next().flatten().unwrap_or_default()).collect()
    }

    /// The one value that the one statement answers.
    pub(crate) async fn value(&self, sql: &str) -> String {
        self.column(sql).await.pop().expect("a row")
    }

    /// What the server said since the last call.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().expect("a plain list"))
    }
}
