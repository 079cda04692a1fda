//! What `#[job(…)]` says arrives in the store.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::TestBed;
use tenure::{Backoff, Fail, Job, JobState, Priority};

mod elsewhere {
    pub(crate) use tenure as jobs;
}

#[tokio::test]
async fn every_key_arrives() {
    #[derive(Serialize, Deserialize, Job)]
    #[job(kind = "full", queue = "mail", priority = "high", max_attempts = 7, max_losses = 9)]
    #[job(backoff = "exponential 1m..24h by failures", timeout = "5m", crate = "crate::derive::elsewhere::jobs")]
    struct Full {
        order: u64,
    }
    let bed = TestBed::new();
    let stored = bed.client().enqueue(Full { order: 42 }).await.unwrap();
    let record = bed.show(stored.job());
    assert_eq!((record.summary.kind.as_str(), record.summary.queue.as_str()), ("full", "mail"));
    assert_eq!(record.summary.priority, Priority::HIGH);
    assert_eq!((record.rules.max_attempts, record.rules.max_losses), (7, 9));
    assert_eq!(record.rules.backoff, "exponential 1m..24h by failures".parse().unwrap());
    assert_eq!(
        Full::DEFAULTS,
        tenure::Defaults::new()
            .queue("mail")
            .priority(Priority::HIGH)
            .max_attempts(7)
            .max_losses(9)
            .backoff("exponential 1m..24h by failures")
            .timeout(Duration::from_secs(300))
    );
    assert_eq!(record.payload.as_str(), r#"{"order":42}"#);
}

#[tokio::test]
async fn a_kind_alone_is_enough() {
    #[derive(Serialize, Deserialize, Job)]
    #[job(kind = "plain")]
    struct Plain;
    let bed = TestBed::new();
    let record = bed.show(bed.client().enqueue(Plain).await.unwrap().job());
    assert_eq!((record.summary.queue.as_str(), record.summary.priority), ("default", Priority::NORMAL));
    assert_eq!((record.rules.max_attempts, record.rules.max_losses), (5, 8));
    assert_eq!(record.rules.backoff, Backoff::default());
}

#[tokio::test]
async fn an_enum_is_a_job_as_well() {
    #[derive(Serialize, Deserialize, Job)]
    #[job(kind = "account.change")]
    enum Change {
        Close { account: u64 },
        Rename(u64, String),
    }
    async fn change(job: Change) -> Result<(), Fail> {
        match job {
            Change::Close { .. } => Ok(()),
            Change::Rename(account, name) => Err(Fail::permanent(format!("{account} is {name} already"))),
        }
    }
    let bed = TestBed::new().worker(|worker| worker.handle(change));
    assert_eq!(bed.perform(Change::Close { account: 1 }).await.summary.state, JobState::Succeeded);
    let renamed = bed.perform(Change::Rename(2, "x".into())).await;
    assert_eq!(renamed.summary.state, JobState::Failed);
    assert!(renamed.summary.error.unwrap().as_str().contains("2 is x already"));
}
