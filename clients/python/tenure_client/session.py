"""Session: the raw verbs of a worker that has registered. `Worker` adds the retries, deadlines and threads."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Iterator, Sequence
from urllib.parse import quote

from .errors import Unreachable
from .job import Job
from .transport import Abort, Transport


@dataclass(frozen=True)
class Claimed:
    """`lease` is None when the wait was over and there was nothing. The seconds `waited` are not the lease's."""

    lease: int | None
    ttl: float
    waited: float
    jobs: list[Job]
    order: str


@dataclass(frozen=True)
class Renewed:
    ttl: float
    cancel: list[str]
    order: str


@dataclass(frozen=True)
class Reported:
    """Where the job stands now. `repeated`: this very report had been stored before."""

    state: str
    repeated: bool


@dataclass(frozen=True)
class Acquired:
    """Seconds to wait before the tokens are good. `snooze` is None unless the gate is closed; then nothing is reserved."""

    wait: float
    snooze: float | None = None


@dataclass(frozen=True)
class Session:
    transport: Transport
    worker: int
    name: str
    token: str
    beat_every: float

    def claim(
        self,
        queues: Sequence[str],
        limit: int,
        *,
        wait: float,
        holding: Sequence[int] | None = None,
        timeout: float,
        abort: Abort | None = None,
    ) -> Claimed:
        """Ask for work. `holding`, said after a claim whose answer was lost, gives every other lease back."""
        body: dict[str, Any] = {"queues": list(queues), "limit": limit, "wait_ms": round(wait * 1000)}
        if holding is not None:
            body["holding"] = list(holding)
        answer = self._call("POST", "/v1/leases", body, wait + timeout, abort)
        with _reading("claim"):
            lease = answer["lease"]
            if lease is None:
                return Claimed(None, 0.0, 0.0, [], answer["order"])
            jobs = [Job.from_wire(lease["queue"], job) for job in lease["jobs"]]
            return Claimed(
                lease["lease"], lease["ttl_ms"] / 1000, answer["waited_ms"] / 1000, jobs, answer["order"]
            )

    def renew(self, lease: int, *, timeout: float) -> Renewed:
        answer = self._call("POST", f"/v1/leases/{lease}/renew", {}, timeout)
        with _reading("renew"):
            return Renewed(answer["ttl_ms"] / 1000, list(answer.get("cancel") or []), answer["order"])

    def report(self, lease: int, job: str, verb: str, body: dict[str, Any], *, timeout: float) -> Reported:
        """Say how a job ended: `complete`, `fail`, `snooze`, `release` or `cancel`."""
        answer = self._call("POST", _job_path(lease, job, verb), body, timeout)
        with _reading(verb):
            return Reported(answer["state"], bool(answer.get("repeated")))

    def acquire(self, lease: int, job: str, tokens: int, *, timeout: float) -> Acquired:
        """Reserve tokens of the job's gate, if it is open."""
        answer = self._call("POST", _job_path(lease, job, "acquire"), {"tokens": tokens}, timeout)
        with _reading("acquire"):
            if answer["wait_ms"] is None:
                return Acquired(0.0, answer["snooze_ms"] / 1000)
            return Acquired(answer["wait_ms"] / 1000)

    def beat(self, state: str, running: int, *, timeout: float) -> str:
        """Say how the worker does; answers the order."""
        answer = self._call("PUT", f"/v1/workers/{self.worker}", {"state": state, "running": running}, timeout)
        with _reading("beat"):
            return str(answer["order"])

    def goodbye(self, *, timeout: float) -> None:
        """The end of this worker: what it still holds is given back, uncharged."""
        self._call("DELETE", f"/v1/workers/{self.worker}", None, timeout)

    def _call(self, method: str, path: str, body: Any, timeout: float, abort: Abort | None = None) -> Any:
        headers = {"Tenure-Worker": self.token}
        return self.transport.call(method, path, body, headers=headers, timeout=timeout, abort=abort)


def _job_path(lease: int, job: str, verb: str) -> str:
    return f"/v1/leases/{lease}/jobs/{quote(job, safe='')}/{verb}"


@contextmanager
def _reading(verb: str) -> Iterator[None]:
    # An answer without its members is as good as none: something between us and the server made it.
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreachable(f"{verb}: the answer cannot be read: {error!r}") from error
