"""The checker that the import hook puts around functions and dataclasses of the package while tests run."""

from collections.abc import Callable
from typing import Any, get_args

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

# `float` also admits whole numbers, as type checkers read it.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check_shapes_in(package: str) -> None:
    """From here on every annotated shape of a package is checked at each call; to be called before it is imported.

    The hook decorates everything, and a call through its wrapper takes longer than most of what it wraps: a third of
    the contract suite's time. What names no shape is mypy's business and is left as it is.
    """
    wrapped = jaxtyping.jaxtyped

    def where_a_shape_is_named(*, typechecker: Any) -> Callable[[Any], Any]:
        def decorate(one: Any) -> Any:
            hints = getattr(one, "__annotations__", {}).values()
            return wrapped(typechecker=typechecker)(one) if any(map(_names_a_shape, hints)) else one

        return decorate

    jaxtyping.jaxtyped = where_a_shape_is_named
    jaxtyping.install_import_hook(package, f"{__name__}.check")


def _names_a_shape(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(map(_names_a_shape, get_args(hint)))
