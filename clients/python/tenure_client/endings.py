"""Ending: what is to be reported about a job, made from how its handler ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from .context import Context
from .job import Job
from .outcomes import Canceled, Fail, Snooze

Handler = Callable[[Job, Context], Any]


@dataclass(frozen=True)
class Ending:
    verb: str
    body: dict[str, Any]


GIVEN_BACK = Ending("release", {"delay_ms": 0})


def run_handler(handler: Handler, job: Job, ctx: Context) -> Ending:
    try:
        result = handler(job, ctx)
    # Also SystemExit and the like: in a thread of its own a job must not end anything but itself.
    except BaseException as error:
        ending = _ending_of(error, ctx.why)
    else:
        ending = Ending("complete", {"result": result})
    usage, gate = ctx.said()
    if usage and ending.verb == "complete":
        ending.body["usage"] = usage
    if gate:
        ending.body["gate"] = gate
    return ending


def unstorable(why: str) -> Ending:
    """For a report that cannot be sent or stored. Its own words are known to be harmless."""
    body = {"class": "permanent", "message": f"the report could not be stored: {why}", "code": "unstorable_report"}
    return Ending("fail", body)


def _ending_of(error: BaseException, why: str | None) -> Ending:
    if isinstance(error, Fail):
        body = {"class": error.failure, "message": error.message}
        optional = {
            "code": error.code,
            "details": error.details,
            "retry_in_ms": None if error.retry_in is None else round(error.retry_in * 1000),
        }
        return Ending("fail", body | {name: value for name, value in optional.items() if value is not None})
    if isinstance(error, Snooze):
        return Ending("snooze", {"delay_ms": round(error.seconds * 1000)})
    # A handler that was told to stop may leave by any exception. If the worker ends, the job is not to blame for it.
    if why == "stop":
        return Ending("release", {"delay_ms": 0})
    if isinstance(error, Canceled) or why == "cancel":
        message = str(error)
        return Ending("cancel", {"message": message} if message else {})
    name = type(error).__name__
    return Ending("fail", {"class": "transient", "message": str(error) or name, "code": name})
