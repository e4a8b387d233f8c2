"""A panel as a table of few levels: columns that stand still, the label first, then what a cut makes of the series."""

from dataclasses import dataclass

import numpy as np

from understudy.data import Channel, Schema
from understudy.data.channels import num_codes
from understudy_bench.baselines.cuts import LEVELS, Cut


@dataclass(frozen=True, eq=False)
class Table:
    """Levels of every column; a column that may be missing has one level more for that."""

    schema: Schema
    cut: Cut

    @property
    def domain(self) -> tuple[int, ...]:
        """Levels of each column."""
        return (*single_domain(self.schema), *self.cut.domain)

    def codes(self, working: np.ndarray, static: np.ndarray) -> np.ndarray:
        """Returns levels [series, column].

        Privacy: private if the series are; row by row.
        """
        singles = [_level(self.schema.static[place], static[:, place]) for place in single_places(self.schema)]
        return np.concatenate([*(own[:, None] for own in singles), self.cut.codes(working)], axis=1)

    def decoded(self, codes: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Returns (working series, static columns in the user's units)."""
        places = single_places(self.schema)
        static = np.empty((len(codes), len(places)))
        for number, place in enumerate(places):
            static[:, place] = _number(self.schema.static[place], codes[:, number], rng)
        return self.cut.working(codes[:, len(places) :], rng), static


def single_places(schema: Schema) -> list[int]:
    """Returns the places of static columns, the label first."""
    return sorted(range(len(schema.static)), key=lambda place: schema.static[place].name != schema.label)


def single_domain(schema: Schema) -> tuple[int, ...]:
    """Returns the levels of static columns, the label first."""
    columns = [schema.static[place] for place in single_places(schema)]
    return tuple((num_codes(column) or LEVELS) + int(column.missing) for column in columns)


def _level(column: Channel, values: np.ndarray) -> np.ndarray:
    low, high = column.bounds
    codes, missing = num_codes(column), np.isnan(values)
    known = np.where(missing, low, values)
    levels = known if codes is not None else np.floor((known - low) / max(high - low, 1e-12) * LEVELS)
    number = codes or LEVELS
    empty = number if column.missing else 0  # a gap where none is declared must not make the table longer
    return np.where(missing, empty, np.clip(levels, 0, number - 1)).astype(np.int64)


def _number(column: Channel, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    low, high = column.bounds
    codes = num_codes(column)
    if codes is not None:
        return np.where(levels < codes, levels, np.nan)
    inside = low + (high - low) * (levels + rng.random(len(levels))) / LEVELS
    return np.where(levels < LEVELS, inside, np.nan)
