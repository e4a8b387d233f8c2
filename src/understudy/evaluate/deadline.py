"""A deadline that also ends work in the middle: what is late must not keep what is done from being written."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN_SECONDS = 0.5  # an alarm that a destructor swallowed is repeated


class OutOfTime(BaseException):
    """The deadline has passed. No `except Exception` on the way up may swallow it."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raises `OutOfTime` in the block when `seconds` have passed; None sets no deadline.

    Outside the main thread, and where the system has no alarms, `check` alone ends the block.
    """
    if seconds is None or not _can_alarm():
        yield
        return
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    started, (left, interval) = (
        time.monotonic(),
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), _AGAIN_SECONDS),
    )
    try:
        yield
    finally:
        armed = False
        remains = max(left - (time.monotonic() - started), 1e-3) if left else 0.0
        signal.setitimer(signal.ITIMER_REAL, remains, interval)
        signal.signal(signal.SIGALRM, before)


def check(end: float | None) -> None:
    """Raises `OutOfTime` if the moment `end` of the monotonic clock has passed."""
    if end is not None and time.monotonic() >= end:
        raise OutOfTime


def _can_alarm() -> bool:
    return hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()
