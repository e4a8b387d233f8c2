"""Odd panels, on which no metric may crash, and the least effort to try them with."""

from dataclasses import replace

import numpy as np

from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Categorical, Panel
from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, without_values

LEAST = Effort(name="least", repeats=1, iteration_cap=2, replicates=3, splits=2, max_series=100)


def _rich(num_units: int, seed: int, **changes) -> Panel:
    return make_panel(rich_schema(**changes), num_units, seed=seed)


def _categories(num_series: int, seed: int) -> Panel:
    codes = np.random.default_rng(seed).integers(0, 3, (num_series, 8, 1)).astype(np.float32)
    return panel_of(codes, channels=(Categorical("state", ("a", "b", "c"), missing=True),))


def _gaps(num_series: int, seed: int) -> Panel:
    values = np.array(waves(num_series, seed=seed).values)
    values[np.random.default_rng(seed).random(values.shape) < 0.5] = np.nan
    values[:3] = np.nan
    values[:, :, 1] = np.nan
    return panel_of(values)


ODD = {
    "at rest": lambda n, seed: panel_of(np.full((n, 8, 2), 0.3)),
    "one at rest": lambda n, seed: panel_of(waves(n, seed=seed).values * np.array([1.0, 0.0])),
    "gaps": _gaps,
    "nothing observed": lambda n, seed: without_values(waves(n, seed=seed), "wave0", "wave1"),
    "categories only": _categories,
    "one channel": lambda n, seed: waves(n, seed=seed, channels=1),
    "one step": lambda n, seed: waves(n, seed=seed, steps=1),
    "two steps": lambda n, seed: waves(n, seed=seed, steps=2),
    "three steps": lambda n, seed: waves(n, seed=seed, steps=3),
    "every kind of column, lengths, context, label": _rich,
    "several series of a unit": lambda n, seed: _rich(n, seed, unit=replace(rich_schema().unit, max_series=3)),
    "plain": lambda n, seed: make_panel(plain_schema(), n, seed=seed),
}


def odd_comparison(name: str) -> Comparison:
    """Real and candidate series of one odd kind, of different number."""
    real, candidate, reference = (ODD[name](number, seed) for number, seed in ((30, 1), (22, 2), (22, 3)))
    return Comparison(real=real, candidate=candidate, reference=reference, unseen=reference)


def outcome(metric: Metric, comparison: Comparison) -> Measured | str:
    """Returns the figure, checked to be one, or why there is none."""
    try:
        measured = metric.measure(comparison, LEAST, 0)
    except Undefined as reason:
        return str(reason)
    assert np.isfinite(measured.value)
    assert metric.range[0] <= measured.value <= metric.range[1]
    assert measured.replicates is None or np.isfinite(measured.replicates).all()
    assert np.isfinite(list(measured.parts.values())).all()
    return measured
