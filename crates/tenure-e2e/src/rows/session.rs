//! A raw session that runs the shipped claim as it is, and what the server says it cost.

use serde_json::Value;
use tenure_postgres::statement::CLAIM_JOBS;
use tenure_postgres::tokio_postgres::{Client, NoTls, SimpleQueryMessage, connect};

/// Floors as a client passes them before it has any.
const NO_FLOOR: &str =
    "array[null, null, null, null]::timestamptz[], array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[4])";
/// Tables that hold a row or more per job.
const GROWING: [&str; 5] = ["job", "ready", "attempt", "lease", "unique_key"];

/// One connection.
pub(super) struct Session(Client);

/// Rows as text, null as `None`.
type Rows = Vec<Vec<Option<String>>>;

impl Session {
    /// Connects and applies settings.
    pub(super) async fn open(url: &str, settings: &str) -> Self {
        let (client, connection) = connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let session = Self(client);
        session.run(settings).await;
        session
    }

    /// Gives the shipped claim a name.
    pub(super) async fn prepare_claim(&self) {
        self.run(&format!("prepare {} as\n{}", CLAIM_JOBS.name, CLAIM_JOBS.sql)).await;
    }

    /// Runs it for at most so many jobs of the default queue.
    pub(super) fn claim(limit: usize) -> String {
        format!("execute {}(1, 'default', {limit}, {NO_FLOOR}, null, '{{0, 1, 2, 3}}', 8192, false)", CLAIM_JOBS.name)
    }

    /// Runs SQL for its effect.
    pub(super) async fn run(&self, sql: &str) {
        self.0.batch_execute(sql).await.unwrap_or_else(|error| panic!("{error:?}\nin: {sql}"));
    }

    /// Runs statements in one round trip; answers the rows of each.
    pub(super) async fn ask(&self, sql: &str) -> Vec<Rows> {
        let messages = self.0.simple_query(sql).await.unwrap_or_else(|error| panic!("{error:?}\nin: {sql}"));
        let mut answers = vec![Rows::new()];
        for message in messages {
            match message {
                SimpleQueryMessage::Row(row) => {
                    let columns = (0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect();
                    answers.last_mut().unwrap().push(columns);
                }
                SimpleQueryMessage::CommandComplete(_) => answers.push(Rows::new()),
                _ => {}
            }
        }
        answers.pop();
        answers
    }

    /// Rows of tables that grow which a claim came upon in vain, and whether it read such a table as a whole.
    pub(super) async fn waste(&self, limit: usize) -> (u64, bool) {
        let how = "analyze, timing off, summary off, format json";
        let answers = self.ask(&format!("begin; explain ({how}) {}; rollback", Self::claim(limit))).await;
        let text: String = answers[1].iter().filter_map(|row| row[0].clone()).collect();
        let mut waste = (0, false);
        walk(&serde_json::from_str(&text).unwrap(), &mut waste);
        waste
    }
}

/// Every node of a plan, wherever it hangs.
fn walk(value: &Value, waste: &mut (u64, bool)) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| walk(one, waste)),
        Value::Object(node) => {
            let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default();
            if GROWING.contains(&text("Relation Name")) {
                let number = |key: &str| node.get(key).and_then(Value::as_f64).unwrap_or(0.0);
                let removed = number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
                waste.0 += (removed * number("Actual Loops")).ceil() as u64;
                waste.1 |= text("Node Type") == "Seq Scan";
            }
            node.values().for_each(|one| walk(one, waste));
        }
        _ => {}
    }
}
