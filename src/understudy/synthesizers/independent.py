"""`independent`: the control that has never seen private data.

Idea. Draw every series from the schema alone: a level between the bounds, slow and fast movements around it,
categories evenly. Where any method scores no better than this one, the private data bought nothing.

Private data is not touched; epsilon is 0. Cost: none. Choose it to read other methods' scores, never to publish.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from understudy.data import Channel, Panel, Schema
from understudy.data.channels import num_codes
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer

_MEMORY = 0.9  # correlation of one step with the next
_LEVEL_SHARE = 0.5  # of the variance, what differs between series


@dataclass(frozen=True, kw_only=True)
class Independent(Synthesizer):
    """Series drawn from the public schema."""

    name: ClassVar[str] = "independent"
    needs: ClassVar[str] = "nothing: it reads no private data"

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Spends nothing."""
        return SpendingPlan((), guarantee)

    def spending_plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Spends nothing, not even on the population's count."""
        return self.plan(schema, guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Learns nothing."""
        return {"nothing": np.zeros(1)}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Draws from the declared bounds and categories."""
        rng, shape = request.rng, (request.num_series, schema.num_steps)
        values = np.stack([_values(channel, _ranks(shape, rng)) for channel in schema.channels], axis=2)
        static = [_values(column, rng.random(request.num_series)) for column in schema.static]
        stacked = np.stack(static, axis=1) if static else np.zeros((request.num_series, 0))
        if request.label is not None:
            names = [column.name for column in schema.static]
            stacked[:, names.index(str(schema.label))] = request.label
        lengths = np.full(request.num_series, schema.num_steps, dtype=np.int32)
        if schema.time.min_steps is not None:
            lengths = rng.integers(schema.time.min_steps, schema.num_steps + 1, request.num_series).astype(np.int32)
        return request.panel(schema, values, lengths, stacked)


def _ranks(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Returns ranks in [0, 1] of a level plus a first-order autoregression."""
    movement = np.empty(shape)
    movement[:, 0] = rng.standard_normal(shape[0])
    for step in range(1, shape[1]):
        movement[:, step] = _MEMORY * movement[:, step - 1] + np.sqrt(1 - _MEMORY**2) * rng.standard_normal(shape[0])
    level = rng.standard_normal((shape[0], 1))
    return np.asarray(ndtr(np.sqrt(_LEVEL_SHARE) * level + np.sqrt(1 - _LEVEL_SHARE) * movement))


def _values(channel: Channel, ranks: np.ndarray) -> np.ndarray:
    """Returns values evenly between the bounds, or evenly drawn codes."""
    low, high = channel.bounds
    codes = num_codes(channel)
    if codes is not None:
        return np.minimum(np.floor(ranks * codes), codes - 1)
    return np.asarray(low + (high - low) * ranks)
