"""What `aim`, `gem` and `private-gsd` share: the plan, the table, and noisy counts of one and of two columns.

Privacy, for every `release_…`: a series votes for one cell of each table that is counted, and a unit's series share the
weight one, so a unit moves k tables by at most √k in Euclidean norm (times `influence` for events).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from understudy.data import Panel, Schema
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.calibrate import noise_multipliers
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.mechanisms import clip_rows
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.synthesizers.base import Draw, PrivateSeries, num_pooled
from understudy.synthesizers.baselines.cuts import (
    LEVELS,
    SEGMENT_LEVELS,
    Cut,
    Frequencies,
    Segments,
    kept_frequencies,
    score_nodes,
)
from understudy.synthesizers.baselines.table import Table, single_domain
from understudy.synthesizers.frame.facts import Facts, facts_of, shares_of
from understudy.synthesizers.spectral.counts import nearest_distribution, shrink
from understudy.synthesizers.spectral.learning import Learning
from understudy.synthesizers.spectral.marginals import Marginal
from understudy.synthesizers.spectral.series import filled

CutName = Literal["frequencies", "segments"]
COLUMNS, CHOICES, PAIRS, PROFILE, MARGINALS, ABSENCE = "columns", "choices", "pairs", "profile", "marginals", "absence"
NODES = "nodes"
_POOL = 2048  # drawn series by which scores are ranked
_BESIDE = {MARGINALS: 0.2, PROFILE: 0.1}  # of mu², to make levels of frequencies

Pair = tuple[int, int]
Expected = Callable[[int, int], np.ndarray]  # what a model says about the shares of a pair's cells


def check_cut(cut: str, coefficients: int) -> None:
    """Refuses options that no table can be made with."""
    if cut not in ("frequencies", "segments"):
        raise InputError(f"cut: one of frequencies, segments is expected, got '{cut}'.")
    if coefficients < 1:
        raise InputError(f"coefficients: at least 1 is expected, got {coefficients}.")


def domain_of(schema: Schema, cut: CutName, coefficients: int) -> tuple[int, ...]:
    """Returns the levels of every column, from public facts."""
    if cut == "segments":
        return (*single_domain(schema), *Segments(schema).domain)
    kept = len(kept_frequencies(schema, coefficients)) + 1
    return (*single_domain(schema), *(LEVELS,) * kept * schema.num_channels)


def plan(schema: Schema, guarantee: Guarantee, cut: CutName, core: dict[str, float]) -> SpendingPlan:
    """Returns Gaussian releases: `core` are the method's own, with their shares of mu² beside one another."""
    beside = dict(_BESIDE) if cut == "frequencies" else {}
    beside |= {label: share for label, share in shares_of(schema, marginals=False).items() if label == ABSENCE}
    left = (1 - sum(beside.values())) / sum(core.values())
    shares = beside | {label: share * left for label, share in core.items()}
    entries = (PlanEntry(label, Gaussian(noise)) for label, noise in noise_multipliers(guarantee, shares).items())
    return SpendingPlan(tuple(entries), guarantee)


@dataclass(frozen=True, eq=False, repr=False)
class Counting:
    """One run over one panel.

    Attributes:
        codes: Levels [series, column]. Private.
        singles: Released distribution of each column.
        facts: Released marginals, gaps and lengths.
    """

    learning: Learning
    table: Table
    codes: np.ndarray
    singles: tuple[np.ndarray, ...]
    facts: Facts

    @classmethod
    def begin(cls, private: PrivateSeries, grant: Grant, cut: CutName, coefficients: int) -> "Counting":
        """Buys what levels are made from, makes them, and counts every column by itself."""
        learning = Learning(_without_context(private), grant, 0, lambda stage, share: None)
        schema = learning.panel.schema
        marginals: list[Marginal] = []
        if cut == "frequencies":
            marginals, _ = learning.count_columns(MARGINALS, range(schema.num_channels))
        working = learning.scores(marginals) if marginals else _by_bounds(learning.panel)
        gap_model, lengths = np.zeros((0, 1)), np.zeros(0)
        if any(entry.label == ABSENCE for entry in grant.plan.entries):
            gap_model, lengths = learning.release_absence(working)
        profile = _release_profile(learning, working) if marginals else None
        made: Cut = Segments(schema)
        if profile is not None:
            made = Frequencies(tuple(marginals), profile, kept_frequencies(schema, coefficients))
        table = Table(schema, made)
        codes = table.codes(working, learning.panel.static)
        counts = [np.bincount(own, learning.weights, size) for own, size in zip(codes.T, table.domain, strict=True)]
        noisy = learning.release(COLUMNS, np.concatenate(counts), float(np.sqrt(len(counts))))
        parts = np.split(noisy / learning.private.population, np.cumsum(table.domain)[:-1])
        singles = tuple(_distribution(part) for part in parts)
        facts = facts_of(list(marginals), np.ones(1), np.zeros(0), gap_model, lengths)
        return cls(learning, table, codes, singles, facts)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs of columns."""
        return list(combinations(range(len(self.table.domain)), 2))

    def counts(self, first: int, second: int) -> np.ndarray:
        """Returns how many series are in each cell of a pair. Private."""
        rows, columns = self.table.domain[first], self.table.domain[second]
        cells = self.codes[:, first] * columns + self.codes[:, second]
        return np.bincount(cells, self.learning.weights, rows * columns).reshape(rows, columns)

    def release_errors(self, expected: Expected) -> np.ndarray:
        """Returns for each pair how wrong a model is, in units, with noise on it.

        Privacy: one unit moves the L1 distance of each pair's counts from public ones by at most one, so it moves all
        of them by at most √pairs.
        """
        size = self.learning.private.population
        errors = [float(np.abs(self.counts(*pair) - size * expected(*pair)).sum()) for pair in self.pairs]
        return self.learning.release(CHOICES, np.array(errors), float(np.sqrt(len(errors))))

    def release_pairs(self, pairs: Sequence[Pair]) -> tuple[list[np.ndarray], float]:
        """Returns (noisy shares of the cells of some pairs, the noise on each)."""
        bound, size = float(np.sqrt(len(pairs))), self.learning.private.population
        counts = [self.counts(*pair) for pair in pairs]
        noisy = self.learning.release(PAIRS, np.concatenate([own.ravel() for own in counts]), bound) / size
        parts = np.split(noisy, np.cumsum([own.size for own in counts])[:-1])
        return [part.reshape(own.shape) for part, own in zip(parts, counts, strict=True)], self.noise(PAIRS, bound)

    def noise(self, label: str, bound: float) -> float:
        """Standard deviation of the noise on a share."""
        return self.learning.noise(label, bound) / self.learning.private.population

    def arrays(self, draw: Callable[[int, np.random.Generator], np.ndarray], seed: int) -> dict[str, np.ndarray]:
        """Returns what every such release holds, with the quantiles of a large draw from the method's own model."""
        cut, arrays = self.table.cut, self.facts.to_arrays()
        if not isinstance(cut, Frequencies):
            return {**arrays, PROFILE: np.zeros((0, 0)), NODES: np.zeros((0, 0))}
        rng = np.random.default_rng(seed)
        working, _ = self.table.decoded(draw(num_pooled(self.table.schema, _POOL), rng), rng)
        return {**arrays, PROFILE: cut.profile, NODES: score_nodes(working)}


def released_table(arrays: dict[str, np.ndarray], schema: Schema, cut: CutName, coefficients: int) -> Table:
    """Returns the table that a release was made with."""
    if cut == "segments":
        return Table(schema, Segments(schema))
    marginals = tuple(Facts.from_arrays(arrays).marginals)
    kept = kept_frequencies(schema, coefficients)
    return Table(schema, Frequencies(marginals, arrays[PROFILE], kept, arrays[NODES]))


def panel_of(arrays: dict[str, np.ndarray], table: Table, codes: np.ndarray, schema: Schema, request: Draw) -> Panel:
    """Returns the panel of drawn levels: gaps and lengths as bought."""
    facts, rng = Facts.from_arrays(arrays), request.rng
    working, static = table.decoded(codes, rng)
    lengths = facts.draw_lengths(schema, request.num_series, rng)
    values = table.cut.values(working)
    values[facts.draw_missing(schema, working, lengths, rng)] = np.nan
    return request.panel(schema, values, lengths, static)


def most_levels(domain: Sequence[int]) -> int:
    """Returns the levels of the longest column: arrays are padded to it, so that shapes follow from public facts."""
    return max(domain, default=SEGMENT_LEVELS)


def _distribution(noisy: np.ndarray) -> np.ndarray:
    """Returns the distribution nearest to noisy shares; even where noise left nothing to scale."""
    total = float(noisy.sum())
    return nearest_distribution(noisy / total if total > 0.1 else noisy)


def _release_profile(learning: Learning, scores: np.ndarray) -> np.ndarray:
    """Returns the mean score [step, channel], as far as it is more than noise.

    Privacy: each series is a vector clipped to √(steps · channels), the length of scores of size one.
    """
    shape = scores.shape[1:]
    radius, size = float(np.sqrt(np.prod(shape))), learning.private.population
    total = np.zeros(int(np.prod(shape)))
    for rows in learning.chunks():
        total += learning.weights[rows] @ clip_rows(scores[rows].reshape(-1, total.size).astype(np.float64), radius)
    mean, noise = learning.release(PROFILE, total, radius) / size, learning.noise(PROFILE, radius) / size
    return shrink(mean, np.zeros_like(mean), noise)[0].reshape(shape)


def _by_bounds(panel: Panel) -> np.ndarray:
    """Returns values [series, step, channel] with declared bounds at −1 and 1, made whole one series at a time."""
    low, high = np.array([channel.bounds for channel in panel.schema.channels], dtype=np.float64).T
    scaled = 2 * (np.clip(panel.values, low, high) - low) / np.maximum(high - low, 1e-12) - 1
    return filled(scaled.astype(np.float32), panel.lengths)


def _without_context(private: PrivateSeries) -> PrivateSeries:
    """Context is public and not modelled."""
    schema = replace(private.panel.schema, context=(), constraints=())
    return replace(private, panel=replace(private.panel, schema=schema, context=None))
