"""Orders, graceful stop, and the end of the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tenure_client import Canceled, Context, Job, Problem

from .case import WorkerCase
from .fake import DROP, PATIENCE, job, problem


class Stop(WorkerCase):
    def test_a_quiet_worker_finishes_what_it_has_claims_nothing_and_goes_on_when_told(self) -> None:
        go = threading.Event()
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, _ctx: go.wait(PATIENCE)}, slots=2)
        self.wait_event("started")
        self.fake.wait_for("claim", 2)  # A slot is free, so one more is on its way.
        self.fake.give_order("quiet")
        self.assertEqual(self.wait_event("ordered").code, "quiet")
        go.set()
        self.wait_event("completed")
        claims = len(self.fake.heard("claim"))
        self.fake.wait_for("beat", len(self.fake.heard("beat")) + 3)
        self.assertEqual(len(self.fake.heard("claim")), claims)
        self.assertEqual(self.fake.heard("beat")[-1].body, {"state": "idle", "running": 0})
        self.fake.give_order("work")
        self.fake.wait_for("claim", claims + 1)

    def test_a_worker_that_is_ordered_to_stop_finishes_and_says_goodbye(self) -> None:
        go = threading.Event()
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, _ctx: go.wait(PATIENCE)}, slots=1)
        self.wait_event("started")
        self.fake.give_order("stop")
        self.wait_event("ordered")
        go.set()
        self.join()
        self.assertEqual(self.reports(), ["complete"])
        [goodbye] = self.fake.heard("goodbye")
        self.assertEqual((goodbye.path, goodbye.headers["Tenure-Worker"]), ("/v1/workers/1", "tnw_1"))
        self.assertEqual(len(self.fake.heard("claim")), 1)

    def test_an_idle_worker_stops_without_waiting_for_its_claim(self) -> None:
        self.start({}, wait=30.0, timeout=30.0)
        self.fake.wait_for("claim")
        self.finish(grace=30)
        self.assertEqual(len(self.fake.heard("goodbye")), 1)

    def test_a_graceful_stop_lets_handlers_finish(self) -> None:
        go = threading.Event()
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, ctx: go.wait(PATIENCE) and ctx.is_canceled})
        self.wait_event("started")
        self.worker.stop(grace=PATIENCE)
        self.fake.wait_for("beat", len(self.fake.heard("beat")) + 2)
        self.assertEqual(self.fake.heard("beat")[-1].body["state"], "draining")
        go.set()
        self.join()
        [complete] = self.fake.heard("complete")
        self.assertEqual(complete.body, {"result": False})

    def test_what_is_left_after_the_grace_is_released(self) -> None:
        whys: list[str | None] = []
        go = threading.Event()

        def polite(_job: Job, ctx: Context) -> None:
            ctx.canceled.wait(PATIENCE)
            whys.append(ctx.why)
            raise Canceled()

        self.fake.offer(job("polite", kind="polite"), job("stubborn", kind="stubborn"))
        self.start({"polite": polite, "stubborn": lambda _job, _ctx: go.wait(PATIENCE)})
        self.wait_event("started", 2)
        self.finish(grace=0)
        releases = self.fake.heard("release")
        self.assertEqual([r.path.split("/")[5] for r in releases], ["polite", "stubborn"])
        self.assertEqual([r.body for r in releases], [{"delay_ms": 0}] * 2)
        self.assertEqual(whys, ["stop"])
        verbs = [r.verb for r in self.fake.heard("release", "goodbye")]
        self.assertEqual(verbs, ["release", "release", "goodbye"])
        go.set()
        self.assertEqual(self.wait_event("refused").job, "stubborn")
        self.assertEqual(self.reports(), ["release", "release"])

    def test_what_a_claim_brings_while_stopping_is_released_unstarted(self) -> None:
        go = threading.Event()
        self.fake.offer(job("j1"))
        self.start({"work": lambda _job, _ctx: go.wait(PATIENCE)}, slots=2)
        self.wait_event("started")
        self.fake.wait_for("claim", 2)
        self.worker.stop(grace=PATIENCE)
        self.fake.offer(job("j2"))
        [release] = self.fake.wait_for("release")
        self.assertIn("/j2/", release.path)
        self.assertEqual(release.body, {"delay_ms": 0})
        go.set()
        self.join()
        self.assertEqual(sorted(self.reports()), ["complete", "release"])

    def test_the_goodbye_is_said_again_when_it_got_lost(self) -> None:
        self.fake.script("goodbye", DROP, problem(503, "busy"))
        self.start({})
        self.fake.wait_for("claim")
        self.finish()
        self.assertEqual(len(self.fake.heard("goodbye")), 3)

    def test_registering_is_tried_again_but_not_with_a_wrong_key(self) -> None:
        self.fake.script("register", DROP, problem(503, "busy"), problem(401, "unauthorized"))
        self.start({})
        self.join()
        self.assertEqual(len(self.fake.heard("register")), 3)
        [error] = self.raised
        assert isinstance(error, Problem)
        self.assertEqual((error.status, error.code), (401, "unauthorized"))

    def test_a_claim_that_is_refused_for_good_ends_the_worker_in_order(self) -> None:
        self.fake.script("claim", problem(422, "invalid", field="queues"))
        self.start({})
        self.join()
        [error] = self.raised
        assert isinstance(error, Problem)
        self.assertEqual(error.field, "queues")
        self.assertEqual(len(self.fake.heard("goodbye")), 1)

    def test_the_example_works_tells_its_events_and_ends_well_at_sigterm(self) -> None:
        root = Path(__file__).parent.parent
        environment = {
            **os.environ,
            "PYTHONPATH": str(root),
            "TENURE_URL": self.fake.url,
            "TENURE_KEY": "key",
            "TENURE_QUEUES": "mail",
        }
        process = subprocess.Popen(
            [sys.executable, str(root / "examples" / "worker.py")], env=environment, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.kill)
        assert process.stdout is not None
        with process.stdout as lines:
            self.fake.offer(job("j1", kind="echo", payload={"a": 1}))
            events: list[dict[str, Any]] = []
            while not events or events[-1]["event"] != "completed":
                events.append(json.loads(lines.readline()))
            self.assertIn({"event": "started", "job": "j1", "lease": 101, "kind": "echo"}, events)
            self.assertEqual(events[-1]["job"], "j1")
            self.assertEqual(self.fake.heard("complete")[0].body, {"result": {"a": 1}})
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(len(self.fake.heard("goodbye")), 1)
