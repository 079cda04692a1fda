"""Renewals: a thread per lease, so that neither a handler nor another lease's slow answer can hold one up.

A thread of its own watches the deadlines, because a renewal may hang in the network past its lease's end.
"""

from __future__ import annotations

from time import monotonic
from typing import Callable

from .errors import Problem, Unreachable
from .events import log
from .lease import Lease
from .reports import pause_after
from .session import Session
from .state import State


def renew_until_over(state: State, lease: Lease, obey: Callable[[Session, str], None]) -> None:
    due = lease.deadline - lease.ttl * 2 / 3
    while not lease.over.wait(max(0.0, due - monotonic())) and not lease.is_lost:
        sent = monotonic()
        try:
            # An answer later than the next renewal's time helps nobody, and a hanging one must leave time to try again.
            renewed = lease.session.renew(lease.number, timeout=min(state.pace.timeout, lease.ttl / 3))
        except Unreachable as error:
            log.debug("%s", error)
            due = monotonic() + pause_after(state, None)
        except Problem as problem:
            if problem.code == "unknown_worker":
                state.forget(lease.session)
            elif problem.code == "lease_lost":
                state.lose(lease, "lease_lost")
            # Any other answer is no proof of loss: the deadline decides. It does not wait for a `Retry-After` either.
            due = monotonic() + pause_after(state, None)
        else:
            lease.extend(sent, renewed.ttl)
            lease.ask_to_cancel(renewed.cancel)
            obey(lease.session, renewed.order)
            due = sent + renewed.ttl / 3
            with state.changed:
                state.changed.notify_all()  # The deadline may have come nearer, if the queue's time was shortened.


def watch_deadlines(state: State) -> None:
    """Loses each lease whose deadline has passed."""
    while not state.closed.is_set():
        with state.changed:
            leases = state.held_leases()
            left = min((lease.seconds_left for lease in leases), default=None)
            if left is None or left > 0:
                state.changed.wait(left)
                continue
        for lease in leases:
            if lease.is_lost:
                state.lose(lease, "deadline")
