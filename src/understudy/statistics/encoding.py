"""Between a panel's columns and working scale: no gaps, numbers roughly within [−4, 4], codes as one-hot groups.

Every series is encoded by itself and by public facts: declared bounds, a public panel's mean and deviation, or
distributions that were bought with differential privacy. Gaps are bridged inside the series and what lies beyond its
end mirrors what came before (`series.filled`), so absence leaves no trace in working scale; how many gaps
there are and how long series are is bought separately (`facts`) or left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.data import Channel, Panel, Schema
from understudy.data.channels import num_codes
from understudy.statistics.columns import static_places
from understudy.statistics.marginals import Marginal
from understudy.statistics.series import filled

WORKING_BOUND = 4.0


@dataclass(frozen=True)
class Linear:
    """A column moved and stretched by public numbers, kept within the working bounds."""

    centre: float
    width: float

    def scores_of(self, values: np.ndarray) -> np.ndarray:
        """Returns (values − centre) / width; missing values stay missing."""
        return np.clip((values - self.centre) / self.width, -WORKING_BOUND, WORKING_BOUND)

    def values_at(self, scores: np.ndarray) -> np.ndarray:
        """Returns the values behind working numbers."""
        return np.asarray(self.centre + self.width * np.clip(scores, -WORKING_BOUND, WORKING_BOUND))


Scale = Linear | Marginal


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
    columns = [*schema.channels, *(schema.static[place] for place in static_places(schema))]
    if public is None:
        scales = [by_bounds(column) for column in columns]
    else:
        values = [public.values[:, :, place] for place in range(schema.num_channels)]
        values += [public.static[:, place] for place in static_places(schema)]
        scales = [by_public_values(column, own) for column, own in zip(columns, values, strict=True)]
    return np.array([[scale.centre, scale.width] for scale in scales], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Encoding:
    """The way between a schema's columns and working scale; scales of channels, and of static columns but the label."""

    schema: Schema
    channel_scales: tuple[Scale, ...]
    static_scales: tuple[Scale, ...]

    @classmethod
    def of(cls, schema: Schema, marginals: Sequence[Marginal], linear: np.ndarray) -> "Encoding":
        """Returns the encoding by released marginals, or by `linear` [column, (centre, width)] without any."""
        scales: list[Scale] = [*marginals] or [Linear(float(centre), float(width)) for centre, width in linear]
        first = schema.num_channels
        return cls(schema, tuple(scales[:first]), tuple(scales[first : first + len(static_places(schema))]))

    @property
    def static_columns(self) -> tuple[Channel, ...]:
        """Static columns but the label, which says the class of a series."""
        return tuple(self.schema.static[place] for place in static_places(self.schema))

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
        raw = encode(panel.static[rows][:, static_places(self.schema)], self.static_columns, self.static_scales)
        return np.nan_to_num(raw).astype(np.float32)

    def values(self, series: np.ndarray) -> np.ndarray:
        """Returns channels [series, step, channel] in the user's units."""
        return decode(series, self.schema.channels, self.channel_scales)

    def ranked(self, series: np.ndarray) -> np.ndarray:
        """Returns one number per channel [series, step, channel] that grows with its value, for the gaps' ranks."""
        spans = _spans(self.schema.channels)
        parts = [
            series[..., begin] if codes is None else series[..., begin:end].argmax(axis=-1) - (codes - 1) / 2
            for begin, end, codes in spans
        ]
        return np.stack(parts, axis=-1)

    def static_values(self, static: np.ndarray) -> np.ndarray:
        """Returns static columns but the label in the user's units."""
        return decode(static, self.static_columns, self.static_scales)


def encode(values: np.ndarray, columns: Sequence[Channel], scales: Sequence[Scale]) -> np.ndarray:
    """Returns values [..., column] in working scale, codes as one-hot groups; missing values stay missing."""
    parts = []
    for place, (column, scale) in enumerate(zip(columns, scales, strict=True)):
        own, codes = values[..., place].astype(np.float64), num_codes(column)
        parts.append(scale.scores_of(own)[..., None] if codes is None else _one_hot(own, codes))
    return np.concatenate(parts, axis=-1) if parts else np.zeros((*values.shape[:-1], 0))


def decode(working: np.ndarray, columns: Sequence[Channel], scales: Sequence[Scale]) -> np.ndarray:
    """Returns values [..., column] in the user's units."""
    parts = []
    for (begin, end, codes), scale in zip(_spans(columns), scales, strict=True):
        own = working[..., begin:end].astype(np.float64)
        parts.append(scale.values_at(own[..., 0]) if codes is None else own.argmax(axis=-1).astype(np.float64))
    return np.stack(parts, axis=-1) if parts else np.zeros((*working.shape[:-1], 0))


def _one_hot(values: np.ndarray, codes: int) -> np.ndarray:
    """Returns [..., code], all NaN where a value is missing."""
    known = ~np.isnan(values)
    hot = np.eye(codes)[np.clip(np.where(known, values, 0), 0, codes - 1).astype(np.int64)]
    return np.where(known[..., None], hot, np.nan)


def width_of(columns: Sequence[Channel]) -> int:
    """Returns how many numbers columns are in working scale: one each, or one for each code."""
    return sum(num_codes(column) or 1 for column in columns)


def _spans(columns: Sequence[Channel]) -> Iterator[tuple[int, int, int | None]]:
    """Yields the first and last-plus-one working place of each column, and its number of codes."""
    end = 0
    for column in columns:
        begin, end = end, end + width_of([column])
        yield begin, end, num_codes(column)


def _code_groups(columns: Sequence[Channel]) -> tuple[tuple[int, int], ...]:
    return tuple((begin, end) for begin, end, codes in _spans(columns) if codes is not None)
