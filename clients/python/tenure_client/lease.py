"""Lease: the time-bound right to run what was claimed together.

A lease is lost in one of four ways: the server says `lease_lost`, the server no longer knows the worker,
its deadline passes with no renewal answered, or the worker has said goodbye.
Loss is final: a renewal that is answered later revives nothing.

The deadline counts from when the claim or renewal was *sent*, by this process's monotonic clock,
plus, for a claim, what the server says that it waited for work.
`is_lost` asks the clock each time, because the thread that watches deadlines may itself have been frozen.
"""

from __future__ import annotations

import threading
from time import monotonic

from .context import Context
from .events import Event
from .job import Job
from .session import Session


class Lease:
    def __init__(self, session: Session, number: int, began: float, ttl: float) -> None:
        self.session = session
        self.number = number
        self.ttl = ttl
        self.deadline = began + ttl
        self.lost = threading.Event()
        self.over = threading.Event()  # Lost, or every job has ended: nothing is left to renew.
        self.loss: str | None = None
        self._lock = threading.Lock()
        self._held: dict[str, Held] = {}

    @property
    def is_lost(self) -> bool:
        return self.lost.is_set() or monotonic() >= self.deadline

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - monotonic())

    def extend(self, sent: float, ttl: float) -> None:
        with self._lock:
            if not self.is_lost:
                self.ttl = ttl
                self.deadline = sent + ttl

    def lose(self, loss: str) -> bool:
        """Tells the handlers to stop. False when the lease was over before."""
        with self._lock:
            if self.over.is_set():
                return False
            self.loss = loss
            self.lost.set()
            self.over.set()
            held = list(self._held.values())
        for each in held:
            each.ctx.ask_to_stop("lost")
        return True

    def hold(self, held: Held) -> None:
        with self._lock:
            self._held[held.job.id] = held

    def held(self) -> list[Held]:
        with self._lock:
            return list(self._held.values())

    def let_go(self, held: Held) -> None:
        with self._lock:
            self._held.pop(held.job.id, None)
            if not self._held:
                self.over.set()

    def ask_to_cancel(self, jobs: list[str]) -> None:
        for held in self.held():
            if held.job.id in jobs:
                held.ctx.ask_to_stop("cancel")


class Held:
    """One job under its lease. It is ended once: by its handler, or by the worker that stops."""

    def __init__(self, job: Job, lease: Lease, ctx: Context) -> None:
        self.job = job
        self.lease = lease
        self.ctx = ctx
        self._lock = threading.Lock()
        self._is_ended = False

    def event(self, name: str, code: str | None = None, detail: str | None = None) -> Event:
        return Event(name, self.lease.number, self.job.id, self.job.kind, code, detail)

    def end(self) -> bool:
        """True for the first caller, who then reports."""
        with self._lock:
            was_ended, self._is_ended = self._is_ended, True
            return not was_ended
