"""Context: what a handler may ask and say while it runs."""

from __future__ import annotations

import threading
from typing import Any, Callable


class Context:
    """`fence` is the lease number: it grows with every attempt, so a receiver can refuse an older one.

    `canceled` is set when the work should end, and `why` says why: `cancel` (somebody asked),
    `lost` (the lease is gone, whatever the handler returns is dropped) or `stop` (the worker ends).
    """

    def __init__(self, fence: int, acquire: Callable[[Context, int], None]) -> None:
        self.fence = fence
        self.canceled = threading.Event()
        self.why: str | None = None
        self._acquire = acquire
        self._lock = threading.Lock()
        self._usage: dict[str, float] = {}
        self._gate: dict[str, Any] = {}

    @property
    def is_canceled(self) -> bool:
        return self.canceled.is_set()

    def usage(self, name: str, amount: float) -> None:
        """Adds to what is reported when the job completes."""
        with self._lock:
            self._usage[name] = self._usage.get(name, 0) + amount

    def acquire(self, tokens: int = 1) -> None:
        """Waits until the job's gate, if it has one, lets `tokens` more through.

        Raises `Snooze` when the gate is closed and `Canceled` when the work should end: let both pass.
        """
        self._acquire(self, tokens)

    def hold_gate(self, seconds: float) -> None:
        """The resource asked for silence (`Retry-After`): said with the report, whatever the outcome."""
        with self._lock:
            self._gate["hold_ms"] = round(seconds * 1000)

    def gate_health(self, *, healthy: bool) -> None:
        """Whether the resource did well, where the outcome tells something else."""
        with self._lock:
            self._gate["health"] = "healthy" if healthy else "unhealthy"

    def ask_to_stop(self, why: str) -> None:
        """For the worker. The first reason stays."""
        with self._lock:
            if self.why is None:
                self.why = why
        self.canceled.set()

    def said(self) -> tuple[dict[str, float], dict[str, Any]]:
        """For the worker: the usage and the gate members of the report."""
        with self._lock:
            return dict(self._usage), dict(self._gate)
