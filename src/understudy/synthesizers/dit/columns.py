"""A schema's columns as the network sees them: scores, in which an untrained network is already half right.

Values become normal scores by released distributions, so every column is roughly N(0, 1); of one long series they are
scaled instead (`scale`). A static column is a channel that stands still. What is missing stays missing: it is neither
shown to the network nor scored. Steps are filled up to a whole number of patches with steps at which nothing is known.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from understudy.data import Panel, Schema
from understudy.statistics.columns import single_values
from understudy.statistics.marginals import Marginal
from understudy.synthesizers.dit.scale import scaled_channels

_NODES = 65
_ONE_DEVIATION = ndtr(np.array([-1.0, 1.0]))


@dataclass(frozen=True, eq=False)
class Columns:
    """The way between values and scores.

    Attributes:
        schema: The contract of what is learned from.
        marginals: Released distribution of each channel, then of each static column but the label.
        patch: Steps per token.
        scales: Size of the movement of each channel that is scaled.
    """

    schema: Schema
    marginals: tuple[Marginal, ...]
    patch: int
    scales: np.ndarray

    @cached_property
    def _scaled(self) -> dict[int, tuple[float, float]]:
        """Centre and size of each channel that is scaled; the centre is the released median."""
        places = scaled_channels(self.schema)
        centres = [float(self.marginals[place].values_of(np.array(0.5))) for place in places]
        return dict(zip(places, zip(centres, self.scales.tolist(), strict=True), strict=True))

    @property
    def num_steps(self) -> int:
        """Steps of a whole number of patches."""
        return -(-self.schema.num_steps // self.patch) * self.patch

    @property
    def variances(self) -> np.ndarray:
        """Variance of each column's scores over all series, as the released distributions have it."""
        found = np.ones(len(self.marginals))
        for place, (_, size) in self._scaled.items():
            low, high = self.marginals[place].values_of(_ONE_DEVIATION)
            found[place] = ((high - low) / 2 / size) ** 2
        return found

    def scores(self, values: np.ndarray, static: np.ndarray) -> np.ndarray:
        """Returns scores [series, step, column] of values [series, step, channel] and static columns, NaN if unknown.

        Privacy: private if the values are; a series follows from its own values and released distributions alone.
        """
        scores = np.full((len(values), self.num_steps, len(self.marginals)), np.nan, dtype=np.float32)
        end, channels = values.shape[1], self.schema.num_channels
        single = single_values(self.schema, static, None)
        for place, marginal in enumerate(self.marginals):
            if place in self._scaled:
                centre, size = self._scaled[place]
                scores[:, :end, place] = (values[:, :, place] - centre) / size
            elif place < channels:
                scores[:, :end, place] = marginal.scores_of(values[:, :, place])
            else:
                scores[:, :end, place] = marginal.scores_of(single[:, place - channels])[:, None]
        return scores

    def examples(self, panel: Panel, classes: np.ndarray) -> dict[str, np.ndarray]:
        """Returns what a batch shows of each series: scores, which of them are known, class and context.

        Privacy: private if the panel is; each row is its own series'.
        """
        scores = self.scores(panel.values, panel.static)
        examples = {"x": np.nan_to_num(scores), "known": ~np.isnan(scores), "label": classes}
        if self.schema.context:
            assert panel.context is not None
            examples["context"] = self.context(panel.context, panel.num_series)
        return examples

    def context(self, context: np.ndarray, num_series: int) -> np.ndarray:
        """Returns context [series, step, context] between −1 and 1 by its declared bounds, 0 where it is not said.

        One row for all where all share it.
        """
        shared = context.ndim == 2 or (len(context) > 0 and context.strides[0] == 0)
        own = np.asarray(context if context.ndim == 2 else context[0])[None] if shared else context
        low, high = np.array([channel.bounds for channel in self.schema.context]).T
        scaled = np.zeros((len(own), self.num_steps, own.shape[2]), dtype=np.float32)
        scaled[:, : own.shape[1]] = np.nan_to_num(2 * (own - low) / np.maximum(high - low, 1e-12) - 1)
        return np.broadcast_to(scaled, (num_series, *scaled.shape[1:])) if shared else scaled

    def values(self, ranks: np.ndarray) -> np.ndarray:
        """Returns values [series, step, channel] at ranks [series, step, column] of the released distributions."""
        steps, channels = self.schema.num_steps, self.schema.num_channels
        return np.stack([self.marginals[c].values_of(ranks[:, :steps, c]) for c in range(channels)], axis=2)

    def values_of_scores(self, scores: np.ndarray) -> np.ndarray:
        """Returns values [series, step, channel] that have the scores [series, step, column]."""
        values = self.values(ndtr(scores.astype(np.float64)))
        for place, (centre, size) in self._scaled.items():
            values[:, :, place] = centre + size * scores[:, : self.schema.num_steps, place]
        return values


def nodes_of(scores: np.ndarray) -> np.ndarray:
    """Returns quantiles [column, node] of scores [series, step, column] that a network draws when shown nothing."""
    return np.quantile(scores.astype(np.float64), np.linspace(0, 1, _NODES), axis=(0, 1)).T


def ranks_by_nodes(scores: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Returns ranks among everything that the network draws, so that released distributions come out as they are."""
    even = np.linspace(0, 1, nodes.shape[1])
    columns = [np.interp(scores[:, :, c], nodes[c], even) for c in range(len(nodes))]
    return np.stack(columns, axis=2)
