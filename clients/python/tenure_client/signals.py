"""run_until_signal: the whole life of a worker process."""

from __future__ import annotations

import queue
import signal
import threading
from types import FrameType

from .worker import Worker


def run_until_signal(worker: Worker, grace: float | None = None) -> None:
    """Run until SIGTERM or SIGINT, then drain for `grace` seconds. A second signal ends the grace.

    Call it from the main thread. Raises what `Worker.run` raises.
    """
    # Python runs signal handlers between any two steps of the main thread, which may then hold a lock.
    # So the handler only puts into a SimpleQueue, whose `put` may interrupt anything.
    heard: queue.SimpleQueue[bool] = queue.SimpleQueue()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            errors.append(error)
        finally:
            heard.put(False)

    def hear(_number: int, _frame: FrameType | None) -> None:
        heard.put(True)

    before = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        threading.Thread(target=run, name="tenure worker", daemon=True).start()
        is_first = True
        while heard.get():
            worker.stop(grace if is_first else 0.0)
            is_first = False
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    if errors:
        raise errors[0]
