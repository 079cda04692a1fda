//! The instruments can fail: what is lost, doubled, stuck or missed is seen.

use std::time::Duration;

use tenure_core::{JobId, Timestamp};
use tenure_e2e::Act;
use tenure_e2e::pass_line::PassLine;
use tenure_e2e::proxy::Proxy;
use tenure_e2e::report::{Report, Verdict};
use tenure_e2e::stage::Stage;
use tenure_e2e::{Place, ledger};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_worker::Client;

#[test]
fn a_run_without_a_bite_is_void_and_a_broken_one_has_failed() {
    let mut report = Report::default();
    assert!(matches!(report.verdict(), Verdict::Void(_)), "nobody counted");
    report.bite(0, 0, "hits");
    assert!(matches!(report.verdict(), Verdict::Void(_)), "none is never enough");
    report.bite(299, 300, "hits");
    assert!(matches!(report.verdict(), Verdict::Void(_)), "nor are too few");
    report.bite(300, 300, "hits");
    assert_eq!(report.verdict(), Verdict::Held);
    report.line(PassLine { lost: 1, ..PassLine::default() });
    assert!(matches!(report.verdict(), Verdict::Failed(_)), "a bite is not enough");
    assert!(matches!(Report::impossible("no disk").verdict(), Verdict::Void(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pass_line_notices_what_is_lost_doubled_and_stuck() {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(1)).await;
    // Acknowledged, they say, and never stored.
    let invented = JobId::from_parts(Timestamp::from_micros(ledger::wall_clock()), [7; 10]);
    stage.history.acknowledge(&[Enqueued::Created(invented)]);
    // Two rows of one job, and one of another.
    for row in [
        "gen_random_uuid(), 1",
        "'00000000-0000-7000-8000-000000000001', 1",
        "'00000000-0000-7000-8000-000000000001', 2",
    ] {
        stage.sql(&format!("insert into e2e_sink values ({row})"));
    }
    // Nobody is there to run it.
    stage.enqueue(vec![Act::Wait { ms: 1 }]).await;
    let (line, _) = PassLine::measure(&mut stage).await;
    let expected =
        PassLine { acknowledged: 2, lost: 1, effects: 3, double_effects: 1, stuck: 1, ..PassLine::default() };
    assert_eq!(line, expected);
    assert_eq!(line.broken().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_cut_only_after_its_statement_is_committed() {
    let stage = Stage::postgres().await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let client = Client::new(Place::Postgres(through).open().await.expect("open"));
    client.enqueue(Act::Wait { ms: 1 }).await.expect("the proxy does nothing yet");
    proxy.cut_replies(&["-- enqueue_plain.sql"], 1);
    let answer = client.enqueue(Act::Wait { ms: 1 }).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(..))), "{answer:?}");
    assert_eq!((proxy.cuts(), stage.sql("select count(*) from tenure.job").as_str()), (1, "2"));
    proxy.cut_no_replies();
    client.enqueue(Act::Wait { ms: 1 }).await.expect("on a new connection");
}
