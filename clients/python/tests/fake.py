"""A server that plays the protocol from a script and records what it hears.

Without a script it behaves well: it hands out what was offered, renews, and stores every report.
`script("complete", Reply(503), DROP)` plays these first, in that order.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any, Callable, Union

PATIENCE = 5.0  # An upper bound for waits that end long before.


@dataclass(frozen=True)
class Request:
    verb: str
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    port: int  # The client's: equal ports are one connection.
    heard_at: float  # By the monotonic clock, which the tests share with the worker.


@dataclass(frozen=True)
class Reply:
    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def problem(status: int, code: str, **members: Any) -> Reply:
    about = {"type": f"/v1/problems/{code}", "title": f"the title of {code}", "detail": f"the detail of {code}"}
    return Reply(status, {**about, "status": status, "code": code, **members}, {"Content-Type": "application/problem+json"})


class Drop:
    """Closes the connection without an answer."""


class Hang:
    """Answers nothing until the server ends."""


DROP = Drop()
HANG = Hang()
Step = Union[Reply, Drop, Hang, Callable[[Request], Reply]]


class Fake:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.requests: list[Request] = []
        self.order = "work"
        self.ttl_ms = 60_000  # Of a claim; a short one makes the first renewal come soon.
        self.waited_ms = 0
        self.renewed_ttl_ms = 60_000
        self.cancel: list[str] = []
        self.closed = False
        self._scripts: dict[str, list[Step]] = {}
        self._offers: list[list[dict[str, Any]]] = []
        self._leases = 100
        self._workers = 0
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def _serve(self) -> None:
                fake._serve(self)

            do_GET = do_POST = do_PUT = do_DELETE = _serve

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # A client that went away is part of the play.

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def script(self, verb: str, *steps: Step) -> None:
        with self.changed:
            self._scripts.setdefault(verb, []).extend(steps)

    def forever(self, verb: str, step: Step) -> None:
        self.script(verb, *[step] * 1000)

    def offer(self, *jobs: dict[str, Any]) -> None:
        with self.changed:
            self._offers.append(list(jobs))
            self.changed.notify_all()

    def give_order(self, order: str) -> None:
        with self.changed:
            self.order = order
            self.changed.notify_all()

    def forget_workers(self) -> None:
        """As after a restore of the server's store: all tokens given out so far are unknown."""
        with self.changed:
            self._workers += 1
            self.changed.notify_all()

    def heard(self, *verbs: str) -> list[Request]:
        with self.changed:
            return [request for request in self.requests if request.verb in verbs]

    def wait_for(self, verb: str, count: int = 1) -> list[Request]:
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.heard(verb)) >= count, PATIENCE):
                raise AssertionError(f"heard {[r.verb for r in self.requests]}, not {count} times {verb}")
        return self.heard(verb)

    def _serve(self, http: BaseHTTPRequestHandler) -> None:
        heard_at = monotonic()
        length = int(http.headers.get("Content-Length") or 0)
        body = json.loads(http.rfile.read(length)) if length else None
        verb = _verb(http.command, http.path)
        request = Request(verb, http.command, http.path, dict(http.headers), body, http.client_address[1], heard_at)
        with self.changed:
            script = self._scripts.get(verb)
            step: Step = script.pop(0) if script else self.behave
            self.requests.append(request)
            self.changed.notify_all()
        if isinstance(step, Hang):
            with self.changed:
                self.changed.wait_for(lambda: self.closed)
        if isinstance(step, (Drop, Hang)):
            http.close_connection = True
            return
        reply = step if isinstance(step, Reply) else step(request)
        data = b"" if reply.body is None else json.dumps(reply.body).encode()
        http.send_response(reply.status)
        for name, value in reply.headers.items():
            http.send_header(name, value)
        if reply.status != 204:
            http.send_header("Content-Length", str(len(data)))
        http.end_headers()
        http.wfile.write(data)

    def behave(self, request: Request) -> Reply:
        """What is done where no script says otherwise; also a step of a script."""
        with self.changed:
            if request.verb == "register":
                self._workers += 1
                number = self._workers
                return Reply(
                    201, {"worker": number, "name": "w", "token": f"tnw_{number}", "beat_every_ms": 20, "new": 1}
                )
            if request.verb in ("claim", "renew", "beat") and not self._knows(request):
                return problem(401, "unknown_worker")
            if request.verb == "claim":
                return self._claim(request)
            if request.verb == "renew":
                return Reply(200, {"lease": 1, "ttl_ms": self.renewed_ttl_ms, "cancel": self.cancel, "order": self.order})
            if request.verb == "beat":
                return Reply(200, {"order": self.order})
            if request.verb == "goodbye":
                return Reply(204)
            if request.verb == "acquire":
                return Reply(200, {"wait_ms": 0, "snooze_ms": None})
            return Reply(200, {"job": request.path.split("/")[5], "state": f"after {request.verb}", "repeated": False})

    def _claim(self, request: Request) -> Reply:
        until = monotonic() + float(request.body["wait_ms"]) / 1000
        while not self._offers and not self.closed and self.order == "work" and monotonic() < until:
            self.changed.wait(until - monotonic())
            if not self._knows(request):
                return problem(401, "unknown_worker")
        if not self._offers or self.order != "work":
            return Reply(200, {"lease": None, "waited_ms": self.waited_ms, "order": self.order})
        self._leases += 1
        lease = {"lease": self._leases, "queue": "mail", "ttl_ms": self.ttl_ms, "jobs": self._offers.pop(0)}
        return Reply(200, {"lease": lease, "waited_ms": self.waited_ms, "order": self.order})

    def _knows(self, request: Request) -> bool:
        return request.headers.get("Tenure-Worker") == f"tnw_{self._workers}"


def job(id: str, kind: str = "work", payload: Any = None, gate: str | None = None) -> dict[str, Any]:
    rest = {"attempt": 1, "max_attempts": 5, "losses": 0, "later": True}
    return {"id": id, "kind": kind, "payload": payload, "gate": gate, **rest}


def _verb(method: str, path: str) -> str:
    if path == "/v1/workers":
        return "register"
    if path.startswith("/v1/workers/"):
        return {"PUT": "beat", "DELETE": "goodbye"}[method]
    if path == "/v1/leases":
        return "claim"
    if path.startswith("/v1/leases/"):
        return path.rsplit("/", 1)[1]
    return "produce"
