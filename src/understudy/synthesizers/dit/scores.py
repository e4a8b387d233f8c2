"""A schema's columns as the network sees them: normal scores by released distributions, so roughly N(0, 1).

A static column is a channel that stands still. What is missing is neither shown to the network nor scored. Steps are
filled up to a whole number of patches with steps at which nothing is known.

Windows of one long series (events) are too few to know a whole distribution by. There every window votes, for each
channel, for the half-octave of its standard deviation, by which the channel is divided.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from understudy.data import Panel, Schema
from understudy.data.channels import num_codes
from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Cells
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import single_values
from understudy.statistics.marginals import Marginal

SCALE_LABEL, SCALE_SHARE = "scale", 0.2  # of mu²
MARGINALS_SHARE = 0.1  # of distributions then: they give a centre, and values where nothing is shown
_CELLS = 24  # half-octaves below the declared width
_NEAR = np.array([0.5, 1.0, 0.5])  # votes for a neighbouring cell count half
_EXPECTED, _SURE = 8.0, 4.0  # mean and deviation of the cell, where nothing is known: a sixteenth of the width
_ONE_DEVIATION = ndtr(np.array([-1.0, 1.0]))


@dataclass(frozen=True, eq=False)
class NormalScores:
    """The way between values and scores."""

    schema: Schema  # of what is learned from
    marginals: tuple[Marginal, ...]  # as released, of each channel, then of each static column but the label
    patch: int  # steps per token
    scales: np.ndarray  # size of the movement of each channel that is scaled

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
            found[place] = (np.ptp(self.marginals[place].values_of(_ONE_DEVIATION)) / 2 / size) ** 2
        return found

    def scores(self, values: np.ndarray, static: np.ndarray) -> np.ndarray:
        """Returns scores [series, step, column] of values and static columns, NaN if unknown; as private as these."""
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

    def examples(
        self, values: np.ndarray, static: np.ndarray, classes: np.ndarray, context: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Returns what a batch shows of each series: scores, which of them are known, class and context.

        Privacy: private if the values are; each row is its own series'.
        """
        scores = self.scores(values, static)
        examples = {"x": np.nan_to_num(scores), "known": ~np.isnan(scores), "label": classes.astype(np.int64)}
        scaled = self.context(context, len(values))
        return examples if scaled is None else {**examples, "context": scaled}

    def context(self, context: np.ndarray | None, num_series: int) -> np.ndarray | None:
        """Returns context [series, step, context] between −1 and 1 by its bounds, 0 where unsaid; None if none."""
        if not self.schema.context:
            return None
        if context is None:
            context = np.broadcast_to(np.nan, (num_series, self.schema.num_steps, len(self.schema.context)))
        shared = len(context) > 0 and context.strides[0] == 0
        own = context[:1] if shared else context
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


def ranks_by_nodes(scores: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Returns ranks among everything that the network draws, so that released distributions come out as they are."""
    even = np.linspace(0, 1, nodes.shape[1])
    columns = [np.interp(scores[:, :, c], nodes[c], even) for c in range(len(nodes))]
    return np.stack(columns, axis=2)


def scaled_channels(schema: Schema) -> list[int]:
    """Returns the places of channels that are scaled: of events those that are numbers, otherwise none."""
    if schema.unit.kind != "event":
        return []
    return [place for place, channel in enumerate(schema.channels) if num_codes(channel) is None]


def scale_votes(panel: Panel) -> Cells:
    """Returns a vote of each series for the cell of each channel's deviation; none where it stands still."""
    values, places = panel.values, scaled_channels(panel.schema)
    known = ~np.isnan(values[:, :, places])
    own, number = np.nan_to_num(values[:, :, places].astype(np.float64)), np.maximum(known.sum(axis=1), 1)
    mean = own.sum(axis=1) / number
    deviation = np.sqrt((np.where(known, own - mean[:, None], 0.0) ** 2).sum(axis=1) / number)
    cell = np.floor(-2 * np.log2(np.maximum(deviation / _widths(panel.schema), 2.0**-_CELLS))).astype(np.int64)
    return Cells.one_each(np.where((cell >= 0) & (cell < _CELLS), cell, -1), _CELLS)


def scales_of(schema: Schema, totals: np.ndarray, noise: float = 0.0) -> np.ndarray:
    """Returns the size of each scaled channel's movement: the half-octave with the most votes, odd ones need more."""
    smooth = np.stack([np.convolve(own, _NEAR, mode="same") for own in totals.reshape(-1, _CELLS)])
    odd = ((np.arange(_CELLS) - _EXPECTED) / _SURE) ** 2 / 2
    return np.asarray(_widths(schema) * 2.0 ** (-((smooth - noise * odd).argmax(axis=1) + 0.5) / 2))


def _widths(schema: Schema) -> np.ndarray:
    low, high = np.array([schema.channels[place].bounds for place in scaled_channels(schema)]).T
    return np.asarray(np.maximum(high - low, 1e-12))


def release_scales(private: PrivateSeries, grant: Grant) -> np.ndarray:
    """Releases the sizes; none where no channel is scaled. A window votes once for each scaled channel."""
    number = len(scaled_channels(private.schema))
    if not number:
        return np.zeros(0)
    bound, shape = float(np.sqrt(number)), (number * _CELLS,)
    statistic = Statistic(label=SCALE_LABEL, shape=shape, bound=bound, contributions=scale_votes)
    noisy = grant.release(statistic, private)
    return scales_of(private.schema, noisy, grant.deviation(SCALE_LABEL, bound * private.reach))
