"""State: what the threads of one worker share.

Every change notifies `changed`, and every thread that waits looks at the whole state again.
Locks are taken in the order state, lease, context; listeners are told while none is held.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import monotonic
from typing import Callable

from .events import Event, Listener
from .lease import Held, Lease
from .session import Session
from .transport import Abort


@dataclass(frozen=True)
class Pace:
    """Times in seconds. `timeout` is for requests that do not wait for work."""

    wait: float
    timeout: float
    retry_every: float
    backoff_first: float
    backoff_most: float


class State:
    def __init__(self, slots: int, pace: Pace, tell: Listener) -> None:
        self.pace = pace
        self.tell = tell
        self.changed = threading.Condition()
        self.closed = threading.Event()
        self.session: Session | None = None
        self.order = "work"
        self.phase = "startup"
        self.running = 0
        self.is_stopping = False
        self.grace_ends = float("inf")
        self.error: BaseException | None = None
        self.leases: dict[int, Lease] = {}
        self._slots = slots
        self._call: Abort | None = None

    @property
    def free(self) -> int:
        return self._slots - self.running

    def wait_until(self, is_so: Callable[[], bool], until: Callable[[], float] = lambda: float("inf")) -> None:
        """`until` is asked again after each change, because a deadline may move."""
        with self.changed:
            while not is_so():
                left = until() - monotonic()
                if left <= 0:
                    return
                self.changed.wait(min(left, threading.TIMEOUT_MAX))

    def stop(self, grace: float, error: BaseException | None = None) -> None:
        """Stopping again may only shorten the grace."""
        with self.changed:
            self.is_stopping = True
            self.phase = "draining"
            self.grace_ends = min(self.grace_ends, monotonic() + grace)
            self.error = self.error or error
            self.changed.notify_all()

    def enter(self, phase: str) -> None:
        with self.changed:
            if not self.is_stopping:
                self.phase = phase

    def begin(self, session: Session) -> None:
        with self.changed:
            self.session = session
            self.order = "work"
            self.changed.notify_all()
        self.tell(Event("registered", detail=session.name))

    def forget(self, session: Session) -> None:
        """The server does not know this session any more: everything it held is lost, and a new one is needed."""
        with self.changed:
            if self.session is not session:
                return
            self.session = None
            self.changed.notify_all()
            leases = self.held_leases()
            self._abort_call()
        for lease in leases:
            self.lose(lease, "unknown_worker")

    def obey(self, session: Session, order: str, grace: float) -> None:
        with self.changed:
            if self.session is not session or order == self.order or order not in ("work", "quiet", "stop"):
                return
            self.order = order
            self.changed.notify_all()
        self.tell(Event("ordered", code=order))
        if order == "stop":
            self.stop(grace)

    def hold(self, lease: Lease) -> None:
        with self.changed:
            self.leases[lease.number] = lease
            self.changed.notify_all()

    def held_leases(self) -> list[Lease]:
        with self.changed:
            return list(self.leases.values())

    def lose(self, lease: Lease, loss: str) -> None:
        is_news = lease.lose(loss)
        self._drop(lease)
        if is_news:
            self.tell(Event("lost", lease=lease.number, code=loss))

    def let_go(self, held: Held) -> None:
        held.lease.let_go(held)
        if held.lease.over.is_set():
            self._drop(held.lease)

    def start_job(self) -> None:
        with self.changed:
            self.running += 1

    def end_job(self) -> None:
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    def start_call(self, abort: Abort) -> None:
        """The call that `abort_call` ends; there is one claim or registration at a time."""
        with self.changed:
            self._call = abort

    def abort_call(self) -> None:
        with self.changed:
            self._abort_call()

    def _abort_call(self) -> None:
        if self._call is not None:
            self._call.abort()

    def _drop(self, lease: Lease) -> None:
        with self.changed:
            self.leases.pop(lease.number, None)
            self.changed.notify_all()
