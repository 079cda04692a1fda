"""Event: what a worker tells its program, for logs and tests."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Callable

log = logging.getLogger("tenure_client")


@dataclass(frozen=True)
class Event:
    """`name` is one of:

    registered, ordered, stopped: the worker;
    lost: a lease is gone, its handlers were told (`code` says how that became known);
    started: a handler begins;
    completed, failed, snoozed, released, canceled: the server stored that report (`detail` is the job's new state);
    refused: the report was dropped (`code` is mostly `lease_lost`).
    """

    name: str
    lease: int | None = None
    job: str | None = None
    kind: str | None = None
    code: str | None = None
    detail: str | None = None


Listener = Callable[[Event], None]

# Refusals and losses are what somebody looks for afterwards; the rest is the normal course.
_LOUD = {"lost", "refused"}


def teller(listener: Listener | None) -> Listener:
    """Logs each event and passes it on. A listener that raises harms nobody."""

    def tell(event: Event) -> None:
        members = {key: value for key, value in vars(event).items() if value is not None and key != "name"}
        said = " ".join(f"{key}={value}" for key, value in members.items())
        log.log(logging.WARNING if event.name in _LOUD else logging.DEBUG, "%s %s", event.name, said)
        if listener is not None:
            try:
                listener(event)
            except Exception:
                log.exception("the listener raised on %s", event.name)

    return tell
