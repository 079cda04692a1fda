"""Job: what was claimed, as the handler sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping


@dataclass(frozen=True)
class Job:
    """`attempt` counts from 1. `id` stays the same over all attempts and is a good idempotency key."""

    id: str
    kind: str
    payload: Any
    queue: str
    attempt: int
    max_attempts: int | None
    losses: int
    priority: int | None
    tenant: str | None
    trace: str | None
    gate: str | None
    run_at: str | None
    created_at: str | None

    @staticmethod
    def from_wire(queue: str, members: Mapping[str, Any]) -> Job:
        return Job(
            id=members["id"],
            kind=members["kind"],
            payload=members.get("payload"),
            queue=queue,
            attempt=members.get("attempt", 1),
            max_attempts=members.get("max_attempts"),
            losses=members.get("losses", 0),
            priority=members.get("priority"),
            tenant=members.get("tenant"),
            trace=members.get("trace"),
            gate=members.get("gate"),
            run_at=members.get("run_at"),
            created_at=members.get("created_at"),
        )
