"""A limit on processor time and memory for one command inside this process."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY_BYTES = 3 * 2**30
_AGAIN_SECONDS = 1.0  # native code may swallow the first interruption


class TooSlow(BaseException):
    """The command used more processor time than any small input may."""


@contextmanager
def limited(cpu_seconds: float) -> Iterator[list[bool]]:
    """Ends what takes too long, and makes what takes too much memory fail as on a small computer.

    Yields a list that stays empty unless the time was up: an interruption of native code may come out as any error.
    """
    expired: list[bool] = []

    def stop(*_: object) -> None:
        expired.append(True)
        raise TooSlow

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    handler = signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY_BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds, _AGAIN_SECONDS)
    try:
        yield expired
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
