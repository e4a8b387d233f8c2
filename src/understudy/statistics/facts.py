"""What is bought in addition to a method's core: distributions of the columns, shares of the classes, gaps and lengths.

The published methods know none of this: their series have one length, no gaps, no columns that stand still, and a
scale taken from private data. Here each is a small release (`queries`), or is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from understudy.data import Panel, Schema
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import gaps
from understudy.statistics.columns import gappy_channels, missing_shares, num_labels, static_places, static_values
from understudy.statistics.marginals import Marginal, joined_marginals, split_marginals
from understudy.statistics.queries import ABSENCE, LABELS, MARGINALS, Held, Queries

SHARES: Mapping[str, float] = {MARGINALS: 0.2, LABELS: 0.03, ABSENCE: 0.05}  # of mu²; the core gets the rest


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """Released facts about the columns; arrays are empty where nothing was bought."""

    cells: np.ndarray  # left and right ends of the cells of all columns, end to end: channels, then static columns
    cumulative: np.ndarray  # distribution functions of all columns, end to end
    column_cells: np.ndarray  # number of cells of each column
    label_share: np.ndarray  # of each class
    static_missing: np.ndarray  # how often each static column but the label is missing
    gap_model: np.ndarray  # for each channel that may be missing, a packed `GapModel`
    length_share: np.ndarray  # distribution of lengths

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by name, ready to be stored."""
        return {field.name: np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Facts":
        """Returns the facts that `to_arrays` stored."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    @property
    def marginals(self) -> list[Marginal]:
        """Distribution of each column; none if they were not bought."""
        return split_marginals(self.cells, self.cumulative, self.column_cells)

    def sample_lengths(self, schema: Schema, num_series: int, rng: np.random.Generator) -> np.ndarray:
        """Returns lengths of synthetic series; full ones where nothing is known."""
        if not len(self.length_share):
            return np.full(num_series, schema.num_steps, dtype=np.int32)
        edges = gaps.length_edges(schema.time.min_steps or 1, schema.num_steps)
        return gaps.sample_lengths(self.length_share, edges, schema.num_steps, num_series, rng)

    def sample_missing(
        self,
        schema: Schema,
        scores: np.ndarray,
        lengths: np.ndarray,
        rng: np.random.Generator,
        ranks: np.ndarray | None = None,
    ) -> np.ndarray:
        """Returns True [series, step, channel] where a value is to be missing.

        Args:
            ranks: Of the numbers of observed steps [series, channel that may be missing]; None draws them apart.
        """
        missing, gappy = np.zeros(scores.shape, dtype=bool), gappy_channels(schema)
        if not gappy or not len(self.gap_model):
            return missing
        model = gaps.GapModel.of(self.gap_model, schema.num_steps)
        drawn = rng.random((len(scores), len(gappy))) if ranks is None else ranks
        missing[:, :, gappy] = model.sample(drawn, scores[:, :, gappy], lengths, rng)
        nothing = missing.all(axis=2).sum(axis=1) >= lengths  # a table would not show such a series
        missing[nothing, 0, gappy[int(model.ease.max(axis=1).argmax())]] = False
        missing[:1, 0] &= ~missing.all(axis=(0, 1))  # nor a column without a value
        return missing

    def completed(
        self,
        schema: Schema,
        values: np.ndarray,
        scores: np.ndarray,
        classes: np.ndarray,
        ranks: np.ndarray | None,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns drawn values with gaps, lengths, and static columns by their ranks, or independent without any."""
        lengths, single = self.sample_lengths(schema, len(values), rng), self.marginals[schema.num_channels :]
        values[self.sample_missing(schema, scores, lengths, rng)] = np.nan
        ranks = rng.random((len(values), len(single))) if ranks is None else ranks
        return values, lengths, static_values(schema, classes, ranks, single, self.static_missing, rng)


def shares_of(schema: Schema, *, marginals: bool) -> dict[str, float]:
    """Returns which facts a schema needs and their shares of mu²."""
    wanted = {
        MARGINALS: marginals,
        LABELS: num_labels(schema) > 1,
        ABSENCE: bool(gappy_channels(schema)) or schema.time.min_steps is not None,
    }
    return {label: SHARES[label] for label in SHARES if wanted[label]}


def buy(
    private: PrivateSeries,
    grant: Grant,
    parts: Mapping[str, float] | None = None,
    *,
    held: Held | None = None,
    prior: Panel | None = None,
) -> Facts:
    """Releases every fact that the grant was charged for.

    Args:
        parts: For one of several parties: the facts of which it makes a part, with the factor by which the bound of
            the whole exceeds that of its part.
        held: Who counts which columns; None counts all of them in one place.
        prior: Public series towards whose statistics answers are drawn.

    Privacy: the bounds are those of `Queries`. Parts of several parties have the noise of the whole on every
    coordinate, so together they are the release that was charged.
    """
    queries = Queries(private, grant, prior)
    charged = {entry.label: 1.0 for entry in grant.plan.entries}
    wanted = charged if parts is None else {label: parts[label] for label in charged if label in parts}
    schema = queries.schema
    gap_model, length_share = np.zeros((0, 1)), np.zeros(0)
    if ABSENCE in wanted:
        gap_model, length_share = queries.part_of(wanted[ABSENCE]).release_absence()
    marginals: list[Marginal] = []
    totals = np.zeros(0)
    if held or MARGINALS in wanted:
        marginals, totals = queries.part_of(wanted.get(MARGINALS, 1.0)).release_marginals(gap_model, held)
    label_share = queries.part_of(wanted[LABELS]).release_labels() if LABELS in wanted else np.ones(1)
    num_static = len(static_places(schema))
    static_missing = np.zeros(num_static)
    if marginals and num_static:
        columns = queries.columns[schema.num_channels :][:num_static]
        static_missing = missing_shares(totals[:num_static], columns, private.population)
    return facts_of(marginals, label_share, static_missing, gap_model, length_share)


def facts_of(
    marginals: list[Marginal],
    label_share: np.ndarray,
    static_missing: np.ndarray,
    gap_model: np.ndarray,
    length_share: np.ndarray,
) -> Facts:
    """Returns released facts with the marginals laid end to end."""
    return Facts(
        **joined_marginals(marginals),
        label_share=label_share,
        static_missing=static_missing,
        gap_model=gap_model,
        length_share=length_share,
    )
