"""Beats: how the worker does, for the eyes of people. Leases do not depend on them."""

from __future__ import annotations

from typing import Callable

from .errors import Problem, Unreachable
from .events import log
from .session import Session
from .state import State


def beat_until_closed(state: State, obey: Callable[[Session, str], None]) -> None:
    while True:
        session = state.session
        if state.closed.wait(session.beat_every if session is not None else state.pace.retry_every):
            return
        if session is None or session is not state.session:
            continue
        try:
            order = session.beat(state.phase, state.running, timeout=state.pace.timeout)
        except Problem as problem:
            if problem.code == "unknown_worker":
                state.forget(session)
            log.debug("beat: %s", problem)
        except Unreachable as error:
            log.debug("beat: %s", error)
        else:
            obey(session, order)
