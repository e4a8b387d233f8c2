"""Windows: contiguous slices of series, with the most one unit can weigh in them."""

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from understudy.data.channels import is_event_like
from understudy.data.constraints import ZeroWhen
from understudy.data.panel import Panel, take_context
from understudy.data.schema import Schema
from understudy.errors import InputError, SchemaError


def stability(schema: Schema, window_steps: int, stride: int) -> int:
    """Returns the most windows that change when one privacy unit is added or removed, from public facts only.

    Budget spent on windows multiplies one window's influence by it. An entity touches all its windows.
    An event of w steps touches ⌈(L + w − 1) / stride⌉ windows of L steps.
    """
    _check(schema, window_steps, stride)
    touched = (schema.num_steps - window_steps) // stride + 1
    if schema.unit.kind == "event":
        touched = min(touched, math.ceil((window_steps + schema.unit.event_steps - 1) / stride))
    return touched * schema.unit.max_series


def check_events(schema: Schema, window_steps: int, *, whole_windows: bool) -> None:
    """Refuses series in which one event can touch more windows than `stability` says.

    `whole_windows` says whether windows with an empty step are left out.
    """
    if schema.time.align == "relative":
        told = "Events can't be protected when every series starts at its own first row (time.align = 'relative'): one"
        raise InputError(f"{told} row less would move all the others. Use 'calendar', or protect entities.")
    windowed = window_steps < schema.num_steps
    filled = [channel.name for channel in schema.channels if is_event_like(channel)]
    if filled and (windowed or whole_windows):
        told = (
            f"Events can't be protected in windows where steps without rows are 0 (aggregate of '{filled[0]}'): one row"
        )
        why = "less changes windows instead of taking them away, and a unit's only row takes away all of them."
        raise InputError(f"{told} {why} Protect entities, or learn from whole series by a method such as spectral.")
    if windowed and schema.time.min_steps is not None and not whole_windows:
        raise InputError(
            "Events can't be protected in windows of series that end at their last row (time.min_steps): one late "
            "row less would take away every window after the row before it, however many. Declare series of fixed "
            "length with gaps (no time.min_steps, missing = true), leave window_steps out, or use a method that "
            "learns from whole windows, such as dit."
        )


def cut(
    panel: Panel,
    window_steps: int,
    stride: int,
    max_windows_per_unit: int | None = None,
    rng: np.random.Generator | None = None,
) -> Panel:
    """Returns every series cut into full windows, each a series of its own.

    If a cap is given, a unit keeps at most `max_windows_per_unit`: with `rng` chosen at random, without it the
    earliest ones. A unit whose series are all shorter than a window drops out.

    Privacy:
        Which windows a unit keeps depends on that unit's own length and on fresh randomness, never on other units.
    """
    schema = window_schema(panel.schema, window_steps, stride, max_windows_per_unit)
    starts = np.arange(0, panel.num_steps - window_steps + 1, stride)
    fits = starts[None, :] + window_steps <= panel.lengths[:, None]
    if max_windows_per_unit is not None:
        fits = _capped(fits, panel.unit, max_windows_per_unit, rng)
    series, index = np.nonzero(fits)
    start = starts[index]

    def taken(array: np.ndarray) -> np.ndarray:
        views = np.lib.stride_tricks.sliding_window_view(array, window_steps, axis=1)
        return np.ascontiguousarray(np.moveaxis(views[series, start], 1, 2))

    context = panel.context
    if context is not None:
        context = take_context(context, series) if window_steps == panel.num_steps else taken(context)
    kept, unit = np.unique(panel.unit[series], return_inverse=True)
    return Panel(
        schema=schema,
        values=taken(panel.values),
        lengths=np.full(len(series), window_steps, dtype=np.int32),
        unit=unit.astype(np.int64),
        static=panel.static[series],
        context=context,
        shared_context=None if panel.shared_context is None else panel.shared_context[:window_steps],
        private=panel.private,
        unit_ids=None if panel.unit_ids is None else panel.unit_ids[kept],
    )


def without_empty(windows: Panel, *, every_step: bool) -> Panel:
    """Returns the windows in which something was observed: at every step, or at any.

    Privacy:
        Protects events. An event that is taken away leaves empty steps. Asked of every step, the windows it touched are
        left out and all others stay as they were: neighbours differ by windows that are there or not, never by changed
        ones. Asked of any step: a unit that has no row without an event is not in the table at all; its windows without
        any observation would leave with it, however many, although the event did not touch them.
    """
    observed = np.asarray(windows.observed.any(axis=2))
    return windows.take_series(np.asarray(observed.all(axis=1) if every_step else observed.any(axis=1)))


def _check(schema: Schema, window_steps: int, stride: int) -> None:
    if not 1 <= window_steps <= schema.num_steps or stride < 1:
        told = f"Windows: 1 to {schema.num_steps} steps and a stride of at least 1 are expected."
        raise SchemaError(told, key="time.steps")


def _capped(
    fits: Bool[np.ndarray, "series start"], unit: np.ndarray, cap: int, rng: np.random.Generator | None
) -> Bool[np.ndarray, "series start"]:
    """Keeps at most `cap` windows of each unit."""
    series, start = np.nonzero(fits)
    owner = unit[series]
    priority = np.arange(len(series)) if rng is None else rng.random(len(series))
    order = np.lexsort((priority, owner))
    first = np.searchsorted(owner[order], owner[order], side="left")
    kept = order[np.arange(len(order)) - first < cap]
    capped = np.zeros_like(fits)
    capped[series[kept], start[kept]] = True
    return capped


def window_schema(schema: Schema, window_steps: int, stride: int, max_windows_per_unit: int | None = None) -> Schema:
    """The windows' own contract: windows start at different times, so hours of the day no longer apply."""
    _check(schema, window_steps, stride)
    num_starts = (schema.num_steps - window_steps) // stride + 1
    most = schema.unit.max_series * num_starts
    max_series = most if max_windows_per_unit is None else min(max_windows_per_unit, most)
    time, constraints = replace(schema.time, steps=window_steps, min_steps=None), schema.constraints
    if num_starts > 1:
        time = replace(time, align="relative")
        constraints = tuple(c for c in constraints if not (isinstance(c, ZeroWhen) and c.hours))
    unit, columns = replace(schema.unit, max_series=max_series), schema.columns if time.layout == "long" else ()
    return replace(schema, unit=unit, time=time, constraints=constraints, columns=columns)
