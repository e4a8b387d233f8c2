"""`private-gsd`: noisy counts of all pairs of columns, and a small table bred until it has them.

Idea. Count every pair with noise once, then change one entry of a table at a time, to another level or to that of
another row, and keep what brings its counts closer (Private-GSD). The table is released and its rows are drawn from.

Private data is touched by Gaussian releases of counts. Cost: seconds to a minute. Choose it to compare with.
Not to be confused with copying rows: the search reads noisy counts and never a series. As published it keeps a
population of tables and operators with weights; here one table, and the best of many changes at a time.

References: Liu, Tang, Vietri & Wu, arXiv:2306.03257 (Private-GSD).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from understudy.data import Panel, Schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import require_above_zero
from understudy_bench.baselines import counting
from understudy_bench.baselines.counting import COLUMNS, PAIRS, Counting, CutName, Pair

_SHARES = {COLUMNS: 0.2, PAIRS: 0.8}
_TRIED = 64  # changes of which the best is made


@dataclass(frozen=True, kw_only=True)
class PrivateGsd(Synthesizer):
    """Private-GSD.

    Attributes:
        cut: How series become columns, as for `aim`.
        coefficients: Slow frequencies that are kept of each channel, beside those of a day.
        rows: Of the table that is bred.
        generations: Changes that are tried, 64 at a time.
        seed: Of everything but privacy noise.
    """

    name: ClassVar[str] = "private-gsd"
    rehearsed: ClassVar[str] = "generations"
    cut: CutName = "frequencies"
    coefficients: int = 4
    rows: int = 500
    generations: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        counting.check_cut(self.cut, self.coefficients)
        require_above_zero(self, "rows", "generations")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Counts of columns, then of all pairs."""
        alone = len(counting.domain_of(schema, self.cut, self.coefficients)) < 2
        return counting.plan(schema, guarantee, self.cut, {COLUMNS: 1.0} if alone else _SHARES)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Counts everything once, then breeds.

        Privacy: unit and neighbours as the schema says; all looks are `Counting`'s.
        """
        counted, rng = Counting.begin(private, grant, self.cut, self.coefficients), np.random.default_rng(self.seed)
        table = np.stack([rng.choice(len(own), size=self.rows, p=own / own.sum()) for own in counted.singles], axis=1)
        if counted.pairs:
            wanted = dict(zip(counted.pairs, counted.release_pairs(counted.pairs)[0], strict=True))
            progress("counts", 0.3)
            table = bred(table, wanted, counted.table.domain, self.generations, rng)
        progress("table", 1.0)
        return {**counted.arrays(lambda number, own: draw_codes(table, number, own), self.seed), "table": table}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Draws rows of the released table, then series within their levels."""
        codes = draw_codes(arrays["table"], request.num_series, request.rng, request.label)
        table = counting.released_table(arrays, schema, self.cut, self.coefficients)
        return counting.panel_of(arrays, table, codes, schema, request)


def bred(
    table: np.ndarray,
    wanted: dict[Pair, np.ndarray],
    domain: tuple[int, ...],
    generations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Returns a table [row, column] whose shares of pairs are closer to those wanted, in squares.

    Taking an entry from one level to another moves one unit of count between two cells of every pair that the column is
    in. If e is what a cell has too much, the squares change by 2·(e_to − e_from) + 2 for each of these pairs.
    """
    table, number, most = table.copy(), table.shape[1], counting.most_levels(domain)
    excess = np.zeros((number, number, most, most), dtype=np.float32)  # [column, other column, level, other level]
    for (first, second), shares in wanted.items():
        own = -len(table) * shares
        np.add.at(own, (table[:, first], table[:, second]), 1.0)
        excess[first, second, : own.shape[0], : own.shape[1]] = own
        excess[second, first, : own.shape[1], : own.shape[0]] = own.T
    others = np.arange(number)
    for _ in range(generations):
        rows, columns = rng.integers(0, len(table), _TRIED), rng.integers(0, number, _TRIED)
        levels = rng.integers(0, np.array(domain)[columns])
        crossed = rng.random(_TRIED) < 0.5
        levels = np.where(crossed, table[rng.integers(0, len(table), _TRIED), columns], levels)
        beside, own = table[rows], table[rows, columns]
        gained = excess[columns[:, None], others, levels[:, None], beside]
        lost = excess[columns[:, None], others, own[:, None], beside]
        apart = (others != columns[:, None]) & (levels != own)[:, None]
        change = np.where(apart, 2 * (gained - lost) + 2, 0.0).sum(axis=1)
        best = int(change.argmin())
        if change[best] < 0:
            _move(excess, table, rows[best], columns[best], levels[best])
    return table


def _move(excess: np.ndarray, table: np.ndarray, row: int, column: int, level: int) -> None:
    """Changes one entry of the table and what its cells have too much."""
    others = np.delete(np.arange(table.shape[1]), column)
    beside = table[row, others]
    for cell, step in ((table[row, column], -1.0), (level, 1.0)):
        excess[column, others, cell, beside] += step
        excess[others, column, beside, cell] += step
    table[row, column] = level


def draw_codes(table: np.ndarray, number: int, rng: np.random.Generator, first: int | None = None) -> np.ndarray:
    """Returns rows of the table; `first` fixes the first column, on rows that have it if there are any."""
    rows = np.arange(len(table)) if first is None else np.flatnonzero(table[:, 0] == first)
    codes = table[rng.choice(rows if len(rows) else len(table), size=number)].copy()
    codes[:, 0] = codes[:, 0] if first is None else first
    return codes
