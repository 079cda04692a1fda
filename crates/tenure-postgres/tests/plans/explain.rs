//! What a statement costs in rows and buffers, told by the server itself.

use crate::session::Session;

/// One `explain (analyze, buffers)`.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Rows of the answer.
    pub(crate) answered: u64,
    /// Pages that were looked at, each time counted anew. Dead rows show here.
    pub(crate) buffers: u64,
    /// Rows that scans of tables came upon, wanted or not.
    pub(crate) visited: u64,
    /// Rows that they came upon in vain.
    pub(crate) removed: u64,
    /// Every scan of a table: `Index Scan on ready`.
    pub(crate) scans: Vec<String>,
}

/// The server is also who reads its JSON: a node of the plan is an object with a `Node Type`. Rows are means per loop,
/// from PostgreSQL 18 on with decimals.
const READ: &str = r#"
with node as materialized (
  select n, (n ->> 'Actual Loops')::numeric as loops, (n ->> 'Actual Rows')::numeric as rows,
    coalesce((n ->> 'Rows Removed by Filter')::numeric, 0) + coalesce((n ->> 'Rows Removed by Index Recheck')::numeric, 0) as removed
  from jsonb_path_query(:plan::jsonb, 'strict $.** ? (exists(@."Node Type"))') n
), scan as (
  select * from node where n ? 'Relation Name' and n ->> 'Node Type' like '%Scan'
)
select (select ceil((n ->> 'Actual Rows')::numeric) from node limit 1),
  (select (n ->> 'Shared Hit Blocks')::bigint + (n ->> 'Shared Read Blocks')::bigint from node limit 1),
  ceil(sum((rows + removed) * loops)), ceil(sum(removed * loops)),
  string_agg(distinct (n ->> 'Node Type') || ' on ' || (n ->> 'Relation Name'), ',')
from scan"#;

impl Cost {
    /// Runs `execute …` and takes it back.
    pub(crate) async fn of(session: &Session, call: &str) -> Self {
        let how = "analyze, buffers, timing off, summary off, format json";
        let answers = session.ask(&format!("begin; explain ({how}) execute {call}; rollback")).await;
        let plan = answers[1][0][0].clone().expect("a plan");
        let read = READ.replace(":plan", &format!("$plan${plan}$plan$"));
        let row = session.ask(&read).await.remove(0).remove(0);
        let number = |column: usize| row[column].as_deref().and_then(|text| text.parse().ok()).expect("a number");
        Self {
            answered: number(0),
            buffers: number(1),
            visited: number(2),
            removed: number(3),
            scans: row[4].as_deref().unwrap_or_default().split(',').map(str::to_owned).collect(),
        }
    }

    /// Whether a whole table that grows was read.
    pub(crate) fn has_seq_scan(&self) -> bool {
        self.scans.iter().any(|scan| GROWING.iter().any(|table| *scan == format!("Seq Scan on {table}")))
    }
}

/// Tables that hold a row or more per job.
pub(crate) const GROWING: [&str; 5] = ["job", "ready", "attempt", "lease", "unique_key"];
