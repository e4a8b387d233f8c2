"""Can boosted trees tell candidate from real? A test of two samples by a learner that does learn.

Lopez-Paz and Oquab (2017), arXiv:1610.06545. The recurrent discriminators of the papers often stay near chance on
series that a glance tells apart; trees on raw values and on summaries seldom do, and their features have names.
A candidate that copies real series makes trees wrong more often than right: its twin, learned from, is on the other
side. |accuracy − 0.5| counts that as well.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import rankdata

from understudy.data import Panel
from understudy.evaluate.comparison import Comparison
from understudy.evaluate.general.features import raw_features, summary_features
from understudy.evaluate.metric import Effort, Measured, Metric
from understudy.evaluate.networks import deal
from understudy.evaluate.weighted import mean_share

FOLDS = 5
_MAX_SERIES = 2_000
_MAX_FEATURES = 300
_TOP = 12
_NEAR = 0.1  # an accuracy of 60 %
Features = Callable[[Comparison, Panel], tuple[list[str], np.ndarray]]


def told_apart(first: np.ndarray, second: np.ndarray, units: tuple[np.ndarray, np.ndarray], seed: int) -> np.ndarray:
    """Returns whether each row was put on its side by trees that learned from other units: `first`, then `second`.

    Args:
        first, second: Feature tables [row, feature], equally many rows; NaN where a feature is missing.
        units: Unit of each row; all rows of a unit are learned from, or none.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(seed)
    table = np.concatenate([first, second])
    side = np.repeat([0, 1], [len(first), len(second)])
    right = np.empty(len(table), dtype=bool)
    folds = (deal(unit, [1 / FOLDS] * FOLDS, rng) for unit in units)
    for own, other in zip(*folds, strict=True):
        tested = np.concatenate([own, other + len(first)])
        learned = np.setdiff1d(np.arange(len(table)), tested)
        trees = HistGradientBoostingClassifier(
            max_iter=60, learning_rate=0.15, max_leaf_nodes=15, max_bins=63, early_stopping=False, random_state=seed
        )
        seen = ~np.isnan(table[learned]).all(axis=0)
        guess = trees.fit(table[learned][:, seen], side[learned]).predict(table[tested][:, seen]) if seen.any() else 0
        right[tested] = guess == side[tested]
    return right


def alone(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns |AUC − 0.5| of each single feature: 0 says nothing, 0.5 tells all rows apart. Missing ranks lowest."""
    table = np.concatenate([first, second])
    ranks = rankdata(np.where(np.isnan(table), -np.inf, table), axis=0)[: len(first)].sum(axis=0)
    area = (ranks - len(first) * (len(first) + 1) / 2) / (len(first) * len(second))
    return np.asarray(np.abs(area - 0.5))


def _measure(features: Features, comparison: Comparison, effort: Effort, seed: int) -> Measured:
    panels = comparison.real, comparison.candidate
    number = min(_MAX_SERIES, *(panel.num_series for panel in panels))
    rng = np.random.default_rng(seed)
    rows = [_rows(panel, number, rng) for panel in panels]
    (names, first), (_, second) = (features(comparison, panel) for panel in panels)
    columns, chosen = _columns(len(names), effort, rng), ""
    if len(columns) < len(names):
        chosen = f", {len(columns)} of them drawn at random"
    tables = first[rows[0]][:, columns], second[rows[1]][:, columns]
    units = panels[0].unit[rows[0]], panels[1].unit[rows[1]]
    right = told_apart(*tables, units, seed).astype(float)
    both = np.concatenate([units[0], units[1] + panels[0].num_units])
    accuracy, replicates = mean_share(right, both, effort, seed)
    single = alone(*tables)
    return Measured(
        value=abs(accuracy - 0.5),
        replicates=np.abs(replicates - 0.5),
        parts={
            f"alone: {names[columns[place]]}": float(single[place])
            for place in np.argsort(-single, kind="stable")[:_TOP]
        },
        notes=(
            f"{number} series of each side, {FOLDS} folds by unit, {len(names)} features{chosen}. Parts: |AUC − 0.5| "
            "of the most telling single features.",
        ),
    )


def _columns(number: int, effort: Effort, rng: np.random.Generator) -> np.ndarray:
    """Returns all features, or some of them where the effort is bounded: time grows with their number."""
    if effort.max_values is None or number <= _MAX_FEATURES:
        return np.arange(number)
    return np.sort(rng.choice(number, _MAX_FEATURES, replace=False))


def _rows(panel: Panel, number: int, rng: np.random.Generator) -> np.ndarray:
    """Returns that many series, unit by unit in random order."""
    order = rng.permutation(panel.num_units)[panel.unit]
    return np.sort(np.argsort(order, kind="stable")[:number])


def _metric(name: str, title: str, features: Features) -> Metric:
    return Metric(
        name=f"general.{name}",
        title=title,
        direction="lower",
        range=(0.0, 0.5),
        reference="classifier two-sample test, arXiv:1610.06545, section 3, by boosted trees: |accuracy − 0.5|",
        measure=partial(_measure, features),
        near=_NEAR,
    )


METRICS = (
    _metric("trees_raw", "Told apart by boosted trees that see every value", raw_features),
    _metric("trees_summary", "Told apart by boosted trees that see summaries", summary_features),
)
