"""How handlers end, and what is then reported."""

from __future__ import annotations

import threading
from typing import Any

from tenure_client import Canceled, Context, Event, Fail, Job, Snooze
from tenure_client.given_back import GivenBack

from .case import WorkerCase
from .fake import PATIENCE, Reply, job, problem


class Endings(WorkerCase):
    def test_a_job_is_claimed_run_and_completed(self) -> None:
        def work(job: Job, ctx: Context) -> Any:
            ctx.usage("bytes", 1000)
            ctx.usage("bytes", 24)
            return {"payload": job.payload, "fence": ctx.fence, "attempt": job.attempt, "queue": job.queue}

        self.fake.offer(job("j1", payload={"order": 42}))
        self.start({"work": work}, slots=3, name="mailer", version="1.4.0")
        event = self.wait_event("completed")
        [register] = self.fake.heard("register")
        self.assertEqual(register.headers["Authorization"], "Bearer key")
        self.assertNotIn("Tenure-Worker", register.headers)
        self.assertEqual(register.body["name"], "mailer")
        self.assertEqual(register.body["queues"], [{"queue": "mail", "slots": 3}])
        claim = self.fake.heard("claim")[0]
        self.assertEqual(claim.body, {"queues": ["mail"], "limit": 3, "wait_ms": 5000})
        self.assertEqual(claim.headers["Tenure-Worker"], "tnw_1")
        [complete] = self.fake.heard("complete")
        self.assertEqual(complete.path, "/v1/leases/101/jobs/j1/complete")
        result = {"payload": {"order": 42}, "fence": 101, "attempt": 1, "queue": "mail"}
        self.assertEqual(complete.body, {"result": result, "usage": {"bytes": 1024}})
        self.assertEqual(event, Event("completed", 101, "j1", "work", detail="after complete"))

    def test_handlers_run_at_the_same_time_and_claims_ask_for_free_slots_only(self) -> None:
        both = threading.Barrier(2)
        go = threading.Event()

        def work(_job: Job, _ctx: Context) -> None:
            both.wait(PATIENCE)
            go.wait(PATIENCE)

        self.fake.offer(job("j1"), job("j2"))
        self.start({"work": work}, slots=3)
        claims = self.fake.wait_for("claim", 2)
        self.assertEqual([claim.body["limit"] for claim in claims], [3, 1])
        go.set()
        self.wait_event("completed", 2)

    def test_any_exception_is_a_transient_failure_named_by_its_class(self) -> None:
        def work(_job: Job, _ctx: Context) -> None:
            raise KeyError("order")

        self.fake.offer(job("j1"))
        self.start({"work": work})
        [fail] = self.fake.wait_for("fail")
        self.assertEqual(fail.body, {"class": "transient", "message": "'order'", "code": "KeyError"})

    def test_a_fail_says_all_that_it_was_given(self) -> None:
        fails = {
            "transient": Fail.transient("slow", code="timeout", details={"after": 3}, retry_in=1.5),
            "permanent": Fail.permanent("no such order"),
            "dead": Fail.dead("poison", code="bad"),
        }

        def work(job: Job, _ctx: Context) -> None:
            raise fails[job.id]

        self.fake.offer(*[job(name) for name in fails])
        self.start({"work": work})
        heard = {request.path.split("/")[5]: request.body for request in self.fake.wait_for("fail", 3)}
        self.assertEqual(
            heard,
            {
                "transient": {
                    "class": "transient",
                    "message": "slow",
                    "code": "timeout",
                    "details": {"after": 3},
                    "retry_in_ms": 1500,
                },
                "permanent": {"class": "permanent", "message": "no such order"},
                "dead": {"class": "dead", "message": "poison", "code": "bad"},
            },
        )

    def test_a_snooze_says_for_how_long_and_what_the_gate_should_know(self) -> None:
        def work(_job: Job, ctx: Context) -> None:
            ctx.hold_gate(30)
            ctx.gate_health(healthy=False)
            raise Snooze(2.5)

        self.fake.offer(job("j1"))
        self.start({"work": work})
        [snooze] = self.fake.wait_for("snooze")
        self.assertEqual(snooze.body, {"delay_ms": 2500, "gate": {"hold_ms": 30000, "health": "unhealthy"}})

    def test_an_unknown_kind_is_released_for_other_workers(self) -> None:
        self.fake.offer(job("j1", kind="stranger"))
        self.start({})
        [release] = self.fake.wait_for("release")
        self.assertEqual(release.body, {"delay_ms": 15000})

    def test_an_unknown_kind_waits_longer_each_time(self) -> None:
        given_back = GivenBack()
        waits = [given_back.ending("j1").body["delay_ms"] // 1000 for _ in range(10)]
        self.assertEqual(waits, [15, 15, 15, 15, 30, 60, 120, 240, 300, 300])
        self.assertEqual(given_back.ending("j2").body, {"delay_ms": 15_000})

    def test_a_job_that_is_asked_to_cancel_stops_and_says_cancel(self) -> None:
        whys: list[str | None] = []

        def work(_job: Job, ctx: Context) -> None:
            ctx.canceled.wait(PATIENCE)
            whys.append(ctx.why)
            raise Canceled("stopped half way")

        self.fake.ttl_ms = 900
        self.fake.cancel = ["j1"]
        self.fake.offer(job("j1"))
        self.start({"work": work})
        [cancel] = self.fake.wait_for("cancel")
        self.assertEqual(cancel.body, {"message": "stopped half way"})
        self.assertEqual(whys, ["cancel"])

    def test_whatever_a_canceled_handler_raises_is_a_cancel(self) -> None:
        def work(_job: Job, ctx: Context) -> None:
            ctx.canceled.wait(PATIENCE)
            raise OSError("connection closed")

        self.fake.ttl_ms = 900
        self.fake.cancel = ["j1"]
        self.fake.offer(job("j1"))
        self.start({"work": work})
        self.fake.wait_for("cancel")
        self.wait_event("canceled")
        self.assertEqual(self.reports(), ["cancel"])

    def test_acquire_asks_again_until_it_is_answered_and_then_waits(self) -> None:
        def work(_job: Job, ctx: Context) -> str:
            ctx.acquire(2)
            return "let through"

        self.fake.script("acquire", problem(503, "busy"))
        self.fake.offer(job("j1", gate="mailer"))
        self.start({"work": work})
        [complete] = self.fake.wait_for("complete")
        self.assertEqual(complete.body, {"result": "let through"})
        self.assertEqual([request.body for request in self.fake.heard("acquire")], [{"tokens": 2}] * 2)

    def test_acquire_ends_the_handler_as_a_snooze_when_the_gate_is_closed(self) -> None:
        self.fake.script("acquire", Reply(200, {"wait_ms": None, "snooze_ms": 60_000}))
        self.fake.offer(job("j1", gate="mailer"))
        self.start({"work": lambda _job, ctx: ctx.acquire()})
        [snooze] = self.fake.wait_for("snooze")
        self.assertEqual(snooze.body, {"delay_ms": 60_000})
        self.assertEqual(len(self.fake.heard("acquire")), 1)

    def test_acquire_asks_nobody_for_a_job_without_a_gate(self) -> None:
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, ctx: ctx.acquire()})
        self.wait_event("completed")
        self.assertEqual(self.fake.heard("acquire"), [])

    def test_a_result_that_is_not_json_or_is_refused_as_invalid_is_a_permanent_failure(self) -> None:
        results: dict[str, Any] = {"object": object(), "nan": float("nan"), "big": "x" * 2**21, "invalid": 1}
        self.fake.script("complete", problem(422, "invalid", field="result"))
        self.fake.offer(*[job(name) for name in results])
        self.start({"work": lambda job, _ctx: results[job.id]})
        fails = self.fake.wait_for("fail", 4)
        self.assertEqual({fail.body["class"] for fail in fails}, {"permanent"})
        [invalid] = [fail for fail in fails if "/invalid/" in fail.path]
        self.assertIn("result", invalid.body["message"])

    def test_details_that_are_not_json_do_not_change_the_class(self) -> None:
        def work(_job: Job, _ctx: Context) -> None:
            raise Fail.transient("slow", details=object())

        self.fake.offer(job("j1"))
        self.start({"work": work})
        [fail] = self.fake.wait_for("fail")
        self.assertEqual(fail.body["class"], "transient")

    def test_a_handler_that_exits_ends_only_its_job(self) -> None:
        def work(_job: Job, _ctx: Context) -> None:
            raise SystemExit(3)

        self.fake.offer(job("j1"))
        self.fake.offer(job("j2", kind="fine"))
        self.start({"work": work, "fine": lambda _job, _ctx: None})
        self.fake.wait_for("complete")
        [fail] = self.fake.wait_for("fail")
        self.assertEqual(fail.body["code"], "SystemExit")
