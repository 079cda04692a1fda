//! Scripts that are wrong say where and how.

use std::sync::Arc;

use tenure_contract::model::ModelStore;
use tenure_contract::{Fixture, clock_at_start, script};

async fn mistake(text: &str) -> String {
    let clock = clock_at_start();
    let t = Fixture::new("model", Arc::new(ModelStore::new(clock.clone())), clock);
    script::run(&t, text).await.expect_err("the script is wrong").to_string()
}

#[tokio::test]
async fn a_wrong_answer_is_reported_with_its_line_what_was_expected_and_what_came() {
    let text = mistake("enqueue J1\n\n  claim W1 J1 lease=L1\n complete W1 J1 lease=L1 -> lease_lost").await;
    assert_eq!(
        text,
        "script line 4: complete W1 J1 lease=L1 -> lease_lost\n  expected: lease_lost\n       got: succeeded"
    );
    let text = mistake("enqueue J1 J2\n claim W1 J2 J1 lease=L1").await;
    assert!(text.contains("expected: J2 J1\n       got: J1 J2"), "{text}");
    let text = mistake("enqueue J1\n show J1 state=running attempt=0").await;
    assert!(text.contains("expected: attempt=0 state=running\n       got: attempt=0 state=queued"), "{text}");
}

#[tokio::test]
async fn what_cannot_be_read_is_reported_as_such() {
    for (script, why) in [
        ("frobnicate J1", "there is no verb frobnicate"),
        ("enqueue", "enqueue needs a job"),
        ("enqueue X1", "X1 is no job"),
        ("enqueue J1 colour=red", "enqueue has no option colour"),
        ("enqueue J1 backoff=often", "backoff=often cannot be read"),
        ("enqueue J1 unique=k", "unique=k is not key:while_active"),
        ("enqueue J1 waiting delay=1s", "a job is due by one of"),
        ("claim J1", "J1 is no worker"),
        ("claim W1", "a claim names the jobs it gets"),
        ("complete W1 J1 lease=L9", "no claim has named lease L9"),
        ("complete W1 J1", "complete needs lease=…"),
        ("fail W1 J1 lease=unknown class=odd", "odd is no class"),
        ("advance soon", "a duration is a whole number"),
        ("advance 1s -> done", "advance answers nothing"),
        ("prune", "prune needs the number of jobs"),
        ("enqueue J1\n show J1 colour=red", "show has no option colour"),
        ("enqueue J1 J2\n claim W1 J1 lease=L1\n claim W1 J2 lease=L1", "lease L1 is already there"),
    ] {
        let text = mistake(script).await;
        assert!(text.contains("cannot be read") && text.contains(why), "{script}: {text}");
    }
}
