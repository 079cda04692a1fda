//! The jobs of a run, one type for each way of behaving.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use tenure_worker::{Defaults, Job};

/// The two queues that workers serve.
pub(crate) const QUEUES: [&str; 2] = ["a", "b"];

/// How long a limited handler may run.
pub(crate) const LIMIT: Duration = Duration::from_millis(2_500);

/// Takes its time, then succeeds, fails, snoozes or panics.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) n: u64,
}

/// Writes a row and completes in one transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pay {
    pub(crate) n: u64,
}

/// May run for [`LIMIT`] only, and sometimes never ends by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Limited {
    pub(crate) n: u64,
}

/// Takes its machine down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Poison {
    pub(crate) n: u64,
}

/// Enqueues another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fan {
    pub(crate) n: u64,
}

impl Job for Work {
    const KIND: &'static str = "work";
    const DEFAULTS: Defaults =
        Defaults::new().queue("a").max_attempts(4).backoff("exponential 1s..4s by failures jitter 50%");
}

impl Job for Pay {
    const KIND: &'static str = "pay";
    const DEFAULTS: Defaults = Defaults::new().queue("a").max_attempts(5).backoff("fixed 1s");
}

impl Job for Limited {
    const KIND: &'static str = "limited";
    const DEFAULTS: Defaults = Defaults::new().queue("b").max_attempts(3).backoff("none").timeout(LIMIT);
}

impl Job for Poison {
    const KIND: &'static str = "poison";
    const DEFAULTS: Defaults = Defaults::new().queue("b").max_attempts(2).max_losses(2);
}

impl Job for Fan {
    const KIND: &'static str = "fan";
    const DEFAULTS: Defaults = Defaults::new().queue("b").backoff("steps 1s 2s");
}
