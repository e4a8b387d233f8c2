"""Choosing among releases with a guarantee: every unit says which release foretells it best, and a noisy sum decides.

Comparing releases by a scorecard and taking the best leaks through the choice. Here each unit rates all candidates by
their energy score (Gneiting & Raftery 2007, Eq. 22), which the right distribution wins on average, and neither one
that collapsed to its middle nor one that knows a part of the population only. Ratings are cut to [0, 1], so a unit
moves any total by at most one, and the exponential mechanism draws the winner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.data import Channel, Panel, Schema
from understudy.data.channels import num_codes
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import PureDP
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan

LABEL = "choice among releases"
NUM_DRAWS = 400  # synthetic series that stand for a candidate; as many more set the scale of ratings
_GRID = 64  # features are rounded to this part of a deviation: sums of whole numbers are exact, whatever their order
_FARTHEST = 8.0  # deviations at which a feature is cut off
_ROWS = 1024


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivateChoice:
    """Candidates to choose from; public, as are the scales that they give."""

    candidates: tuple[Panel, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.candidates) < 2:
            raise InputError("A choice needs two or more releases.")
        if any(panel.private for panel in self.candidates):
            raise ValueError("Expected synthetic series as candidates: what a choice is made of is public.")

    def check(self, schema: Schema) -> None:
        """Refuses units of which a neighbour lacks a part only, and candidates that can't be rated alike."""
        problem, shapes = "", {(p.schema.channels, p.schema.static, p.num_steps) for p in self.candidates}
        if schema.unit.kind != "entity":
            problem = (
                f"unit.kind = 'entity' is expected, and the schema says '{schema.unit.kind}'. Choose without data."
            )
        elif len(shapes) > 1:
            problem = "releases with the same columns and steps are expected. Choose among releases of one schema."
        if problem:
            raise InputError(f"--select: {problem} Nothing was charged.")

    def plan(self, guarantee: Guarantee) -> SpendingPlan:
        """Returns what a choice costs: epsilon, however many candidates there are."""
        return SpendingPlan((PlanEntry(LABEL, PureDP(guarantee.epsilon)),), guarantee)

    def run(self, grant: Grant, private: Panel) -> int:
        """Returns the place of the chosen candidate.

        Privacy: one row of ratings per unit, through `Grant.choose`; epsilon-DP for whole units added or removed.
        """
        self.check(private.schema)
        return grant.choose(LABEL, self.ratings(private))

    def ratings(self, private: Panel) -> np.ndarray:
        """Returns [unit, candidate] in [0, 1]; one half for all where a unit has no preference.

        Privacy: private. A row depends on its unit alone, to the last bit.
        """
        losses = _by_unit(self._losses(private), private)
        return np.asarray(np.clip(0.5 + _advantages(losses) / (2 * self._usual_advantage), 0.0, 1.0))

    def _losses(self, panel: Panel) -> np.ndarray:
        """Returns the energy scores [series, candidate], lower is better, for this many rows at a time."""
        found = np.empty((panel.num_series, len(self.candidates)))
        for begin in range(0, panel.num_series, _ROWS):
            rows = slice(begin, begin + _ROWS)
            blocks = self._blocks(panel, rows)
            for place, (draws, spread) in enumerate(self._drawn):
                # Eq. 22: E‖X − x‖ − ½ E‖X − X′‖
                found[rows, place] = _distances(blocks, draws).mean(axis=1) - spread / 2
        return found

    @cached_property
    def _drawn(self) -> list[tuple[list[np.ndarray], float]]:
        """Blocks of each candidate's series, and the mean distance between two of them."""
        made = [self._blocks(panel, self._rows(panel)[:NUM_DRAWS]) for panel in self.candidates]
        pairs = [max(1, len(blocks[0]) * (len(blocks[0]) - 1)) for blocks in made]
        return [(b, float(_distances(b, b).sum() / number)) for b, number in zip(made, pairs, strict=True)]

    @cached_property
    def _scales(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means and deviations of each kind of feature over all candidates."""
        kinds = zip(*(_features(panel, slice(None)) for panel in self.candidates), strict=True)
        return [_scale(np.concatenate(kind)) for kind in kinds]

    def _blocks(self, panel: Panel, rows: slice | np.ndarray) -> list[np.ndarray]:
        """Returns whole numbers [series, feature] for each kind of feature; what is missing is in the middle."""
        made = []
        for part, (mean, deviation) in zip(_features(panel, rows), self._scales, strict=True):
            scaled = np.clip(np.nan_to_num((part - mean) / deviation), -_FARTHEST, _FARTHEST)
            made.append(np.rint(_GRID * scaled).reshape(len(part), -1))
        return made

    @cached_property
    def _usual_advantage(self) -> float:
        """How much better or worse than the others candidates rate series of candidates: the public scale."""
        probes = []
        for panel in self.candidates:
            rows = self._rows(panel)
            probe = np.sort(rows[NUM_DRAWS : 2 * NUM_DRAWS] if len(rows) > NUM_DRAWS else rows)
            probes.append(np.abs(_advantages(self._losses(panel.take_units(np.unique(panel.unit[probe]))))))
        return float(np.median(np.concatenate(probes))) or 1.0

    def _rows(self, panel: Panel) -> np.ndarray:
        return np.random.default_rng(self.seed).permutation(panel.num_series)[: 2 * NUM_DRAWS]


def _features(panel: Panel, rows: slice | np.ndarray) -> list[np.ndarray]:
    """Returns values, their changes from step to step, what is missing, and static columns."""
    values = panel.values[rows]
    steps = _spread_out(values, panel.schema.channels)
    static = _spread_out(panel.static[rows], panel.schema.static)
    return [steps, np.diff(steps, axis=1), np.isnan(values).astype(np.float64), static]


def _spread_out(values: np.ndarray, channels: tuple[Channel, ...]) -> np.ndarray:
    """Returns numbers as they are and categories one-hot, along the last axis."""
    parts = [np.zeros((*values.shape[:-1], 0))]
    for place, channel in enumerate(channels):
        own, codes = values[..., place, None].astype(np.float64), num_codes(channel)
        parts.append(own if codes is None else np.where(np.isnan(own), np.nan, own == np.arange(codes)))
    return np.concatenate(parts, axis=-1)


def _scale(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and deviation along the last axis, 0 and 1 where nothing was observed or moves."""
    seen, others = ~np.isnan(features), tuple(range(features.ndim - 1))
    number = np.maximum(seen.sum(axis=others), 1)
    mean = np.where(seen, features, 0.0).sum(axis=others) / number
    deviation = np.sqrt(np.where(seen, (features - mean) ** 2, 0.0).sum(axis=others) / number)
    return mean, np.where(deviation > 0, deviation, 1.0)


def _distances(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> np.ndarray:
    """Returns Euclidean distances [row, column]; each kind of feature weighs the same, however many it has.

    Sums of products of whole numbers below 2⁵³ are exact, so a row does not depend on other rows.
    """
    total = np.zeros((len(first[0]), len(second[0])))
    for one, other in zip(first, second, strict=True):
        if one.shape[1]:
            squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
            total += squares / one.shape[1]
    return np.sqrt(total)


def _advantages(losses: np.ndarray) -> np.ndarray:
    """Returns how much better than the middle candidate each one is."""
    return np.asarray(np.median(losses, axis=1, keepdims=True) - losses)


def _by_unit(losses: np.ndarray, panel: Panel) -> np.ndarray:
    """Returns one row per unit: the mean of its series."""
    totals = np.zeros((panel.num_units, losses.shape[1]))
    np.add.at(totals, panel.unit, losses)
    return totals / np.bincount(panel.unit, minlength=panel.num_units)[:, None]
