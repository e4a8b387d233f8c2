"""What `aim`, `gem` and `private-gsd` share: the plan, the table, and noisy counts of one and of two columns.

A series votes for one cell of each table that is counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from understudy.data import Panel, Schema
from understudy.errors import InputError
from understudy.privacy.border import Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Cells, Rows
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers
from understudy.privacy.private_series import PrivateSeries, Remembered
from understudy.statistics.counts import nearest_distribution, shrink
from understudy.statistics.facts import Facts, facts_of, shares_of
from understudy.statistics.marginals import Marginal
from understudy.statistics.queries import Queries, Seen, scores_by
from understudy.statistics.series import filled
from understudy.synthesizers.sampling import SampleRequest, num_pooled, score_nodes
from understudy_bench.baselines.cuts import (
    LEVELS,
    SEGMENT_LEVELS,
    Cut,
    Frequencies,
    Segments,
    kept_frequencies,
)
from understudy_bench.baselines.table import Table, single_domain

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
        codes: Returns levels [series, column] of a panel. Private.
        singles: Released distribution of each column.
        facts: Released marginals, gaps and lengths.
    """

    queries: Queries
    table: Table
    codes: Seen
    singles: tuple[np.ndarray, ...]
    facts: Facts

    @classmethod
    def begin(cls, private: PrivateSeries, grant: Grant, cut: CutName, coefficients: int) -> "Counting":
        """Buys what levels are made from, makes them, and counts every column by itself."""
        queries = Queries(private.without_context(), grant)
        schema = queries.schema
        marginals: list[Marginal] = []
        if cut == "frequencies":
            marginals, _ = queries.count_columns(MARGINALS, range(schema.num_channels))
        working = scores_by(marginals) if marginals else Remembered(_by_bounds)
        gap_model, lengths = np.zeros((0, 1)), np.zeros(0)
        if any(entry.label == ABSENCE for entry in grant.plan.entries):
            gap_model, lengths = queries.release_absence()
        profile = _release_profile(queries, working) if marginals else None
        made: Cut = Segments(schema)
        if profile is not None:
            made = Frequencies(tuple(marginals), profile, kept_frequencies(schema, coefficients))
        table = Table(schema, made)
        codes = Remembered(lambda panel: table.codes(working(panel), panel.static))
        domain = np.array(table.domain)
        noisy, _ = queries.release(
            COLUMNS, float(np.sqrt(len(domain))), (int(domain.sum()),), lambda panel: _votes(codes(panel), domain)
        )
        parts = np.split(noisy / queries.private.population, np.cumsum(domain)[:-1])
        singles = tuple(_distribution(part) for part in parts)
        facts = facts_of(list(marginals), np.ones(1), np.zeros(0), gap_model, lengths)
        return cls(queries, table, codes, singles, facts)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs of columns."""
        return list(combinations(range(len(self.table.domain)), 2))

    def release_errors(self, expected: Expected) -> np.ndarray:
        """Returns for each pair how wrong a model is, in units, with noise on it."""
        size = self.queries.private.population
        asked = [size * expected(*pair).ravel() for pair in self.pairs]
        return self.queries.grant.distances(self._counted(CHOICES, self.pairs), self.queries.private, asked)

    def release_pairs(self, pairs: Sequence[Pair]) -> tuple[list[np.ndarray], float]:
        """Returns (noisy shares of the cells of some pairs, the noise on each)."""
        statistic, shapes = self._counted(PAIRS, pairs), self._shapes(pairs)
        noisy = self.queries.grant.release(statistic, self.queries.private) / self.queries.private.population
        parts = np.split(noisy, np.cumsum([rows * columns for rows, columns in shapes])[:-1])
        found = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        return found, self.noise(PAIRS, statistic.bound)

    def _counted(self, label: str, pairs: Sequence[Pair]) -> Statistic:
        """Returns the counts of the cells of some pairs, end to end."""
        first, second = np.array(pairs).T
        sizes = np.array([rows * columns for rows, columns in self._shapes(pairs)])
        columns, codes_of = np.array(self.table.domain)[second], self.codes  # of `self`, a grant could not travel

        def votes(panel: Panel) -> Cells:
            codes = codes_of(panel)
            return _votes(codes[:, first] * columns + codes[:, second], sizes)

        return Statistic(label=label, shape=(int(sizes.sum()),), bound=float(np.sqrt(len(pairs))), contributions=votes)

    def _shapes(self, pairs: Sequence[Pair]) -> list[Pair]:
        return [(self.table.domain[first], self.table.domain[second]) for first, second in pairs]

    def noise(self, label: str, bound: float) -> float:
        """Standard deviation of the noise on a share."""
        return self.queries.noise(label, bound) / self.queries.private.population

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


def panel_of(
    arrays: dict[str, np.ndarray], table: Table, codes: np.ndarray, schema: Schema, request: SampleRequest
) -> Panel:
    """Returns the panel of drawn levels: gaps and lengths as bought."""
    facts, rng = Facts.from_arrays(arrays), request.rng
    working, static = table.decoded(codes, rng)
    lengths = facts.sample_lengths(schema, request.num_series, rng)
    values = table.cut.values(working)
    values[facts.sample_missing(schema, working, lengths, rng)] = np.nan
    return request.panel(schema, values, lengths, static)


def most_levels(domain: Sequence[int]) -> int:
    """Returns the levels of the longest column: arrays are padded to it, so that shapes follow from public facts."""
    return max(domain, default=SEGMENT_LEVELS)


def _distribution(noisy: np.ndarray) -> np.ndarray:
    """Returns the distribution nearest to noisy shares; even where noise left nothing to scale."""
    total = float(noisy.sum())
    return nearest_distribution(noisy / total if total > 0.1 else noisy)


def _release_profile(queries: Queries, scores: Seen) -> np.ndarray:
    """Returns the mean score [step, channel], as far as it is more than noise; clipped to scores of size one."""
    shape = (queries.schema.num_steps, queries.schema.num_channels)
    radius, size = float(np.sqrt(np.prod(shape))), queries.private.population
    total, noise = queries.release(PROFILE, radius, shape, lambda panel: Rows(scores(panel)))
    return shrink(total / size, np.zeros_like(total), noise / size)[0]


def _votes(codes: np.ndarray, sizes: np.ndarray) -> Cells:
    """Returns a vote of each series for its cell of each table [series, table]."""
    series, table = (index.ravel() for index in np.indices(codes.shape))
    return Cells(series, table, codes.ravel(), 1.0, len(codes), sizes)


def _by_bounds(panel: Panel) -> np.ndarray:
    """Returns values [series, step, channel] with declared bounds at −1 and 1, made whole one series at a time."""
    low, high = np.array([channel.bounds for channel in panel.schema.channels], dtype=np.float64).T
    scaled = 2 * (np.clip(panel.values, low, high) - low) / np.maximum(high - low, 1e-12) - 1
    return filled(scaled.astype(np.float32), panel.lengths)
