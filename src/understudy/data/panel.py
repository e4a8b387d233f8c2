"""The only container of series."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int32, Int64

from understudy.data.schema import Schema
from understudy.data.type_checks import require_argument
from understudy.extras import require_extra

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK_VALUES = 2**18  # of a piece: working copies stay in the processor's cache


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Series on one time axis, grouped by privacy unit, in the user's units of measure.

    Attributes:
        schema: The public contract the series obey.
        values: NaN where not observed; categories as codes 0..K-1.
        lengths: Steps of each series; everything beyond is NaN.
        unit: Unit of each series, 0..num_units-1, never decreasing.
        static: One row per series, codes or values, NaN where missing.
        context: Public channels, often one broadcast row; None without context.
        shared_context: What all series share of it, taken from `context`; a panel without series still has it, so that
            what is released does not say that it is empty. None where each series has its own.
        ticks: When each step was, of series that were drawn for stretches of public context; None: as the schema says.
        private: Whether the series are protected; decides what `repr` may show.
        unit_ids: Identifier of each unit, kept only to write the holdout list; never shown.

    Privacy:
        Holding data costs nothing. No method looks across units, so adding a unit changes no other unit's
        arrays. `repr` of a private panel shows the schema and neither values nor counts.

    A panel may hold no series at all. Arrays are read-only views: the caller should keep no writable reference.
    """

    schema: Schema
    values: Float32[np.ndarray, "series step channel"]
    lengths: Int32[np.ndarray, " series"]
    unit: Int64[np.ndarray, " series"]
    static: Float32[np.ndarray, "series static"]
    context: Float32[np.ndarray, "series step context"] | None = None
    shared_context: Float32[np.ndarray, "_ _"] | None = None  # [step, context]; `replace` computes it again
    ticks: Int64[np.ndarray, "series step"] | None = None
    private: bool = True
    unit_ids: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_argument(self.schema, Schema, "Panel.schema", "Load it first: Schema.load(path).")
        for name in ("values", "lengths", "unit", "static"):
            require_argument(getattr(self, name), np.ndarray, f"Panel.{name}", "read_panel makes panels from tables.")
        object.__setattr__(self, "shared_context", _shared_context(self))
        for name, array in list(vars(self).items()):
            if isinstance(array, np.ndarray):
                view = array.view()
                view.setflags(write=False)
                object.__setattr__(self, name, view)
        _check_shapes(self)
        _check_contents(self)

    @property
    def num_series(self) -> int:
        """Number of series; private when the panel is."""
        return int(self.values.shape[0])

    @property
    def num_units(self) -> int:
        """Number of privacy units; private when the panel is."""
        return int(self.unit[-1]) + 1 if len(self.unit) else 0

    @property
    def num_steps(self) -> int:
        """Steps of the longest series, as declared."""
        return int(self.values.shape[1])

    @property
    def observed(self) -> Bool[np.ndarray, "series step channel"]:
        """True where a value was observed."""
        return np.asarray(~np.isnan(self.values))

    @property
    def label(self) -> Int64[np.ndarray, " series"] | None:
        """Code of the label column for each series, -1 where missing; None without a label."""
        if self.schema.label is None:
            return None
        codes = self.static[:, [column.name for column in self.schema.static].index(self.schema.label)]
        return np.where(np.isnan(codes), -1.0, codes).astype(np.int64)

    def take_units(self, indices: Int[np.ndarray, " chosen"] | Sequence[int]) -> "Panel":
        """Returns the panel of the chosen units, in the order given.

        Privacy: a unit chosen twice would count twice, so a private panel refuses that.
        """
        chosen = np.asarray(indices, dtype=np.int64)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self.num_units):
            raise IndexError("Expected unit indices from 0 to num_units - 1.")
        if self.private and len(np.unique(chosen)) != len(chosen):
            raise ValueError("Expected each unit at most once: a private unit may not contribute twice.")
        first = np.searchsorted(self.unit, chosen, side="left")
        count = np.searchsorted(self.unit, chosen, side="right") - first
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        unit = np.repeat(np.arange(len(chosen), dtype=np.int64), count)
        return self._series(np.repeat(first, count) + within, unit, chosen)

    def take_series(self, chosen: Bool[np.ndarray, " series"]) -> "Panel":
        """Returns the chosen series; units that keep none drop out."""
        rows = np.flatnonzero(chosen)
        units, unit = np.unique(self.unit[rows], return_inverse=True)
        return self._series(rows, unit.astype(np.int64), units)

    def _series(self, rows: Any, unit: Int64[np.ndarray, " chosen"], units: Any) -> "Panel":
        """Returns some rows of the arrays, which are series of `units`, renumbered."""
        context = self.context
        if context is not None:
            context = take_context(context, rows) if isinstance(rows, np.ndarray) else context[rows]
        taken: Any = {name: getattr(self, name)[rows] for name in ("values", "lengths", "static")}
        ticks = None if self.ticks is None else self.ticks[rows]
        unit_ids = None if self.unit_ids is None else self.unit_ids[units]
        return replace(self, **taken, unit=unit, context=context, ticks=ticks, unit_ids=unit_ids)

    def split(self, holdout_fraction: float, rng: np.random.Generator) -> tuple["Panel", "Panel"]:
        """Returns (train, holdout), each unit put aside on its own with probability `holdout_fraction`.

        Privacy: an independent coin per unit. Cutting off a fixed share instead would let one unit's presence
        push another unit across the border, and neighbouring tables would no longer differ by one unit.
        """
        if not 0 < holdout_fraction < 1:
            raise ValueError("Expected a holdout_fraction between 0 and 1.")
        held_out = rng.random(self.num_units) < holdout_fraction
        return self.take_units(np.flatnonzero(~held_out)), self.take_units(np.flatnonzero(held_out))

    def with_values(self, values: Float[np.ndarray, "series step channel"], **changes: Any) -> "Panel":
        """Returns the same series with other values; further fields by keyword."""
        return replace(self, values=np.asarray(values, dtype=np.float32), **changes)

    def to_arrow(self) -> "pa.Table":
        """Returns the series as an Arrow table with the columns, order and types that the schema declares.

        Privacy: `to_arrow`, `to_pandas`, `to_polars` and the Arrow stream give every value; what they give of a private
        panel is as private as the panel.
        """
        from understudy.data.io.write import panel_to_arrow

        return panel_to_arrow(self)

    def to_pandas(self) -> Any:
        """Returns the series as a pandas frame; index, types and time zone are those of the frame that was read."""
        from understudy.data.io.sources import in_form

        require_extra("pandas", by="to_pandas")
        return in_form(self.to_arrow(), self.schema.frame)

    def to_polars(self) -> Any:
        """Returns the series as a polars frame."""
        require_extra("polars", by="to_polars")
        return import_module("polars").DataFrame(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Panel(private; {self.schema})" if self.private else f"Panel({self.num_series} series; {self.schema})"


def concatenate(panels: Sequence[Panel]) -> Panel:
    """Returns one panel with the units of all, which keep apart. Identifiers are dropped."""
    if not panels:
        raise ValueError("Expected at least one panel.")
    offsets = np.cumsum([0, *(panel.num_units for panel in panels)])
    contexts = [panel.context for panel in panels if panel.context is not None]
    joined = {name: np.concatenate([getattr(p, name) for p in panels]) for name in ("values", "lengths", "static")}
    return Panel(
        schema=panels[0].schema,
        **joined,
        unit=np.concatenate([panel.unit + offset for panel, offset in zip(panels, offsets, strict=False)]),
        context=np.concatenate(contexts) if len(contexts) == len(panels) else None,
        shared_context=panels[0].shared_context,
        private=any(panel.private for panel in panels),
    )


def in_pieces(panel: Panel) -> tuple[Panel, ...]:
    """Cuts a panel into views of whole units with a few million values each; a small one stays whole."""
    size = _series_per_piece(panel.values)
    if panel.num_series <= size:
        return (panel,)
    borders = np.searchsorted(panel.unit, panel.unit[::size], side="left")
    borders = np.unique(np.append(borders, panel.num_series))
    first = np.append(panel.unit, panel.num_units)[borders].tolist()  # unit at each border
    pieces = zip(pairwise(borders.tolist()), pairwise(first), strict=True)
    return tuple(panel._series(slice(a, b), panel.unit[a:b] - c, slice(c, d)) for (a, b), (c, d) in pieces)


def broadcast_context(
    context: Float[np.ndarray, "step context"], num_series: int
) -> Float32[np.ndarray, "series step context"]:
    """Shows one public context to every series without copying it."""
    context = np.asarray(context, dtype=np.float32)
    return np.broadcast_to(context, (num_series, *context.shape))


def take_context(
    context: Float32[np.ndarray, "series step context"], rows: Int[np.ndarray, " chosen"]
) -> Float32[np.ndarray, "chosen step context"]:
    """Selects rows of a context and keeps a broadcast one broadcast."""
    if context.strides[0] == 0 and len(context):
        return broadcast_context(context[0], len(rows))
    return np.asarray(context[rows])


def _shared_context(panel: Panel) -> np.ndarray | None:
    """Returns the context of all series; of an empty panel the one it was told, else nothing but its shape."""
    if panel.context is None or panel.schema.own_contexts:
        return None
    if len(panel.context):
        return np.array(panel.context[0])
    told = panel.shared_context
    return np.zeros(panel.context.shape[1:], dtype=np.float32) if told is None else told


def _check_shapes(panel: Panel) -> None:
    series, schema = panel.values.shape[0], panel.schema
    steps, columns = schema.num_steps, len(schema.context)
    expected: dict[str, tuple[str, str, tuple[int, ...]]] = {
        "values": ("float32", "[series, step, channel]", (series, steps, schema.num_channels)),
        "lengths": ("int32", "[series]", (series,)),
        "unit": ("int64", "[series]", (series,)),
        "static": ("float32", "[series, static]", (series, len(schema.static))),
        "context": ("float32", "[series, step, context]", (series, steps, columns)),
        "shared_context": ("float32", "[step, context]", (steps, columns)),
        "ticks": ("int64", "[series, step]", (series, steps)),
    }
    for name, (dtype, axes, shape) in expected.items():
        array = getattr(panel, name)
        if array is not None and (array.shape != shape or array.dtype != np.dtype(dtype)):
            raise ValueError(f"Panel.{name}: expected {axes} as the schema declares, in {dtype}.")


def _check_contents(panel: Panel) -> None:
    unit, lengths = panel.unit, panel.lengths
    steps = np.diff(unit)
    if len(unit) and (unit[0] != 0 or (steps < 0).any() or (steps > 1).any()):
        raise ValueError("Panel.unit: expected units numbered 0, 1, 2, … with the series of a unit side by side.")
    if len(lengths) and (lengths.min() < 1 or lengths.max() > panel.num_steps):
        raise ValueError("Panel.lengths: expected lengths from 1 to the schema's steps.")
    if panel.unit_ids is not None and len(panel.unit_ids) != panel.num_units:
        raise ValueError("Panel.unit_ids: expected one identifier per unit.")
    context = panel.context
    if context is not None and context.strides[0] and panel.private and panel.schema.time.align == "calendar":
        shared = np.array_equal(context, np.broadcast_to(context[:1], context.shape), equal_nan=True)
        if not shared:  # one series' own context would pass for that of all series, and public context is released
            raise ValueError("Panel.context: series on one calendar share one context; use time.align = 'relative'.")
    for rows in row_chunks(panel.values):
        beyond = np.arange(panel.num_steps) >= lengths[rows, None]
        if beyond.any() and not np.isnan(panel.values[rows][beyond]).all():
            raise ValueError("Panel.values: expected NaN beyond each series' length.")


def row_chunks(values: np.ndarray) -> list[slice]:
    """Cuts the first axis into slices of a few million values each."""
    size = _series_per_piece(values)
    return [slice(begin, begin + size) for begin in range(0, len(values), size)]


def _series_per_piece(values: np.ndarray) -> int:
    return max(1, _CHUNK_VALUES // max(1, int(np.prod(values.shape[1:]))))
