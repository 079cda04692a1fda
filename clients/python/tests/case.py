"""WorkerCase: a worker that runs against a fake server, and its events."""

from __future__ import annotations

import threading
import unittest
from typing import Any

from tenure_client import Client, Event, Handler, Worker

from .fake import PATIENCE, Fake


class WorkerCase(unittest.TestCase):
    def setUp(self) -> None:
        self.fake = Fake()
        self.addCleanup(self.fake.close)
        self.client = Client(self.fake.url, "key", timeout=PATIENCE)
        self.addCleanup(self.client.close)
        self.events: list[Event] = []
        self.told = threading.Condition()
        self.raised: list[BaseException] = []

    def start(self, handlers: dict[str, Handler], **options: Any) -> Worker:
        paces: dict[str, Any] = {"wait": PATIENCE, "timeout": 2.0, "retry_every": 0.01, "backoff": (0.01, 0.02)}
        self.worker = Worker(self.client, ["mail"], handlers, on_event=self._hear, **{**paces, **options})
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.addCleanup(self.finish)
        return self.worker

    def finish(self, grace: float = 0.0) -> None:
        self.worker.stop(grace)
        self.join()

    def join(self) -> None:
        self.thread.join(PATIENCE)
        self.assertFalse(self.thread.is_alive(), "the worker did not end")

    def wait_event(self, name: str, count: int = 1) -> Event:
        def found() -> list[Event]:
            return [event for event in self.events if event.name == name]

        with self.told:
            if not self.told.wait_for(lambda: len(found()) >= count, PATIENCE):
                raise AssertionError(f"told {self.events}, not {count} times {name}")
            return found()[count - 1]

    def wait_set(self, event: threading.Event) -> None:
        self.assertTrue(event.wait(PATIENCE), "it did not happen")

    def reports(self) -> list[str]:
        return [r.verb for r in self.fake.heard("complete", "fail", "snooze", "release", "cancel")]

    def _run(self) -> None:
        try:
            self.worker.run()
        except BaseException as error:
            self.raised.append(error)

    def _hear(self, event: Event) -> None:
        with self.told:
            self.events.append(event)
            self.told.notify_all()
