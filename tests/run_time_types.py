"""The checker that the import hook puts around functions and dataclasses of the package while tests run."""

from collections.abc import Callable
from typing import Any, get_args

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

# `float` also admits whole numbers, as type checkers read it.
_check_everything = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps what has a shape in its annotations; everything else is mypy's business."""
    hints = getattr(function, "__annotations__", {}).values()
    return _check_everything(function) if any(map(_names_a_shape, hints)) else function


def _names_a_shape(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(map(_names_a_shape, get_args(hint)))
