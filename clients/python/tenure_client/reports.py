"""Reports: say how a job ended, again and again until there is an answer or the lease is lost."""

from __future__ import annotations

import json
import random

from .context import Context
from .endings import Ending, unstorable
from .errors import Problem, Unreachable
from .events import log
from .job import Job
from .lease import Held, Lease
from .outcomes import Canceled, Snooze
from .state import State

BODY_BYTES_MAX = 2 * 1024 * 1024

_PAST = {
    "complete": "completed",
    "fail": "failed",
    "snooze": "snoozed",
    "release": "released",
    "cancel": "canceled",
}


def report(state: State, held: Held, ending: Ending) -> None:
    """Returns when the server has stored it, or when it was dropped."""
    lease = held.lease
    ending = _sendable(ending)
    is_last_resort = False
    while True:
        if lease.is_lost:
            state.lose(lease, "deadline")
            return state.tell(held.event("refused", "lease_lost", lease.loss))
        try:
            timeout = min(state.pace.timeout, max(0.001, lease.seconds_left))
            answer = lease.session.report(lease.number, held.job.id, ending.verb, ending.body, timeout=timeout)
            return state.tell(held.event(_PAST[ending.verb], detail=answer.state))
        except Unreachable as error:
            log.debug("%s", error)
            pause = pause_after(state, None)
        except Problem as problem:
            if problem.code == "unknown_worker":
                state.forget(lease.session)
            if problem.is_passing:
                pause = pause_after(state, problem)
            elif problem.status in (401, 403, 409) or is_last_resort:
                return state.tell(held.event("refused", problem.code, problem.detail))
            else:
                log.error("job %s: %s is not stored: %s", held.job.id, ending.verb, problem)
                ending, is_last_resort = unstorable(problem.field or problem.code), True
                continue
        # Even where the server asks for more patience: there must be another try before the deadline.
        lease.lost.wait(min(pause, max(state.pace.retry_every, lease.seconds_left / 2)))


def acquire(state: State, lease: Lease, job: Job, ctx: Context, tokens: int) -> None:
    """Reserve tokens and wait until they are good. A job without a gate waits for nothing."""
    while not ctx.is_canceled and not lease.is_lost:
        if job.gate is None:
            return
        is_reserved = False
        try:
            acquired = lease.session.acquire(lease.number, job.id, tokens, timeout=state.pace.timeout)
        except Unreachable:
            wait = pause_after(state, None)
        except Problem as problem:
            if problem.code == "unknown_worker":
                state.forget(lease.session)
            if problem.code in ("unknown_worker", "lease_lost"):
                break
            if not problem.is_passing:
                raise
            wait = pause_after(state, problem)
        else:
            if acquired.snooze is not None:
                raise Snooze(acquired.snooze)
            wait, is_reserved = acquired.wait, True
        if not ctx.canceled.wait(wait) and is_reserved:
            return
    raise Canceled("while waiting for the gate")


def pause_after(state: State, problem: Problem | None) -> float:
    """One to two times `retry_every`, or longer if the server asked for that."""
    asked = problem.retry_after if problem is not None else None
    return max(asked or 0.0, state.pace.retry_every * random.uniform(1, 2))


def _sendable(ending: Ending) -> Ending:
    # Found out here, because a body that the server will not read can look like a broken connection.
    # And a copy, because a repeated report must be the same even if the handler left a thread that still writes to it.
    try:
        text = json.dumps(ending.body, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        if ending.body.get("details") is not None:  # They only explain the failure and must not change its class.
            return _sendable(Ending(ending.verb, {**ending.body, "details": None}))
        return unstorable(f"not JSON: {error}")
    if len(text) > BODY_BYTES_MAX:
        return unstorable(f"{len(text)} bytes")
    return Ending(ending.verb, json.loads(text))
