//! Queues in which a claim met a payload that is too long for any text.
//!
//! Such a row was written past the verbs, which bound what they store. The whole claim fails then, and so would every
//! later one: nothing but the row itself tells which it is. The queue is therefore claimed *carefully* for a while: one
//! job at a time, and a payload that cannot be read is answered as null, so that its job ends as failed and the others
//! go on.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::QueueName;
use tenure_store::lease::ClaimJobs;

use crate::call::Failed;

/// The queues that are claimed carefully.
#[derive(Default)]
pub(crate) struct CarefulQueues(Mutex<HashSet<QueueName>>);

impl CarefulQueues {
    pub(crate) fn contains(&self, queue: &QueueName) -> bool {
        self.queues().contains(queue)
    }

    /// How many jobs to ask for.
    pub(crate) fn limit(&self, request: &ClaimJobs) -> u32 {
        if self.contains(&request.queue) { 1 } else { request.limit }
    }

    /// Learns from a failed claim; `true` where the same claim may succeed carefully, at once.
    pub(crate) fn learn_failure(&self, queue: &QueueName, failed: &Failed) -> bool {
        let Failed::Said(error) = failed else { return false };
        // 54000: a text of more than 1 GiB. 53200: no memory for it. 57014: the server's deadline, which may have any
        // reason; the next claim tries carefully.
        match error.code().map(tokio_postgres::error::SqlState::code) {
            Some("54000" | "53200") => self.queues().insert(queue.clone()),
            Some("57014") => {
                self.queues().insert(queue.clone());
                false
            }
            _ => false,
        }
    }

    /// Learns from a careful claim: the first job that can be read ends the care.
    pub(crate) fn learn_success(&self, queue: &QueueName, unreadable: usize) {
        if unreadable == 0 {
            self.queues().remove(queue);
        }
    }

    fn queues(&self) -> MutexGuard<'_, HashSet<QueueName>> {
        // A set is whole after every operation, also after one that panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
