"""A client and a worker for Tenure, by docs/WORKER-PROTOCOL.md.

Layout, in reading order:
  client     Client: enqueue, show, cancel, requeue, register
  worker     Worker: runs handlers under leases; run_until_signal
  outcomes   Fail, Snooze, Canceled: how a handler says that it did not complete
  context    Context: what a handler may ask and say while it runs
  lease      Lease: the deadline and the jobs of one claim
  claims, renewals, reports, beats: the four things a worker says, one file each
  session    Session: the raw verbs of a registered worker
  transport  one HTTP call; errors: Problem, Unreachable

All times of this package are seconds, except where a name ends in `_ms`.
"""

from .client import Client, Enqueued, NewJob, Unique
from .context import Context
from .endings import Handler
from .errors import Problem, Unreachable
from .events import Event
from .job import Job
from .outcomes import Canceled, Fail, Snooze
from .session import Session
from .signals import run_until_signal
from .worker import Worker

__all__ = [
    "Canceled",
    "Client",
    "Context",
    "Enqueued",
    "Event",
    "Fail",
    "Handler",
    "Job",
    "NewJob",
    "Problem",
    "Session",
    "Snooze",
    "Unique",
    "Unreachable",
    "Worker",
    "run_until_signal",
]
