"""All suites by name; each is a module with a tuple `METRICS`. Other distributions add theirs by an entry point."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from understudy.errors import InputError
from understudy.evaluate.metric import Metric

GROUP = "understudy.suites"
OWN = {"general": "understudy.evaluate.general", "conditional": "understudy.evaluate.fillings"}


@cache
def suites() -> Mapping[str, str]:
    """Returns where the metrics of each suite are: ours first, then those that installed distributions registered."""
    return OWN | {point.name: point.value for point in entry_points(group=GROUP) if point.name not in OWN}


def metrics_of(names: Sequence[str] = ()) -> tuple[Metric, ...]:
    """Returns the metrics of the named suites, in their order; of all suites if none is named."""
    known = suites()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"--suite: one of {', '.join(known)} is expected, got '{unknown[0]}'.")
    found: list[Metric] = []
    for name in dict.fromkeys(names or known):
        found += import_module(known[name]).METRICS
    return tuple(found)
