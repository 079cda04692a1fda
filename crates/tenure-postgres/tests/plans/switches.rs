//! The claim takes the right jobs, and never more than its limit, whatever plan it gets.
//!
//! `update … where id in (select … limit 1 for update skip locked)` was seen to take 20 of 20 rows under a nested loop
//! (RELIABILITY 0.4). So the shipped text runs under every combination of the planner's switches, with and without
//! statistics, with custom and generic plans. Each claim is rolled back, so all of them see the same jobs.

use tenure_postgres::statement;

use crate::database::Database;
use crate::session::{Rows, Session};

/// Switches that change which scans and joins a claim can get; all combinations are tried.
const SWITCHES: [&str; 9] = [
    "enable_hashjoin",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_hashagg",
    "enable_material",
    "enable_sort",
    "enable_seqscan",
    "enable_indexscan",
    "enable_tidscan",
];
/// Switches tried one at a time, beside all and none of those above.
const LESSER: [&str; 3] = ["enable_indexonlyscan", "enable_bitmapscan", "enable_memoize"];
/// `auto` is one of the two others, sooner or later.
const MODES: [&str; 2] = ["force_generic_plan", "force_custom_plan"];

/// Jobs that are due; as many lie in the future, and as many in another queue.
const DUE: usize = 24;

#[tokio::test]
async fn switches_never_make_a_claim_take_other_jobs() {
    let database = Database::new().await;
    fill(&database);
    let session = Session::open(&database, "set jit = off").await;
    session.prepare(statement::CLAIM_JOBS).await;
    let urgent_first = session
        .column("select job from tenure.ready where queue = 1 and run_at <= now() order by priority, run_at, job")
        .await;
    assert_eq!(urgent_first.len(), DUE);
    for statistics in [false, true] {
        if statistics {
            session.run("analyze").await;
        }
        for (nth, setting) in settings().iter().enumerate() {
            // Every limit from 1 to more than is there comes up under many combinations.
            let limit = nth % (DUE + 2) + 1;
            let claimed = claim(&session, setting, limit).await;
            let mut expected = urgent_first[..limit.min(DUE)].to_vec();
            expected.sort_unstable();
            assert_eq!(claimed, expected, "limit {limit}, statistics {statistics}, {setting}");
        }
    }
}

#[tokio::test]
async fn switches_catch_a_claim_that_does_not_materialize() {
    let database = Database::new().await;
    fill(&database);
    let session = Session::open(&database, "set jit = off").await;
    let naive = "delete from tenure.ready where job in (
        select job from tenure.ready where queue = 1 and line = '' and run_at <= now()
        order by queue, line, priority, run_at, job limit 1 for update skip locked
    ) returning job";
    let mut most = 0;
    for setting in settings() {
        let answers = session.ask(&format!("begin; {setting}; {naive}; rollback")).await;
        most = most.max(answers[answers.len() - 2].len());
    }
    assert!(most > 1, "no combination makes the naive claim take more than its limit, so this file proves nothing");
}

#[tokio::test]
async fn switches_never_make_a_claim_of_lines_take_more_than_a_gate_allows() {
    let database = Database::new().await;
    fill(&database);
    // Every fourth job passes a gate that has room for three, every fourth one that has room for one; and another line
    // leads through the first gate, which is not for the same claim.
    database.sql(
        "with n as (select job, row_number() over (order by run_at > now(), job) % 4 as n from tenure.ready where queue = 1)
         update tenure.ready r set line = case n.n when 0 then '/g' when 1 then '/h' when 2 then '5/g' else '' end from n where n.job = r.job;
         select tenure.set_gate('g', concurrency => 3);
         select tenure.set_gate('h', rate => 1, period => '1 hour')",
    );
    let session = Session::open(&database, "set jit = off").await;
    session.prepare(statement::CLAIM_LINES).await;
    let due = "select line, count(*) from tenure.ready where queue = 1 and run_at <= now() group by line order by line";
    for statistics in [false, true] {
        if statistics {
            session.run("analyze").await;
        }
        for setting in some_settings() {
            let call = "claim_lines(1, 'default', 20, array['/g', '', '/h', '5/g'], array[9, 4, 9, 9], '{0, 1, 2, 3}', null, 8192, false)";
            let inside = "select name, in_use from tenure.gate order by name";
            let script = format!("begin; {setting}; discard plans; {due}; execute {call}; {due}; {inside}; rollback");
            let answers = session.ask(&script).await;
            let [.., before, claimed, after, inside, _] = answers.as_slice() else { panic!("{answers:?}") };
            let counts =
                |rows: &Rows| texts(rows, 1).iter().map(|n| n.parse().expect("a number")).collect::<Vec<i64>>();
            let taken: Vec<i64> =
                counts(before).iter().zip(counts(after)).map(|(before, after)| before - after).collect();
            assert_eq!((taken, counts(inside)), (vec![4, 3, 1, 0], vec![3, 1]), "statistics {statistics}, {setting}");
            assert_eq!(claimed.iter().filter(|row| row[4].is_some()).count(), 8, "{setting}");
        }
    }
}

/// Claims, looks at what is left, rolls back; answers the jobs, sorted.
async fn claim(session: &Session, setting: &str, limit: usize) -> Vec<String> {
    let floors = "array[null, null, null, null]::timestamptz[], array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[4])";
    let script = format!(
        "begin; {setting}; discard plans;
         execute claim_jobs(1, 'default', {limit}, {floors}, null, '{{0, 1, 2, 3}}', 8192, false);
         select job from tenure.ready where queue = 1 and run_at <= now();
         select unnest(jobs) from tenure.lease;
         rollback"
    );
    let answers = session.ask(&script).await;
    let [.., claimed, left, leased, _] = answers.as_slice() else { panic!("{answers:?}") };
    let [mut jobs, left, mut leased] = [(claimed, 4), (left, 0), (leased, 0)].map(|(rows, column)| texts(rows, column));
    assert_eq!(jobs.len() + left.len(), DUE, "what was claimed, and nothing else, is no longer ready: {setting}");
    assert!(left.iter().all(|job| !jobs.contains(job)), "a claimed job is still ready: {setting}");
    jobs.sort_unstable();
    leased.sort_unstable();
    assert_eq!(jobs, leased, "the lease holds what was handed out: {setting}");
    jobs
}

pub(crate) fn texts(rows: &Rows, column: usize) -> Vec<String> {
    rows.iter().map(|row| row[column].clone().expect("not null")).collect()
}

/// Every combination of the switches in both modes, then the few.
fn settings() -> Vec<String> {
    let combinations = (0_u32..1 << SWITCHES.len()).map(|bits| {
        let off = SWITCHES.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0).map(|(_, switch)| *switch);
        off.collect::<Vec<_>>()
    });
    let all: Vec<Vec<&str>> = combinations.collect();
    MODES.into_iter().flat_map(|mode| all.iter().map(move |off| setting(mode, off))).chain(some_settings()).collect()
}

/// A few combinations in every mode: nothing off, each alone, and everything.
pub(crate) fn some_settings() -> Vec<String> {
    let alone = SWITCHES.into_iter().chain(LESSER).map(|switch| vec![switch]);
    let everything = [&SWITCHES[..], &LESSER].concat();
    let few: Vec<Vec<&str>> = [Vec::new(), everything].into_iter().chain(alone).collect();
    ["auto", MODES[0], MODES[1]].into_iter().flat_map(|mode| few.iter().map(move |off| setting(mode, off))).collect()
}

fn setting(mode: &str, off: &[&str]) -> String {
    let switches: String = off.iter().map(|switch| format!("; set local {switch} = off")).collect();
    format!("set local plan_cache_mode = {mode}{switches}")
}

/// Jobs in mixed priorities and times; nothing analyzes the tables behind our back.
fn fill(database: &Database) {
    let without_statistics: String = ["job", "ready", "lease", "attempt", "cancel_request"]
        .map(|table| format!("alter table tenure.{table} set (autovacuum_enabled = off);"))
        .concat();
    database.sql(&format!(
        "{without_statistics}
         insert into tenure.queue (name) values ('other');
         with j as (
           insert into tenure.job (id, created_at, run_at, tenant, queue, priority, kind, payload)
           select tenure.new_id(), now(), now() + case when i % 3 = 1 then interval '1 day' else i % 5 * interval '-1 s' end, 1,
             case when i % 3 = 2 then 2 else 1 end, i % 4, 'noop', '{{}}'
           from generate_series(1, 3 * {DUE}) i
           returning id, run_at, queue, priority
         )
         insert into tenure.ready (run_at, job, queue, priority) select run_at, id, queue, priority from j"
    ));
}
