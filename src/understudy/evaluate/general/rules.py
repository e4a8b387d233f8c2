"""Whether values lie on the measurement grid, and whether series obey the declared constraints."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from understudy.data import Panel
from understudy.data.constraints import name_of, violations
from understudy.evaluate.metric import Effort, Measured, Undefined, general
from understudy.evaluate.panels import Comparison
from understudy.evaluate.weighted import mean_figure, mean_share, of_sums

_STEPS = tuple(10.0**power for power in range(3, -5, -1))
_ROUNDING = 2.0**-22  # of a value: what float32 may lose


@lru_cache(maxsize=16)
def resolutions(real: Panel) -> tuple[float | None, ...]:
    """Returns for each channel the coarsest power of ten that divides all its values; None if there is none."""
    return tuple(_resolution(real.values[:, :, place]) for place in range(real.schema.num_channels))


def rounded(panel: Panel, real: Panel) -> Panel:
    """Returns the panel with values on the grid of the real ones."""
    values = np.array(panel.values, dtype=np.float64)
    for place, step in enumerate(resolutions(real)):
        if step is not None:
            values[:, :, place] = np.rint(values[:, :, place] / step) * step
    return panel.with_values(values)


def _resolution(values: np.ndarray) -> float | None:
    seen = np.unique(values[~np.isnan(values)]).astype(np.float64)
    if not seen.any():
        return None
    reach = np.abs(seen).max()
    usable = (step for step in _STEPS if reach * _ROUNDING < 0.02 * step)  # finer grids are lost in float32
    return next((step for step in usable if _on_grid(seen, step).all()), None)


def _on_grid(values: np.ndarray, step: float) -> np.ndarray:
    return np.abs(values - np.rint(values / step) * step) <= _ROUNDING * np.abs(values)


def _measure(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    grids = resolutions(comparison.real)
    places = [place for place in comparison.scale.numeric if grids[place] is not None]
    if not places:
        raise Undefined("real values sit on no grid of powers of ten.")
    aspects = []
    for place in places:
        step = grids[place]
        assert step is not None
        name = f"{comparison.real.schema.channels[place].name}: multiples of {step:g}"
        real, candidate = (
            _counts(panel.values[:, :, place], step) for panel in (comparison.real, comparison.candidate)
        )
        aspects.append(
            of_sums([name], real, candidate, lambda _, found: found[0] / found[1] if found[1] else np.array(np.nan))
        )
    return mean_figure(aspects, comparison, effort, seed, otherwise="the candidate has no values in these channels.")


def _counts(values: np.ndarray, step: float) -> np.ndarray:
    """Returns how many values of each series are on the grid, and how many there are."""
    return np.stack(
        [_on_grid(values.astype(np.float64), step).sum(axis=1), (~np.isnan(values)).sum(axis=1)], axis=1
    ).astype(np.float64)


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
    general(
        "resolution",
        "Share of values on the measurement grid",
        "share of values that are multiples of the coarsest power of ten of which all real values are",
        _measure, direction="higher",
    ),
    general(
        "constraints",
        "Series that break a declared constraint",
        "share of series with at least one violated constraint of the schema",
        _broken,
    ),
)  # fmt: skip
