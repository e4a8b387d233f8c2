"""Which attributes are sensitive (x′), how a series splits into them and the rest (x*), and which x′ are released.

A sensitive attribute is a static column, the label, a whole channel, or a *level* of a channel: its mean, first or last
value, written `mean(load)`. What remains of a channel whose level is sensitive is its shape, the series minus it.
Sensitive columns work in their declared bounds: a scale learned from them would be released, and tell what is hidden.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from understudy.data import Categorical, Channel, Continuous, Panel, Schema, read_panel
from understudy.data.channels import num_codes
from understudy.errors import InputError, MissingData
from understudy.statistics.columns import classes_of, num_labels
from understudy.statistics.encoding import Encoding, Linear, by_bounds, decode, encode
from understudy.synthesizers.sampling import inside_bounds

LEVELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # of series [series, step]; 1 for a series of ones
    "mean": lambda series: series.mean(axis=1),
    "first": lambda series: series[:, 0],
    "last": lambda series: series[:, -1],
}
DIFFERENT, UNIFORM = "different", "uniform"
Target = str | dict[str, list[float | str]]  # a word, a public table, or values for each attribute
_LEVEL = re.compile(rf"({'|'.join(LEVELS)})\((.+)\)")
_MISSING = "(missing)"  # category of a label that may be missing
_TARGET_ROWS = 4096  # of a public table that a release holds


@dataclass(frozen=True)
class Attribute:
    """One sensitive attribute.

    Attributes:
        name: As it was asked for.
        kind: Where it is found; the label is a static column with a code more where it may be missing.
        place: Of its channel or static column.
        level: Which level of the channel.
        columns: One column for every number or category it consists of.
    """

    name: str
    kind: Literal["channel", "level", "static", "label"]
    place: int
    level: str
    columns: tuple[Channel, ...]


def parse(schema: Schema, sets: Sequence[str]) -> tuple[tuple[Attribute, ...], ...]:
    """Return the attributes of every sensitive set; refuses none, all, constant ones and any that is named twice."""
    found = tuple(tuple(_attribute(schema, name.strip()) for name in names.split("+")) for names in sets)
    flat = [attribute for group in found for attribute in group]
    if not flat:
        raise InputError(
            "sensitive: at least one attribute is expected. Name a static column, a channel, or a level such as "
            f"mean({schema.channels[0].name})."
        )
    touched = [(attribute.kind in ("channel", "level"), attribute.place) for attribute in flat]
    if len(set(touched)) != len(touched):
        raise InputError("sensitive: each column once is expected, in one set and as a whole or by one level.")
    whole = {attribute.place for attribute in flat if attribute.kind == "channel"}
    static = {attribute.place for attribute in flat if attribute.kind in ("static", "label")}
    if len(whole) == schema.num_channels and len(static) == len(schema.static):
        raise InputError(
            "sensitive: every column is named, and nothing is left to keep. Name fewer, or the level of a channel."
        )
    return found


def _attribute(schema: Schema, name: str) -> Attribute:
    channels, static = [c.name for c in schema.channels], [c.name for c in schema.static]
    level = _LEVEL.fullmatch(name)
    if level is not None and level[2] in channels:
        place = channels.index(level[2])
        column = schema.channels[place]
        if num_codes(column) is not None:
            raise InputError(f"sensitive: '{level[2]}' holds categories and has no {level[1]}. Name it as it is.")
        return Attribute(name, "level", place, level[1], _varying(name, (Continuous(name, *column.bounds),)))
    if name in channels:
        place = channels.index(name)
        steps = range(schema.num_steps)
        columns = tuple(
            replace(schema.channels[place], name=f"{name} {step}" if len(steps) > 1 else name) for step in steps
        )
        return Attribute(name, "channel", place, "", _varying(name, columns))
    if name in static:
        place = static.index(name)
        if name != schema.label:
            return Attribute(name, "static", place, "", _varying(name, (schema.static[place],)))
        assert schema.label_column is not None
        words = [str(category) for category in schema.label_column.categories]
        words += [_MISSING] if num_labels(schema) > len(words) else []
        return Attribute(name, "label", place, "", _varying(name, (Categorical(name, tuple(words)),)))
    known = ", ".join((*static, *channels))
    raise InputError(f"sensitive: a column or a level of a channel is expected ({known}), got '{name}'.")


def _varying(name: str, columns: tuple[Channel, ...]) -> tuple[Channel, ...]:
    low, high = columns[0].bounds
    if not low < high:
        raise InputError(f"sensitive: '{name}' can take one value only, so there is nothing to hide. Leave it out.")
    return columns


@dataclass(frozen=True, eq=False)
class Partition:
    """The way between series in working scale and (x′, x*).

    Attributes:
        encoding: Working scale; touched columns by their declared bounds.
        attributes: Sensitive attributes of all sets, in order.
    """

    encoding: Encoding
    attributes: tuple[Attribute, ...]

    @property
    def schema(self) -> Schema:
        """The contract of what is learned from."""
        return self.encoding.schema

    @property
    def columns(self) -> tuple[Channel, ...]:
        """Columns of x′ before they are encoded."""
        return tuple(column for attribute in self.attributes for column in attribute.columns)

    @property
    def num_sensitive(self) -> int:
        """Numbers in x′."""
        return sum(num_codes(column) or 1 for column in self.columns)

    @property
    def series_shape(self) -> tuple[int, int]:
        """Steps and working channels of the rest."""
        return self.schema.num_steps, len(self._kept_channels)

    @property
    def num_rest(self) -> int:
        """Numbers in x*: of series, of static columns, and of the label unless it is sensitive."""
        return math.prod(self.series_shape) + len(self._kept_static) + self.num_classes

    def sensitive_values(self, panel: Panel, series: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return the sensitive columns [series, column] in the user's units, NaN where a static one is missing.

        Privacy: private if the panel is; each series' own.
        """
        parts = []
        for attribute in self.attributes:
            if attribute.kind == "label":
                parts.append(classes[:, None].astype(np.float64))
            elif attribute.kind == "static":
                parts.append(panel.static[:, [attribute.place]].astype(np.float64))
            elif attribute.kind == "level":
                level = LEVELS[attribute.level](series[:, :, self._slices[attribute.place]][:, :, 0])
                parts.append(by_bounds(attribute.columns[0]).to_values(level)[:, None])
            else:
                own = series[:, :, self._slices[attribute.place]]
                flat = own.reshape(len(series), math.prod(own.shape[1:]))
                parts.append(decode(flat, attribute.columns, _scales(attribute.columns)))
        return np.concatenate(parts, axis=1)

    def encoded(self, values: np.ndarray) -> np.ndarray:
        """Return x′ [series, number] of sensitive columns; what is missing counts as the middle."""
        columns = self.columns
        tidy = inside_bounds(columns, values)
        return np.nan_to_num(encode(tidy, columns, _scales(columns))).astype(np.float32)

    def decoded(self, sensitive: np.ndarray) -> np.ndarray:
        """Return the sensitive columns behind x′ as a generator draws it."""
        return inside_bounds(self.columns, decode(sensitive, self.columns, _scales(self.columns)))

    def rest(self, series: np.ndarray, static: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return x* [series, number] of working series, static columns and classes."""
        shapes = series.copy()
        for attribute in (attribute for attribute in self.attributes if attribute.kind == "level"):
            own = shapes[:, :, self._slices[attribute.place]]
            own -= LEVELS[attribute.level](own[:, :, 0])[:, None, None]
        hot = np.eye(self.num_classes or 1)[classes if self.num_classes else 0 * classes][:, : self.num_classes]
        flat = shapes[:, :, self._kept_channels].reshape(len(series), math.prod(self.series_shape))
        kept = [flat, static[:, self._kept_static], hot]
        return np.concatenate(kept, axis=1).astype(np.float32)

    def rows(self, panel: Panel) -> "Rows":
        """Return a panel's series as networks see them.

        Privacy: private if the panel is; each series' own.
        """
        classes, every = classes_of(panel), slice(None)
        series = self.encoding.series(panel, every)
        values = self.sensitive_values(panel, series, classes)
        return Rows(values, self.encoded(values), self.rest(series, self.encoding.static(panel, every), classes))

    def joined(self, values: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return working series, static columns and classes of sensitive columns and x*."""
        number, (steps, kept) = len(rest), self.series_shape
        series = np.zeros((number, steps, self.encoding.num_channels))
        static = np.zeros((number, self.encoding.num_static))
        series[:, :, self._kept_channels] = rest[:, : steps * kept].reshape(number, steps, kept)
        single = rest[:, steps * kept :]
        static[:, self._kept_static] = single[:, : len(self._kept_static)]
        classes = single[:, len(self._kept_static) :].argmax(axis=1) if self.num_classes else np.zeros(number, int)
        begin = 0
        for attribute in self.attributes:
            given = values[:, begin : begin + len(attribute.columns)]
            begin += len(attribute.columns)
            if attribute.kind == "label":
                classes = given[:, 0].astype(np.int64)
                continue
            coded = encode(given, attribute.columns, _scales(attribute.columns))
            if attribute.kind == "static":
                static[:, self._static_slices[attribute.place]] = coded
            elif attribute.kind == "channel":
                own = self._slices[attribute.place]
                series[:, :, own] = coded.reshape(number, steps, -1)
            else:
                shape = series[:, :, self._slices[attribute.place]]
                shape += (coded[:, 0] - LEVELS[attribute.level](shape[:, :, 0]))[:, None, None]
        return series, static, classes

    @property
    def _slices(self) -> dict[int, slice]:
        """Working channels of each channel."""
        return _slices(dict(enumerate(self.schema.channels)))

    @property
    def _static_slices(self) -> dict[int, slice]:
        """Working static columns of each static column but the label."""
        return _slices({p: c for p, c in enumerate(self.schema.static) if c.name != self.schema.label})

    @property
    def _kept_channels(self) -> list[int]:
        gone = {attribute.place for attribute in self.attributes if attribute.kind == "channel"}
        return [n for place, own in self._slices.items() if place not in gone for n in range(own.start, own.stop)]

    @property
    def _kept_static(self) -> list[int]:
        gone = {attribute.place for attribute in self.attributes if attribute.kind == "static"}
        return [n for p, own in self._static_slices.items() if p not in gone for n in range(own.start, own.stop)]

    @property
    def num_classes(self) -> int:
        """Classes in the rest; none without a label, or where it is sensitive."""
        hidden = self.schema.label_column is None or any(a.kind == "label" for a in self.attributes)
        return 0 if hidden else num_labels(self.schema)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Series as networks see them; as private as the panel they come from.

    Attributes:
        values: Sensitive columns in the user's units.
        sensitive, rest: x′ and x*.
    """

    values: np.ndarray
    sensitive: np.ndarray
    rest: np.ndarray

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What a training is given."""
        return {"sensitive": self.sensitive, "rest": self.rest}


def check_target(target: Target, schema: Schema, attributes: tuple[Attribute, ...]) -> None:
    """Refuse a target that does not exist, leaves an attribute out or leaves the declared bounds."""
    if isinstance(target, str):
        if target.lstrip().startswith("{"):
            first = attributes[0].name
            raise InputError(
                f"target: values for each attribute are written {{'{first}' = [...], ...}}, got something else."
            )
        if target not in (DIFFERENT, UNIFORM) and not Path(target).is_file():
            raise MissingData(
                f"target: '{DIFFERENT}', '{UNIFORM}', values for each attribute or a public table is expected; "
                f"the file '{target}' does not exist."
            )
        return
    names = {attribute.name for attribute in attributes}
    if set(target) != names:
        raise InputError(f"target: values for exactly {', '.join(sorted(names))} are expected.")
    for attribute in attributes:
        _target_codes(attribute, target[attribute.name])


def target_table(target: Target, partition: Partition) -> np.ndarray:
    """Return sensitive columns [row, column] of the public table that is the target; no rows without one."""
    if not isinstance(target, str) or target in (DIFFERENT, UNIFORM):
        return np.zeros((0, len(partition.columns)))
    panel = read_panel(target, partition.schema.without_context(), allow_few_units=True)
    return np.random.default_rng(0).permutation(partition.rows(panel).values)[:_TARGET_ROWS]


def sample_target(
    target: Target, partition: Partition, table: np.ndarray, number: int, rng: np.random.Generator
) -> np.ndarray:
    """Return sensitive columns [series, column] of a stated marginal."""
    if isinstance(target, Mapping):
        parts = []
        for attribute in partition.attributes:
            codes = _target_codes(attribute, target[attribute.name])
            parts.append(codes[rng.integers(0, len(codes), (number, len(attribute.columns)))])
        return np.concatenate(parts, axis=1)
    if target == UNIFORM:
        widths = [num_codes(column) for column in partition.columns]
        drawn = [
            rng.uniform(*column.bounds, number) if width is None else rng.integers(0, width, number).astype(float)
            for column, width in zip(partition.columns, widths, strict=True)
        ]
        return np.stack(drawn, axis=1)
    return table[rng.integers(0, len(table), number)]


def _target_codes(attribute: Attribute, values: Sequence[float | str]) -> np.ndarray:
    """Return values of an attribute as numbers; refuse those outside of what the schema declares."""
    column = attribute.columns[0]
    low, high = column.bounds
    names = [str(category) for category in getattr(column, "categories", ())]
    found = [names.index(str(value)) if str(value) in names else value for value in values]
    if not found or any(isinstance(value, str) or not low <= value <= high for value in found):
        known = f"one of {', '.join(names)}" if names else f"numbers from {low:g} to {high:g}"
        raise InputError(f"target: {known} are expected for '{attribute.name}', as the schema declares.")
    return np.array(found, dtype=np.float64)


def _slices(columns: dict[int, Channel]) -> dict[int, slice]:
    found, begin = {}, 0
    for place, column in columns.items():
        width = num_codes(column) or 1
        found[place] = slice(begin, begin + width)
        begin += width
    return found


def _scales(columns: Sequence[Channel]) -> tuple[Linear, ...]:
    return tuple(by_bounds(column) for column in columns)
