"""Windows: contiguous slices of series, with the most one unit can weigh in them."""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float32, Int64

from understudy.data.channels import is_event_like
from understudy.data.panel import Panel, take_context
from understudy.data.schema import Schema, ZeroWhen
from understudy.errors import InputError, SchemaError


@dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """A panel of windows.

    Attributes:
        panel: One series per window; the schema says the window's steps.
        stability: Most windows that change when one privacy unit is added or removed. Whoever spends budget
            on the windows multiplies one window's influence by it.
    """

    panel: Panel
    stability: int


def stability(schema: Schema, window_steps: int, stride: int, max_windows_per_unit: int | None = None) -> int:
    """Returns the most windows one privacy unit can touch, from public facts only.

    An entity touches all its windows. An event of w steps touches ⌈(L + w − 1) / stride⌉ windows of L steps.
    """
    _check(schema, window_steps, stride)
    per_series = (schema.num_steps - window_steps) // stride + 1
    touched = per_series
    if schema.unit.kind == "event":
        touched = min(per_series, math.ceil((window_steps + schema.unit.event_steps - 1) / stride))
    total = touched * schema.unit.max_series
    return total if max_windows_per_unit is None else min(total, max_windows_per_unit)


def check_events(schema: Schema, window_steps: int, *, whole_windows: bool) -> None:
    """Refuses series in which one event can touch more windows than `stability` says.

    Args:
        whole_windows: Whether windows with an empty step are left out.
    """
    if schema.time.align == "relative":
        raise InputError(
            "Events can't be protected when every series starts at its own first row (time.align = 'relative'): "
            "one row less would move all the others. Use time.align = 'calendar', or protect entities."
        )
    windowed = window_steps < schema.num_steps
    filled = [channel.name for channel in schema.channels if is_event_like(channel)]
    if filled and (windowed or whole_windows):
        raise InputError(
            f"Events can't be protected in windows where steps without rows are 0 (aggregate of '{filled[0]}'): "
            "one row less changes windows instead of taking them away, and a unit's only row takes away all of "
            "them. Protect entities, or learn from whole series by a method such as spectral."
        )
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
) -> Windows:
    """Cuts every series into full windows, at most `max_windows_per_unit` of a unit if a cap is given.

    With `rng` the kept windows are chosen at random, without it the earliest ones are kept.

    Privacy:
        Which windows a unit keeps depends on that unit's own length and on fresh randomness, never on other
        units. The stability is computed from the schema and not from the data.

    Edge cases:
        A unit whose series are all shorter than a window has no window and drops out.
    """
    _check(panel.schema, window_steps, stride)
    starts = np.arange(0, panel.num_steps - window_steps + 1, stride)
    fits = starts[None, :] + window_steps <= panel.lengths[:, None]
    if max_windows_per_unit is not None:
        fits = _capped(fits, panel.unit, max_windows_per_unit, rng)
    series, index = np.nonzero(fits)
    views = np.lib.stride_tricks.sliding_window_view(panel.values, window_steps, axis=1)
    kept, unit = np.unique(panel.unit[series], return_inverse=True)
    factor = stability(panel.schema, window_steps, stride, max_windows_per_unit)
    windows = Panel(
        schema=window_schema(panel.schema, window_steps, stride, max_windows_per_unit),
        values=np.ascontiguousarray(np.moveaxis(views[series, starts[index]], 1, 2)),
        lengths=np.full(len(series), window_steps, dtype=np.int32),
        unit=unit.astype(np.int64),
        static=panel.static[series],
        context=_window_context(panel, series, starts[index], window_steps),
        shared_context=None if panel.shared_context is None else panel.shared_context[:window_steps],
        private=panel.private,
        unit_ids=None if panel.unit_ids is None else panel.unit_ids[kept],
    )
    return Windows(windows, factor)


def without_empty_steps(windows: Panel) -> Panel:
    """Returns the windows in which something was observed at every step.

    Privacy:
        Protects events. An event that is taken away leaves empty steps, so the windows it touched are left out and
        all others stay as they were: neighbours differ by windows that are there or not, never by changed ones.
    """
    return windows.take_series(np.asarray(np.asarray(windows.observed.any(axis=2)).all(axis=1)))


def without_empty(windows: Panel) -> Panel:
    """Returns the windows in which anything was observed.

    Privacy:
        Protects events. A unit that has no row without an event is not in the table at all; its windows without any
        observation would leave with it, however many, although the event did not touch them.
    """
    return windows.take_series(np.asarray(windows.observed.any(axis=(1, 2))))


def sliding(rows: Float32[np.ndarray, "row channel"], steps: int) -> Float32[np.ndarray, "window step channel"]:
    """Returns the windows that begin at rows 0 .. n − steps − 1.

    The last possible window is left out, as in the papers whose window counts this has to match.
    """
    views = np.lib.stride_tricks.sliding_window_view(rows, steps, axis=0)[:-1]
    return np.ascontiguousarray(np.moveaxis(views, 1, 2))


def _check(schema: Schema, window_steps: int, stride: int) -> None:
    if not 1 <= window_steps <= schema.num_steps or stride < 1:
        raise SchemaError(
            f"Windows: 1 to {schema.num_steps} steps and a stride of at least 1 are expected.",
            key="time.steps",
        )


def _capped(
    fits: Bool[np.ndarray, "series start"],
    unit: Int64[np.ndarray, " series"],
    cap: int,
    rng: np.random.Generator | None,
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
    cap, num_starts = max_windows_per_unit, (schema.num_steps - window_steps) // stride + 1
    same_start = num_starts == 1
    constraints = [c for c in schema.constraints if same_start or not (isinstance(c, ZeroWhen) and c.hours)]
    max_series = schema.unit.max_series * num_starts
    return replace(
        schema,
        unit=replace(schema.unit, max_series=max_series if cap is None else min(cap, max_series)),
        time=replace(
            schema.time,
            steps=window_steps,
            min_steps=None,
            align="calendar" if same_start and schema.time.align == "calendar" else "relative",
        ),
        constraints=tuple(constraints),
        columns=() if schema.time.layout == "wide" else schema.columns,
    )


def _window_context(
    panel: Panel, series: Int64[np.ndarray, " window"], start: Int64[np.ndarray, " window"], window_steps: int
) -> Float32[np.ndarray, "window step context"] | None:
    if panel.context is None:
        return None
    if window_steps == panel.num_steps:
        return take_context(panel.context, series)
    views = np.lib.stride_tricks.sliding_window_view(panel.context, window_steps, axis=1)
    return np.ascontiguousarray(np.moveaxis(views[series, start], 1, 2))
