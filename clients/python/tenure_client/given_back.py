"""GivenBack: how long a job of a kind without a handler waits for other workers, the same rule as Tenure's own worker."""

from __future__ import annotations

from threading import Lock

from .endings import Ending

FIRST_MS = 15_000
CAP_MS = 300_000
# So many times in a row a job waits for the first time only: a worker that handles the kind usually takes it then.
QUICK = 4
# Jobs that are counted: the job that was given back longest ago makes room for a new one.
JOBS_MAX = 10_000


def unknown_kind_delay_ms(times: int) -> int:
    """Four times 15 s, then twice as long each time, up to 5 minutes."""
    doublings = min(max(times - QUICK, 0), 31)
    return min(FIRST_MS << doublings, CAP_MS)


class GivenBack:
    """Counts how often this worker gave back each job, the latest jobs only."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._times: dict[str, int] = {}

    def ending(self, job_id: str) -> Ending:
        with self._lock:
            times = self._times.pop(job_id, 0) + 1
            if len(self._times) >= JOBS_MAX:
                # The job that was given back longest ago makes room.
                self._times.pop(next(iter(self._times)))
            self._times[job_id] = times
        return Ending("release", {"delay_ms": unknown_kind_delay_ms(times)})
