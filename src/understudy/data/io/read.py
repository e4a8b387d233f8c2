"""The one way in: a table, or an array, and its schema become a private panel.

Batches are reduced to codes, ticks and float32 as they arrive, so memory grows with the panel and not with the text of
the table. Every rule looks at one series at a time, so what happens to one unit never depends on another. Errors name
columns and declared facts, never a value.
"""

import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32, Int, Int32, Int64

from understudy.data.channels import Channel, Integer, is_event_like
from understudy.data.io.arrow import array_values, encode, plain, settle_column, to_ticks, to_values
from understudy.data.io.context import (
    ContextRows,
    align_context,
    context_part,
    given_context,
    merge_context,
    require_context,
)
from understudy.data.io.sources import Source, form_of, open_source, refuse_unknown_columns, require_once
from understudy.data.io.stores import is_array_file, table_files
from understudy.data.panel import Panel, broadcast_context, row_chunks
from understudy.data.schema import FALLBACK_SERIES_COLUMN, Schema, column_names, table_columns
from understudy.data.timegrid import Time, start_microseconds, steps_since
from understudy.data.type_checks import require_argument, require_column, wrong_column
from understudy.errors import DataError, SchemaError

MIN_UNITS = 100
_ROWS_AT_A_TIME = 2_000_000
Values = Float32[np.ndarray, "series step channel"]
Rows = Int[np.ndarray, " row"]
Series = Int64[np.ndarray, " series"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Grid:
    """Series on the declared axis, laid out as a panel's and not yet checked against bounds."""

    values: Values
    lengths: Int32[np.ndarray, " series"]
    unit: Series
    static: Float32[np.ndarray, "series static"]
    ids: np.ndarray | None  # of units
    origin: Series  # tick of each series' step 0
    context: ContextRows | None = None  # that the table itself holds


def read_panel(source: Any, schema: Schema, *, context: Any = None, allow_few_units: bool = False) -> Panel:
    """Reads a table into a private panel, checking everything its schema declares.

    Args:
        source: A path (.csv, .parquet, .arrow, .feather, .npy, .npz), a folder of such tables or the URL of either,
            a data frame (pandas, polars, also lazy), an Arrow table or dataset, a DuckDB relation, or an array
            [series, step, channel]. Levels of a pandas index are columns. `open_table` reads what does not fit in
            memory.
        schema: The public contract.
        context: Public context: a table with the time column and the context columns, or an array
            [step, context].
        allow_few_units: Lets fewer than 100 units pass; the caller records the override.

    Privacy:
        Reads private data and releases nothing. Every transformation looks at one series at a time: adding a
        unit leaves the values of all others as they were. That an error was raised depends on the data, so
        errors are for the data holder; they name columns and declared facts, never values, identifiers or
        counts.

    Edge cases:
        An empty table, a single unit, fewer than 100 units, a column that is missing everywhere, duplicate or
        unsorted timestamps and values outside the declared bounds are refused.
    """
    require_argument(schema, Schema, "schema", "Load it first: Schema.load(path).")
    schema.require_declared()
    if not isinstance(source, str | Path):
        schema = replace(schema, frame=form_of(source))
    given = given_context(context, schema)
    if isinstance(source, np.ndarray) or is_array_file(source):
        grid = _read_array(source, schema)
    else:
        grid = grid_of(open_source(source, schema), schema, with_context=given is None)
    tally = Tally(schema)
    tally.add(grid)
    tally.finish(allow_few_units=allow_few_units)
    return panel_of(grid, schema, given)


def panel_of(grid: Grid, schema: Schema, context: ContextRows | np.ndarray | None) -> Panel:
    """Returns the private panel of a grid whose values were checked; without `context` the grid's own is taken."""
    found = grid.context if context is None else context
    require_context(schema, given=found is not None)
    if isinstance(found, ContextRows):
        found = align_context(found, grid.origin, grid.lengths, schema)
    if found is not None and found.ndim == 2:
        found = broadcast_context(found, len(grid.values))
    kept = {name: getattr(grid, name) for name in ("values", "lengths", "unit", "static")}
    return Panel(schema=schema, **kept, context=found, unit_ids=grid.ids)


def grid_of(opened: Source, schema: Schema, *, with_context: bool) -> Grid:
    """Returns the series of an open table on the declared axis; values are not checked against bounds yet."""
    if schema.time.layout == "wide":
        return _read_wide(opened, schema)
    if schema.unit.kind == "overlapping-window" and schema.unit.column not in opened.columns:
        return _read_overlapping_windows(opened, schema)
    in_table = any(channel.name in opened.columns for channel in schema.context)
    return _read_long(opened, schema, with_context=with_context and in_table)


@dataclass(eq=False, repr=False)
class Tally:
    """Checks series as they come, and takes note of what only all of them together can tell; private."""

    schema: Schema
    num_units: int = 0
    num_series: int = 0

    def __post_init__(self) -> None:
        self.columns = (*self.schema.channels, *self.schema.static)
        self.observed = np.zeros(len(self.columns), dtype=bool)  # which of them hold any value

    def add(self, grid: Grid) -> None:
        """Checks series of whole units; clips their values where that is declared."""
        schema, steps = self.schema, np.arange(grid.values.shape[1])
        counts = np.bincount(grid.unit)
        self.num_units += len(counts)
        self.num_series += len(grid.unit)
        if (counts > schema.unit.max_series).any():
            told = (
                f"A unit has more series than the declared unit.max_series = {schema.unit.max_series}. Raise it (one "
            )
            more = "unit may then weigh more, and the same budget buys less), or keep fewer series per unit."
            raise DataError(told + more, column=schema.unit.column)
        shortest = schema.time.min_steps
        if shortest is not None and len(grid.lengths) and grid.lengths.min() < shortest:
            told = f"A series is shorter than the declared time.min_steps = {shortest}. Lower it, or drop short series."
            raise DataError(told, column=schema.time.column)
        for rows in row_chunks(grid.values):
            inside = steps < grid.lengths[rows, None]
            for index, channel in enumerate(schema.channels):
                self.observed[index] |= settle_column(grid.values[rows, :, index], channel, inside)
        for index, channel in enumerate(schema.static):
            self.observed[schema.num_channels + index] |= settle_column(grid.static[:, index], channel, np.True_)

    def merge(self, other: "Tally") -> None:
        """Takes in what was noted of other units."""
        self.num_units += other.num_units
        self.num_series += other.num_series
        self.observed |= other.observed

    def finish(self, *, allow_few_units: bool) -> None:
        """Checks what all series together have to obey."""
        check_units(self.num_units, self.num_series, self.schema, allow_few_units=allow_few_units)
        for column, observed in zip(self.columns, self.observed, strict=True):
            told = "missing everywhere. Drop it from the schema, or bring its values."
            require_column(observed, column.name, told)


def check_units(num_units: int, num_series: int, schema: Schema, *, allow_few_units: bool) -> None:
    """Refuses an empty table, one unit and too few units."""
    event_steps, protected, what, column = schema.unit.event_steps, num_units, "units", schema.unit.column
    if num_units == 0:
        raise DataError("The table is empty. Expected rows.")
    if schema.unit.kind == "event":
        protected = num_series * -(-schema.num_steps // event_steps)
        what = f"stretches of unit.event_steps = {event_steps} steps"
    elif num_units < 2:
        told = "The table holds a single unit: nobody can be hidden in it. Check unit.column, bring more units, or"
        raise DataError(f"{told} protect stretches of time in one series: unit.kind = 'event'.", column=column)
    if protected < MIN_UNITS and not allow_few_units:
        told = f"The table holds fewer than {MIN_UNITS} {what}, too few for useful private output."
        raise DataError(f"{told} Bring more, or read with allow_few_units (the override is recorded).", column=column)


def read_first_categories(source: Any, schema: Schema, column: str) -> tuple[list[str], bool]:
    """Returns each unit's first category as text, and whether the column stores whole numbers.

    For a column whose categories are not declared yet. Units without any category are left out.

    Privacy:
        Reads private data and releases nothing. A unit's category comes from its own rows, in the table's order.
    """
    array = is_array_file(source) or isinstance(source, np.ndarray)
    told = "an array holds codes and no names. Bring a table (.parquet, .csv, .arrow)."
    require_column(not array, column, told)
    opened, unit = open_source(source, schema), schema.unit.column or schema.time.series_column
    dtype = schema.unit.dtype if schema.unit.column else "string"
    changes = column in [channel.name for channel in schema.channels]
    columns = column_names(schema, column) if changes else [column]
    for name in (*columns, *([] if unit is None else [unit])):
        require_once(opened, name)
    first: dict[Any, str | None] = {}
    whole = False
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    for batch in opened.batches:
        arrays = [plain(batch.column(name)) for name in columns]  # a row of a wide table has a category per step
        whole = all(pa.types.is_integer(array.type) for array in arrays)
        known = whole or all(any(test(array.type) for test in text) for array in arrays)
        require_column(known, column, "text or whole numbers are expected. Convert the column.")
        categories = pc.coalesce(*(array.cast(pa.large_string()) for array in arrays)).to_pylist()
        rows = range(len(first), len(first) + batch.num_rows)  # each its own unit where no column names units
        owners = rows if unit is None else encode(batch.column(unit), unit, dtype).to_pylist()
        for owner, category in zip(owners, categories, strict=True):
            if first.get(owner) is None:
                first[owner] = category
    check_units(len(first), len(first), schema, allow_few_units=False)
    return [category for category in first.values() if category is not None], whole


def unit_column(columns: tuple[str, ...], schema: Schema) -> str | None:
    """Returns the column that distinguishes units; None where every row of a wide table is a unit."""
    if schema.unit.column is not None or schema.time.layout == "wide":
        return schema.unit.column
    return schema.time.series_column or (FALLBACK_SERIES_COLUMN if FALLBACK_SERIES_COLUMN in columns else None)


def _require_columns(source: Source, schema: Schema, counted: list[bool], *, with_context: bool) -> None:
    """Refuses a long table with other columns than the schema names."""
    time, unit = schema.time, unit_column(source.columns, schema)
    if unit is None and not (schema.unit.kind == "event" and schema.population.size == 1):
        raise DataError(
            "A long table needs unit.column, which says whose rows they are. Declare it in the schema; or, if the "
            "table is one series of which stretches of time are protected, unit.kind = 'event' and population = 1."
        )
    measured = {c.name for c, count in zip(schema.channels, counted, strict=True) if not count}
    context = {c.name for c in schema.context}
    keys = {name for name in (unit, time.series_column, time.column) if name is not None}
    required = keys | measured | {c.name for c in schema.static} | (context if with_context else set())
    refuse_unknown_columns(source, required | context | set(schema.ignore), required)


def _read_long(source: Source, schema: Schema, *, with_context: bool) -> Grid:
    """Reads a table with a row per series and step; `with_context` takes public context from it too."""
    counted = [c.aggregate == "count" and c.name not in source.columns for c in schema.channels]
    _require_columns(source, schema, counted, with_context=with_context)
    column, batches, context = unit_column(source.columns, schema), [], []
    for batch in source.batches:
        batches.append(_compact(batch, schema, column, counted))
        context += [context_part(batch, schema)] if with_context else []
    if not batches:
        raise DataError(f"{source.name}: the table is empty. Expected rows.")
    rows = pa.Table.from_batches(batches).unify_dictionaries()
    del batches
    series, ids = _codes(rows, "unit")
    unit = np.arange(len(ids), dtype=np.int64)  # of each series
    if "series" in rows.column_names:
        within, names = _codes(rows, "series")
        pairs, series = np.unique(series.astype(np.int64) * len(names) + within, return_inverse=True)
        unit = pairs // len(names)
    if int(np.count_nonzero(series[1:] != series[:-1])) + 1 != len(unit):  # bring the rows of a series together
        order = np.argsort(series, kind="stable")
        numbers = [name for name in rows.column_names if name not in ("unit", "series")]
        series, rows = series[order], pa.table({name: rows.column(name).to_numpy()[order] for name in numbers})
    step, lengths, origin = _place_rows(rows, series, len(unit), schema)
    return Grid(
        values=_scatter(rows, series, step, lengths, schema, counted),
        lengths=lengths,
        unit=unit,
        static=_static(rows, series, len(unit), schema),
        ids=None if column is None else np.array(ids.to_pylist(), dtype=object),
        origin=origin,
        context=merge_context(context, schema) if context else None,
    )


def _compact(batch: pa.RecordBatch, schema: Schema, unit: str | None, counted: list[bool]) -> pa.RecordBatch:
    """Returns the keys of a batch as dictionaries, its times as ticks and its values as float32."""
    series = schema.time.series_column
    one = pa.array(np.zeros(batch.num_rows, dtype=np.int64)).dictionary_encode()
    compact = {"unit": one if unit is None else encode(batch.column(unit), unit, schema.unit.dtype)}
    if series not in (None, unit):
        compact["series"] = encode(batch.column(series), str(series), "string")
    if schema.time.column is not None:
        compact["ticks"] = pa.array(to_ticks(batch.column(schema.time.column), schema.time))
    measured = [(f"channel {i}", c) for i, c in enumerate(schema.channels) if not counted[i]]
    for name, channel in (*measured, *((f"static {i}", c) for i, c in enumerate(schema.static))):
        compact[name] = pa.array(to_values(batch.column(channel.name), channel))
    return pa.RecordBatch.from_arrays(list(compact.values()), names=list(compact))


def _codes(rows: pa.Table, name: str) -> tuple[Int32[np.ndarray, " row"], pa.Array]:
    """Returns each row's code and what the codes stand for, in the order of their first appearance in the table."""
    chunks = rows.column(name).chunks
    return np.concatenate([chunk.indices.to_numpy() for chunk in chunks]), chunks[0].dictionary


def _static(rows: pa.Table, series: Rows, num_series: int, schema: Schema) -> Float32[np.ndarray, "series static"]:
    """Returns each series' static row; refuses a column that changes within a series."""
    static = np.empty((num_series, len(schema.static)), dtype=np.float32)
    for index, channel in enumerate(schema.static):
        column = rows.column(f"static {index}").to_numpy()
        static[series, index] = column
        kept = static[series, index]
        told = "it is declared static and changes within a series. Declare it under [[channels]], or correct it."
        require_column(np.array_equal(column, kept, equal_nan=True), channel.name, told)
    return static


def _place_rows(
    rows: pa.Table, series: Rows, num_series: int, schema: Schema
) -> tuple[Int32[np.ndarray, " row"], Int32[np.ndarray, " series"], Series]:
    """Returns the step of every row, and the length and the origin of every series.

    Refuses timestamps that go back, repeat or leave the declared axis.
    """
    time = schema.time
    first = np.flatnonzero(np.concatenate([[True], series[1:] != series[:-1]]))
    last = np.append(first[1:], len(series)) - 1
    if time.column is None:  # rows without a time column are consecutive steps
        steps = (np.arange(len(series)) - np.repeat(first, last - first + 1)).astype(np.int32)
        origin = np.zeros(num_series, dtype=np.int64)
        if steps.max() >= time.steps:
            raise _outside(time)
    else:
        ticks = rows.column("ticks").to_numpy()
        _check_order(series, ticks, schema)
        origin = np.full(num_series, 0 if time.counts_steps else start_microseconds(time), dtype=np.int64)
        if time.align == "relative":
            origin[series[first]] = ticks[first]
        steps = _steps(series, ticks, origin, time)
    lengths = np.full(num_series, time.steps, dtype=np.int32)
    if time.variable_length:
        lengths[series[first]] = steps[last] + 1
    return steps, lengths, origin


def _check_order(series: Rows, ticks: Rows, schema: Schema) -> None:
    """Refuses timestamps that go back, and such that repeat unless that is declared."""
    same, name = series[1:] == series[:-1], str(schema.time.column)
    back = ((ticks[1:] < ticks[:-1]) & same).any()
    told = "the timestamps of a series are not in order. Sort the table by series and time (sort_values)."
    require_column(not back, name, told)
    binned = schema.time.off_grid != "refuse" or all(is_event_like(channel) for channel in schema.channels)
    if not binned and ((ticks[1:] == ticks[:-1]) & same).any():
        told = "a series has the same timestamp twice. Remove the duplicate; or, if rows are events, declare"
        raise wrong_column(name, f"{told} time.off_grid = 'floor' and an aggregate for each channel.")


def _steps(series: Rows, ticks: Rows, origin: Series, time: Time) -> Int32[np.ndarray, " row"]:
    """Returns each row's step, a few rows at a time, so that the large table has no large working copies."""
    steps = np.empty(len(ticks), dtype=np.int32)
    for begin in range(0, len(ticks), _ROWS_AT_A_TIME):
        rows = slice(begin, begin + _ROWS_AT_A_TIME)
        start = origin[series[rows]] if time.align == "relative" else int(origin[0])
        found, on_grid = steps_since(ticks[rows], start, time)
        counted_from = time.start if time.align == "calendar" else "the start of each series"
        told = f"a timestamp lies between two steps of {time.frequency} counted from {counted_from}. Put the timestamps"
        remedy = f"on the grid, or declare time.off_grid = 'floor' or 'nearest'.{_about_zones(time)}"
        require_column(on_grid, str(time.column), f"{told} {remedy}")
        if found.min() < 0 or found.max() >= time.steps:
            raise _outside(time)
        steps[rows] = found
    return steps


def _about_zones(time: Time) -> str:
    """Says how timestamps with and without an offset are compared with the start, where that may be the cause."""
    if time.counts_steps or time.align == "relative":
        return ""
    if time.zone is not None:
        return f" Timestamps without an offset are read as times of time.zone = '{time.zone}'."
    if dt.datetime.fromisoformat(time.start).tzinfo is not None:
        return " time.start has an offset: if the timestamps have none, write it without, or declare their time.zone."
    return (
        " Timestamps with a time zone or an offset are compared in UTC, as which time.start is read: write its offset "
        f"(such as {time.start}+01:00), or declare time.zone."
    )


def _outside(time: Time) -> DataError:
    if time.align == "relative" or time.column is None:
        problem = f"a series is longer than the declared {time.steps} steps. Raise time.steps or cut the series."
        return DataError(f"Column '{time.column or 'time'}': {problem}", column=time.column)
    told = f"a timestamp lies outside the declared {time.steps} steps of {time.frequency} from {time.start}."
    return wrong_column(time.column, f"{told} Raise time.steps, move time.start, or drop the rows.{_about_zones(time)}")


def _scatter(
    rows: pa.Table, series: Rows, step: Rows, lengths: np.ndarray, schema: Schema, counted: list[bool]
) -> Values:
    """Puts every row at its step; several rows of one step become one, by each channel's declared aggregate."""
    begins = np.concatenate([[True], (series[1:] != series[:-1]) | (step[1:] != step[:-1])])
    first = None if begins.all() and not any(counted) else np.flatnonzero(begins)
    if first is not None:
        size = np.diff(np.append(first, len(series)))
        series, step = series[first], step[first]
    values = np.full((len(lengths), schema.num_steps, schema.num_channels), np.nan, dtype=np.float32)
    for index, channel in enumerate(schema.channels):
        if is_event_like(channel):  # a step without rows had no events
            values[:, :, index] = np.where(np.arange(schema.num_steps) < lengths[:, None], 0.0, np.nan)
        if counted[index]:  # rows, which need no column of their own
            values[series, step, index] = size
            continue
        column = rows.column(f"channel {index}").to_numpy()
        values[series, step, index] = column if first is None else _aggregate(column, first, channel)
    return values


def _aggregate(values: Float32[np.ndarray, " row"], first: Int64[np.ndarray, " step"], channel: Channel) -> np.ndarray:
    """Makes the rows of one step one; `first` is where the rows of each step begin."""
    missing = np.isnan(values)
    if channel.aggregate in ("max", "min"):
        pick = np.fmax if channel.aggregate == "max" else np.fmin
        return np.asarray(pick.reduceat(values, first))
    if channel.aggregate == "last":
        latest = np.maximum.reduceat(np.where(missing, -1, np.arange(len(values))), first)
        return np.where(latest < 0, np.float32(np.nan), values[latest])
    observed = np.add.reduceat((~missing).astype(np.int64), first)
    total = np.add.reduceat(np.where(missing, 0.0, values.astype(np.float64)), first)
    if channel.aggregate == "mean":
        total = total / np.maximum(observed, 1)
        total = np.rint(total) if isinstance(channel, Integer) else total
    return np.where(observed == 0, np.nan, total)


def _read_wide(source: Source, schema: Schema) -> Grid:
    """Reads a table with a row per series and a column per channel and step."""
    context, unit = {channel.name for channel in schema.context}, schema.unit.column
    required = {*table_columns(schema), *filter(None, [schema.time.series_column])} - context
    refuse_unknown_columns(source, required | context | set(schema.ignore), required)
    values, static, units = [], [], []
    for batch in source.batches:
        channels = [
            [to_values(batch.column(name), channel) for name in column_names(schema, channel.name)]
            for channel in schema.channels
        ]
        values.append(np.ascontiguousarray(np.transpose(channels)))
        columns = [to_values(batch.column(channel.name), channel) for channel in schema.static]
        static.append(np.array(columns, dtype=np.float32).reshape(-1, batch.num_rows).T)
        units += [] if unit is None else [plain(encode(batch.column(unit), unit, schema.unit.dtype))]
    if not values:
        raise DataError(f"{source.name}: the table is empty. Expected rows.")
    grid = _grid_of_series(np.concatenate(values), np.concatenate(static), schema)
    return grid if unit is None else _by_unit(grid, pa.concat_arrays(units))


def _grid_of_series(values: Values, static: Float32[np.ndarray, "series static"], schema: Schema) -> Grid:
    """Makes a grid of series that are laid out already, each its own unit."""
    lengths = np.full(len(values), schema.num_steps, dtype=np.int32)
    if schema.time.variable_length:  # a series ends with its last observed step
        observed = ~np.isnan(values).all(axis=2)
        lengths -= np.argmax(observed[:, ::-1], axis=1).astype(np.int32)
        lengths[~observed.any(axis=1)] = 1
    own = np.arange(len(values), dtype=np.int64)
    return Grid(values=values, lengths=lengths, unit=own, static=static, ids=None, origin=np.zeros_like(own))


def _by_unit(grid: Grid, identifiers: pa.Array) -> Grid:
    """Brings the series of a unit side by side; units are numbered in the order of their first appearance."""
    units = identifiers.dictionary_encode()
    unit = units.indices.to_numpy().astype(np.int64)
    rows: Any = np.argsort(unit, kind="stable") if (np.diff(unit) < 0).any() else slice(None)
    arranged: Any = {name: getattr(grid, name)[rows] for name in ("values", "lengths", "static")}
    return replace(grid, **arranged, unit=unit[rows], ids=np.array(units.dictionary.to_pylist(), dtype=object))


def _read_array(source: np.ndarray | str | Path, schema: Schema) -> Grid:
    """Reads an array [series, step, channel], or a .npy or .npz file of it.

    A .npz file has `values` and may have `lengths`, `unit` (whole numbers) and `static`.
    """
    arrays = {"values": source} if isinstance(source, np.ndarray) else _load_arrays(source)
    values = array_values(arrays["values"], "values", schema.channels)
    if values.shape[1:] != (schema.num_steps, schema.num_channels):
        told = f"[series, step, channel] with {schema.num_steps} steps and {schema.num_channels} channels is expected"
        raise DataError(f"Array: {told}, as the schema declares. Reshape it.")
    static = array_values(arrays.get("static", np.empty((len(values), 0))), "static", schema.static)
    if static.shape != (len(values), len(schema.static)):
        raise DataError("Array: the schema declares static columns; bring them as `static` in a .npz file.")
    grid = _grid_of_series(values, static, schema)
    if "lengths" in arrays:
        grid = replace(grid, lengths=arrays["lengths"].astype(np.int32))
    if "unit" not in arrays:
        return grid
    unit = arrays["unit"]
    if unit.shape != (len(values),) or unit.dtype.kind not in "iu":
        raise DataError("Array `unit`: one whole number per series is expected. Number the units.", column="unit")
    return _by_unit(grid, pa.array(unit))


def _load_arrays(source: str | Path) -> dict[str, np.ndarray]:
    name = table_files(Path(source)).name  # or the error that nothing is there
    try:
        loaded = np.load(source, allow_pickle=False)
        arrays = {"values": loaded} if isinstance(loaded, np.ndarray) else {key: loaded[key] for key in loaded}
    except (ValueError, OSError, EOFError, KeyError):
        told = "not a readable numpy file. Write it again with numpy.save or numpy.savez."
        raise DataError(f"{name}: {told}") from None
    if "values" not in arrays:
        raise DataError(f"{name}: an array named `values` is expected. Name it in numpy.savez.", column="values")
    return arrays


def _read_overlapping_windows(source: Source, schema: Schema) -> Grid:
    """Reads one long series and cuts it into windows at every step, each its own unit.

    Reproduces what papers do. It protects no person: a person in the series is in many windows.
    """
    if schema.static:
        raise SchemaError("Key 'static': windows of one series can't have static columns.", key="static")
    names = {channel.name for channel in schema.channels}
    refuse_unknown_columns(source, names | {schema.time.column or ""} | set(schema.ignore), names)
    rows = [
        np.stack([to_values(batch.column(channel.name), channel) for channel in schema.channels], axis=1)
        for batch in source.batches
    ]
    if not rows or sum(len(piece) for piece in rows) <= schema.num_steps:
        told = "more rows than the declared steps are expected. Add rows, or declare fewer steps."
        raise DataError(f"{source.name}: {told}")
    # The last possible window is left out, as in the papers whose window counts this has to match.
    views = np.lib.stride_tricks.sliding_window_view(np.concatenate(rows), schema.num_steps, axis=0)[:-1]
    windows = np.ascontiguousarray(np.moveaxis(views, 1, 2))
    return _grid_of_series(windows, np.empty((len(windows), 0), dtype=np.float32), schema)
