"""What can go wrong with a request: the server said no, or nobody knows."""

from __future__ import annotations


class Problem(Exception):
    """The server answered with an error. `code` is stable and what programs look at."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str = "",
        field: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {detail}" if detail else f"{status} {code}")
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field
        self.retry_after = retry_after

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status >= 500 or self.status in (408, 429)


class Unreachable(Exception):
    """No readable answer: a timeout, no connection, or a broken one. The server may have acted or not."""
