"""How a handler says that it did not complete. Returning is completing; any other exception is a transient failure."""

from __future__ import annotations

from typing import Any


class Fail(Exception):
    """Raise one of `Fail.transient`, `Fail.permanent`, `Fail.dead`."""

    def __init__(
        self,
        failure: str,
        message: str,
        code: str | None = None,
        details: Any = None,
        retry_in: float | None = None,
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message
        self.code = code
        self.details = details
        self.retry_in = retry_in

    @staticmethod
    def transient(
        message: str, *, code: str | None = None, details: Any = None, retry_in: float | None = None
    ) -> Fail:
        """Tried again while attempts are left, after `retry_in` seconds or the job's own backoff."""
        return Fail("transient", message, code, details, retry_in)

    @staticmethod
    def permanent(message: str, *, code: str | None = None, details: Any = None) -> Fail:
        """Trying again would not help: the job is `failed`."""
        return Fail("permanent", message, code, details)

    @staticmethod
    def dead(message: str, *, code: str | None = None, details: Any = None) -> Fail:
        """The job needs a person: it is `dead`."""
        return Fail("dead", message, code, details)


class Snooze(Exception):
    """Later, and no attempt is charged."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"snoozed for {seconds} s")
        self.seconds = seconds


class Canceled(Exception):
    """The handler stopped because `ctx.canceled` was set."""
