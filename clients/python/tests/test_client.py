"""What a producer says, and how refusals and silence are told."""

from __future__ import annotations

import unittest
from datetime import datetime, timezone

from tenure_client import Client, Enqueued, NewJob, Problem, Unique, Unreachable

from .fake import DROP, HANG, Fake, Reply, problem

CREATED = Reply(201, {"id": "j1", "answer": "created", "state": "queued"})


class Producing(unittest.TestCase):
    def setUp(self) -> None:
        self.fake = Fake()
        self.addCleanup(self.fake.close)
        self.client = Client(self.fake.url, "key")
        self.addCleanup(self.client.close)

    def test_a_job_is_enqueued_with_what_was_said_and_nothing_else(self) -> None:
        self.fake.script("produce", CREATED)
        enqueued = self.client.enqueue(
            "invoice.send",
            {"order": 42},
            queue="mail",
            run_at=datetime(2026, 11, 16, 12, tzinfo=timezone.utc),
            backoff="fixed 5m",
            unique=Unique("invoice:42", "unless_failed"),
            trace="00-ab-cd-01",
            idempotency_key="k1",
        )
        self.assertEqual(enqueued, Enqueued("j1", True, "queued"))
        [request] = self.fake.requests
        self.assertEqual((request.method, request.path), ("POST", "/v1/jobs"))
        self.assertEqual(request.headers["Idempotency-Key"], "k1")
        self.assertEqual(request.headers["Authorization"], "Bearer key")
        self.assertEqual(request.headers["Content-Type"], "application/json")
        self.assertEqual(
            request.body,
            {
                "kind": "invoice.send",
                "payload": {"order": 42},
                "queue": "mail",
                "run_at": "2026-11-16T12:00:00.000Z",
                "backoff": "fixed 5m",
                "unique": "invoice:42",
                "unique_policy": "unless_failed",
                "trace": "00-ab-cd-01",
            },
        )

    def test_a_unique_key_is_a_string_with_a_policy_or_a_window(self) -> None:
        self.fake.forever("produce", CREATED)
        self.client.enqueue("x", unique="k")
        self.client.enqueue("x", unique=Unique("k", "forever"))
        self.client.enqueue("x", unique=Unique("k", window=0.5))
        said = [(r.body["unique"], r.body.get("unique_policy")) for r in self.fake.requests]
        self.assertEqual(said, [("k", None), ("k", "forever"), ("k", "window:500ms")])
        with self.assertRaises(ValueError):
            Unique("k", "forever", window=1)

    def test_many_jobs_are_one_request(self) -> None:
        answers = [
            {"id": "a", "answer": "created", "state": "queued"},
            {"id": "b", "answer": "found", "state": "running"},
            {"id": "c", "answer": "found", "state": None},  # It was pruned, and only its key is left.
        ]
        self.fake.script("produce", Reply(200, {"jobs": answers}))
        enqueued = self.client.enqueue_many([NewJob("x", 0), NewJob("y", priority=3), NewJob("z", False)])
        self.assertEqual(
            enqueued, [Enqueued("a", True, "queued"), Enqueued("b", False, "running"), Enqueued("c", False, None)]
        )
        [request] = self.fake.requests
        self.assertEqual(request.path, "/v1/jobs/batch")
        jobs = [{"kind": "x", "payload": 0}, {"kind": "y", "priority": 3}, {"kind": "z", "payload": False}]
        self.assertEqual(request.body, {"jobs": jobs})

    def test_a_job_is_shown_canceled_and_requeued_by_its_id(self) -> None:
        answers = [{"id": "j/1", "state": "dead"}, {"id": "j/1", "canceled": "now"}, {"id": "j/1", "state": "queued"}]
        self.fake.script("produce", *[Reply(200, answer) for answer in answers])
        self.assertEqual(self.client.show("j/1")["state"], "dead")
        self.assertEqual(self.client.cancel("j/1", force=True, reason="by mistake"), "now")
        self.client.requeue("j/1")
        said = [(r.method, r.path, r.body) for r in self.fake.requests]
        self.assertEqual(
            said,
            [
                ("GET", "/v1/jobs/j%2F1", None),
                ("POST", "/v1/jobs/j%2F1/cancel", {"force": True, "reason": "by mistake"}),
                ("POST", "/v1/jobs/j%2F1/requeue", {}),
            ],
        )

    def test_a_refusal_is_a_problem(self) -> None:
        refusal = problem(422, "invalid", field="kind")
        self.fake.script("produce", refusal, Reply(503, None, {"Retry-After": "7"}))
        with self.assertRaises(Problem) as raised:
            self.client.enqueue("")
        error = raised.exception
        self.assertEqual((error.status, error.code, error.field), (422, "invalid", "kind"))
        self.assertEqual(error.detail, "the detail of invalid")
        self.assertFalse(error.is_passing)
        with self.assertRaises(Problem) as raised:
            self.client.enqueue("x")
        self.assertEqual((raised.exception.code, raised.exception.retry_after), ("http_503", 7.0))
        self.assertTrue(raised.exception.is_passing)

    def test_silence_is_unreachable(self) -> None:
        self.fake.script("produce", DROP, HANG)
        with self.assertRaises(Unreachable):
            self.client.show("j1")
        with self.assertRaises(Unreachable):
            Client(self.fake.url, "key", timeout=0.05).show("j1")
        with self.assertRaises(Unreachable):
            Client("http://127.0.0.1:1", "key").show("j1")

    def test_connections_are_kept_and_a_closed_one_is_not_used_again(self) -> None:
        shown = Reply(200, {"id": "j1"})
        closing = Reply(200, {"id": "j1"}, {"Connection": "close"})
        self.fake.script("produce", shown, shown, closing, shown)
        for _ in range(4):
            self.client.show("j1")
        ports = [request.port for request in self.fake.requests]
        self.assertEqual(ports[0], ports[1])
        self.assertEqual(ports[1], ports[2])
        self.assertNotEqual(ports[2], ports[3])

    def test_an_address_that_is_none_is_refused_at_once(self) -> None:
        with self.assertRaises(ValueError):
            Client("tenure.example", "key")
