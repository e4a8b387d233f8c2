"""Between a panel's columns and working scale: no gaps, numbers roughly within [−4, 4], codes as one-hot groups.

Every series is encoded by itself and by public facts: declared bounds, a public panel's mean and deviation, or
distributions that were bought with differential privacy. Gaps are bridged inside the series and what lies beyond its
end mirrors what came before (`series.filled`), so absence leaves no trace in working scale; how many gaps
there are and how long series are is bought separately (`facts`) or left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from understudy.data import Channel, Panel, Schema
from understudy.data.channels import num_codes
from understudy.statistics.marginals import Marginal
from understudy.statistics.series import filled

WORKING_BOUND = 4.0


class Scale(Protocol):
    """Takes one column of numbers to working scale and back."""

    def to_working(self, values: np.ndarray) -> np.ndarray: ...

    def to_values(self, working: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Linear:
    """A column moved and stretched by public numbers; final, implements `Scale`."""

    centre: float
    width: float

    def to_working(self, values: np.ndarray) -> np.ndarray:
        """Returns (values − centre) / width, kept within the working bounds."""
        return np.clip((values - self.centre) / self.width, -WORKING_BOUND, WORKING_BOUND)

    def to_values(self, working: np.ndarray) -> np.ndarray:
        """Returns the values behind working numbers."""
        return np.asarray(self.centre + self.width * np.clip(working, -WORKING_BOUND, WORKING_BOUND))


@dataclass(frozen=True)
class Scores:
    """Normal scores by a released distribution; final, implements `Scale`."""

    marginal: Marginal

    def to_working(self, values: np.ndarray) -> np.ndarray:
        """Returns normal scores; missing values stay missing."""
        return self.marginal.scores_of(values)

    def to_values(self, working: np.ndarray) -> np.ndarray:
        """Returns the values at the ranks of normal scores."""
        return self.marginal.values_of(ndtr(working))


def by_bounds(column: Channel) -> Linear:
    """Returns the scale that takes the declared bounds to the working bounds."""
    low, high = column.bounds
    return Linear((low + high) / 2, max(high - low, 1e-12) / (2 * WORKING_BOUND))


def by_public_values(column: Channel, values: np.ndarray) -> Linear:
    """Returns the scale that standardises *public* values of a column; bounds where they do not vary."""
    known = values[~np.isnan(values)].astype(np.float64)
    width = float(known.std()) if len(known) else 0.0
    return Linear(float(known.mean()), width) if width > 0 else by_bounds(column)


def linear_scales(schema: Schema, public: Panel | None) -> np.ndarray:
    """Returns [column, (centre, width)] of channels, then static columns but the label, from public facts."""
    kept = [place for place, column in enumerate(schema.static) if column.name != schema.label]
    columns = [*schema.channels, *(schema.static[place] for place in kept)]
    if public is None:
        scales = [by_bounds(column) for column in columns]
    else:
        values = [public.values[:, :, place] for place in range(schema.num_channels)]
        values += [public.static[:, place] for place in kept]
        scales = [by_public_values(column, own) for column, own in zip(columns, values, strict=True)]
    return np.array([[scale.centre, scale.width] for scale in scales], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Encoding:
    """The way between a schema's columns and working scale.

    Attributes:
        schema: The contract of what is learned from.
        channel_scales: One for each channel; not used for codes.
        static_scales: One for each static column but the label.
    """

    schema: Schema
    channel_scales: tuple[Scale, ...]
    static_scales: tuple[Scale, ...]

    @classmethod
    def of(cls, schema: Schema, marginals: Sequence[Marginal], linear: np.ndarray) -> "Encoding":
        """Returns the encoding by released marginals, or by `linear` [column, (centre, width)] without any."""
        scales: list[Scale] = [Scores(marginal) for marginal in marginals]
        scales = scales or [Linear(float(centre), float(width)) for centre, width in linear]
        num_static = len([column for column in schema.static if column.name != schema.label])
        first = schema.num_channels
        return cls(schema, tuple(scales[:first]), tuple(scales[first : first + num_static]))

    @property
    def static_columns(self) -> tuple[Channel, ...]:
        """Static columns but the label, which says the class of a series."""
        return tuple(column for column in self.schema.static if column.name != self.schema.label)

    @property
    def num_channels(self) -> int:
        """Channels in working scale."""
        return width_of(self.schema.channels)

    @property
    def num_static(self) -> int:
        """Static columns in working scale."""
        return width_of(self.static_columns)

    @property
    def channel_codes(self) -> tuple[tuple[int, int], ...]:
        """First and last-plus-one working channel of each group of codes."""
        return _code_groups(self.schema.channels)

    @property
    def static_codes(self) -> tuple[tuple[int, int], ...]:
        """First and last-plus-one working static column of each group of codes."""
        return _code_groups(self.static_columns)

    def series(self, panel: Panel, rows: slice) -> np.ndarray:
        """Returns working series [series, step, channel] of some rows.

        Privacy: private if the panel is; a series follows from its own values and lengths alone.
        """
        raw = encode(panel.values[rows], self.schema.channels, self.channel_scales)
        return filled(raw, panel.lengths[rows]).astype(np.float32)

    def static(self, panel: Panel, rows: slice) -> np.ndarray:
        """Returns working static columns [series, column]; what is missing counts as the middle.

        Privacy: private if the panel is; row by row.
        """
        kept = [place for place, column in enumerate(self.schema.static) if column.name != self.schema.label]
        raw = encode(panel.static[rows][:, kept], self.static_columns, self.static_scales)
        return np.nan_to_num(raw).astype(np.float32)

    def values(self, series: np.ndarray) -> np.ndarray:
        """Returns channels [series, step, channel] in the user's units."""
        return decode(series, self.schema.channels, self.channel_scales)

    def ranked(self, series: np.ndarray) -> np.ndarray:
        """Returns one number per channel [series, step, channel] that grows with its value, for the gaps' ranks."""
        parts, begin = [], 0
        for column in self.schema.channels:
            codes = num_codes(column)
            own = series[..., begin : begin + (codes or 1)]
            parts.append(own[..., 0] if codes is None else own.argmax(axis=-1) - (codes - 1) / 2)
            begin += codes or 1
        return np.stack(parts, axis=-1)

    def static_values(self, static: np.ndarray) -> np.ndarray:
        """Returns static columns but the label in the user's units."""
        return decode(static, self.static_columns, self.static_scales)


def encode(values: np.ndarray, columns: Sequence[Channel], scales: Sequence[Scale]) -> np.ndarray:
    """Returns values [..., column] in working scale, codes as one-hot groups; missing values stay missing."""
    parts = []
    for place, (column, scale) in enumerate(zip(columns, scales, strict=True)):
        own, codes = values[..., place].astype(np.float64), num_codes(column)
        parts.append(scale.to_working(own)[..., None] if codes is None else _one_hot(own, codes))
    return np.concatenate(parts, axis=-1) if parts else np.zeros((*values.shape[:-1], 0))


def decode(working: np.ndarray, columns: Sequence[Channel], scales: Sequence[Scale]) -> np.ndarray:
    """Returns values [..., column] in the user's units."""
    parts, begin = [], 0
    for column, scale in zip(columns, scales, strict=True):
        codes = num_codes(column)
        own = working[..., begin : begin + (codes or 1)].astype(np.float64)
        parts.append(scale.to_values(own[..., 0]) if codes is None else own.argmax(axis=-1).astype(np.float64))
        begin += codes or 1
    return np.stack(parts, axis=-1) if parts else np.zeros((*working.shape[:-1], 0))


def _one_hot(values: np.ndarray, codes: int) -> np.ndarray:
    """Returns [..., code], all NaN where a value is missing."""
    known = ~np.isnan(values)
    hot = np.eye(codes)[np.clip(np.where(known, values, 0), 0, codes - 1).astype(np.int64)]
    return np.where(known[..., None], hot, np.nan)


def width_of(columns: Sequence[Channel]) -> int:
    """Returns how many numbers columns are in working scale: one each, or one for each code."""
    return sum(num_codes(column) or 1 for column in columns)


def _code_groups(columns: Sequence[Channel]) -> tuple[tuple[int, int], ...]:
    groups, begin = [], 0
    for column in columns:
        codes = num_codes(column)
        if codes is not None:
            groups.append((begin, begin + codes))
        begin += codes or 1
    return tuple(groups)
