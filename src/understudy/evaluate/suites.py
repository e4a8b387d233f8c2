"""All suites by name; each is a room with a tuple `METRICS`."""

from collections.abc import Sequence
from importlib import import_module

from understudy.errors import InputError
from understudy.evaluate.metric import Metric

SUITES = {
    "general": "understudy.evaluate.general",
    "pub2priv": "understudy.evaluate.pub2priv",
    "pets": "understudy.evaluate.pets",
    "vertical": "understudy.evaluate.vertical",
    "ppem": "understudy.evaluate.ppem",
    "conditional": "understudy.evaluate.conditional",
}


def metrics_of(names: Sequence[str] = tuple(SUITES)) -> tuple[Metric, ...]:
    """Returns the metrics of the named suites, in the order of the suites."""
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        raise InputError(f"--suite: one of {', '.join(SUITES)} is expected, got '{unknown[0]}'.")
    found: list[Metric] = []
    for name in dict.fromkeys(names):
        found += import_module(SUITES[name]).METRICS
    return tuple(found)
