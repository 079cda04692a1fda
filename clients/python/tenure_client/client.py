"""Client: what a producer says to the server, and how a worker registers."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Iterable, Literal, Mapping, Sequence
from urllib.parse import quote

from .session import Session
from .transport import Abort, Transport


@dataclass(frozen=True)
class Unique:
    """At most one job per key. It stays taken by `policy`, or for `window` seconds; `while_active` if neither is said."""

    key: str
    policy: Literal["while_active", "unless_failed", "forever"] | None = None
    window: float | None = None

    def __post_init__(self) -> None:
        if self.policy is not None and self.window is not None:
            raise ValueError("a unique key has a policy or a window, not both")


@dataclass(frozen=True)
class NewJob:
    """A job to enqueue. What is left out is decided by the server."""

    kind: str
    payload: Any = None
    queue: str | None = None
    priority: int | None = None
    delay_ms: int | None = None
    run_at: datetime | str | None = None
    tenant: str | None = None
    gate: str | None = None
    max_attempts: int | None = None
    backoff: str | None = None
    unique: Unique | str | None = None
    trace: str | None = None


@dataclass(frozen=True)
class Enqueued:
    """`created` is false when an equal key already had this job. `state` is None when that one was pruned since."""

    id: str
    created: bool
    state: str | None


class Client:
    """Speaks to one server with one key. May be shared between threads."""

    def __init__(self, url: str, key: str, *, timeout: float = 10.0) -> None:
        self._transport = Transport(url, key, timeout)

    def enqueue(
        self,
        kind: str,
        payload: Any = None,
        *,
        queue: str | None = None,
        priority: int | None = None,
        delay_ms: int | None = None,
        run_at: datetime | str | None = None,
        tenant: str | None = None,
        gate: str | None = None,
        max_attempts: int | None = None,
        backoff: str | None = None,
        unique: Unique | str | None = None,
        trace: str | None = None,
        idempotency_key: str | None = None,
    ) -> Enqueued:
        """Store a job. After `Unreachable`, say it again with the same `idempotency_key`: it is one job."""
        job = NewJob(
            kind, payload, queue, priority, delay_ms, run_at, tenant, gate, max_attempts, backoff, unique, trace
        )
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return _enqueued(self._transport.call("POST", "/v1/jobs", _wire(job), headers=headers))

    def enqueue_many(self, jobs: Iterable[NewJob]) -> list[Enqueued]:
        """Store many jobs in one request; the answers come in the same order."""
        answer = self._transport.call("POST", "/v1/jobs/batch", {"jobs": [_wire(job) for job in jobs]})
        return [_enqueued(job) for job in answer["jobs"]]

    def show(self, job: str) -> dict[str, Any]:
        """The job as the server tells it, with its attempts."""
        answer: dict[str, Any] = self._transport.call("GET", f"/v1/jobs/{quote(job, safe='')}")
        return answer

    def cancel(self, job: str, *, force: bool = False, reason: str | None = None) -> str:
        """Ask a job to end. With `force` a running one is taken from its worker at once.

        Answers `now`, `requested` (its worker is asked) or `before`.
        """
        body = _without_none({"force": force or None, "reason": reason})
        return str(self._transport.call("POST", f"/v1/jobs/{quote(job, safe='')}/cancel", body)["canceled"])

    def requeue(self, job: str, *, reason: str | None = None) -> None:
        """Put a job that failed, died or was canceled back into its queue."""
        body = _without_none({"reason": reason})
        self._transport.call("POST", f"/v1/jobs/{quote(job, safe='')}/requeue", body)

    def register(
        self,
        queues: Sequence[str],
        slots: int,
        *,
        name: str | None = None,
        version: str | None = None,
        abort: Abort | None = None,
    ) -> Session:
        """Register this start of the process. `Worker` does this by itself."""
        body = _without_none(
            {
                "name": name,
                "version": version,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "queues": [{"queue": queue, "slots": slots} for queue in queues],
            }
        )
        answer = self._transport.call("POST", "/v1/workers", body, abort=abort)
        return Session(
            self._transport, answer["worker"], answer["name"], answer["token"], answer["beat_every_ms"] / 1000
        )

    def close(self) -> None:
        """Close the connections that are kept alive."""
        self._transport.close()


def _wire(job: NewJob) -> dict[str, Any]:
    unique = Unique(job.unique) if isinstance(job.unique, str) else job.unique
    members = {**vars(job), "run_at": _moment(job.run_at)}
    if unique is not None:
        policy = unique.policy if unique.window is None else f"window:{round(unique.window * 1000)}ms"
        members |= {"unique": unique.key, "unique_policy": policy}
    return _without_none(members)


def _moment(at: datetime | str | None) -> str | None:
    if not isinstance(at, datetime):
        return at
    if at.tzinfo is None:
        raise ValueError("run_at needs a time zone")
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _enqueued(answer: Mapping[str, Any]) -> Enqueued:
    return Enqueued(answer["id"], answer["answer"] == "created", answer["state"])


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
