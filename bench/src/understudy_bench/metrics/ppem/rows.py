"""Series as rows of a table, for the linear models that the PPEM paper judges synthetic tables with."""

from dataclasses import dataclass

import numpy as np

from understudy.data import Channel, Panel
from understudy.data.channels import num_codes
from understudy.evaluation.panels import Comparison

MAX_ROWS = 5_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Single steps of series, every channel and static column beside the others.

    Attributes:
        features: [row, feature], scaled; categories one-hot.
        owner: Column that each feature belongs to: channels first, then static columns.
        observed: [row, channel], whether the channel was observed at that step.
        series: Series of each row.
    """

    features: np.ndarray
    owner: np.ndarray
    observed: np.ndarray
    series: np.ndarray

    @classmethod
    def of(cls, comparison: Comparison, panel: Panel, seed: int) -> "Rows":
        """Returns steps drawn at random from those at which something was observed."""
        seen = ~np.isnan(panel.values)
        series, step = np.nonzero(seen.any(axis=2))
        chosen = np.sort(np.random.default_rng(seed).permutation(len(series))[:MAX_ROWS])
        series, step = series[chosen], step[chosen]
        static, static_owner = static_features(comparison, panel)
        owner = np.array([*comparison.feature_channels, *(static_owner + panel.schema.num_channels)], dtype=int)
        unit = comparison.scale.unit(panel)[series, step]
        features = np.concatenate([unit, static[series]], axis=1).astype(np.float64)
        return cls(features=features, owner=owner, observed=seen[series, step], series=series)

    def task(self, place: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (features of all other columns, features of one channel, series), where it was observed."""
        rows = self.observed[:, place]
        own = self.owner == place
        return self.features[rows][:, ~own], self.features[rows][:, own], self.series[rows]


def static_features(comparison: Comparison, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    """Returns the static columns [series, feature], one-hot or in the real scale, and the column of each feature.

    A missing number takes the middle of the real ones, a missing category no code.
    """
    columns, owner = [np.zeros((panel.num_series, 0))], []
    for place, column in enumerate(panel.schema.static):
        values = _coded(column, comparison.real.static[:, place], panel.static[:, place])
        columns.append(values)
        owner += [place] * values.shape[1]
    return np.concatenate(columns, axis=1), np.array(owner, dtype=int)


def _coded(column: Channel, real: np.ndarray, values: np.ndarray) -> np.ndarray:
    codes = num_codes(column)
    if codes is not None:
        return (values[:, None] == np.arange(codes)).astype(float)
    seen = real[~np.isnan(real)]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else column.bounds
    middle = float(seen.mean()) if len(seen) else (low + high) / 2
    return ((np.where(np.isnan(values), middle, values) - low) / (high - low or 1.0))[:, None]
