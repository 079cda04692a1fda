"""procrastinate, its settings and its measures."""

import asyncio
import datetime
import json
import os
import random
import time
from importlib.metadata import version

import procrastinate
import psycopg

# `concurrency` and `delete_jobs` are options of the worker, documented at `App.run_worker_async` in procrastinate/app.py.
# A worker fetches one job after the other, so several workers share the process; their slots together are the limit.
# Against one worker four won in 2 of 2 turns (294 : 91, 58 : 23 jobs/s). Four or eight is not decided (294 : 214, 58 : 91),
# nor is `delete_jobs` (58 : 55, one sample): the machine was busy. `./x peers --tune --rounds 5` on a quiet one will.
SETTINGS = {
    "drain": {"concurrency": 30, "workers": 4, "connections": 20, "delete_jobs": "never"},
    "drain_10": {"concurrency": 5, "workers": 2, "connections": 10, "delete_jobs": "never"},
    "drain_mixed": {"concurrency": 50, "workers": 4, "connections": 20, "delete_jobs": "never"},
    "latency": {"concurrency": 1, "workers": 1, "connections": 5, "delete_jobs": "never"},
    "enqueue_bulk": {"batch": 1000, "producers": 2},
    "enqueue_single": {},
}

# Whether a job of normal priority that is due is not recorded as finished.
UNFINISHED = """
select exists (
    select from procrastinate_jobs
    where status in ('todo', 'doing') and priority = 0 and (scheduled_at is null or scheduled_at <= now())
)
"""


def payload(n: int, backlog: bool = False) -> dict:
    """About a hundred bytes of JSON, as for every system."""
    fields = {"n": n, "to": "somebody@example.org", "subject": "a line that fills the payload up to size"}
    return {**fields, "backlog": True} if backlog else fields


class Driver:
    def __init__(self, action: str, url: str, options: dict):
        self.url, self.options = url, options
        self.measure = "enqueue_bulk" if action in ("fill", "history") else options.get("measure", action)
        self.settings = {**SETTINGS.get(self.measure, {}), **options.get("settings", {})}
        self.count = options.get("count", 0)
        self.handler = None

    def app(self, connections: int) -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(conninfo=self.url, min_size=connections, max_size=connections)
        app = procrastinate.App(connector=connector)

        @app.task(name="noop")
        async def noop(**job):
            await self.handler(job)

        self.task = noop
        return app

    async def setup(self):
        async with self.app(1).open_async() as app:
            await app.schema_manager.apply_schema_async()

    async def fill(self):
        backlog, batch = self.options.get("backlog", False), self.settings["batch"]
        configure = {"priority": -10} if backlog else {}
        if self.options.get("scheduled"):
            configure["schedule_at"] = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=365)
        begins = iter(range(0, self.count, batch))

        async def produce():
            for n in begins:
                jobs = [payload(i, backlog) for i in range(n, min(n + batch, self.count))]
                await self.task.configure(**configure).batch_defer_async(*jobs)

        producers = self.settings["producers"]
        async with self.app(producers).open_async():
            begin = time.perf_counter()
            await asyncio.gather(*(produce() for _ in range(producers)))
            return self.per_second(begin)

    async def history(self):
        """Fills finished jobs in; nothing else may be there yet."""
        await self.fill()
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            await connection.execute("update procrastinate_jobs set status = 'succeeded', attempts = 1")

    async def enqueue_bulk(self):
        self.print(rate=await self.fill())

    async def enqueue_single(self):
        producers = self.options.get("producers", 10)
        numbers = iter(range(self.count))

        async def produce():
            for n in numbers:
                await self.task.defer_async(**payload(n))

        async with self.app(producers).open_async():
            begin = time.perf_counter()
            await asyncio.gather(*(produce() for _ in range(producers)))
            rate = self.per_second(begin)
        self.settings = {"producers": producers, **self.settings}
        self.print(rate=rate)

    async def drain(self):
        """From the first handler's start until the database says that the last job is finished."""
        begin, done, finished = None, 0, asyncio.Event()
        sleep_max = self.options.get("sleep_ms_max", 0) / 1000

        async def handler(job):
            nonlocal begin, done
            begin = begin or time.perf_counter()
            if not job.get("backlog"):
                done += 1
                if done == self.count:
                    finished.set()
            if sleep_max:
                await asyncio.sleep(random.uniform(0, sleep_max))

        self.handler = handler
        connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)

        async def ask(sql: str, *values):
            return (await (await connection.execute(sql, values)).fetchone())[0]

        before = await ask("select pg_current_wal_lsn()::text")
        async with self.app(self.settings["connections"]).open_async() as app:
            self.start(app)
            await finished.wait()
            while await ask(UNFINISHED):
                pass
            rate = self.per_second(begin)
            wal = await ask("select pg_wal_lsn_diff(pg_current_wal_lsn(), %s::text::pg_lsn)", before)
            self.print(rate=rate, wal_per_job=round(wal / self.count))
            leave()

    async def latency(self):
        """From just before the enqueue call to the handler's start, one job at a time, worker idle."""
        starts: asyncio.Queue[float] = asyncio.Queue()

        async def handler(job):
            starts.put_nowait(time.perf_counter())

        self.handler = handler
        async with self.app(self.settings["connections"]).open_async() as app:
            self.start(app)
            await asyncio.sleep(1)
            took = []
            for n in range(-20, self.count):
                await asyncio.sleep(self.options.get("every_ms", 20) / 1000)
                begin = time.perf_counter()
                at, _ = await asyncio.gather(starts.get(), self.task.defer_async(**payload(n)))
                if n >= 0:  # the first twenty warm caches and prepared statements up
                    took.append((at - begin) * 1000)
            took.sort()
            self.print(p50_ms=round(took[len(took) // 2], 2), p99_ms=round(took[len(took) * 99 // 100], 2))
            leave()

    def start(self, app: procrastinate.App):
        """Starts workers in this process; they run until it ends."""
        options = {name: self.settings[name] for name in ("concurrency", "delete_jobs")}
        self.workers = [
            asyncio.create_task(app.run_worker_async(install_signal_handlers=False, **options))
            for _ in range(self.settings["workers"])
        ]

    def per_second(self, begin: float) -> int:
        return round(self.count / (time.perf_counter() - begin))

    def print(self, **measured):
        described = " ".join(f"{name}={value}" for name, value in self.settings.items())
        line = {"system": "procrastinate", "version": version("procrastinate"), "measure": self.measure}
        print(json.dumps({**line, **measured, "settings": described}), flush=True)


def leave():
    """Workers and pools of a peer that was measured are of no use any more."""
    os._exit(0)
