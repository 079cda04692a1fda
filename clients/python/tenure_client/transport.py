"""One HTTP call with a timeout, over connections that are kept alive and shared between threads."""

from __future__ import annotations

import http.client
import json
import selectors
import socket
import threading
from typing import Any, Mapping
from urllib.parse import urlsplit

from .errors import Problem, Unreachable


class Transport:
    def __init__(self, url: str, key: str, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"not an http or https address: {url!r}")
        self.timeout = timeout
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._key = key
        self._lock = threading.Lock()
        self._is_closed = False
        self._idle: list[http.client.HTTPConnection] = []

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        abort: Abort | None = None,
    ) -> Any:
        """The decoded answer. Raises `Problem`, `Unreachable`, and TypeError or ValueError when `body` is not JSON."""
        sent_headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json", **(headers or {})}
        data = None
        if body is not None:
            data = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
            sent_headers["Content-Type"] = "application/json"
        connection = None
        is_reusable = False
        try:
            connection = self._take(self.timeout if timeout is None else timeout)
            if abort is not None:
                abort.attach(connection.sock)
            connection.request(method, self._prefix + path, data, sent_headers)
            response = connection.getresponse()
            raw = response.read()
            is_reusable = not response.will_close
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{method} {path}: {type(error).__name__}: {error}") from error
        finally:
            if abort is not None:
                abort.detach()
            if connection is not None:
                self._give_back(connection, is_reusable)
        return _decode(method, path, response, raw)

    def close(self) -> None:
        """Closes what is idle; what is on its way is closed when it ends."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection = self._idle.pop()
            # The server may have closed it meanwhile. Found out now, that costs nothing;
            # found out by a claim that fails, it would cost a backoff and a `holding`.
            if connection.sock is not None and not _is_readable(connection.sock):
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=timeout)
        connection.connect()
        return connection

    def _give_back(self, connection: http.client.HTTPConnection, is_reusable: bool) -> None:
        with self._lock:
            if is_reusable and not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()


class Abort:
    """Ends one call from another thread: the call raises `Unreachable`. Used for a claim that waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_aborted = False

    def abort(self) -> None:
        with self._lock:
            self._is_aborted = True
            if self._socket is not None:
                try:
                    # The plain socket's shutdown wakes the reader, also under TLS, where `close` would not.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                except OSError:
                    pass

    def attach(self, to: socket.socket | None) -> None:
        with self._lock:
            if self._is_aborted:
                raise ConnectionAbortedError("aborted before it was sent")
            self._socket = to

    def detach(self) -> None:
        with self._lock:
            self._socket = None


def _is_readable(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _decode(method: str, path: str, response: http.client.HTTPResponse, raw: bytes) -> Any:
    try:
        answer = json.loads(raw) if raw else None
    except ValueError as error:
        if response.status < 300:
            raise Unreachable(f"{method} {path}: the answer is not JSON") from error
        answer = None
    if response.status < 300:
        return answer
    problem = answer if isinstance(answer, dict) else {}
    raise Problem(
        response.status,
        # What stands between us and the server answers without a code.
        str(problem.get("code") or f"http_{response.status}"),
        str(problem.get("detail") or problem.get("title") or ""),
        problem.get("field"),
        _seconds(response.getheader("Retry-After")),
    )


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:  # An HTTP date is allowed by HTTP, not by the protocol.
        return None
