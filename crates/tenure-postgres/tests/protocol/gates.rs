//! Buckets of gates: the SQL counts as tenure-core does, and a rule that changes during a claim leaves no debt.

use std::time::Duration;

use tenure_core::gate::{Breaker, Gate, GateRule, Rate};
use tenure_core::{GateName, Timestamp};
use tenure_store::gate::SetRule;
use tenure_store::operate::Word;
use tenure_store::{GateStore, JobStore};

use crate::scene::{Scene, mutate, number, run, text};

/// Rates with every kind of rounding: period of a unit and not, a burst below and above a period's worth.
fn rates() -> Vec<Rate> {
    let rate = |text: &str, burst, cost| Rate { burst, cost, ..text.parse().expect("a rate") };
    vec![
        rate("1/d", 1, 1),
        rate("1/d", 1_000_000, 1),
        rate("7/1500ms", 3, 2),
        rate("3/ms", 1, 1),
        rate("30/m", 1, 1),
        rate("1000000/s", 999_999, 7),
        rate("13/h", 50, 50),
    ]
}

fn row(rule: &GateRule) -> String {
    let number = |value: Option<u128>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
    let rate = |part: fn(&Rate) -> u128| number(rule.rate.as_ref().map(part));
    format!(
        "row('g', {}, {}, {}, {}, {}, {}, {}, {}, 0)::tenure.gate_rule",
        rate(|rate| rate.count.into()),
        rate(|rate| rate.period.as_millis()),
        rate(|rate| rate.burst.into()),
        rate(|rate| rate.cost.into()),
        number(rule.concurrency.map(Into::into)),
        number(rule.breaker.map(|breaker| breaker.failures.into())),
        number(rule.breaker.map(|breaker| breaker.cooldown.as_millis())),
        rule.weight,
    )
}

#[tokio::test]
async fn a_bucket_comes_under_a_rule_in_sql_as_in_core() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let now = Timestamp::from_micros(1_767_225_600_000_001);
    let at = |moment: Timestamp| format!("('epoch'::timestamptz + {} * interval '1 us')", moment.as_micros());
    let mut rules: Vec<GateRule> =
        rates().into_iter().map(|rate| GateRule { rate: Some(rate), ..GateRule::default() }).collect();
    rules.push(GateRule::default());
    for rule in &rules {
        for owed in [0, 1, 333_333, 100_000_000, 86_400_000_000, 5_000_000_000_000_000] {
            let full_at = now.plus(Duration::from_micros(owed));
            let mut gate = Gate { full_at, ..Gate::default() };
            gate.come_under(rule, now);
            let sql = format!(
                "select (extract(epoch from tenure.come_under({}, {}, {})) * 1000000)::bigint",
                at(full_at),
                row(rule),
                at(now)
            );
            assert_eq!(number(&client, &sql).await, gate.full_at.as_micros(), "{rule:?} owes {owed} us");
        }
    }
}

#[tokio::test]
async fn a_rule_is_written_and_a_reservation_refused_in_sql_as_in_core() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let breaker = |ms| Some(Breaker { failures: 5, cooldown: Duration::from_millis(ms) });
    let mut rules: Vec<GateRule> = rates()
        .into_iter()
        .zip([1, 1_000, 90_000, 60_000, 3_600_000, 7_200_000, 86_400_000])
        .map(|(rate, ms)| GateRule { rate: Some(rate), concurrency: Some(2), breaker: breaker(ms), weight: 3 })
        .collect();
    rules.push(GateRule::default());
    for rule in &rules {
        let sql = format!("select (tenure.rule_json({}) = '{}'::jsonb)::text", row(rule), rule.to_json());
        assert_eq!(text(&client, &sql).await, "true", "{}", rule.to_json());
        let Some(rate) = rule.rate else { continue };
        for tokens in [1, rate.burst, rate.burst + 1] {
            let sql = format!("select tenure.check_reservation({}, {tokens})", row(rule));
            let answer = client.simple_query(&sql).await.map(drop);
            let answer = answer.map_err(|error| error.as_db_error().expect("the server's words").message().to_owned());
            assert_eq!(answer, rate.check_reservation(tokens).map_err(|refused| refused.to_string()));
        }
    }
}

/// The first claim through a gate spends ten days of tokens, and commits after the rule has changed. Answers
/// whether a job passes a second later, under the new rule.
async fn change_a_rule_during_a_claim(scene: &Scene) -> bool {
    let set = async |rate: Rate| {
        let rule = Some(GateRule { rate: Some(rate), ..GateRule::default() });
        let request = SetRule { pattern: "g".parse().expect("a pattern"), rule, word: Word::default() };
        scene.store.set_rule(request).await.expect("set the rule");
    };
    set(Rate { burst: 10, ..Rate::new(1, Duration::from_secs(86_400)) }).await;
    let worker = scene.worker("w").await;
    let gate: GateName = "g".parse().expect("a name");
    let mut jobs: Vec<_> = (0..11).map(|_| scene.new_job()).collect();
    for job in &mut jobs {
        job.gate = Some(gate.clone());
    }
    scene.store.enqueue_jobs(jobs).await.expect("enqueue");
    let user = scene.client().await;
    run(&user, "begin").await;
    let claim = format!(
        "select count(*) from tenure.claim_lines({}, 'default', 10, '{{/g}}', '{{10}}', '{{0, 1, 2, 3}}') c where c.job is not null",
        worker.0
    );
    assert_eq!(number(&user, &claim).await, 10);
    set(Rate { burst: 10, ..Rate::new(100, Duration::from_secs(1)) }).await;
    run(&user, "commit").await;
    scene.advance(Duration::from_secs(1));
    scene.claim(worker, 1).await.is_some()
}

#[tokio::test]
async fn a_claim_during_a_change_of_its_rule_leaves_no_debt() {
    let scene = Scene::new().await;
    assert!(change_a_rule_during_a_claim(&scene).await);
    scene.assert_sound().await;
}

/// The mutant: a gate that looks up its rule and leaves its bucket as it was stays closed for days.
#[tokio::test]
async fn a_claim_that_leaves_its_bucket_under_the_rule_before_closes_the_gate_for_days() {
    let scene = Scene::new().await;
    mutate(
        &scene.client().await,
        "tenure.fold_gate",
        "g.full_at := tenure.come_under(g.full_at, r, _changed_at);",
        "null;",
    )
    .await;
    assert!(!change_a_rule_during_a_claim(&scene).await);
}
