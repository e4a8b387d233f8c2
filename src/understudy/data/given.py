"""What a caller hands to a public constructor has the declared type, or an error says what was expected."""

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


def require_given(item: Any, key: str) -> None:
    """Refuses a dataclass of which a field holds something of another type than it declares.

    Privacy: for public declarations only; the message names types and never a value.
    """
    kind: Any = type(item)
    for field, hint in _hints(kind).items():
        given = getattr(item, field)
        if isinstance(given, np.generic):
            given = given.item()
            object.__setattr__(item, field, given)
        if not _fits(given, hint):
            name = f"{key}.{field}" if key else field
            raise SchemaError(f"Key '{name}': {_told(given, hint)} {_remedy(hint, type(item).__name__)}", key=name)


def require_argument(given: Any, hint: Any, argument: str, remedy: str) -> None:
    """Refuses an argument of a public function that is of another type; the message names types and no value."""
    if not _fits(given, hint):
        raise InputError(f"{argument}: {_told(given, hint)} {remedy}")


def require_path(given: Any, argument: str) -> None:
    """Refuses an argument that is no path."""
    require_argument(given, str | Path, argument, "Give the path as text or a Path.")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _told(given: Any, hint: Any) -> str:
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and isinstance(given, tuple):
        wrong = next(part for part in given if not _fits(part, parts[0]))
        return f"{_expected(hint)} is expected, and one item is {_article(type(wrong).__name__)}."
    return f"{_expected(hint)} is expected, got {_article(type(given).__name__)}."


def _remedy(hint: Any, whole: str) -> str:
    made = next((part for part in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(part)), None)
    return f"Write {getattr(made, '__name__', '')}(…)." if made is not None else f"Change it in {whole}(…)."


def _fits(given: Any, hint: Any) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(given, part) for part in parts)
    if origin is typing.Literal:
        return isinstance(given, str)  # which of them is checked where the words are
    if origin is tuple:
        return isinstance(given, tuple) and all(_fits(part, parts[0]) for part in given)
    if origin is collections.abc.Mapping:
        return isinstance(given, collections.abc.Mapping)
    if isinstance(given, bool | np.bool_):
        return hint is bool
    return isinstance(given, _NUMBERS.get(hint, hint))


def _expected(hint: Any) -> str:
    parts = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
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
