"""Checks of public declarations and arguments: an error names what is expected and, of private data, never a value."""

import dataclasses
import types
import typing
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pydantic

from understudy.errors import DataError, InputError, SchemaError

Count = Annotated[int, pydantic.Field(ge=1, lt=2**63)]  # that ledgers and arrays hold
Positive = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
_WORDS = {"int_type": "a whole number", "float_type": "a number", "string_type": "text", "tuple_type": "a list"}


def wrong_key(key: str, problem: str) -> SchemaError:
    """Returns the error about one key of a schema."""
    return SchemaError(f"Key '{key}': {problem}", key=key)


def wrong_column(name: str, problem: str) -> DataError:
    """Returns the error about one column of a table."""
    return DataError(f"Column '{name}': {problem}", column=name)


def require_key(holds: object, key: str, problem: str) -> None:
    """Refuses a schema for what one key of it says."""
    if not holds:
        raise wrong_key(key, problem)


def require_column(holds: object, name: str, problem: str) -> None:
    """Refuses a table for what one column of it holds."""
    if not holds:
        raise wrong_column(name, problem)


def check_fields(item: Any, key: str) -> None:
    """Refuses a dataclass of which a field holds something else than it declares; makes lists tuples.

    Privacy: for public declarations only; of what has another type the message names the type.
    """
    kind: Any = type(item)
    for name, declared in _fields(kind).items():
        try:
            checked = declared.validate_python(_of_python(getattr(item, name)), strict=True)
        except pydantic.ValidationError as problem:
            wrong = problem.errors(include_url=False)
            expected = " or ".join(dict.fromkeys(_expected(error["type"], error["msg"]) for error in wrong))
            given = wrong[0]["input"]
            got = type(given).__name__ if wrong[0]["type"].endswith("_type") else repr(given)
            raise wrong_key(f"{key}.{name}".strip("."), f"{expected} is expected, got {got}. Change it.") from None
        object.__setattr__(item, name, checked)


def require_argument(given: Any, hint: Any, argument: str, remedy: str) -> None:
    """Refuses an argument of a public function that is of another type; the message names types and no value."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    accepted = (*kinds, int) if float in kinds else kinds
    if not isinstance(_of_python(given), accepted) or (isinstance(given, bool) and bool not in kinds):
        expected = " or ".join("None" if kind is types.NoneType else kind.__name__ for kind in kinds)
        raise InputError(f"{argument}: {expected} is expected, got {type(given).__name__}. {remedy}")


def require_path(given: Any, argument: str) -> None:
    """Refuses an argument that is no path."""
    require_argument(given, str | Path, argument, "Give the path as text or a Path.")


@cache
def _fields(kind: Any) -> dict[str, pydantic.TypeAdapter[Any]]:
    """Returns what checks each field of a dataclass."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: pydantic.TypeAdapter(hints[field.name]) for field in dataclasses.fields(kind)}


def _of_python(given: Any) -> Any:
    """Returns numbers of numpy as numbers of Python, and lists as tuples."""
    if isinstance(given, list | tuple):
        return tuple(map(_of_python, given))
    return given.item() if isinstance(given, np.generic) else given


def _expected(kind: str, told: str) -> str:
    told = _WORDS.get(kind) or told.removeprefix("Input should be ")
    return f"a number {told}" if told.startswith(("greater", "less")) else told
