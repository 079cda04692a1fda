"""Claims: register, then ask for as much work as slots are free, one claim at a time.

When the answer of a claim is lost, jobs may be leased to this worker without its knowledge.
The next claim then says `holding`, and the server gives everything else back.
"""

from __future__ import annotations

from time import monotonic
from typing import Callable, Sequence

from .backoff import Backoff
from .errors import Problem, Unreachable
from .events import log
from .job import Job
from .lease import Lease
from .session import Session
from .state import State
from .transport import Abort

LIMIT_MAX = 256


class Claims:
    def __init__(
        self,
        state: State,
        queues: Sequence[str],
        register: Callable[[Abort], Session],
        obey: Callable[[Session, str], None],
        accept: Callable[[Lease, list[Job]], None],
    ) -> None:
        self._state = state
        self._queues = queues
        self._register = register
        self._obey = obey
        self._accept = accept
        self._backoff = Backoff(state.pace.backoff_first, state.pace.backoff_most)
        self._must_say_holding = False

    def run(self) -> None:
        """Until the worker stops. Raises a problem that trying again would not solve."""
        state = self._state
        while True:
            abort = Abort()
            with state.changed:
                if state.is_stopping:
                    return  # Looked at together with `start_call`: else the abort of a stop might miss this call.
                session, order, room = state.session, state.order, state.free
                state.start_call(abort)
            if session is None:
                self._begin(abort)
            elif order == "work" and room > 0:
                self._claim(session, min(room, LIMIT_MAX), abort)
            else:
                state.enter("polling" if order == "work" else "idle")
                state.wait_until(
                    lambda: state.is_stopping
                    or state.session is not session
                    or state.order != order
                    or (order == "work" and state.free > 0)
                )

    def _begin(self, abort: Abort) -> None:
        self._state.enter("connecting")
        try:
            session = self._register(abort)
        except Problem as problem:
            if not problem.is_passing:
                raise
            self._pause(problem)
        except Unreachable as error:
            log.warning("register: %s", error)
            self._pause(None)
        else:
            self._backoff.reset()
            self._must_say_holding = False
            self._state.begin(session)

    def _claim(self, session: Session, limit: int, abort: Abort) -> None:
        state = self._state
        state.enter("polling")
        holding = [lease.number for lease in state.held_leases()] if self._must_say_holding else None
        sent = monotonic()
        try:
            claimed = session.claim(
                self._queues, limit, wait=state.pace.wait, holding=holding, timeout=state.pace.timeout, abort=abort
            )
        except Problem as problem:
            self._must_say_holding = True
            if problem.code == "unknown_worker":
                state.forget(session)
            elif not problem.is_passing:
                raise
            else:
                log.warning("claim: %s", problem)
                self._pause(problem)
        except Unreachable as error:
            self._must_say_holding = True
            if state.is_stopping or state.session is not session:
                return  # It was aborted.
            log.warning("claim: %s", error)
            self._pause(None)
        else:
            self._must_say_holding = False
            self._backoff.reset()
            self._obey(session, claimed.order)
            if claimed.lease is not None:
                self._accept(Lease(session, claimed.lease, sent + claimed.waited, claimed.ttl), claimed.jobs)
            elif monotonic() - sent < min(state.pace.wait, state.pace.retry_every) / 2:
                # A server that does not wait would otherwise be asked without end.
                self._sleep(state.pace.retry_every)

    def _pause(self, problem: Problem | None) -> None:
        asked = problem.retry_after if problem is not None else None
        self._state.enter("backoff")
        self._sleep(max(asked or 0.0, self._backoff.next()))

    def _sleep(self, seconds: float) -> None:
        ends = monotonic() + seconds
        self._state.wait_until(lambda: self._state.is_stopping, lambda: ends)
