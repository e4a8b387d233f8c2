"""The heaviest certificate that `verify` accepts to compute, looked for at random and uphill from the heaviest so far.

`python -m tests.fuzz.heaviest 2000` prints the seconds of processor time and megabytes of the heaviest of so many.
"""

import gc
import json
import math
import random
import sys
import time
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tests.fuzz.verdicts import originals
from understudy.errors import UnderstudyError
from understudy.privacy import accounting, keys, losses
from understudy.privacy.certificate import Certificate, verify
from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
    to_json,
)

MOST_SECONDS, MOST_BYTES = 1.0, 200_000_000
_DELTAS = tuple(10.0**-place for place in range(3, 13))
_LARGEST = {"count": 1e6, "iterations": 1e6, "max_windows": 1e9}
_RANGES = {
    "noise_multiplier": (1e-3, 1e4),
    "sampling_rate": (1e-9, 1.0),
    "epsilon": (1e-4, 60.0),
    "delta": (1e-12, 1e-2),
}


@dataclass(frozen=True)
class Cost:
    """What `verify` took for a certificate with these events."""

    events: tuple[Event, ...]
    seconds: float
    bytes: int


def cost(events: tuple[Event, ...], certificate: Certificate, trusted: Sequence[keys.PublicKey]) -> Cost | None:
    """Return what `verify` takes, from the text on; None where the account is refused."""
    try:
        accounting.check_workload(events)
    except UnderstudyError:
        return None
    labels = tuple(f"label {place}" for place in range(len(events)))
    text = replace(
        certificate,
        events=tuple(map(to_json, events)),
        labels=labels,
        executed=dict.fromkeys(labels, 1),
        epsilon_at_delta=tuple((at, 1.0) for at in _DELTAS),
    ).dumps()
    seconds = _processor_time(text, trusted)
    tracemalloc.start()
    try:
        _judge(text, trusted)
        return Cost(events, seconds, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def _processor_time(text: str, trusted: Sequence[keys.PublicKey]) -> float:
    began = time.process_time()
    _judge(text, trusted)
    return time.process_time() - began


def _judge(text: str, trusted: Sequence[keys.PublicKey]) -> None:
    for cached in (accounting._epsilon, accounting._poisson, losses._composed, losses._shifts):
        cached.cache_clear()
    gc.collect()
    verify(Certificate.loads(text), None, trusted)


def drawn(rng: random.Random) -> tuple[Event, ...]:
    """Events of any kinds with parameters of any size; of those, mostly, whose loss distributions are looked at."""
    while True:
        events = _any_events(rng)
        parts = accounting._gathered(events)
        with suppress(UnderstudyError):
            accounting.check_workload(events)
            if rng.random() < 0.05 or not accounting._is_hopeless(parts, accounting._renyi_route(parts, 1e-3), 1e-3):
                return events


def _any_events(rng: random.Random) -> tuple[Event, ...]:
    number = rng.choice((1, 1, 1, 2, 3, accounting.MAX_KINDS))
    kinds = (Gaussian, DiscreteGaussian, SubsampledGaussian, MixtureOfGaussians, PureDP, ApproximateDP)
    only = rng.choice((None, None, MixtureOfGaussians, SubsampledGaussian))
    events = [_event(only or rng.choice(kinds), rng) for _ in range(number)]
    gaussians = accounting.MAX_EVENTS - number if rng.random() < 0.1 else 0
    return (*events, *(Gaussian(100.0 + place) for place in range(gaussians)))


def _event(kind: type[Event], rng: random.Random) -> Event:
    given: dict[str, float | bool] = {}
    for name in kind.__annotations__:
        if name in _LARGEST:
            given[name] = max(1, int(_between(1.0, _LARGEST[name], rng)))
        elif name in _RANGES:
            given[name] = _between(*_RANGES[name], rng)
        elif name == "one_vote":
            given[name] = rng.random() < 0.7
    return kind(**given)


def _between(low: float, high: float, rng: random.Random) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def nearby(events: tuple[Event, ...], rng: random.Random) -> tuple[Event, ...]:
    """The same events with one parameter a little changed."""
    place = rng.randrange(len(events))
    numbers = {name: value for name, value in vars(events[place]).items() if name in _RANGES or name in _LARGEST}
    name = rng.choice(list(numbers))
    value = numbers[name] * math.exp(rng.gauss(0, 0.5))
    low, high = _RANGES.get(name, (1, _LARGEST.get(name, 1.0)))
    changed = min(high, max(low, value if name in _RANGES else max(1, round(value))))
    one = replace(events[place], **{name: changed if name in _RANGES else int(changed)})
    return (*events[:place], one, *events[place + 1 :])


def search(number: int, seed: int) -> tuple[Cost, Cost, int]:
    """Return the slowest and the largest of so many accepted certificates, and how many were refused."""
    rng, refused = random.Random(seed), 0
    (certificate, *_), trusted = originals()
    cost((SubsampledGaussian(0.01, 2.0, 10), PureDP(0.1)), certificate, trusted)  # imports
    found: list[Cost] = []
    while len(found) < number:
        best = max(found, key=lambda one: one.seconds, default=None)
        uphill = best is not None and rng.random() < 0.5
        one = cost(nearby(best.events, rng) if best and uphill else drawn(rng), certificate, trusted)
        refused += one is None
        found += [] if one is None else [one]
    return max(found, key=lambda one: one.seconds), max(found, key=lambda one: one.bytes), refused


def main() -> None:
    number, seed = int(sys.argv[1]), random.randrange(2**32)
    slowest, largest, refused = search(number, seed)
    print(f"seed {seed}: {number} computed, {refused} refused")
    for name, one in (("slowest", slowest), ("largest", largest)):
        shown = [to_json(event) for event in one.events[:16]]
        print(f"{name}: {one.seconds:.2f} s, {one.bytes / 1e6:.0f} MB, {len(one.events)} events: {json.dumps(shown)}")


if __name__ == "__main__":
    main()
