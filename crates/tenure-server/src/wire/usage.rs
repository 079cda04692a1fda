//! Usage as JSON.

use serde::Serialize;
use tenure_store::usage::UsageTotal;
use utoipa::ToSchema;

/// What jobs of one kind used of one thing in one day.
#[derive(Debug, Serialize, ToSchema)]
pub struct UsageLine {
    /// By UTC
    #[schema(format = Date)]
    day: String,
    tenant: String,
    kind: String,
    /// Of what
    name: String,
    amount: f64,
    /// Attempts that reported it
    attempts: u64,
}

impl From<&UsageTotal> for UsageLine {
    fn from(total: &UsageTotal) -> Self {
        Self {
            day: day(total),
            tenant: total.tenant.to_string(),
            kind: total.kind.to_string(),
            name: total.name.clone(),
            amount: total.amount,
            attempts: total.attempts,
        }
    }
}

/// The day as people write it.
pub fn day(total: &UsageTotal) -> String {
    total.day.to_string().chars().take(10).collect()
}
