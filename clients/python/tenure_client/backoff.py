"""Backoff: longer pauses after each error in a row."""

from __future__ import annotations

import random


class Backoff:
    """From `first` to `most` seconds, doubling, with jitter, so that workers do not come back all at once."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self._ceiling = first

    def next(self) -> float:
        self._ceiling = min(self._most, self._ceiling * 2)
        return random.uniform(max(self._first, self._ceiling / 2), self._ceiling)

    def reset(self) -> None:
        self._ceiling = self._first
