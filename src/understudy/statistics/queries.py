"""Releases that several methods make: marginals of columns, shares of labels, gaps and lengths.

Every release is a `Statistic`: a function from a panel to one vector per series, and a bound that the border enforces.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from understudy.data import Channel, Panel, Schema
from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Cells, Contributions, Rows, SideBySide, shortened
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries, Remembered
from understudy.statistics import gaps
from understudy.statistics.columns import classes_of, gappy_channels, num_labels, single_columns, single_values
from understudy.statistics.counts import nearest_distribution, share_among
from understudy.statistics.marginals import Grid, Marginal, declared_like, grid_of, marginal_from
from understudy.statistics.series import filled

MARGINALS, LABELS, ABSENCE = "marginals", "labels", "absence"  # labels under which these releases are charged
_SPREAD = 0.6  # the most that one series says of a channel in few cells, in votes
Seen = Callable[[Panel], np.ndarray]  # what a release sees of a panel, one row per series
Held = Mapping[str, Sequence[int]]  # places of columns (channels, then single ones) by the label of their counts


@dataclass(frozen=True)
class Queries:
    """Private series and the grant under which they may be looked at."""

    private: PrivateSeries
    grant: Grant

    @property
    def schema(self) -> Schema:
        """Contract of what is learned from."""
        return self.private.schema

    @property
    def columns(self) -> tuple[Channel, ...]:
        """Columns with a marginal of their own: channels, then single columns."""
        return (*self.schema.channels, *single_columns(self.schema, self.schema.own_contexts))

    def part_of(self, whole: float) -> "Queries":
        """Returns the queries of one part of a release whose bound is `whole` times that of the part."""
        return replace(self, private=replace(self.private, whole=whole))

    def release(
        self, label: str, bound: float, shape: tuple[int, ...], contributions: Callable[[Panel], Contributions]
    ) -> np.ndarray:
        """Crosses the border with a sum of one vector per series."""
        return self.grant.release(
            Statistic(label=label, bound=bound, shape=shape, contributions=contributions), self.private
        )

    def noise(self, label: str, bound: float) -> float:
        """Returns the standard deviation of the noise on a release of the given bound."""
        return self.grant.deviation(label, bound * self.private.reach)

    def release_marginals(self, held: Held | None = None) -> tuple[list[Marginal], np.ndarray]:
        """Returns the marginals, and how many series have a value in each single column.

        Args:
            held: Who counts which columns; None counts all of them in one place.
        """
        marginals: dict[int, Marginal] = {}
        totals = np.zeros(len(self.columns))
        for label, places in (held or {MARGINALS: range(len(self.columns))}).items():
            counted, totals[list(places)] = self.count_columns(label, places)
            marginals |= zip(places, counted, strict=True)
        return [marginals[place] for place in range(len(totals))], totals[self.schema.num_channels :]

    def count_columns(self, label: str, places: Sequence[int]) -> tuple[list[Marginal], np.ndarray]:
        """Returns the marginals of some columns and the total of each one's counts.

        Privacy: one vote per series and column, spread evenly over the steps, so √columns bounds a series. Where cells
        are few, a series weighs less: what it says of a channel is rarely in one cell, and where it is, it is clipped.
        """
        columns = [self.columns[place] for place in places]
        loud = self.noise(label, float(np.sqrt(len(columns)))) / self.private.population
        grids = [grid_of(column, loud) for column in columns]
        spread = [
            grid.finer is not None and place < len(self.schema.channels)
            for place, grid in zip(places, grids, strict=True)
        ]
        bound = float(np.sqrt(sum(_SPREAD**2 if each else 1.0 for each in spread)))
        noise = self.noise(label, bound)
        sizes = [grid.num_cells for grid in grids]
        noisy = self.release(label, bound, (sum(sizes),), lambda panel: column_votes(panel, places, grids))
        parts = np.split(noisy, np.cumsum(sizes)[:-1])
        alike = share_among(parts, noise, [declared_like(column) for column in columns])
        marginals = [marginal_from(part, grid, noise) for part, grid in zip(alike, grids, strict=True)]
        return marginals, np.array([part.sum() for part in parts])

    def release_labels(self) -> np.ndarray:
        """Returns the share of each class; one vote per series."""
        number = num_labels(self.schema)
        votes = self.release(LABELS, 1.0, (number,), lambda panel: Cells.one_each(classes_of(panel)[:, None], number))
        total = float(votes.sum())
        return nearest_distribution(votes / total) if total > 0 else np.full(number, 1 / number)

    def release_absence(self, scores: Seen) -> tuple[np.ndarray, np.ndarray]:
        """Returns (gap models [channel, cell], distribution of lengths); nothing is released when neither can occur."""
        gappy, width = gappy_channels(self.schema), sum(gaps.SIZES)
        if not gappy and self.schema.time.min_steps is None:
            return np.zeros((0, width)), np.zeros(0)
        edges = gaps.length_edges(self.schema.time.min_steps, self.schema.num_steps)
        split = len(gappy) * width
        bound = float(np.sqrt(3 * len(gappy) + (len(edges) > 0)))
        noisy = self.release(
            ABSENCE,
            bound,
            (split + len(edges),),
            lambda panel: gaps.absence_votes(panel, scores(panel), gappy, edges),
        )
        noise = self.noise(ABSENCE, bound)
        models = gaps.gap_models(noisy[:split].reshape(len(gappy), width), noise)
        return models, gaps.length_shares(noisy[split:], noise)


# --- what releases see of a panel; a row follows from its own series and from what was released ----------------


def column_votes(panel: Panel, places: Sequence[int], grids: Sequence[Grid]) -> SideBySide:
    """Returns a vote for each column of each series, spread over the steps it has.

    Votes for few cells are written out, so that their true length counts, and are clipped column by column.
    """
    singles, channels = own_single_values(panel), panel.schema.num_channels
    votes: list[Contributions] = []
    for place, grid in zip(places, grids, strict=True):
        values = panel.values[:, :, place] if place < channels else singles[:, [place - channels]]
        observed = ~np.isnan(values)
        vector = np.repeat(np.arange(len(values)), observed.sum(axis=1))
        cells, sizes = grid.cells_of(values[observed]), np.array([grid.num_cells])
        if grid.finer is not None and place < channels:
            dense = np.bincount(vector * grid.num_cells + cells, minlength=len(values) * grid.num_cells)
            shares = dense.reshape(len(values), grid.num_cells) / values.shape[1]
            votes.append(Rows(shortened(shares, _SPREAD)))
            continue
        votes.append(Cells(vector, np.zeros_like(vector), cells, 1 / values.shape[1], len(values), sizes))
    return SideBySide(votes)


def scores_by(marginals: Sequence[Marginal]) -> Seen:
    """Returns normal scores [series, step, channel] without gaps, in float32."""

    def scores(panel: Panel) -> np.ndarray:
        raw = [marginals[place].scores_of(panel.values[:, :, place]) for place in range(panel.values.shape[2])]
        return filled(np.stack(raw, axis=2), panel.lengths).astype(np.float32)

    return Remembered(scores)


def own_single_values(panel: Panel) -> np.ndarray:
    """Returns static columns, and summaries of own contexts."""
    return single_values(panel.schema, panel.static, panel.context if panel.schema.own_contexts else None)
