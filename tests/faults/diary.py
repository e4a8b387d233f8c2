"""Counts what a process was granted and what it executed, in memory that outlives the process."""

import functools
import mmap
import struct
from collections.abc import Callable
from typing import Any

_ANSWERS = ("release", "distances", "count", "quantile", "choose", "stable_domain")
_GRANTED, _EXECUTED = 0, 8


class Diary:
    """Two numbers that a killed process leaves behind: charges granted, and private answers or iterations."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)

    def keep(self) -> None:
        """Notes every charge and every answer of this process from now on, after it happened."""
        from understudy.privacy.grant import Grant
        from understudy.privacy.ledger import Ledger

        Ledger.charge = self._noting(Ledger.charge, _GRANTED)  # type: ignore[method-assign]
        for name in _ANSWERS:
            setattr(Grant, name, self._noting(getattr(Grant, name), _EXECUTED))

    def note_iteration(self, _done: int = 0) -> None:
        """Notes one iteration of training."""
        self._add(_EXECUTED)

    @property
    def granted(self) -> int:
        """Charges granted so far."""
        return int(struct.unpack_from("q", self._shared, _GRANTED)[0])

    def read(self) -> tuple[int, int]:
        """Returns charges granted and executions, and starts a new page."""
        found = struct.unpack_from("qq", self._shared)
        struct.pack_into("qq", self._shared, 0, 0, 0)
        return found

    def _noting(self, method: Callable[..., Any], place: int) -> Callable[..., Any]:
        @functools.wraps(method)
        def noted(*arguments: Any, **named: Any) -> Any:
            answer = method(*arguments, **named)
            self._add(place)
            return answer

        return noted

    def _add(self, place: int) -> None:
        struct.pack_into("q", self._shared, place, struct.unpack_from("q", self._shared, place)[0] + 1)


DIARY = Diary()
