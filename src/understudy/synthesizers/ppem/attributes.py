"""Which attributes are sensitive (x′), how a series splits into them and the rest (x*), and which x′ are released.

What remains of a channel whose level is sensitive (`mean(load)`) is its shape, the series minus it. Sensitive columns
work in their declared bounds: a scale learned from them would be released, and tell what is hidden.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Literal

import numpy as np

from understudy.data import Categorical, Channel, Continuous, Panel, Schema, read_panel
from understudy.data.channels import num_codes
from understudy.errors import InputError, MissingData
from understudy.statistics.columns import classes_of, num_labels
from understudy.statistics.encoding import Encoding, by_bounds, decode, encode, linear_scales, width_of
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
    """One sensitive attribute; the label is a static column with a code more where it may be missing."""

    name: str
    kind: Literal["channel", "level", "static", "label"]
    place: int  # of its channel or static column
    columns: tuple[Channel, ...]  # one for every number or category it consists of
    level: str = ""  # which one of the channel

    def __post_init__(self) -> None:
        low, high = self.columns[0].bounds
        if not low < high:
            raise InputError(f"sensitive: '{self.name}' can take one value only, so there is nothing to hide.")

    @property
    def is_static(self) -> bool:
        """Whether its place is one among static columns."""
        return self.kind in ("static", "label")


def parse(schema: Schema, sets: Sequence[str]) -> tuple[tuple[Attribute, ...], ...]:
    """Return the attributes of every sensitive set; refuses none, all, constant ones and any that is named twice."""
    found = tuple(tuple(_attribute(schema, name.strip()) for name in names.split("+")) for names in sets)
    named = list(chain.from_iterable(found))
    if not named:
        raise InputError(
            "sensitive: at least one attribute is expected. Name a static column, a channel, or a level such as "
            f"mean({schema.channels[0].name})."
        )
    if len(named) != len({(attribute.is_static, attribute.place) for attribute in named}):
        raise InputError("sensitive: each column once is expected, in one set and as a whole or by one level.")
    if sum(attribute.kind != "level" for attribute in named) == schema.num_channels + len(schema.static):
        raise InputError(
            "sensitive: every column is named, and nothing is left to keep. Name fewer, or the level of a channel."
        )
    return found


def _attribute(schema: Schema, name: str) -> Attribute:
    channels, static = [c.name for c in schema.channels], [c.name for c in schema.static]
    level = _LEVEL.fullmatch(name)
    if level is not None and level[2] in channels:
        column = schema.channels[place := channels.index(level[2])]
        if num_codes(column) is not None:
            raise InputError(f"sensitive: '{level[2]}' holds categories and has no {level[1]}. Name it as it is.")
        return Attribute(name, "level", place, (Continuous(name, *column.bounds),), level[1])
    if name in channels:
        column, steps = schema.channels[channels.index(name)], range(schema.num_steps)
        columns = tuple(replace(column, name=f"{name} {step}" if len(steps) > 1 else name) for step in steps)
        return Attribute(name, "channel", channels.index(name), columns)
    if name == schema.label and schema.label_column is not None:
        words = [str(category) for category in schema.label_column.categories]
        words += [_MISSING] if num_labels(schema) > len(words) else []
        return Attribute(name, "label", static.index(name), (Categorical(name, tuple(words)),))
    if name in static:
        return Attribute(name, "static", static.index(name), (schema.static[static.index(name)],))
    known = ", ".join((*static, *channels))
    raise InputError(f"sensitive: a column or a level of a channel is expected ({known}), got '{name}'.")


@dataclass(frozen=True, eq=False)
class Partition:
    """The way between series in working scale and (x′, x*), which are numbers of one row each.

    A row: all channels step by step, static columns, a code for each class. x′ are some, and levels; x* the others.
    """

    encoding: Encoding  # touched columns by their declared bounds
    sets: tuple[tuple[Attribute, ...], ...]

    @classmethod
    def of(cls, schema: Schema, sets: Sequence[str], linear: np.ndarray | None = None) -> "Partition":
        """Return the partition by sets as a user names them; scales are those of `linear`, or declared bounds."""
        scales = linear_scales(schema, None) if linear is None else linear
        return cls(Encoding.of(schema, (), scales), parse(schema, sets))

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes of all sets, in order."""
        return tuple(chain.from_iterable(self.sets))

    @property
    def hides_label(self) -> bool:
        """Whether the label is sensitive."""
        return any(attribute.kind == "label" for attribute in self.attributes)

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
        return width_of(self.columns)

    @property
    def num_rest(self) -> int:
        """Numbers in x*."""
        return len(self._kept)

    @property
    def num_classes(self) -> int:
        """Classes in the rest, its last numbers; none without a label, or where it is sensitive."""
        return 0 if self.hides_label else self._num_labels

    @property
    def _num_labels(self) -> int:
        return 0 if self.schema.label_column is None else num_labels(self.schema)

    @property
    def _ends(self) -> list[int]:
        """Where the series, the static columns and the classes of a row end."""
        parts = self.schema.num_steps * self.encoding.num_channels, self.encoding.num_static, self._num_labels
        return [*accumulate(parts)]

    @cached_property
    def _taken(self) -> list[np.ndarray]:
        """The numbers of a row that each attribute is; for a level those of the channel, which it moves."""
        series, static, whole = self._ends
        steps = np.arange(self.schema.num_steps)[:, None] * self.encoding.num_channels
        singles = self.encoding.static_columns
        found = []
        for attribute in self.attributes:
            if attribute.kind == "label":
                found.append(np.arange(static, whole))
            elif attribute.kind == "static":
                place = singles.index(self.schema.static[attribute.place])
                found.append(series + np.arange(width_of(singles[:place]), width_of(singles[: place + 1])))
            else:
                ends = (width_of(self.schema.channels[:end]) for end in (attribute.place, attribute.place + 1))
                found.append((steps + np.arange(*ends)).ravel())
        return found

    @cached_property
    def _kept(self) -> np.ndarray:
        taken = [own for own, a in zip(self._taken, self.attributes, strict=True) if a.kind != "level"]
        return np.setdiff1d(np.arange(self._ends[2]), np.concatenate([np.zeros(0, int), *taken]))

    def apart(self, series: np.ndarray, static: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (x′, x*) [series, number] of working series, static columns and classes.

        Privacy: private if they are; each series' own.
        """
        hot = np.eye(max(self._num_labels, 1))[classes][:, : self._num_labels]
        whole = np.concatenate([series.reshape(len(series), self._ends[0]), static, hot], axis=1)
        parts = []
        for attribute, own in zip(self.attributes, self._taken, strict=True):
            parts.append(whole[:, own])
            if attribute.kind == "level":
                parts[-1] = LEVELS[attribute.level](whole[:, own])[:, None]
                whole[:, own] -= parts[-1]
        return np.concatenate(parts, axis=1).astype(np.float32), whole[:, self._kept].astype(np.float32)

    def joined(self, values: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return working series, static columns and classes of sensitive columns and x*."""
        whole, coded, begin = np.zeros((len(rest), self._ends[2])), self._coded(values), 0
        whole[:, self._kept] = rest
        for attribute, own in zip(self.attributes, self._taken, strict=True):
            wanted = coded[:, begin : begin + width_of(attribute.columns)]
            begin += wanted.shape[1]
            if attribute.kind == "level":
                wanted = whole[:, own] + wanted - LEVELS[attribute.level](whole[:, own])[:, None]
            whole[:, own] = wanted
        series, static, classes = np.split(whole, self._ends[:2], axis=1)
        shaped = series.reshape(len(rest), self.schema.num_steps, self.encoding.num_channels)
        return shaped, static, classes.argmax(axis=1) if self._num_labels else np.zeros(len(rest), int)

    def encoded(self, values: np.ndarray) -> np.ndarray:
        """Return x′ [series, number] of sensitive columns; what is missing counts as the middle."""
        return np.nan_to_num(self._coded(values)).astype(np.float32)

    def decoded(self, sensitive: np.ndarray) -> np.ndarray:
        """Return the sensitive columns behind x′, in the user's units and inside their bounds."""
        return inside_bounds(self.columns, decode(sensitive, self.columns, [*map(by_bounds, self.columns)]))

    def rows(self, panel: Panel) -> "Rows":
        """Return a panel's series as networks see them.

        Privacy: private if the panel is; each series' own.
        """
        every, begin = slice(None), 0
        working = self.encoding.series(panel, every), self.encoding.static(panel, every), classes_of(panel)
        sensitive, rest = self.apart(*working)
        values = self.decoded(sensitive)
        for attribute in self.attributes:
            if attribute.kind == "static":
                values[np.isnan(panel.static[:, attribute.place]), begin] = np.nan
            begin += len(attribute.columns)
        return Rows(values, sensitive, rest)

    def _coded(self, values: np.ndarray) -> np.ndarray:
        return encode(inside_bounds(self.columns, values), self.columns, [*map(by_bounds, self.columns)])


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Series as networks see them; as private as the panel they come from."""

    values: np.ndarray  # sensitive columns in the user's units, NaN where a static one is missing
    sensitive: np.ndarray  # x′
    rest: np.ndarray  # x*

    def at_least_one(self) -> "Rows":
        """Return the rows, or where there is none a row of zeros to learn from."""
        parts = self.values, self.sensitive, self.rest
        return self if len(self.rest) else Rows(*(np.zeros((1, own.shape[1]), own.dtype) for own in parts))


def check_target(target: Target, attributes: tuple[Attribute, ...]) -> None:
    """Refuse a target that does not exist, leaves an attribute out or leaves the declared bounds."""
    if isinstance(target, str):
        if target.lstrip().startswith("{"):
            written = f"{{'{attributes[0].name}' = [...], ...}}"
            raise InputError(f"target: values for each attribute are written {written}, got something else.")
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
        low, high = np.array([column.bounds for column in partition.columns]).T
        whole = [num_codes(column) is not None for column in partition.columns]
        drawn = rng.uniform(low, high + whole, (number, len(low)))  # codes are counted from 0
        return np.where(whole, np.minimum(np.floor(drawn), high), drawn)
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
