"""Commands under circumstances of their own: no look at the room on the disk, another time of day."""

import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

TRUSTING = "tests.faults.ways:trusting"
AT_ANOTHER_TIME = "tests.faults.ways:at_another_time"


def trusting(arguments: Sequence[str]) -> int:
    """Runs a command that does not ask beforehand whether its results will fit: somebody else fills the disk."""
    from understudy.api import buy, synthesis
    from understudy.cli.main import main

    synthesis._MODEL_BYTES = buy._SCHEMA_BYTES = 0
    return main(list(arguments))


def at_another_time(arguments: Sequence[str]) -> int:
    """Runs a command on a clock that is wrong by so many days, or by one after another of them at each look."""
    from understudy.cli.main import main

    days, *rest = arguments
    _set_clock([float(shift) for shift in days.split(",")])
    return main(rest)


def _set_clock(days: list[float]) -> None:
    """Replaces every way in which the package could ask for the time of day."""
    shifts = [timedelta(days=shift) for shift in days]
    looks = 0

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            nonlocal looks
            looks += 1
            return datetime.now(tz) + shifts[(looks - 1) % len(shifts)]

    right = time.time
    time.time = lambda: right() + shifts[0].total_seconds()
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("understudy") and getattr(module, "datetime", None) is datetime:
            module.datetime = Wrong  # type: ignore[attr-defined]
