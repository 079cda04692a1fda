"""The two clients together, against the real server: 1,000 jobs by three processes in two languages, one of them killed.

    python3 clients/together.py TENURE [DATABASE_URL]

TENURE is the binary; without a database it serves a file in a temporary directory. The TypeScript client has to be built
before (npm run build). Prints what was seen; anything else than exit code 0 is a failure.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python"))

from tenure_client import Client, NewJob, Problem  # noqa: E402

JOBS = 1_000
LEASE_MS = 2_000
# Far beyond what anything here takes when all is well.
PATIENCE = 120.0


class Process:
    """A process whose lines on standard output are events."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.held: dict[str, int] = {}
        # What they log besides is told when the story goes wrong.
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event.get("event") == "started":
                self.held[event["job"]] = event["lease"]
            elif "job" in event:
                self.held.pop(event["job"], None)
            self.events.put(event)

    def next(self) -> dict[str, Any]:
        return self.events.get(timeout=PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def until(what: str, is_so: Any) -> None:
    """Looks again and again until it is so."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(f"waited in vain until {what}")
        time.sleep(0.05)


class Story:
    def __init__(self, tenure: str, database: str | None, folder: str) -> None:
        self.tenure, self.env = tenure, {"DATABASE_URL": database} if database else {"TENURE_DATA_DIR": folder}
        if database:
            self.run("migrate")
        keys = {name: self.key(name, scopes) for name, scopes in [("ops", "enqueue,read,operate"), ("work", "worker")]}
        self.run("queues", "set", "work", "--lease-ttl", f"{LEASE_MS}ms")
        self.server = Process([tenure, "server", "--listen", "127.0.0.1:0", "--json"], self.env)
        self.url = self.server.next()["url"]
        self.ops, self.worker_key = Client(self.url, keys["ops"]), keys["work"]

    def run(self, *args: str) -> Any:
        done = subprocess.run(
            [self.tenure, *args, "--json"], env={**os.environ, **self.env}, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def key(self, name: str, scopes: str) -> str:
        return str(self.run("keys", "create", "--name", name, "--scopes", scopes)["key"])

    def python(self, name: str) -> Process:
        return self.start([sys.executable, str(HERE / "python/examples/worker.py")], name)

    def typescript(self, name: str) -> Process:
        return self.start(["node", str(HERE / "typescript/dist/examples/worker.js")], name)

    def start(self, command: list[str], name: str) -> Process:
        env = {
            "TENURE_URL": self.url,
            "TENURE_KEY": self.worker_key,
            "TENURE_QUEUES": "work",
            "TENURE_NAME": name,
            "PYTHONPATH": str(HERE / "python"),
        }
        return Process(command, env)

    def many(self) -> None:
        """1,000 jobs; the Python worker is killed while it holds some, and the others are of the other language."""
        jobs = [NewJob("echo", {"n": n}, queue="work") for n in range(JOBS - 20)]
        jobs += [NewJob("sleep", {"ms": 700}, queue="work", priority=1) for _ in range(20)]
        ids = [job.id for job in self.ops.enqueue_many(jobs)]
        workers = {name: self.typescript(name) for name in ("ts-1", "ts-2")}
        doomed = self.python("py-1")
        until("the Python worker holds a job", lambda: doomed.held)
        doomed.kill()
        orphans = set(doomed.held)
        if not orphans:
            raise SystemExit("it held nothing when it was killed: the fault did not hit")
        until("all have ended", lambda: self.left() == 0)
        taken = 0
        for job in ids:
            shown = self.ops.show(job)
            ends = [(attempt["how"], attempt["worker"]) for attempt in shown["attempts"]]
            if shown["state"] != "succeeded" or [how for how, _ in ends].count("succeeded") != 1:
                raise SystemExit(f"job {job} went wrong: {ends}")
            if ("lost", "py-1") in ends:
                taken += 1
                if not ends[-1][1].startswith("ts-"):
                    raise SystemExit(f"job {job} was not taken by the other language: {ends}")
        if taken < len(orphans):
            raise SystemExit(f"{len(orphans)} jobs were held by the killed worker, {taken} of them were lost")
        by = {name: worker.terminate() for name, worker in workers.items()}
        if set(by.values()) != {0}:
            raise SystemExit(f"workers ended badly: {by}")
        print(f"{JOBS} jobs by three processes in two languages: each succeeded once; {taken} of the killed one's were taken by the other language")

    def late(self) -> None:
        """A worker that lost its lease completes while the other language runs the job: 409, and nothing changes."""
        job = self.ops.enqueue("sleep", {"ms": 3_000}, queue="work").id
        stale = Client(self.url, self.worker_key).register(["work"], 1, name="py-stale")
        claimed = stale.claim(["work"], 1, wait=20.0, timeout=10.0)
        if claimed.lease is None or [held.id for held in claimed.jobs] != [job]:
            raise SystemExit(f"the first worker was not given the job: {claimed}")
        successor = self.typescript("ts-3")
        started = successor.next()
        while started["event"] != "started":
            started = successor.next()
        if started["job"] != job or started["lease"] <= claimed.lease:
            raise SystemExit(f"the successor has {started}, the stale lease is {claimed.lease}")
        try:
            stale.report(claimed.lease, job, "complete", {"result": "late"}, timeout=10.0)
        except Problem as problem:
            if (problem.status, problem.code) != (409, "lease_lost"):
                raise
        else:
            raise SystemExit("a late complete was accepted")
        if job not in successor.held:
            raise SystemExit("the successor had ended before the late complete came: nothing is proven")
        until("the successor has ended", lambda: self.ops.show(job)["state"] == "succeeded")
        if self.ops.show(job)["attempts"][-1]["worker"] != "ts-3":
            raise SystemExit("the job is not its successor's")
        successor.terminate()
        print("a late complete of the first language got 409 while the second one ran the job")

    def left(self) -> int:
        found = [line for line in self.run("queues", "list") if line["name"] == "work"]
        return sum(line["due"] + line["scheduled"] + line["running"] for line in found)


def main() -> None:
    tenure, database = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as folder:
        story = Story(tenure, database, folder)
        try:
            story.many()
            story.late()
            verified = story.run("audit", "verify")
            if verified["findings"]:
                raise SystemExit(f"the journal says otherwise: {verified}")
        except BaseException:
            story.server.kill()
            story.server.log.seek(0)
            print(story.server.log.read()[-20_000:], file=sys.stderr)
            raise
        ended = story.server.terminate()
    if ended != 0:
        raise SystemExit(f"the server ended with {ended}")


if __name__ == "__main__":
    main()
