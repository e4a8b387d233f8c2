"""Which synthetic series a caller wants, by static values and by a rule of their own: post-processing, and free."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.data import Categorical, Channel, Continuous, Panel, Schema, concatenate
from understudy.errors import InputError

Rule = Callable[[Panel], Any]  # True for each series of a panel that is wanted
_AT_A_TIME, _FEWEST = 64, 1e-4  # series drawn at least; share of them that has to be wanted
_SPARE = 1.2  # of what is expected to be needed
_MOST_VALUES = 2**24  # drawn at a time


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A selection; `label` is drawn as asked for, everything else by leaving series out."""

    label: int | None
    category: str | int | None
    ranges: Mapping[int, tuple[float, float]]  # by place among static columns
    rule: Rule | None

    @classmethod
    def of(
        cls, schema: Schema, where: Mapping[str, Any] | None, rule: Rule | None, label: str | int | None
    ) -> "Wanted":
        """Returns the checked selection."""
        columns = {column.name: place for place, column in enumerate(schema.static)}
        ranges = {}
        for name, value in (where or {}).items():
            if name not in columns:
                known = ", ".join(columns) or "this schema has none"
                raise InputError(f"where: a static column is expected ({known}), got '{name}'.")
            if name == schema.label and not isinstance(value, tuple):
                if label is not None and str(label) != str(value):
                    raise InputError(f"where: '{name}' is asked for twice, as '{label}' and '{value}'. Name it once.")
                label = value
            else:
                ranges[columns[name]] = _range(schema.static[columns[name]], value)
        return cls(label=_label_code(label, schema), category=label, ranges=ranges, rule=rule)

    @property
    def selects(self) -> bool:
        """Whether series may have to be left out."""
        return bool(self.ranges) or self.rule is not None

    def keep(self, panel: Panel) -> np.ndarray:
        """Returns True for each series that is wanted."""
        kept = np.ones(panel.num_series, dtype=bool)
        for place, (low, high) in self.ranges.items():
            kept &= (panel.static[:, place] >= np.float32(low)) & (panel.static[:, place] <= np.float32(high))
        if self.rule is not None:
            said = np.asarray(self.rule(panel))
            if said.shape != kept.shape or said.dtype != bool:
                raise InputError(
                    f"rule: True or False for each of {panel.num_series} series is expected, got an array of shape "
                    f"{said.shape} and type {said.dtype}. Reduce over steps and channels, as in .all(axis=(1, 2))."
                )
            kept &= said
        return kept

    def select(self, number: int, draw: Callable[[int], Panel]) -> Panel:
        """Returns so many wanted series; refuses where hardly any are wanted, and says how many."""
        found: list[Panel] = []
        held = drawn = 0
        while held < number:
            share = max(held / drawn if drawn else 1.0, _FEWEST)
            size = int(max(_AT_A_TIME, _SPARE * (number - held) / share))
            panel = draw(size if not found else min(size, max(1, _MOST_VALUES // found[0].values[0].size)))
            rows = np.flatnonzero(self.keep(panel))
            found.append(panel.take_units(rows[: number - held]))
            held, drawn = held + len(rows), drawn + panel.num_series
            if held < _FEWEST * drawn or (not held and drawn > 1 / _FEWEST):
                raise InputError(
                    f"where, rule: {held} of {drawn} synthetic series satisfy them; at least one in {1 / _FEWEST:,.0f} "
                    "is expected. Ask for less."
                )
        return found[0] if len(found) == 1 else concatenate(found)


def _range(column: Channel, value: Any) -> tuple[float, float]:
    """Returns between which codes or numbers a column is wanted."""
    if isinstance(column, Categorical):
        names = [str(category) for category in column.categories]
        if str(value) not in names:
            raise InputError(f"where: one of {', '.join(names)} is expected for '{column.name}', got '{value}'.")
        return (float(names.index(str(value))),) * 2
    ends = value if isinstance(value, tuple) else (value, value)
    numbers = len(ends) == 2 and all(isinstance(end, int | float | np.number) for end in ends)
    if not numbers or (isinstance(column, Continuous) and not isinstance(value, tuple)):
        pair = "a pair (low, high)" if isinstance(column, Continuous) else "a number or a pair (low, high)"
        raise InputError(f"where: {pair} is expected for '{column.name}', got {value!r}.")
    return float(ends[0]), float(ends[1])


def _label_code(label: str | int | None, schema: Schema) -> int | None:
    if label is None:
        return None
    column = schema.label_column
    if column is None:
        raise InputError("label: this schema declares no label. Leave it out.")
    wanted = [str(category) for category in column.categories]
    if str(label) not in wanted:
        raise InputError(f"label: one of {', '.join(wanted)} is expected for '{column.name}', got '{label}'.")
    return wanted.index(str(label))
