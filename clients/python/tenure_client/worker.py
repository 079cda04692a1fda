"""Worker: runs handlers under leases, by docs/WORKER-PROTOCOL.md.

Threads: one claims, one beats, one watches deadlines, one per lease renews, one per job runs its handler and reports.
All are daemons: a handler that never returns cannot keep the process from ending.
"""

from __future__ import annotations

import threading
from functools import partial
from time import monotonic
from typing import Any, Callable, Mapping, Sequence

from .beats import beat_until_closed
from .claims import Claims
from .client import Client
from .context import Context
from .endings import GIVEN_BACK, Handler, run_handler
from .given_back import GivenBack
from .errors import Problem, Unreachable
from .events import Event, Listener, log, teller
from .job import Job
from .lease import Held, Lease
from .renewals import renew_until_over, watch_deadlines
from .reports import acquire, report
from .session import Session
from .state import Pace, State
from .transport import Abort

# How long handlers that were told to stop have, before their jobs are released under them.
LAST_MOMENT = 1.0


class Worker:
    """`run` blocks until `stop` was called, the server ordered a stop, or the server refused for good.

    `slots` is how many handlers run at once, over all queues.
    """

    def __init__(
        self,
        client: Client,
        queues: Sequence[str],
        handlers: Mapping[str, Handler],
        *,
        slots: int = 4,
        name: str | None = None,
        version: str | None = None,
        grace: float = 30.0,
        wait: float = 20.0,
        timeout: float = 10.0,
        retry_every: float = 1.0,
        backoff: tuple[float, float] = (1.0, 30.0),
        on_event: Listener | None = None,
    ) -> None:
        if not queues or slots < 1:
            raise ValueError("a worker needs at least one queue and one slot")
        self._client = client
        self._queues = list(queues)
        self._handlers = dict(handlers)
        self._given_back = GivenBack()
        self._slots = slots
        self._name = name
        self._version = version
        self._grace = grace
        self._state = State(slots, Pace(wait, timeout, retry_every, *backoff), teller(on_event))
        self._claims = Claims(self._state, self._queues, self._register, self._obey, self._accept)
        self._has_run = False

    def run(self) -> None:
        """Work until stopped, then drain and say goodbye. Raises the `Problem` that made work impossible."""
        if self._has_run:
            raise RuntimeError("a worker runs once")
        self._has_run = True
        claims = self._spawn("claims", self._claims.run)
        self._spawn("deadlines", watch_deadlines, self._state)
        self._spawn("beats", beat_until_closed, self._state, self._obey)
        self._state.wait_until(lambda: self._state.is_stopping)
        self._drain()
        # A claim may still be waiting. What it was given meanwhile was released; what it is given from now on
        # the goodbye gives back.
        self._state.abort_call()
        claims.join(self._state.pace.timeout)
        self._say_goodbye()
        self._close()
        if self._state.error is not None:
            raise self._state.error

    def stop(self, grace: float | None = None) -> None:
        """Returns at once; `run` returns when all is done. Calling again may only shorten the grace."""
        self._state.stop(self._grace if grace is None else grace)

    def _register(self, abort: Abort) -> Session:
        return self._client.register(self._queues, self._slots, name=self._name, version=self._version, abort=abort)

    def _obey(self, session: Session, order: str) -> None:
        self._state.obey(session, order, self._grace)

    def _accept(self, lease: Lease, jobs: list[Job]) -> None:
        for job in jobs:
            lease.hold(Held(job, lease, Context(lease.number, partial(acquire, self._state, lease, job))))
        if not jobs:
            return
        self._state.hold(lease)
        if self._state.session is not lease.session:  # Forgotten between the answer and `hold`.
            self._state.lose(lease, "unknown_worker")
        self._spawn(f"renewals {lease.number}", renew_until_over, self._state, lease, self._obey)
        for held in lease.held():
            self._state.start_job()
            self._spawn(f"job {held.job.id}", self._run_job, held)

    def _run_job(self, held: Held) -> None:
        handler = self._handlers.get(held.job.kind)
        try:
            if self._state.is_stopping or held.lease.is_lost:  # `report` drops what is lost.
                ending = GIVEN_BACK
            elif handler is None:
                ending = self._given_back.ending(held.job.id)
            else:
                self._state.tell(held.event("started"))
                ending = run_handler(handler, held.job, held.ctx)
            if held.end():
                report(self._state, held, ending)
            else:
                self._state.tell(held.event("refused", "released"))
        finally:
            self._state.let_go(held)
            self._state.end_job()

    def _drain(self) -> None:
        state = self._state
        state.wait_until(lambda: state.running == 0, lambda: state.grace_ends)
        for held in self._held():
            held.ctx.ask_to_stop("stop")
        ends = monotonic() + LAST_MOMENT
        state.wait_until(lambda: state.running == 0, lambda: ends)
        ends = monotonic() + state.pace.timeout
        for held in self._held():
            # Once each and not for ever: the goodbye gives back whatever this does not.
            if monotonic() < ends and not held.lease.is_lost and held.end():
                self._release(held)

    def _release(self, held: Held) -> None:
        lease = held.lease
        try:
            answer = lease.session.report(
                lease.number, held.job.id, GIVEN_BACK.verb, GIVEN_BACK.body, timeout=self._state.pace.timeout
            )
            self._state.tell(held.event("released", detail=answer.state))
        except (Problem, Unreachable) as error:
            log.warning("release: %s", error)
        self._state.let_go(held)

    def _say_goodbye(self) -> None:
        session = self._state.session
        if session is None:
            return
        for _ in range(3):
            try:
                return session.goodbye(timeout=self._state.pace.timeout)
            except Problem as problem:
                if not problem.is_passing:
                    return log.warning("goodbye: %s", problem)
            except Unreachable as error:
                log.warning("goodbye: %s", error)
            self._state.closed.wait(self._state.pace.retry_every)

    def _close(self) -> None:
        for lease in self._state.held_leases():
            self._state.lose(lease, "goodbye")
        self._state.closed.set()
        with self._state.changed:
            self._state.changed.notify_all()
        self._state.tell(Event("stopped"))

    def _held(self) -> list[Held]:
        return [held for lease in self._state.held_leases() for held in lease.held()]

    def _spawn(self, name: str, run: Callable[..., None], *arguments: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                run(*arguments)
            # A thread that dies unseen would leave a worker that looks alive. It stops in order and `run` raises.
            except BaseException as error:
                log.error("%s: %s", name, error)
                self._state.stop(self._grace, error)

        thread = threading.Thread(target=guarded, name=f"tenure {name}", daemon=True)
        thread.start()
        return thread
