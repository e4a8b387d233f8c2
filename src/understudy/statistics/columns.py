"""Which columns a series brings, beyond its channels: static ones, and summaries of a context of its own.

A public context that is the same for every series teaches nothing about who is in the data and is used at sampling
time only. A context that differs between series (each patient's own dates) is part of the private record: its level
and its first movements are treated like static columns, and a caller's context fixes them when sampling.
"""

from collections.abc import Sequence

import numpy as np

from understudy.data import Channel, Continuous, Panel, Schema
from understudy.statistics.marginals import Marginal
from understudy.statistics.series import to_frequencies

_CONTEXT_FREQUENCIES = 4
_MOST_MISSING = 0.9  # of series, in a column that was declared


def num_labels(schema: Schema) -> int:
    """Returns how many labels divide the population; one more when the label may be missing."""
    column = schema.label_column
    return 1 if column is None else len(column.categories) + int(column.missing)


def classes_of(panel: Panel) -> np.ndarray:
    """Returns the class of each series: its label, one class more where labels may be missing, else class 0.

    Privacy: private if the panel is, and each series' own. The number of classes follows from the schema.
    """
    if panel.label is None:
        return np.zeros(panel.num_series, dtype=np.int64)
    return np.where(panel.label < 0, num_labels(panel.schema) - 1, panel.label)


def gappy_channels(schema: Schema) -> list[int]:
    """Returns the places of channels that may be missing."""
    return [place for place, channel in enumerate(schema.channels) if channel.missing]


def static_places(schema: Schema) -> list[int]:
    """Returns the places of static columns but the label."""
    return [place for place, column in enumerate(schema.static) if column.name != schema.label]


def single_columns(schema: Schema, with_context: bool) -> tuple[Channel, ...]:
    """Returns the columns with one value per series: static ones except the label, then context summaries."""
    summaries: list[Channel] = []
    for channel in schema.context if with_context else ():
        low, high = channel.bounds
        for frequency in range(min(_CONTEXT_FREQUENCIES, schema.num_steps)):
            ends = (low, high) if frequency == 0 else (-(high - low), high - low)
            summaries.append(Continuous(f"{channel.name}~{frequency}", *ends))
    return (*(schema.static[place] for place in static_places(schema)), *summaries)


def single_values(schema: Schema, static: np.ndarray, context: np.ndarray | None) -> np.ndarray:
    """Returns [series, single column] for `single_columns`; `context` is given when series have their own."""
    values = static[:, static_places(schema)].astype(np.float64)
    return values if context is None else np.concatenate([values, context_summary(context)], axis=1)


def context_summary(context: np.ndarray) -> np.ndarray:
    """Returns the first frequencies [series, context · frequency] of contexts [series, step, context]."""
    frequencies = min(_CONTEXT_FREQUENCIES, context.shape[1])
    coefficients = to_frequencies(context.astype(np.float64))[:, :frequencies] / np.sqrt(context.shape[1])
    return np.swapaxes(coefficients, 1, 2).reshape(len(context), -1)


def missing_shares(totals: np.ndarray, columns: tuple[Channel, ...], count: float) -> np.ndarray:
    """Returns how often each single column is missing: what the votes for its values lack of the number of series.

    At most nine times in ten: where noise says that no unit has a column, the noise is wrong about one that was
    declared, and a table without any value of it could not be read back.
    """
    lacking = np.clip(1 - totals / max(count, 1.0), 0.0, _MOST_MISSING)
    return np.where([column.missing for column in columns], lacking, 0.0)


def static_values(
    schema: Schema,
    labels: np.ndarray,
    ranks: np.ndarray,
    marginals: Sequence[Marginal],
    missing: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Returns [series, static]: the label as drawn, the other columns from their ranks [series, column]."""
    static, named = np.empty((len(labels), len(schema.static))), schema.label_column
    if named is not None:
        known = np.where(labels < len(named.categories), labels, np.nan)
        static[:, [column.name for column in schema.static].index(named.name)] = known
    for place, column in enumerate(static_places(schema)):
        values = marginals[place].values_of(ranks[:, place])
        static[:, column] = np.where(rng.random(len(labels)) < missing[place], np.nan, values)
    return static
