"""How much computing a list of events asks for, estimated from their sizes before any of it is done.

A certificate comes from anybody: three kilobytes may ask for hours. What is refused here is refused when a run is
charged as well, so that no certificate is ever issued that `verify` would not check.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from understudy.errors import InputError
from understudy.privacy.events import (
    Composed,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    NonPrivate,
    RepeatAndSelect,
    SubsampledGaussian,
    executions,
)
from understudy.privacy.loss import INTERVAL
from understudy.privacy.mixture import num_cells

MAX_EVENTS = 1_000
MAX_DEPTH = 8
MAX_DELTAS = 10
MAX_EXECUTIONS = 10_000_000
MAX_GRID = 1 << 26  # points of one privacy loss distribution
MAX_WORK = 1 << 29  # numbers that are computed to build all of them
_COMPOSING = 1 << 21  # what adding one distribution to the others weighs beside building it


def check_form(bodies: Sequence[Any]) -> None:
    """Refuses events, as JSON, that are too many or nested too deeply; looks without recursion."""
    waiting = [(body, 1) for body in bodies]
    for number, (_, depth) in enumerate(_walk(waiting), start=1):
        if number > MAX_EVENTS:
            raise _too_much(f"at most {MAX_EVENTS} events")
        if depth > MAX_DEPTH:
            raise _too_much(f"events nested at most {MAX_DEPTH} deep")


def check_workload(events: Sequence[Event]) -> None:
    """Refuses events whose account would take minutes or more memory than a computer has."""
    parts = list(_parts(events))
    if len(parts) > MAX_EVENTS:
        raise _too_much(f"at most {MAX_EVENTS} events")
    for event in parts:
        if not isinstance(event, Gaussian) and executions(event) > MAX_EXECUTIONS:
            raise _too_much(f"at most {MAX_EXECUTIONS:,} executions of {type(event).__name__}")
        if _grid(event) > MAX_GRID:
            raise _too_much(f"more noise for the reach of one unit in {type(event).__name__}, or fewer windows")
    if sum(_work(event) for event in parts) > MAX_WORK:
        raise _too_much("fewer events that are not plain Gaussians, or fewer windows a unit")


def _walk(waiting: list[tuple[Any, int]]) -> Iterator[tuple[Any, int]]:
    while waiting:
        body, depth = waiting.pop()
        yield body, depth
        if isinstance(body, dict):
            inner = [*(body["parts"] if isinstance(body.get("parts"), list) else []), body.get("base")]
            waiting += [(part, depth + 1) for part in inner if isinstance(part, dict)]


def _parts(events: Sequence[Event]) -> Iterator[Event]:
    for event in events:
        if isinstance(event, Composed):
            yield from _parts(event.parts)
        elif isinstance(event, RepeatAndSelect):
            yield from _parts((event.base,))
        else:
            yield event


def _grid(event: Event) -> float:
    """Points of the event's privacy loss distribution: the widest loss, divided by the grid's interval."""
    if isinstance(event, SubsampledGaussian):
        return _widest(1, event.noise_multiplier)
    if isinstance(event, MixtureOfGaussians):
        return _widest(event.max_windows, event.noise_multiplier)
    if isinstance(event, DiscreteGaussian) and event.one_vote:
        return 24 * event.noise_multiplier
    return 1.0


def _widest(shift: int, scale: float) -> float:
    return shift * (shift + 12 * scale) / scale / scale / INTERVAL


def _work(event: Event) -> float:
    if isinstance(event, Gaussian | NonPrivate) or (isinstance(event, DiscreteGaussian) and not event.one_vote):
        return 1.0
    work = _COMPOSING + _grid(event)
    if isinstance(event, MixtureOfGaussians):
        shifts = event.max_windows + 1
        work += shifts * num_cells(float(event.max_windows), event.noise_multiplier, INTERVAL)
    return work if math.isfinite(work) else float(2 * MAX_WORK)


def _too_much(expected: str) -> InputError:
    return InputError(
        f"These events ask for more computing than an account may take: {expected} are expected. If this is a "
        "certificate, do not rely on it; if it is your own run, choose fewer windows, larger noise or fewer releases."
    )
