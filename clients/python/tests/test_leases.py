"""Who holds what: lost answers, renewals, deadlines and refusals."""

from __future__ import annotations

import threading
from time import monotonic

from tenure_client import Canceled, Context, Job

from .case import WorkerCase
from .fake import DROP, HANG, PATIENCE, Reply, job, problem


def wait_for_the_end(_job: Job, ctx: Context) -> str:
    ctx.canceled.wait(PATIENCE)
    return "too late"


class Leases(WorkerCase):
    def test_after_a_lost_claim_reply_the_next_claim_says_what_is_held(self) -> None:
        go = threading.Event()
        self.fake.offer(job("j1"))
        self.fake.script("claim", self.fake.behave, DROP)
        self.start({"work": lambda _job, _ctx: go.wait(PATIENCE)}, slots=3)
        self.fake.wait_for("claim", 3)
        self.fake.offer(job("j2"))
        claims = self.fake.wait_for("claim", 4)
        go.set()
        self.assertEqual([claim.body.get("holding") for claim in claims], [None, None, [101], None])

    def test_a_worker_that_holds_nothing_says_so_after_an_error(self) -> None:
        self.fake.script("claim", DROP, problem(503, "busy"))
        self.start({})
        claims = self.fake.wait_for("claim", 3)
        self.assertEqual([claim.body.get("holding") for claim in claims], [None, [], []])
        self.fake.offer(job("j1"))
        self.assertNotIn("holding", self.fake.wait_for("claim", 4)[3].body)

    def test_a_claim_reply_that_cannot_be_read_is_a_lost_one(self) -> None:
        self.fake.script("claim", Reply(200, {"hello": "from the proxy"}))
        self.start({})
        self.assertEqual(self.fake.wait_for("claim", 2)[1].body["holding"], [])

    def test_renewals_go_on_while_a_handler_runs(self) -> None:
        go = threading.Event()
        self.fake.ttl_ms = self.fake.renewed_ttl_ms = 600
        self.fake.offer(job("j1"))
        started = monotonic()
        self.start({"work": lambda _job, ctx: go.wait(PATIENCE) and not ctx.is_canceled})
        renewals = self.fake.wait_for("renew", 4)
        self.assertGreater(monotonic() - started, 0.6)  # The first deadline is past, and the lease still good.
        self.assertEqual({renewal.path for renewal in renewals}, {"/v1/leases/101/renew"})
        go.set()
        [complete] = self.fake.wait_for("complete")
        self.assertEqual(complete.body, {"result": True})
        self.wait_event("completed")

    def test_a_deadline_counts_from_when_the_claim_or_renewal_was_sent(self) -> None:
        go = threading.Event()
        self.fake.ttl_ms = 900
        self.fake.waited_ms = 300
        self.fake.offer(job("j1"))
        worker = self.start({"work": lambda _job, _ctx: go.wait(PATIENCE)})
        self.wait_event("started")
        [lease] = worker._state.held_leases()
        # What was heard had been sent before, and is answered later.
        heard_at = self.fake.heard("claim")[0].heard_at
        self.assertLessEqual(lease.deadline, heard_at + 1.2)
        self.assertGreater(lease.deadline, heard_at + 0.9)
        [renewal] = self.fake.wait_for("renew")
        ends = monotonic() + PATIENCE
        worker._state.wait_until(lambda: lease.ttl == 60, lambda: ends)
        self.assertGreater(lease.deadline, renewal.heard_at + 50)
        self.assertLessEqual(lease.deadline, renewal.heard_at + 60)
        go.set()

    def test_a_lease_lost_at_renewal_stops_the_handler_and_nothing_is_reported(self) -> None:
        self.fake.ttl_ms = 900
        self.fake.script("renew", problem(409, "lease_lost"))
        self.fake.offer(job("j1"))
        self.start({"work": wait_for_the_end})
        self.assertEqual(self.wait_event("lost").code, "lease_lost")
        refused = self.wait_event("refused")
        self.assertEqual((refused.code, refused.detail), ("lease_lost", "lease_lost"))
        self.finish()
        self.assertEqual(self.reports(), [])

    def test_a_renewal_that_fails_for_now_is_tried_again(self) -> None:
        go = threading.Event()
        self.fake.ttl_ms = 900
        self.fake.script("renew", problem(503, "busy"), DROP, problem(500, "internal"))
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, _ctx: go.wait(PATIENCE)})
        self.fake.wait_for("renew", 4)
        go.set()
        self.wait_event("completed")

    def test_the_local_deadline_fences_when_no_renewal_is_answered(self) -> None:
        self.fake.ttl_ms = 300
        self.fake.forever("renew", HANG)
        self.fake.offer(job("j1"))
        self.start({"work": wait_for_the_end})
        started = monotonic()
        self.assertEqual(self.wait_event("lost").code, "deadline")
        self.assertLess(monotonic() - started, 2)  # The handler was stopped by the deadline and not by its own patience.
        self.assertEqual(self.wait_event("refused").detail, "deadline")
        self.finish()
        self.assertEqual(self.reports(), [])

    def test_a_result_is_fenced_by_the_clock_even_if_nobody_watched(self) -> None:
        # As after a freeze: the handler is the first to go on, and its lease is over by the clock.
        def work(_job: Job, _ctx: Context) -> str:
            for lease in self.worker._state.held_leases():
                lease.deadline = monotonic()
            return "stale"

        self.fake.offer(job("j1"))
        self.start({"work": work})
        self.assertEqual(self.wait_event("refused").code, "lease_lost")
        self.finish()
        self.assertEqual(self.reports(), [])

    def test_what_the_server_waited_for_work_is_not_the_time_of_the_lease(self) -> None:
        self.fake.ttl_ms = 0
        self.fake.waited_ms = 60_000
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, _ctx: None})
        self.wait_event("completed")

    def test_a_lease_that_came_after_its_own_time_is_not_worked_on(self) -> None:
        self.fake.ttl_ms = 0
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, _ctx: None})
        self.assertEqual(self.wait_event("refused").detail, "deadline")
        self.finish()
        self.assertEqual(self.reports(), [])
        self.assertNotIn("started", [event.name for event in self.events])

    def test_a_refused_completion_is_dropped_and_logged(self) -> None:
        self.fake.script("complete", problem(409, "lease_lost"))
        self.fake.offer(job("j1"))
        with self.assertLogs("tenure_client", "WARNING") as logs:
            self.start({"work": lambda _job, _ctx: None}, slots=1)
            refused = self.wait_event("refused")
            self.fake.wait_for("claim", 2)  # The slot is free again.
        self.assertEqual((refused.job, refused.code), ("j1", "lease_lost"))
        self.assertIn("refused lease=101 job=j1 kind=work code=lease_lost", "\n".join(logs.output))
        self.finish()
        self.assertEqual(self.reports(), ["complete"])

    def test_a_report_is_repeated_until_it_is_answered(self) -> None:
        repeated = Reply(200, {"job": "j1", "state": "succeeded", "repeated": True})
        self.fake.script("complete", problem(503, "busy"), DROP, repeated)
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, _ctx: {"mail": 7}})
        self.assertEqual(self.wait_event("completed").detail, "succeeded")
        self.finish()
        self.assertEqual([r.body for r in self.fake.heard("complete")], [{"result": {"mail": 7}}] * 3)
        self.assertEqual(self.reports(), ["complete"] * 3)

    def test_a_report_is_not_repeated_past_the_deadline(self) -> None:
        self.fake.ttl_ms = 300
        self.fake.forever("renew", DROP)
        self.fake.forever("complete", problem(503, "busy"))
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, _ctx: None}, slots=1)
        self.assertEqual(self.wait_event("refused").detail, "deadline")
        self.assertGreater(len(self.fake.heard("complete")), 1)
        said = len(self.fake.heard("complete"))
        self.fake.wait_for("claim", 2)
        # The last one may have been sent just before the deadline and heard just after it.
        self.assertLessEqual(len(self.fake.heard("complete")), said + 1)

    def test_an_unknown_worker_drops_what_it_holds_and_registers_again(self) -> None:
        self.fake.offer(job("j1"))
        self.start({"work": wait_for_the_end, "next": lambda _job, _ctx: None}, slots=2)
        self.wait_event("started")
        self.fake.forget_workers()
        self.assertEqual(self.wait_event("lost").code, "unknown_worker")
        self.wait_event("refused")
        self.fake.wait_for("register", 2)
        self.fake.offer(job("j2", kind="next"))
        [complete] = self.fake.wait_for("complete")
        self.assertEqual(complete.headers["Tenure-Worker"], "tnw_3")
        self.assertIn("/j2/", complete.path)

    def test_an_unknown_worker_that_only_renews_registers_again(self) -> None:
        self.fake.ttl_ms = 900
        self.fake.script("renew", problem(401, "unknown_worker"))
        self.fake.offer(job("j1"))
        self.start({"work": wait_for_the_end}, slots=1)
        self.wait_event("refused")
        self.fake.wait_for("register", 2)
        self.assertEqual(self.reports(), [])

    def test_a_canceled_handler_of_a_lost_lease_reports_nothing(self) -> None:
        def work(_job: Job, ctx: Context) -> None:
            ctx.canceled.wait(PATIENCE)
            raise Canceled()

        self.fake.ttl_ms = 900
        self.fake.script("renew", problem(409, "lease_lost"))
        self.fake.offer(job("j1"))
        self.start({"work": work})
        self.wait_event("refused")
        self.finish()
        self.assertEqual(self.reports(), [])
