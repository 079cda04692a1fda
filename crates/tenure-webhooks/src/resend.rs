//! Sending again what was sent, or was given up: one delivery, or a range of them.

use tenure_core::JobId;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{DeliveryFilter, ResendDeliveries};
use tenure_store::{Store, StoreError};

use crate::ids::new_ids;

/// Most deliveries that one call sends again.
const RESENT_MAX: usize = 10_000;
/// Deliveries read at once.
const PAGE: u32 = 100;

/// What a call sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resent {
    /// How many.
    pub count: u64,
    /// Where to go on: there are more before this one.
    pub more_before: Option<JobId>,
}

/// Sends one delivery again; answers the new one.
pub async fn resend_one(store: &dyn Store, sight: Sight, delivery: JobId, word: Word) -> Result<JobId, StoreError> {
    let job = new_ids(store.now().await?, 1).remove(0);
    let request = ResendDeliveries { sight, deliveries: vec![(delivery, job)], word };
    match store.resend_deliveries(request).await? {
        0 => Err(StoreError::NotFound(format!("delivery {delivery}"))),
        _ => Ok(job),
    }
}

/// Sends those that match again, the newest first, a bounded number. What is a repetition itself is left out.
pub async fn resend_range(store: &dyn Store, mut filter: DeliveryFilter, word: Word) -> Result<Resent, StoreError> {
    let now = store.now().await?;
    // What this very call stores is not sent again by it.
    filter.until = Some(filter.until.map_or(now, |until| until.min(now)));
    filter.limit = PAGE;
    let mut count = 0;
    for _ in 0..RESENT_MAX / PAGE as usize {
        let page = store.list_deliveries(&filter).await?;
        let Some(last) = page.last() else { return Ok(Resent { count, more_before: None }) };
        filter.before = Some(last.job);
        let is_full = page.len() == PAGE as usize;
        let first: Vec<JobId> = page.iter().filter(|it| it.resend_of.is_none()).map(|it| it.job).collect();
        if !first.is_empty() {
            let deliveries = first.iter().copied().zip(new_ids(now, first.len())).collect();
            let request = ResendDeliveries { sight: filter.sight.clone(), deliveries, word: word.clone() };
            count += store.resend_deliveries(request).await?;
        }
        if !is_full {
            return Ok(Resent { count, more_before: None });
        }
    }
    Ok(Resent { count, more_before: filter.before })
}
