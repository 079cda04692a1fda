//! Each fence of the real SQL, dropped one at a time: named cases of the contract suite turn red.
//!
//! The same cases are green on the real SQL: they are part of `contract::direct`.

use tenure_contract::{clock_at_start, run_case};
use tenure_postgres::PgOptions;
use tenure_postgres::mutant::Mutant;
use tenure_store::clock::Clock;

use crate::database::{Database, fixture_on};

/// A predicate that keeps somebody out, what stands there without it, and the cases that miss it.
struct Fence {
    place: Place,
    find: &'static str,
    replace: &'static str,
    missed_by: &'static [&'static str],
}

enum Place {
    /// A file in `src/sql`.
    Statement(&'static str),
    /// A function of the schema.
    Function(&'static str),
}

use Place::{Function, Statement};

#[rustfmt::skip] // one fence a block
const FENCES: &[Fence] = &[
    Fence { place: Function("advance_page"), find: "and q.job = _job and q.next_offset = at.page_offset", replace: "",
        missed_by: &["a_page_that_is_repeated_or_out_of_order_moves_nothing"] },
    Fence { place: Function("advance_page"), find: "and q.state in (0, 1, 3) and not q.finished", replace: "",
        missed_by: &["the_first_that_fails_may_end_the_others"] },
    Fence { place: Function("advance_page"), find: "and q.state in (0, 1, 3)", replace: "and q.state in (0, 1)",
        missed_by: &["a_run_is_healed_by_an_ordinary_requeue"] },
    Fence { place: Function("begin_page"), find: "if p.job <> _job or p.next_offset <> at.page_offset then", replace: "if false then",
        missed_by: &["a_page_that_is_repeated_or_out_of_order_moves_nothing"] },
    Fence { place: Statement("complete_jobs"), find: "where j.part is not null and exists", replace: "where false and exists",
        missed_by: &["items_are_counted"] },
    Fence { place: Statement("end_jobs"), find: "where d.part is not null and e.how in (1, 3, 4, 5)", replace: "where false",
        missed_by: &["a_partition_that_died_fails_its_run_when_the_others_have_ended"] },
    Fence { place: Function("reclaim"), find: "where d.part is not null and e.how in (4, 5)", replace: "where false",
        missed_by: &["a_partition_fails_by_lost_leases_too"] },
    Fence { place: Function("release_unknown"), find: "where e.how = 5 and j.part is not null", replace: "where false",
        missed_by: &["every_way_to_end_is_told_to_the_run"] },
    Fence { place: Function("requeue"), find: "perform tenure.tell_run(j.id, (- was)::smallint, moment);", replace: "",
        missed_by: &["a_run_is_healed_by_an_ordinary_requeue"] },
    Fence { place: Function("prune"), find: "and not exists (select from tenure.partition p where p.job = c.job and p.state <> 2 offset 0)", replace: "",
        missed_by: &["what_a_run_may_revive_is_not_pruned"] },
    Fence { place: Function("prune"), find: "and not exists (select from tenure.run r where r.consolidate = c.job and r.state in (0, 1, 3) offset 0)", replace: "",
        missed_by: &["what_a_run_may_revive_is_not_pruned"] },
    Fence { place: Statement("complete_jobs"), find: "from ended e join held h on h.job = e.job and h.no = e.lease and h.gate is not null", replace: "from (select no as lease, job from held) e join held h on h.job = e.job and h.no = e.lease and h.gate is not null",
        missed_by: &["a_gate_lets_so_many_in_at_once"] },
    Fence { place: Statement("end_jobs"), find: "from moment m cross join ended e join decided d on d.job = e.job where", replace: "from moment m cross join decided d where",
        missed_by: &["a_report_sent_twice_gives_one_permit_back"] },
    Fence { place: Statement("end_jobs"), find: "m.at + d.hold_ms * interval '1 ms'", replace: "null",
        missed_by: &["a_resource_can_ask_for_silence"] },
    Fence { place: Function("claim_lines"), find: "and not q.paused", replace: "",
        missed_by: &["a_paused_queue_with_gates_hands_out_nothing"] },
    Fence { place: Function("claim_lines"), find: "and r.run_at <= moment", replace: "",
        missed_by: &["a_gated_job_is_not_claimed_before_its_time"] },
    Fence { place: Function("hear"), find: "or _leases[i] <= g.deaf_to", replace: "",
        missed_by: &["a_breaker_that_was_reset_is_deaf_to_what_came_before"] },
    Fence { place: Function("hear"), find: "if g.probe = _leases[i] then", replace: "if g.probe is not null then",
        missed_by: &["a_result_from_before_the_trip_neither_heals_nor_frees_the_probe"] },
    Fence { place: Function("take_permits"), find: "and g.probe is null then g.probe := _lease", replace: "and false then g.probe := _lease",
        missed_by: &["failures_in_a_row_open_the_breaker_and_one_probe_closes_it"] },
    Fence { place: Function("fold_gate"), find: "if g.rules_seen <> _version then", replace: "if g.rules_seen < 0 then",
        missed_by: &["a_rule_that_changes_is_obeyed_by_the_next_claim"] },
    Fence { place: Function("rule_of"), find: "order by r.pattern = _gate desc, length(r.pattern) desc", replace: "order by length(r.pattern)",
        missed_by: &["the_most_specific_rule_holds_whole"] },
    Fence { place: Function("reclaim"), find: "where d.gate is not null", replace: "where false",
        missed_by: &["every_way_to_leave_gives_the_permit_back"] },
    Fence { place: Function("release_unknown"), find: "where d.gate is not null", replace: "where false",
        missed_by: &["every_way_to_leave_gives_the_permit_back"] },
    Fence { place: Function("cancel"), find: "where l.gates[array_position(l.jobs, a.job)] is not null", replace: "where false",
        missed_by: &["every_way_to_leave_gives_the_permit_back"] },
    Fence { place: Statement("enqueue_plain"), find: "and (t.quota is null or not q.fair)", replace: "",
        missed_by: &["a_quota_of_a_tenant_counts_in_a_fair_queue_that_has_none"] },
    Fence { place: Statement("complete_jobs"), find: "where $6::text[] is not null and i.usage is not null", replace: "where false and $6::text[] is not null",
        missed_by: &["usage_is_summed_by_day_tenant_kind_and_name"] },
    Fence { place: Function("fold_usage"), find: "delete from tenure.usage_event where id = any (batch);", replace: "",
        missed_by: &["usage_is_summed_by_day_tenant_kind_and_name"] },
    Fence { place: Function("revoke_key"), find: "and (_tenant is null or t.name = _tenant)", replace: "",
        missed_by: &["a_tenant_sees_and_ends_only_its_own_keys"] },
    Fence { place: Function("create_key"), find: "where k.id = _replaces and (owner is null or k.tenant = owner) for update", replace: "where k.id = _replaces for update",
        missed_by: &["a_key_is_replaced_with_an_overlap"] },
    Fence { place: Function("create_key"), find: "if before.expires_at <= moment then", replace: "if false then",
        missed_by: &["a_replaced_key_hands_its_end_on"] },
    Fence { place: Statement("list_api_keys"), find: "and ($2::text is null or t.name = $2::text)", replace: "and ($2::text is null or $2::text is not null)",
        missed_by: &["a_tenant_sees_and_ends_only_its_own_keys"] },
    Fence { place: Statement("enqueue_plain"), find: "and q.quota is null", replace: "",
        missed_by: &["a_full_queue_refuses_and_takes_again_when_some_are_claimed"] },
    Fence { place: Function("enqueue_rows"), find: "perform tenure.refuse_beyond_quota(stored);", replace: "",
        missed_by: &["a_batch_beyond_the_quota_is_refused_whole", "a_run_beyond_the_quota_is_refused_whole"] },
    Fence { place: Function("refuse_beyond_quota"), find: "and (not q.fair or r.line < l.tenant || '0')", replace: "",
        missed_by: &["each_tenant_of_a_fair_queue_has_a_quota_of_its_own"] },
    Fence { place: Function("refuse_beyond_quota"), find: "and (j.part is null or right(j.part, 12) <> '/consolidate')", replace: "",
        missed_by: &["a_consolidate_always_has_room"] },
    Fence { place: Function("refuse_beyond_quota"), find: "l.tenant || '0'", replace: "l.tenant || ':'",
        missed_by: &["a_tenant_is_not_taken_for_one_whose_number_begins_alike"] },
    Fence { place: Statement("enqueue_plain"), find: "having count(*) = cardinality($1)", replace: "having count(*) > 0",
        missed_by: &["a_batch_with_a_new_name_in_it_is_stored_whole"] },
    Fence { place: Statement("complete_jobs"), find: "and l.worker = $1::int", replace: "and $1::int is not null",
        missed_by: &["a_worker_cannot_complete_under_the_lease_of_another", "every_start_of_a_worker_gets_its_own_number"] },
    Fence { place: Statement("complete_jobs"), find: "order by h.job", replace: "order by h.job on conflict (job, lease) do update set how = excluded.how",
        missed_by: &["a_completion_sent_twice_is_answered_as_done_before", "a_completion_after_a_forced_cancel_is_lost"] },
    Fence { place: Statement("complete_jobs"), find: "and h.no = i.lease", replace: "",
        missed_by: &["leases_reported_together_are_answered_each_by_itself"] },
    Fence { place: Statement("end_jobs"), find: "and l.worker = $1::int", replace: "and $1::int is not null",
        missed_by: &["a_worker_cannot_fail_under_the_lease_of_another", "a_worker_cannot_snooze_under_the_lease_of_another"] },
    Fence { place: Statement("end_jobs"), find: "on conflict do nothing", replace: "on conflict (job, lease) do update set how = excluded.how, final = excluded.final",
        missed_by: &["a_failure_after_a_forced_cancel_changes_nothing"] },
    Fence { place: Statement("end_jobs"), find: "when i.how = 2 and h.attempt >= j.max_attempts then 4", replace: "",
        missed_by: &["a_retry_without_attempts_left_is_stored_as_dead"] },
    Fence { place: Statement("end_jobs"), find: "exists (select from tenure.cancel_request c where c.job = h.job)", replace: "false",
        missed_by: &["a_requested_cancel_wins_over_a_retry", "a_requested_cancel_wins_over_snooze_and_release"] },
    Fence { place: Statement("refuse_endings"), find: "and a.lease = $2::bigint", replace: "and $2::bigint is not null",
        missed_by: &["an_answer_belongs_to_its_own_lease"] },
    Fence { place: Statement("refuse_endings"), find: "and (a.worker = $1::int or a.worker is null)", replace: "and $1::int is not null",
        missed_by: &["an_answer_belongs_to_its_own_worker"] },
    Fence { place: Statement("refuse_endings"), find: "where not f.answered and", replace: "where",
        missed_by: &["a_report_that_was_written_before_is_not_refused", "a_completion_sent_twice_is_answered_as_done_before"] },
    Fence { place: Statement("refuse_endings"), find: "or (i.said in (2, 6, 7) and a.how = 5)", replace: "",
        missed_by: &["a_report_that_was_written_before_is_not_refused"] },
    Fence { place: Statement("refuse_endings"), find: "or (i.said = 2 and a.how = 4)", replace: "",
        missed_by: &["a_report_that_was_written_before_is_not_refused", "a_retry_without_attempts_left_is_stored_as_dead"] },
    Fence { place: Statement("refuse_endings"), find: "(select count(*) from tenure.job j where j.id = f.job) = 1", replace: "true",
        missed_by: &["a_report_of_invented_ids_is_not_written_down", "a_report_about_a_pruned_job_is_not_accepted_anew"] },
    Fence { place: Statement("look_up_endings"), find: "and a.lease = $2::bigint", replace: "and $2::bigint is not null",
        missed_by: &["an_unknown_job_or_lease_has_no_ending"] },
    Fence { place: Statement("look_up_endings"), find: "and (a.worker = $1::int or a.worker is null)", replace: "and $1::int is not null",
        missed_by: &["a_worker_does_not_find_the_endings_of_another"] },
    Fence { place: Statement("renew_leases"), find: "and l.worker = $1::int", replace: "and $1::int is not null",
        missed_by: &["a_worker_cannot_renew_the_lease_of_another"] },
    Fence { place: Statement("drop_leases"), find: "and l.worker = $1::int", replace: "and $1::int is not null",
        missed_by: &["a_worker_cannot_drop_the_lease_of_another"] },
    Fence { place: Statement("drop_leases"), find: "cardinality(l.jobs) = (", replace: "-1 < (",
        missed_by: &["a_lease_that_still_holds_a_job_is_not_dropped"] },
    Fence { place: Statement("claim_jobs"), find: "and not paused", replace: "",
        missed_by: &["a_paused_queue_hands_out_nothing"] },
    Fence { place: Statement("claim_jobs"), find: "and r.run_at <= q.due", replace: "",
        missed_by: &["a_job_is_not_claimed_before_its_time"] },
    Fence { place: Function("reclaim"), find: "l.expires_at < moment", replace: "true",
        missed_by: &["a_good_lease_is_not_taken_back"] },
    Fence { place: Function("release_unknown"), find: "l.worker = _worker and", replace: "",
        missed_by: &["a_worker_gives_back_nothing_of_another"] },
    Fence { place: Function("release_unknown"), find: "and l.no <= _newest", replace: "",
        missed_by: &["a_sweep_that_comes_late_leaves_the_next_claim_alone"] },
    Fence { place: Function("release_unknown"), find: "and l.no <> all (_known)", replace: "",
        missed_by: &["a_claim_whose_reply_was_lost_is_given_back_uncharged"] },
    Fence { place: Function("find_job"), find: "_tenant is distinct from (select name from tenure.tenant where id = j.tenant)", replace: "false",
        missed_by: &["a_job_of_another_tenant_cannot_be_canceled", "a_job_of_another_tenant_cannot_be_requeued"] },
    Fence { place: Function("prune"), find: "and not exists (select from tenure.attempt b cross join lateral (select from tenure.lease l where l.no = b.lease offset 0) held where b.job = c.job offset 0)", replace: "",
        missed_by: &["a_job_is_not_pruned_while_a_lease_it_ran_under_exists"] },
    Fence { place: Function("requeue"), find: "holder <> j.id", replace: "false",
        missed_by: &["a_requeue_is_refused_when_another_job_took_its_key"] },
    Fence { place: Function("requeue"), find: "and a.how in (3, 4, 5)", replace: "",
        missed_by: &["every_refused_step_is_a_conflict"] },
    Fence { place: Function("open"), find: "and r.state = 2", replace: "",
        missed_by: &["an_opening_sent_twice_is_written_once"] },
    Fence { place: Function("fire_batch"), find: "and t.version = i.version", replace: "",
        missed_by: &["of_two_that_make_up_different_fires_one_wins", "a_fire_of_an_old_timing_comes_too_late"] },
    Fence { place: Function("fire_batch"), find: "on conflict (schedule, fire_at) do nothing", replace: "on conflict (schedule, fire_at) do update set job = excluded.job",
        missed_by: &["a_fire_time_has_one_job_whatever_is_asked"] },
    Fence { place: Function("fire_batch"), find: "and not t.paused", replace: "",
        missed_by: &["a_paused_schedule_cannot_be_fired_by_hand"] },
    Fence { place: Function("fire_batch"), find: "and coalesce(i.fire_at, moment) <= moment", replace: "",
        missed_by: &["a_schedule_is_not_fired_before_its_time"] },
    Fence { place: Statement("due_schedules"), find: "order by r.turn, r.look_at", replace: "order by r.look_at",
        missed_by: &["tenants_take_turns_among_due_schedules"] },
    Fence { place: Statement("due_schedules"), find: "where not s.paused and s.look_at <= m.at", replace: "where s.look_at <= m.at",
        missed_by: &["a_paused_schedule_fires_nothing_and_goes_on_from_now"] },
];

impl Fence {
    fn name(&self) -> String {
        let place = match self.place {
            Statement(name) | Function(name) => name,
        };
        format!("{place} without `{}`", self.find)
    }

    /// What the case says on a store without this fence.
    async fn run(&self, case: &str) -> Result<(), String> {
        let clock = clock_at_start();
        let mut options = PgOptions { clock: Clock::Manual(clock.clone()), connections_max: 4, ..PgOptions::default() };
        let database = Database::new().await;
        match self.place {
            Statement(statement) => options.mutant = Some(Mutant { statement, find: self.find, replace: self.replace }),
            Function(function) => self.drop_in(function, &database),
        }
        run_case(case, fixture_on(database, options, clock).await).await
    }

    fn drop_in(&self, function: &str, database: &Database) {
        let text = database.sql(&format!("select pg_get_functiondef('tenure.{function}'::regproc)"));
        assert!(text.contains(self.find), "{function} has no `{}`", self.find);
        database.sql(&text.replace(self.find, self.replace));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fence_is_missed_by_a_named_case() {
    let mut unnoticed = Vec::new();
    for fence in FENCES {
        assert!(!fence.missed_by.is_empty(), "{} has no case", fence.name());
        for case in fence.missed_by {
            if fence.run(case).await.is_ok() {
                unnoticed.push(format!("{case} did not notice {}", fence.name()));
            }
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
}
