"""What is bought beside a method's core: distributions of the columns, shares of the classes, gaps and lengths.

The published methods know none of this: their series have one length, no gaps, no columns that stand still, and a
scale taken from private data. Here each is a small release with `spectral`'s statistics, or is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from understudy.data import Panel, Schema
from understudy.privacy.contributions import Cells
from understudy.synthesizers.spectral import gaps
from understudy.synthesizers.spectral.counts import nearest_distribution
from understudy.synthesizers.spectral.fitting import missing_shares
from understudy.synthesizers.spectral.learning import Learning, Seen, scores_by
from understudy.synthesizers.spectral.marginals import Grid, Marginal
from understudy.synthesizers.spectral.model import Model
from understudy.synthesizers.spectral.sampling import num_labels
from understudy.synthesizers.spectral.series import filled

SHARES: Mapping[str, float] = {"marginals": 0.2, "labels": 0.03, "absence": 0.05}  # of mu²; the core gets the rest


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """Released facts about the columns; arrays are empty where nothing was bought.

    Attributes:
        cells: Left and right ends of the cells of all columns, end to end: channels, then static columns.
        cumulative: Distribution functions of all columns, end to end.
        column_cells: Number of cells of each column.
        label_share: Share of each class.
        static_missing: How often each static column but the label is missing.
        gap_model: For each channel that may be missing, distributions of its gaps.
        length_share: Distribution of lengths.
    """

    cells: np.ndarray
    cumulative: np.ndarray
    column_cells: np.ndarray
    label_share: np.ndarray
    static_missing: np.ndarray
    gap_model: np.ndarray
    length_share: np.ndarray

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
        ends = np.cumsum(self.column_cells)
        starts = ends - self.column_cells
        return [
            Marginal(Grid(*self.cells[:, start:end]), self.cumulative[start + place : end + place + 1])
            for place, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]

    def draw_lengths(self, schema: Schema, num_series: int, rng: np.random.Generator) -> np.ndarray:
        """Returns lengths of synthetic series; full ones where nothing is known."""
        if not len(self.length_share):
            return np.full(num_series, schema.num_steps, dtype=np.int32)
        edges = gaps.length_edges(schema.time.min_steps or 1, schema.num_steps)
        return gaps.draw_lengths(self.length_share, edges, schema.num_steps, num_series, rng)

    def draw_missing(
        self, schema: Schema, scores: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns True [series, step, channel] where a value is to be missing; scores are [series, step, channel]."""
        missing = np.zeros(scores.shape, dtype=bool)
        if len(self.gap_model):
            cuts = np.cumsum([len(gaps.COUNT_EDGES), len(gaps.LENGTH_EDGES)])
            for row, place in zip(self.gap_model, gappy_channels(schema), strict=True):
                model = gaps.Gaps(*np.split(row, cuts))
                missing[:, :, place] = gaps.draw_gaps(model, scores[:, :, place], lengths, rng)
        return missing


def shares_of(schema: Schema, *, marginals: bool) -> dict[str, float]:
    """Returns which facts a schema needs and their shares of mu²."""
    wanted = {
        "marginals": marginals,
        "labels": num_labels(schema) > 1,
        "absence": bool(gappy_channels(schema)) or schema.time.min_steps is not None,
    }
    return {label: SHARES[label] for label in SHARES if wanted[label]}


def buy(learning: Learning, linear: np.ndarray, parts: Mapping[str, float] | None = None) -> Facts:
    """Releases every fact that the grant was charged for.

    Args:
        linear: Public scales [column, (centre, width)] to rank values by where marginals are not bought.
        parts: For one of several parties: the facts of which it makes a part, with the factor by which the bound of
            the whole exceeds that of its part.

    Privacy: `marginals` and `absence` are `spectral`'s releases with its bounds; `labels` is one vote per series. Parts
    of several parties have the noise of the whole on every coordinate, so together they are the release that was
    charged.
    """
    charged = {entry.label: 1.0 for entry in learning.grant.plan.entries}
    wanted = charged if parts is None else {label: parts[label] for label in charged if label in parts}
    schema = learning.schema
    marginals: list[Marginal] = []
    totals = np.zeros(0)
    if "marginals" in wanted:
        marginals, totals = _part_of(learning, wanted["marginals"]).release_marginals()
    label_share = _label_share(_part_of(learning, wanted["labels"])) if "labels" in wanted else np.ones(1)
    gap_model, length_share = np.zeros((0, 1)), np.zeros(0)
    if "absence" in wanted:
        scores = scores_by(marginals) if marginals else _linear_scores(linear)
        gap_model, length_share = _part_of(learning, wanted["absence"]).release_absence(scores)
    num_static = len([column for column in schema.static if column.name != schema.label])
    static_missing = np.zeros(num_static)
    if marginals and num_static:
        columns = learning.columns[schema.num_channels :][:num_static]
        static_missing = missing_shares(totals[:num_static], columns, learning.private.population)
    return facts_of(marginals, label_share, static_missing, gap_model, length_share)


def from_spectral(model: Model, schema: Schema) -> Facts:
    """Returns the facts that a `spectral` release already holds."""
    label_share = model.kind_share.reshape(num_labels(schema), -1).sum(axis=1)
    num_static = len([column for column in schema.static if column.name != schema.label])
    return facts_of(model.marginals, label_share, model.single_missing[:num_static], model.gaps, model.length_shares)


def gappy_channels(schema: Schema) -> list[int]:
    """Returns the places of channels that may be missing."""
    return [place for place, channel in enumerate(schema.channels) if channel.missing]


def classes_of(panel: Panel) -> np.ndarray:
    """Returns the class of each series: its label, one class more where labels may be missing, else class 0.

    Privacy: private if the panel is, and each series' own. The number of classes follows from the schema.
    """
    if panel.label is None:
        return np.zeros(panel.num_series, dtype=np.int64)
    return np.where(panel.label < 0, num_labels(panel.schema) - 1, panel.label)


def _part_of(learning: Learning, whole: float) -> Learning:
    """Returns the same for one part of a release whose bound is `whole` times that of the part."""
    return replace(learning, private=replace(learning.private, whole=whole))


def _linear_scores(linear: np.ndarray) -> Seen:
    """Returns private values [series, step, channel] by public scales, made whole one series at a time."""

    def scores(panel: Panel) -> np.ndarray:
        centre, width = linear[: panel.schema.num_channels].T
        return filled((panel.values - centre) / width, panel.lengths).astype(np.float32)

    return scores


def _label_share(learning: Learning) -> np.ndarray:
    number = num_labels(learning.schema)
    noisy = learning.release("labels", 1.0, (number,), lambda panel: Cells.one_each(classes_of(panel)[:, None], number))
    total = float(noisy.sum())
    return nearest_distribution(noisy / total) if total > 0 else np.full(number, 1 / number)


def facts_of(
    marginals: list[Marginal],
    label_share: np.ndarray,
    static_missing: np.ndarray,
    gap_model: np.ndarray,
    length_share: np.ndarray,
) -> Facts:
    """Returns released facts with the marginals laid end to end."""
    sides = [[getattr(marginal.grid, side) for marginal in marginals] for side in ("left", "right")]
    return Facts(
        cells=np.stack([np.concatenate(side) for side in sides]) if marginals else np.zeros((2, 0)),
        cumulative=np.concatenate([np.zeros(0), *(marginal.cumulative for marginal in marginals)]),
        column_cells=np.array([marginal.grid.num_cells for marginal in marginals], dtype=np.int64),
        label_share=label_share,
        static_missing=static_missing,
        gap_model=gap_model,
        length_share=length_share,
    )
