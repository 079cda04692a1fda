//! Mutants of the real SQL: a lock, an order or a guard taken away. Each is caught by a case that the real SQL passes.

use std::future::Future;
use std::pin::Pin;

use tenure_postgres::mutant::Mutant;
use tokio_postgres::Client;

use crate::stage::{Stage, Verdict};
use crate::{gate_cases, key_cases, lease_cases};

type Case = fn(Stage) -> Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// Where the knife goes in.
pub(crate) enum Cut {
    Statement(Mutant),
    /// Its name; texts of it, and what stands there instead.
    Function(&'static str, &'static [(&'static str, &'static str)]),
}

impl Cut {
    /// The change to the store's statements, if it is one.
    pub(crate) fn statement(&self) -> Option<Mutant> {
        match self {
            Self::Statement(mutant) => Some(*mutant),
            Self::Function(..) => None,
        }
    }

    /// Changes the function of this database, if it is one.
    pub(crate) async fn apply(&self, client: &Client) {
        let Self::Function(name, changes) = self else { return };
        let text = "select pg_get_functiondef(('tenure.' || $1)::regproc)";
        let mut text: String = client.query_one(text, &[name]).await.expect("read a function").get(0);
        for (find, replace) in *changes {
            assert!(text.contains(find), "{name} has no `{find}`");
            text = text.replace(find, replace);
        }
        client.batch_execute(&text).await.expect("replace a function");
    }

    /// The mutant of this name, for a run of the random attack on it.
    pub(crate) fn named(name: &str) -> &'static Self {
        &MUTANTS.iter().find(|(what, ..)| *what == name).unwrap_or_else(|| panic!("there is no mutant `{name}`")).1
    }
}

macro_rules! cases {
    ($($module:ident::$case:ident,)*) => { &[$((stringify!($case), |stage| Box::pin($module::$case(stage)))),*] };
}

const CASES: &[(&str, Case)] = cases! {
    lease_cases::a_repeated_report_puts_nothing_back,
    key_cases::an_enqueue_waits_for_a_requeue_of_its_key,
    key_cases::a_requeue_waits_for_a_takeover_of_its_key,
    key_cases::an_old_snapshot_takes_over_no_requeued_key,
    lease_cases::reports_in_opposite_order_do_not_deadlock,
    lease_cases::mixed_reports_in_opposite_order_do_not_deadlock,
    key_cases::keys_in_opposite_order_do_not_deadlock,
    key_cases::ids_in_opposite_order_do_not_deadlock,
    key_cases::repeated_ids_in_opposite_order_do_not_deadlock,
    lease_cases::reclaim_passes_by_an_enqueue_sent_again,
    lease_cases::a_late_requeue_is_sealed_where_it_happened,
    lease_cases::an_open_transaction_stops_no_seal,
    lease_cases::reclaim_passes_by_a_report_on_its_way,
    lease_cases::a_slow_completion_finds_its_job_ended,
    lease_cases::a_slow_report_finds_its_job_ended,
    lease_cases::a_job_outlives_its_lease,
    key_cases::prune_and_requeue_do_not_deadlock,
    key_cases::one_idempotency_key_names_one_job,
    key_cases::a_repeated_enqueue_is_answered_with_its_job,
    key_cases::a_repeated_enqueue_meets_a_prune,
    lease_cases::a_late_commit_is_found_by_a_sweep,
    gate_cases::a_claim_passes_by_a_gate_that_another_claim_has,
    gate_cases::a_busy_gate_lets_nothing_through,
    gate_cases::a_late_ending_gives_its_permit_back,
    gate_cases::an_ending_that_commits_during_a_fold_is_heard,
    gate_cases::a_new_gate_in_an_open_transaction_is_passed_by,
};

const fn statement(statement: &'static str, find: &'static str, replace: &'static str) -> Cut {
    Cut::Statement(Mutant { statement, find, replace })
}

/// What is cut, and which case must notice.
#[rustfmt::skip] // one line each
const MUTANTS: &[(&str, Cut, &str)] = &[
    ("follow-up of a report from its input",
        statement("end_jobs", "from ended e join decided d on d.job = e.job\n  where e.how in (2, 6, 7)", "from decided d cross join lateral (select d.how) e\n  where e.how in (2, 6, 7)"),
        "a_repeated_report_puts_nothing_back"),
    ("take-over without the key's lock",
        Cut::Function("take_key", &[(" for update;", ";")]),
        "an_enqueue_waits_for_a_requeue_of_its_key"),
    ("take-over without a second look",
        Cut::Function("take_key", &[("if look = 2 then\n        update", "if true then\n        update")]),
        "an_enqueue_waits_for_a_requeue_of_its_key"),
    ("requeue without the key's lock",
        Cut::Function("requeue", &[(" for update;", ";")]),
        "a_requeue_waits_for_a_takeover_of_its_key"),
    ("requeue that leaves the key as it was",
        Cut::Function("requeue", &[("update tenure.unique_key k set job = j.id", "perform from tenure.unique_key k")]),
        "an_old_snapshot_takes_over_no_requeued_key"),
    ("completions in the order of the report",
        statement("complete_jobs", "order by h.job", "order by array_position($4::uuid[], h.job)"),
        "reports_in_opposite_order_do_not_deadlock"),
    ("endings in the order of the report",
        statement("end_jobs", "order by d.job", "order by array_position($3::uuid[], d.job)"),
        "mixed_reports_in_opposite_order_do_not_deadlock"),
    ("keys in the order of the jobs",
        Cut::Function("enqueue_rows", &[("order by n.tenant, u.digest is null, u.scope collate \"C\", u.key collate \"C\", n.ord", "order by n.ord")]),
        "keys_in_opposite_order_do_not_deadlock"),
    ("plain jobs in the order of the call",
        statement("enqueue_plain", "order by i.id", "order by array_position($1, i.id)"),
        "ids_in_opposite_order_do_not_deadlock"),
    ("ready rows that do not wait for their jobs",
        statement("enqueue_plain", "id = any (array(select id from input where waiting)) as waits from stored", "waiting as waits from input where exists (select from whole)"),
        "reclaim_passes_by_an_enqueue_sent_again"),
    ("jobs in the order of the call",
        Cut::Function("enqueue_rows", &[("order by i.id, i.ord", "order by i.ord")]),
        "repeated_ids_in_opposite_order_do_not_deadlock"),
    ("idempotency keys each by itself",
        Cut::Function("enqueue_rows", &[("holders := array_replace(holders, k.id, holders[k.ord]);", "")]),
        "one_idempotency_key_names_one_job"),
    ("repeated jobs that look for keys again",
        Cut::Function("enqueue_rows", &[("if known <> '{}' then", "if false then")]),
        "a_repeated_enqueue_is_answered_with_its_job"),
    ("seals in the order of transaction ids",
        statement("read_sealed", "order by id", "order by xid, id"),
        "a_late_requeue_is_sealed_where_it_happened"),
    ("seals up to the oldest open transaction",
        statement("open_seal", "select pg_current_snapshot() as here", "select format('%s:%s:', pg_snapshot_xmin(pg_current_snapshot()), pg_snapshot_xmin(pg_current_snapshot()))::pg_snapshot as here"),
        "an_open_transaction_stops_no_seal"),
    ("reclaim that waits for leases",
        Cut::Function("reclaim", &[("for update skip locked", "for update")]),
        "reclaim_passes_by_a_report_on_its_way"),
    ("reclaim without its guards",
        Cut::Function("reclaim", &[("and (select count(*) from tenure.attempt a where a.job = u.job and a.lease = l.no) = 0", ""), ("on conflict do nothing", "")]),
        "reclaim_passes_by_a_report_on_its_way"),
    ("follow-up of reclaim from what the lease lists",
        Cut::Function("reclaim", &[("and (select count(*) from tenure.attempt a where a.job = u.job and a.lease = l.no) = 0", ""),
            ("from ended e cross join lateral", "from (select d.job, d.losses, d.attempt, d.ending as how from decided d) e cross join lateral")]),
        "reclaim_passes_by_a_report_on_its_way"),
    ("completions that do not hold their lease",
        statement("complete_jobs", "for key share", ""),
        "a_slow_completion_finds_its_job_ended"),
    ("endings that do not hold their lease",
        statement("end_jobs", "for key share", ""),
        "a_slow_report_finds_its_job_ended"),
    ("prune without a look at leases",
        Cut::Function("prune", &[("and not exists (select from tenure.attempt b cross join lateral (select from tenure.lease l where l.no = b.lease offset 0) held where b.job = c.job offset 0)", "")]),
        "a_job_outlives_its_lease"),
    ("prune that waits for keys",
        Cut::Function("prune", &[("for update of k skip locked", "for update of k")]),
        "prune_and_requeue_do_not_deadlock"),
    ("plain-select permits",
        Cut::Function("open_gates", &[("order by g.name for update skip locked", "order by g.name")]),
        "a_claim_passes_by_a_gate_that_another_claim_has"),
    ("gates that are passed unseen while somebody has them",
        Cut::Function("claim_lines", &[("when h.id is null or l.nth > 1 or", "when l.nth > 1 or")]),
        "a_busy_gate_lets_nothing_through"),
    ("folds that go on behind the newest transaction",
        Cut::Function("open_gates", &[("select pg_snapshot_xmin(pg_current_snapshot())", "select pg_snapshot_xmax(pg_current_snapshot())")]),
        "a_late_ending_gives_its_permit_back"),
    ("folds that remember a later moment than the one they saw",
        Cut::Function("fold_gate", &[("g.folded_to := _floor", "g.folded_to := pg_snapshot_xmin(pg_current_snapshot())")]),
        "an_ending_that_commits_during_a_fold_is_heard"),
    ("new gates that are waited for",
        Cut::Function("open_gates", &[("and pg_try_advisory_xact_lock(tenure.gate_lock(n.name))", "")]),
        "a_new_gate_in_an_open_transaction_is_passed_by"),
    ("no sweeps",
        statement("elect_sweep", "where name = $1::text", "where false and name = $1::text"),
        "a_late_commit_is_found_by_a_sweep"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_the_real_sql() {
    let mut broken = Vec::new();
    for (name, case) in CASES {
        if let Err(why) = case(Stage::new(None).await).await {
            broken.push(format!("{name}: {why}"));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mutant_is_caught_by_its_case() {
    let mut escaped = Vec::new();
    for (what, cut, by) in MUTANTS {
        let (_, case) = CASES.iter().find(|(name, _)| name == by).expect("a case of that name");
        match case(Stage::new(Some(cut)).await).await {
            Ok(()) => escaped.push(format!("{what} is not noticed by {by}")),
            Err(why) => println!("{what}: {why}{}", why.source().map(|cause| format!(": {cause}")).unwrap_or_default()),
        }
    }
    assert!(escaped.is_empty(), "{escaped:#?}");
}
