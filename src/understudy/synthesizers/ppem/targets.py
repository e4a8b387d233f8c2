"""Where released x′ come from: a generator that was taught to differ, or a marginal that the user states."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from understudy.data import Channel, Schema, read_panel
from understudy.data.channels import num_codes
from understudy.errors import InputError, MissingData
from understudy.synthesizers.ppem.attributes import Attribute, Partition

DIFFERENT, UNIFORM = "different", "uniform"
Target = str | dict[str, list[float | str]]  # a word, a public table, or values for each attribute
_ROWS = 4096  # of a public table that a release carries


def check(target: Target, schema: Schema, attributes: tuple[Attribute, ...]) -> None:
    """Refuses a target that is not there, leaves an attribute out or leaves the declared bounds."""
    if isinstance(target, str):
        if target.lstrip().startswith("{"):
            first = attributes[0].name
            raise InputError(
                f"target: values for each attribute are written {{'{first}' = [...], ...}}, got something else."
            )
        if target not in (DIFFERENT, UNIFORM) and not Path(target).is_file():
            raise MissingData(
                f"target: '{DIFFERENT}', '{UNIFORM}', values for each attribute or a public table is expected; "
                f"'{target}' is not there."
            )
        return
    names = {attribute.name for attribute in attributes}
    if set(target) != names:
        raise InputError(f"target: values for exactly {', '.join(sorted(names))} are expected.")
    for attribute in attributes:
        _codes(attribute, target[attribute.name])


def given_values(target: Target, partition: Partition) -> np.ndarray:
    """Returns rows [row, column] to draw x′ from: of a public table, or nothing where no table is named."""
    if not isinstance(target, str) or target in (DIFFERENT, UNIFORM):
        return np.zeros((0, len(partition.columns)))
    from understudy.statistics.columns import classes_of

    panel = read_panel(target, partition.schema.without_context(), allow_few_units=True)
    series = partition.encoding.series(panel, slice(None))
    values = partition.sensitive_values(panel, series, classes_of(panel))
    return np.random.default_rng(0).permutation(values)[:_ROWS]


def draw(
    target: Target, columns: tuple[Channel, ...], attributes: tuple[Attribute, ...], rows: np.ndarray, number: int,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Returns sensitive columns [series, column] of a stated marginal."""
    if isinstance(target, Mapping):
        parts = [_drawn(attribute, target[attribute.name], number, rng) for attribute in attributes]
        return np.concatenate(parts, axis=1)
    if target == UNIFORM:
        return np.stack([_uniform(column, number, rng) for column in columns], axis=1)
    return rows[rng.integers(0, len(rows), number)]


def _uniform(column: Channel, number: int, rng: np.random.Generator) -> np.ndarray:
    codes = num_codes(column)
    return rng.uniform(*column.bounds, number) if codes is None else rng.integers(0, codes, number).astype(float)


def _drawn(attribute: Attribute, values: Sequence[float | str], number: int, rng: np.random.Generator) -> np.ndarray:
    """Draws each column of an attribute by itself."""
    codes = _codes(attribute, values)
    return codes[rng.integers(0, len(codes), (number, len(attribute.columns)))]


def _codes(attribute: Attribute, values: Sequence[float | str]) -> np.ndarray:
    """Returns values of an attribute as numbers, refused outside of what the schema declares."""
    column = attribute.columns[0]
    low, high = column.bounds
    names = [str(category) for category in getattr(column, "categories", ())]
    found = [names.index(str(value)) if str(value) in names else value for value in values]
    if not found or any(isinstance(value, str) or not low <= value <= high for value in found):
        known = f"one of {', '.join(names)}" if names else f"numbers from {low:g} to {high:g}"
        raise InputError(f"target: {known} are expected for '{attribute.name}', as the schema declares.")
    return np.array(found, dtype=np.float64)
