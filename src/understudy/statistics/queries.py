"""Releases that several methods make: marginals of columns, shares of labels, gaps and lengths.

Every release is a `Statistic`: a function from a panel to one vector per series, and a bound that the border enforces.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from understudy.data import Channel, Panel, Schema
from understudy.data.channels import num_codes
from understudy.privacy.border import Statistic, public_mean
from understudy.privacy.contributions import Cells, Contributions, Rows, SideBySide, shortened
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries, Remembered
from understudy.statistics import gaps
from understudy.statistics.basis import basis_of
from understudy.statistics.columns import classes_of, gappy_channels, num_labels, single_columns, single_values
from understudy.statistics.counts import drawn_towards, nearest_distribution, share_among
from understudy.statistics.marginals import Grid, Marginal, declared_like, grid_of, marginal_from
from understudy.statistics.series import filled

MARGINALS, LABELS, ABSENCE = "marginals", "labels", "absence"  # labels under which these releases are charged
_SLACK = 1.8  # of the mean square of what series weigh in a channel that may be missing
_LITTLE = 0.0012  # noise of a cell up to which a vote may be for one
_INNER, _ATOMS = 0.5, 0.5  # of a vote that is spread over cells: its length between the bounds, its worth at a bound
Seen = Callable[[Panel], np.ndarray]  # what a release sees of a panel, one row per series
Held = Mapping[str, Sequence[int]]  # places of columns (channels, then single ones) by the label of their counts


class Answer(NamedTuple):
    """Released sums over series, and the standard deviation of the noise that is left in each."""

    sums: np.ndarray
    noise: float

    def __repr__(self) -> str:
        return f"Answer(noise={self.noise:.3g})"


@dataclass(frozen=True)
class Queries:
    """Private series and the grant under which they may be looked at."""

    private: PrivateSeries
    grant: Grant
    prior: Panel | None = None  # public series of the same columns, towards whose statistics all answers are drawn

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
        self,
        label: str,
        bound: float,
        shape: tuple[int, ...],
        contributions: Callable[[Panel], Contributions],
        groups: Sequence[int] | None = None,
    ) -> Answer:
        """Crosses the border with a sum of one vector per series, and draws the answer towards the prior.

        Args:
            groups: Numbers of neighbouring figures that depart alike from a prior; None: the rows of the sum.
        """
        statistic = Statistic(label=label, bound=bound, shape=shape, contributions=contributions)
        noisy, noise = self.grant.release(statistic, self.private), self.noise(label, bound)
        if self.prior is None:
            return Answer(noisy, noise)
        expected = public_mean(statistic, self.prior) * self.private.population
        rows = [noisy.size // shape[0]] * shape[0] if len(shape) > 1 else [noisy.size]
        return Answer(*drawn_towards(noisy, expected, noise, groups or rows))

    def noise(self, label: str, bound: float) -> float:
        """Returns the standard deviation of the noise on a release of the given bound."""
        return self.grant.deviation(label, bound * self.private.reach)

    def release_marginals(self, gap_rows: np.ndarray, held: Held | None = None) -> tuple[list[Marginal], np.ndarray]:
        """Returns the marginals, and how many series have a value in each single column.

        Args:
            gap_rows: What `release_absence` found of each channel that may be missing; may be empty.
            held: Who counts which columns; None counts all of them in one place.
        """
        marginals: dict[int, Marginal] = {}
        totals = np.zeros(len(self.columns))
        observed = gaps.observed_shares(gap_rows, self.schema, len(totals))
        for label, places in (held or {MARGINALS: range(len(self.columns))}).items():
            counted, totals[list(places)] = self.count_columns(label, places, observed)
            marginals |= zip(places, counted, strict=True)
        return [marginals[place] for place in range(len(totals))], totals[self.schema.num_channels :]

    def count_columns(
        self, label: str, places: Sequence[int], observed: np.ndarray | None = None
    ) -> tuple[list[Marginal], np.ndarray]:
        """Returns the marginals of some columns and the total of each one's counts.

        Privacy: one vote per series and column, spread evenly over the steps, so √columns bounds a series. Where noise
        matters, a series weighs less: what it says of a channel is rarely in one cell between the bounds, and where it
        is, it is clipped; the bounds themselves are two cells, which can bear twice the noise. Where steps are mostly
        missing, the others weigh more, and a series that has many of them is clipped.

        Args:
            observed: Shares of steps at which a series has a value, [which, column]: mean, root mean square, high.
        """
        columns = [self.columns[place] for place in places]
        mean, typical, high = (np.ones((3, len(self.columns))) if observed is None else observed)[:, list(places)]
        worths = 1 / high
        weighs = np.minimum(1.0, _SLACK * (worths * typical) ** 2)  # squared, in votes
        loud = self.noise(label, float(np.sqrt(weighs.sum()))) / self.private.population / (worths * mean)
        numeric = np.array([num_codes(column) is None for column in columns])
        moving = np.array(places) < self.schema.num_channels
        many = numeric & moving  # whose votes go to many cells
        public = self.noise(label, float(np.sqrt(len(columns)))) / self.private.population
        own = public * _length(many & (public > _LITTLE))  # how many cells there are tells nothing of the series
        grids = [grid_of(column, float(each)) for column, each in zip(columns, own, strict=True)]
        spread = many & (loud > _LITTLE)
        length = _length(spread)
        sizes = np.array([grid.num_cells for grid in grids])
        bound = float(np.sqrt((weighs * length**2).sum()))
        noisy, noise = self.release(
            label,
            bound,
            (int(sizes.sum()),),
            lambda panel: column_votes(panel, places, grids, worths, spread),
            sizes.tolist(),
        )
        parts = [np.array(part) for part in np.split(noisy, np.cumsum(sizes)[:-1])]
        for part in (own for own, each in zip(parts, spread, strict=True) if each):
            part[[0, -1]] /= _ATOMS
        kinds = zip(map(declared_like, columns), worths, moving, sizes, strict=True)
        alike = share_among(parts, noise, list(kinds))  # a channel has nothing to do with a single column
        at_bounds = np.where(spread, noise / _ATOMS, noise)
        counted = zip(alike, grids, at_bounds, strict=True)
        marginals = [marginal_from(part, grid, noise, float(own)) for part, grid, own in counted]
        return marginals, np.array([part.sum() for part in parts])

    def release_labels(self) -> np.ndarray:
        """Returns the share of each class; one vote per series."""
        number = num_labels(self.schema)
        votes, _ = self.release(
            LABELS, 1.0, (number,), lambda panel: Cells.one_each(classes_of(panel)[:, None], number)
        )
        total = float(votes.sum())
        return nearest_distribution(votes / total) if total > 0 else np.full(number, 1 / number)

    def release_absence(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns (gap models [channel, …], distribution of lengths); nothing is released when neither can occur."""
        gappy, steps = gappy_channels(self.schema), self.schema.num_steps
        edges = gaps.length_edges(self.schema.time.min_steps, steps)
        if not gappy and not len(edges):
            return np.zeros((0, 1)), np.zeros(0)
        bound, cells = gaps.absence_bound(len(gappy), edges), gaps.num_figures(len(gappy), steps)
        noisy, noise = self.release(
            ABSENCE, bound, (cells + len(edges),), lambda panel: gaps.absence_votes(panel, gappy, edges)
        )
        lengths = gaps.length_shares(noisy[cells:], noise)
        if not gappy:
            return np.zeros((0, 1)), lengths
        running = np.full(steps, float(self.private.population))
        if len(edges):
            running *= np.interp(np.arange(steps), edges, 1 - np.cumsum(lengths), left=1.0)
        model = gaps.gap_model(noisy[:cells], noise, len(gappy), running, basis_of(self.schema))
        return model.packed(), lengths


# --- what releases see of a panel; a row follows from its own series and from what was released ----------------


def _length(spread: np.ndarray) -> np.ndarray:
    """Returns the most that a series weighs in columns, in votes: at a bound and between them where it is spread."""
    return np.where(spread, np.hypot(_INNER, _ATOMS * (1 - _INNER)), 1.0)


def column_votes(
    panel: Panel, places: Sequence[int], grids: Sequence[Grid], worths: np.ndarray, spread: np.ndarray
) -> SideBySide:
    """Returns a vote of some worth for each column of each series, spread over all steps, of which it has some.

    Votes that are taken to be spread over cells are written out, so that their true length counts, and are clipped
    column by column.
    """
    singles, channels = own_single_values(panel), panel.schema.num_channels
    votes: list[Contributions] = []
    for place, grid, worth, each in zip(places, grids, worths, spread, strict=True):
        values = panel.values[:, :, place] if place < channels else singles[:, [place - channels]]
        observed = ~np.isnan(values)
        vector = np.repeat(np.arange(len(values)), observed.sum(axis=1))
        cells, sizes = grid.cells_of(values[observed]), np.array([grid.num_cells])
        if each:
            dense = np.bincount(vector * grid.num_cells + cells, minlength=len(values) * grid.num_cells)
            shares = dense.reshape(len(values), grid.num_cells) * (worth / values.shape[1])
            shares[:, 1:-1] = shortened(shares[:, 1:-1], _INNER)
            shares[:, [0, -1]] *= _ATOMS
            votes.append(Rows(shares))
            continue
        votes.append(Cells(vector, np.zeros_like(vector), cells, worth / values.shape[1], len(values), sizes))
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
