//! `task.report`: what tasks have done of late, and what they used.
//!
//! The library keeps what each attempt used and sums it by tenant, kind and day; a report adds the days up. It writes no
//! rows of its own, so it simply answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenure::store::usage::UsageFilter;
use tenure::{Ctx, Fail, Returned, Sight, State, Store, StoreError};

use crate::app::App;
use crate::task::{Report, client, tenant};
use crate::usage::Usage;

/// How far a report looks back: thirty days, each with a line for every kind and thing used.
const BACK: Duration = Duration::from_secs(30 * 86_400);
/// Three kinds use three things: far fewer lines than these.
const LINES_MAX: u32 = 1_000;

/// What tasks of one kind did together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sum {
    /// How many are done.
    pub tasks: u64,
    /// What they used.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Sums by kind.
pub type Sums = BTreeMap<String, Sum>;

pub(crate) async fn report(_: Report, State(app): State<App>, ctx: Ctx) -> Result<Returned<Sums>, Fail> {
    let since = Instant::now();
    let sums = sums(&**client(&app.database).store()).await?;
    let tasks = sums.values().map(|sum| sum.tasks).sum();
    ctx.set_usage(&Usage::of_report(since, tasks))?;
    Ok(Returned(sums))
}

/// What tasks that are done used in the last thirty days, by kind.
pub async fn sums(store: &dyn Store) -> Result<Sums, StoreError> {
    let since = store.now().await?.minus(BACK);
    let filter = UsageFilter { sight: Sight::Tenant(tenant()), kind: None, since, after: None, limit: LINES_MAX };
    let mut sums = Sums::new();
    for line in store.sum_usage(&filter).await? {
        let sum = sums.entry(line.kind.to_string()).or_default();
        let amount = line.amount as u64;
        match line.name.as_str() {
            // Every task takes its time.
            "ms" => (sum.tasks, sum.usage.ms) = (sum.tasks + line.attempts, sum.usage.ms + amount),
            "bytes" => sum.usage.bytes += amount,
            "units" => sum.usage.units += amount,
            _ => {}
        }
    }
    Ok(sums)
}
