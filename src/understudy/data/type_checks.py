"""Type checks of public declarations and arguments: an error names the expected type, and never a value."""

import collections.abc
import dataclasses
import numbers
import types
import typing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from understudy.errors import InputError, SchemaError

_NUMBERS = {int: numbers.Integral, float: numbers.Real}
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "True or False", types.NoneType: "None"}
_UNIONS = (typing.Union, types.UnionType)


def wrong_key(key: str, problem: str) -> SchemaError:
    """Returns the error about one key of a schema."""
    return SchemaError(f"Key '{key}': {problem}", key=key)


def check_fields(item: Any, key: str) -> None:
    """Refuses a dataclass of which a field holds another type than it declares; makes lists tuples.

    Privacy: for public declarations only; the message names types and never a value.
    """
    kind: Any = type(item)
    for field, hint in field_types(kind).items():
        given = getattr(item, field)
        if isinstance(given, np.generic):
            object.__setattr__(item, field, given.item())
        elif isinstance(given, list):
            object.__setattr__(item, field, tuple(given))
        if not fits(getattr(item, field), hint):
            name = f"{key}.{field}" if key else field
            raise wrong_key(name, f"{_mismatch(getattr(item, field), hint)} {_remedy(hint, type(item).__name__)}")


def require_argument(given: Any, hint: Any, argument: str, remedy: str) -> None:
    """Refuses an argument of a public function that is of another type; the message names types and no value."""
    if not fits(given, hint):
        raise InputError(f"{argument}: {_mismatch(given, hint)} {remedy}")


def require_path(given: Any, argument: str) -> None:
    """Refuses an argument that is no path."""
    require_argument(given, str | Path, argument, "Give the path as text or a Path.")


@cache
def field_types(kind: Any) -> dict[str, Any]:
    """Returns the declared type of every field of a dataclass."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def fits(given: Any, hint: Any) -> bool:
    """Returns whether a value is of a declared type; which word of a `Literal` it is, its dataclass checks."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return any(fits(given, part) for part in parts)
    if origin is typing.Literal:
        return isinstance(given, str)
    if origin is tuple:
        return isinstance(given, tuple) and all(fits(part, parts[0]) for part in given)
    if origin is collections.abc.Mapping:
        return isinstance(given, collections.abc.Mapping)
    if isinstance(given, bool | np.bool_):
        return hint is bool
    return isinstance(given, _NUMBERS.get(hint, hint))


def _mismatch(given: Any, hint: Any) -> str:
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and isinstance(given, tuple):
        wrong = next(part for part in given if not fits(part, parts[0]))
        return f"{_expected(hint)} is expected, and one item is {_article(type(wrong).__name__)}."
    return f"{_expected(hint)} is expected, got {_article(type(given).__name__)}."


def _remedy(hint: Any, whole: str) -> str:
    made = next((part for part in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(part)), None)
    return f"Write {getattr(made, '__name__', '')}(…)." if made is not None else f"Change it in {whole}(…)."


def _expected(hint: Any) -> str:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return " or ".join(_expected(part) for part in parts)
    if origin is typing.Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is tuple:
        return f"a list of items that are each {_expected(parts[0])}"
    return _WORDS.get(hint) or _article(getattr(hint, "__name__", str(hint)))


def _article(name: str) -> str:
    if name == "NoneType":
        return "None"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
