"""One Gaussian release, made several times."""

import math
from dataclasses import replace

from understudy.privacy.events import Gaussian
from understudy.privacy.plan import PlanEntry, round_up


def repeated(entries: tuple[PlanEntry, ...], count: int, *labels: str) -> tuple[PlanEntry, ...]:
    """Returns a plan of the same price in which some releases are made `count` times, with √count times the noise."""
    return tuple(_many(entry, count) if entry.label in labels else entry for entry in entries)


def _many(entry: PlanEntry, count: int) -> PlanEntry:
    assert isinstance(entry.event, Gaussian)
    return replace(entry, event=Gaussian(round_up(entry.event.noise_multiplier * math.sqrt(count)), count))
