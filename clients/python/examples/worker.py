"""A worker that tells each event as one JSON line.

    TENURE_URL=http://127.0.0.1:7400 TENURE_KEY=… python3 examples/worker.py

Kinds: `echo` returns its payload, `sleep` takes {"ms": 500}, `fail` takes {"class": "permanent", "message": "why"}.
Also read, if set: TENURE_QUEUES (a,b), TENURE_SLOTS (4), TENURE_NAME, TENURE_GRACE (seconds).
"""

from __future__ import annotations

import json
import os
from typing import Any

from tenure_client import Canceled, Client, Context, Event, Fail, Job, Worker, run_until_signal


def echo(job: Job, _ctx: Context) -> Any:
    return job.payload


def sleep(job: Job, ctx: Context) -> Any:
    if ctx.canceled.wait(job.payload["ms"] / 1000):
        raise Canceled(f"after less than {job.payload['ms']} ms")
    return {"slept_ms": job.payload["ms"]}


def fail(job: Job, _ctx: Context) -> Any:
    payload = job.payload or {}
    raise Fail(payload.get("class", "transient"), payload.get("message", "as asked"), payload.get("code"))


def tell(event: Event) -> None:
    members = ("job", "lease", "kind", "code", "detail")
    said = {member: getattr(event, member) for member in members if getattr(event, member) is not None}
    # The line and its end in one piece: events come from many threads.
    print(json.dumps({"event": event.name, **said}) + "\n", end="", flush=True)


if __name__ == "__main__":
    worker = Worker(
        Client(os.environ["TENURE_URL"], os.environ["TENURE_KEY"]),
        os.environ.get("TENURE_QUEUES", "default").split(","),
        {"echo": echo, "sleep": sleep, "fail": fail},
        slots=int(os.environ.get("TENURE_SLOTS", "4")),
        name=os.environ.get("TENURE_NAME"),
        on_event=tell,
    )
    run_until_signal(worker, float(os.environ.get("TENURE_GRACE", "10")))
