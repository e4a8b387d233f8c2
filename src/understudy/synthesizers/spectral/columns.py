"""Which columns a series brings, beyond its channels: static ones, and summaries of a context of its own.

A public context that is the same for every series teaches nothing about who is in the data and is used at sampling
time only. A context that differs between series (each patient's own dates) is part of the private record: its level
and its first movements are treated like static columns, and a caller's context fixes them when sampling.
"""

import numpy as np

from understudy.data import Channel, Continuous, Schema
from understudy.synthesizers.spectral.series import to_frequencies

_CONTEXT_FREQUENCIES = 4


def single_columns(schema: Schema, with_context: bool) -> tuple[Channel, ...]:
    """Returns the columns with one value per series: static ones except the label, then context summaries."""
    static = tuple(column for column in schema.static if column.name != schema.label)
    return static + (_summary_columns(schema) if with_context else ())


def single_values(schema: Schema, static: np.ndarray, context: np.ndarray | None) -> np.ndarray:
    """Returns [series, single column] for `single_columns`; `context` is given when series have their own."""
    kept = [place for place, column in enumerate(schema.static) if column.name != schema.label]
    values = static[:, kept].astype(np.float64)
    return values if context is None else np.concatenate([values, context_summary(context)], axis=1)


def context_summary(context: np.ndarray) -> np.ndarray:
    """Returns the first frequencies [series, context · frequency] of contexts [series, step, context]."""
    frequencies = min(_CONTEXT_FREQUENCIES, context.shape[1])
    coefficients = to_frequencies(context.astype(np.float64))[:, :frequencies] / np.sqrt(context.shape[1])
    return np.swapaxes(coefficients, 1, 2).reshape(len(context), -1)


def _summary_columns(schema: Schema) -> tuple[Channel, ...]:
    columns: list[Channel] = []
    for channel in schema.context:
        low, high = channel.bounds
        for frequency in range(min(_CONTEXT_FREQUENCIES, schema.num_steps)):
            ends = (low, high) if frequency == 0 else (-(high - low), high - low)
            columns.append(Continuous(f"{channel.name}~{frequency}", *ends))
    return tuple(columns)
