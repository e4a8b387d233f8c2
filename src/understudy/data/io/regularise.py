"""Rows become steps: order, grid, duplicates, and several rows of one step made one.

Every rule looks at one series at a time, so what happens to one unit never depends on another.
"""

import datetime as dt
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int, Int32, Int64

from understudy.data.channels import Channel, Integer, is_event_like
from understudy.data.schema import Schema
from understudy.data.timegrid import Time, start_microseconds, steps_since
from understudy.errors import DataError

_ROWS_AT_A_TIME = 2_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Placement:
    """Where each row goes.

    Attributes:
        order: Rows brought together by series, or None if the table already has them so.
        step: Step of each row, in that order.
        lengths: Steps of each series.
        origin: Tick of each series' step 0.
        shared_steps: Whether some step has several rows.
    """

    order: Int64[np.ndarray, " row"] | None
    step: Int32[np.ndarray, " row"]
    lengths: Int32[np.ndarray, " series"]
    origin: Int64[np.ndarray, " series"]
    shared_steps: bool


def place_rows(
    series: Int[np.ndarray, " row"], ticks: Int64[np.ndarray, " row"] | None, num_series: int, schema: Schema
) -> Placement:
    """Returns the step of every row, refusing timestamps that go back, repeat or leave the declared axis."""
    order = _grouping(series, num_series)
    if order is not None:
        series = series[order]
        ticks = ticks[order] if ticks is not None else None
    first = np.flatnonzero(np.concatenate([[True], series[1:] != series[:-1]]))
    last = np.append(first[1:], len(series)) - 1
    shared = False
    if ticks is None:  # rows without a time column are consecutive steps
        steps = (np.arange(len(series)) - np.repeat(first, last - first + 1)).astype(np.int32)
        origin = np.zeros(num_series, dtype=np.int64)
    else:
        shared = _check_order(series, ticks, schema)
        origin = _origin(ticks[first], series[first], schema.time)
        steps = _steps(series, ticks, origin, schema.time)
    if ticks is None and steps.max() >= schema.time.steps:
        raise _outside(schema.time)
    if schema.time.off_grid != "refuse":
        shared = bool(((steps[1:] == steps[:-1]) & (series[1:] == series[:-1])).any())
    lengths = np.full(num_series, schema.time.steps, dtype=np.int32)
    if schema.time.variable_length:
        lengths[series[first]] = steps[last] + 1
    return Placement(order, steps, lengths, origin, shared)


def _grouping(series: Int[np.ndarray, " row"], num_series: int) -> Int64[np.ndarray, " row"] | None:
    """Returns the order that puts the rows of each series side by side, None if they are."""
    boundaries = int(np.count_nonzero(series[1:] != series[:-1]))
    return None if boundaries + 1 == num_series else np.argsort(series, kind="stable")


def _check_order(series: Int[np.ndarray, " row"], ticks: Int64[np.ndarray, " row"], schema: Schema) -> bool:
    """Refuses timestamps that go back; returns whether some repeat, refusing that too unless declared."""
    same = series[1:] == series[:-1]
    name = str(schema.time.column)
    if ((ticks[1:] < ticks[:-1]) & same).any():
        raise DataError(
            f"Column '{name}': the timestamps of a series are not in order. Sort the table by series and time.",
            column=name,
        )
    repeats = bool(((ticks[1:] == ticks[:-1]) & same).any())
    binned = schema.time.off_grid != "refuse" or all(is_event_like(channel) for channel in schema.channels)
    if repeats and not binned:
        raise DataError(
            f"Column '{name}': a series has the same timestamp twice. Remove the duplicate; or, if rows are "
            "events, declare time.off_grid = 'floor' and an aggregate for each channel.",
            column=name,
        )
    return repeats


def _origin(
    first_ticks: Int64[np.ndarray, " series"], first_series: Int[np.ndarray, " series"], time: Time
) -> Int64[np.ndarray, " series"]:
    if time.align == "relative":
        origin = np.empty_like(first_ticks)
        origin[first_series] = first_ticks
        return origin
    return np.full(len(first_ticks), 0 if time.counts_steps else start_microseconds(time), dtype=np.int64)


def _steps(
    series: Int[np.ndarray, " row"],
    ticks: Int64[np.ndarray, " row"],
    origin: Int64[np.ndarray, " series"],
    time: Time,
) -> Int32[np.ndarray, " row"]:
    """Returns each row's step, a few rows at a time, so that the large table has no large working copies."""
    steps = np.empty(len(ticks), dtype=np.int32)
    for begin in range(0, len(ticks), _ROWS_AT_A_TIME):
        rows = slice(begin, begin + _ROWS_AT_A_TIME)
        start = origin[series[rows]] if time.align == "relative" else int(origin[0])
        found, on_grid = steps_since(ticks[rows], start, time)
        if not on_grid:
            raise _between_steps(time)
        if found.min() < 0 or found.max() >= time.steps:
            raise _outside(time)
        steps[rows] = found
    return steps


def _between_steps(time: Time) -> DataError:
    counted_from = time.start if time.align == "calendar" else "the start of each series"
    return DataError(
        f"Column '{time.column}': a timestamp lies between two steps of {time.frequency} counted from "
        f"{counted_from}. Put the timestamps on the grid, or declare time.off_grid = 'floor' or 'nearest'."
        + _about_zones(time),
        column=time.column,
    )


def _about_zones(time: Time) -> str:
    """Says how timestamps with and without an offset are compared with the start, where that may be the cause."""
    if time.counts_steps or time.align == "relative":
        return ""
    if time.zone is not None:
        return f" Timestamps without an offset are read as times of time.zone = '{time.zone}'."
    if dt.datetime.fromisoformat(time.start).tzinfo is not None:
        return (
            " time.start carries an offset: if the timestamps carry none, write time.start without it, or declare "
            "their time.zone."
        )
    return (
        " If the timestamps carry a time zone or an offset, they are compared in UTC, and time.start is read as UTC: "
        f"write its offset (such as {time.start}+01:00), or declare time.zone."
    )


def _outside(time: Time) -> DataError:
    if time.align == "relative" or time.column is None:
        message = f"a series is longer than the declared {time.steps} steps. Raise time.steps or cut the series."
    else:
        message = (
            f"a timestamp lies outside the declared {time.steps} steps of {time.frequency} from "
            f"{time.start}. Raise time.steps, move time.start, or drop the rows.{_about_zones(time)}"
        )
    return DataError(f"Column '{time.column or 'time'}': {message}", column=time.column)


def merge_shared_steps(
    series: Int[np.ndarray, " row"],
    placement: Placement,
    values: Float32[np.ndarray, "row channel"],
    channels: tuple[Channel, ...],
    counted: tuple[bool, ...],
) -> tuple[Int[np.ndarray, " merged"], Int32[np.ndarray, " merged"], Float32[np.ndarray, "merged channel"]]:
    """Makes the rows of one step one, by each channel's declared aggregate.

    Rows come in the placement's order; `counted` marks the channels that count rows and have no column of
    their own.
    """
    step = placement.step
    new = np.concatenate([[True], (series[1:] != series[:-1]) | (step[1:] != step[:-1])])
    first = np.flatnonzero(new)
    size = np.diff(np.append(first, len(series)))
    merged = np.empty((len(first), len(channels)), dtype=np.float32)
    for index, channel in enumerate(channels):
        if counted[index]:
            merged[:, index] = size
        else:
            merged[:, index] = _aggregate(values[:, index], first, channel)
    return series[first], step[first], merged


def _aggregate(
    values: Float32[np.ndarray, " row"], first: Int64[np.ndarray, " merged"], channel: Channel
) -> np.ndarray:
    missing = np.isnan(values)
    if channel.aggregate in ("max", "min"):
        pick = np.fmax if channel.aggregate == "max" else np.fmin
        extreme: np.ndarray = pick.reduceat(values, first)
        return extreme
    if channel.aggregate == "last":
        latest = np.maximum.reduceat(np.where(missing, -1, np.arange(len(values))), first)
        return np.where(latest < 0, np.float32(np.nan), values[latest])
    observed = np.add.reduceat((~missing).astype(np.int64), first)
    total = np.add.reduceat(np.where(missing, 0.0, values.astype(np.float64)), first)
    if channel.aggregate == "mean":
        total = total / np.maximum(observed, 1)
        total = np.rint(total) if isinstance(channel, Integer) else total
    return np.where(observed == 0, np.nan, total)
