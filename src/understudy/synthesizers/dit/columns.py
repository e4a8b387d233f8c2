"""A schema's columns as the network sees them: normal scores, in which an untrained network is already half right.

Values become normal scores by released distributions, so every column is roughly N(0, 1). A static column is a channel
that stands still. What is missing stays missing: it is neither shown to the network nor scored. Steps are filled up to
a whole number of patches with steps at which nothing is known.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from understudy.data import Panel, Schema
from understudy.synthesizers.spectral.columns import single_values
from understudy.synthesizers.spectral.marginals import Marginal

_NODES = 65


@dataclass(frozen=True, eq=False)
class Columns:
    """The way between values and normal scores.

    Attributes:
        schema: The contract of what is learned from.
        marginals: Released distribution of each channel, then of each static column but the label.
        patch: Steps per token.
    """

    schema: Schema
    marginals: tuple[Marginal, ...]
    patch: int

    @property
    def num_steps(self) -> int:
        """Steps of a whole number of patches."""
        return -(-self.schema.num_steps // self.patch) * self.patch

    def scores(self, values: np.ndarray, static: np.ndarray) -> np.ndarray:
        """Returns scores [series, step, column] of values [series, step, channel] and static columns, NaN if unknown.

        Privacy: private if the values are; a series follows from its own values and released distributions alone.
        """
        scores = np.full((len(values), self.num_steps, len(self.marginals)), np.nan, dtype=np.float32)
        end, channels = values.shape[1], self.schema.num_channels
        single = single_values(self.schema, static, None)
        for place, marginal in enumerate(self.marginals):
            if place < channels:
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
        """Returns values [series, step, channel] at ranks [series, step, column]."""
        steps, channels = self.schema.num_steps, self.schema.num_channels
        return np.stack([self.marginals[c].values_of(ranks[:, :steps, c]) for c in range(channels)], axis=2)


def ranks_by_scores(scores: np.ndarray) -> np.ndarray:
    """Returns the ranks that scores have under the released distributions."""
    return np.asarray(ndtr(scores.astype(np.float64)))


def nodes_of(scores: np.ndarray) -> np.ndarray:
    """Returns quantiles [column, node] of scores [series, step, column] that a network draws when shown nothing."""
    return np.quantile(scores.astype(np.float64), np.linspace(0, 1, _NODES), axis=(0, 1)).T


def ranks_by_nodes(scores: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Returns ranks among everything that the network draws, so that released distributions come out as they are."""
    even = np.linspace(0, 1, nodes.shape[1])
    columns = [np.interp(scores[:, :, c], nodes[c], even) for c in range(len(nodes))]
    return np.stack(columns, axis=2)
