"""Whether series obey what the schema declares."""

from collections.abc import Iterator

import numpy as np

from understudy.data import Panel
from understudy.data.constraints import name_of, violations
from understudy.evaluate.comparison import Comparison
from understudy.evaluate.metric import Effort, Measured, Metric, Undefined
from understudy.evaluate.weighted import mean_share


def broken_rules(panel: Panel) -> Iterator[list[str]]:
    """Yields the names of the declared constraints that each series breaks."""
    for place in range(panel.num_series):
        one = slice(place, place + 1)
        context = None if panel.context is None else panel.context[one]
        yield violations(panel.values[one], panel.schema, context=context)


def _broken(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    rules = comparison.real.schema.constraints
    if not rules:
        raise Undefined("the schema declares no constraints.")
    broken = list(broken_rules(comparison.candidate))
    share = np.array([bool(names) for names in broken], dtype=float)
    value, replicates = mean_share(share, comparison.candidate.unit, effort, seed)
    return Measured(
        value=value,
        replicates=replicates,
        parts={rule: float(np.mean([rule in names for names in broken])) for rule in map(name_of, rules)},
    )


METRICS = (
    Metric(
        name="general.constraints",
        title="Series that break a declared constraint",
        direction="lower",
        range=(0.0, 1.0),
        reference="share of series with at least one violated constraint of the schema",
        measure=_broken,
    ),
)
