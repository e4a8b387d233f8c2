"""What options of methods and recipes are checked for, in the same words everywhere."""

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee

Recipe = TypeVar("Recipe")


def require_no_guarantee(guarantee: Guarantee, mode: str, reason: str, sound: str = "sound") -> None:
    """Refuses a finite epsilon for a mode that no epsilon covers."""
    if guarantee.epsilon < math.inf:
        raise InputError(
            f"mode: '{mode}' protects no unit ({reason}), so it needs a ledger and a guarantee with epsilon = inf: "
            f"--epsilon none --not-private on the command line. Use '{sound}' for private data."
        )


def require_above_zero(options: object, *names: str) -> None:
    """Refuses numbers that are not above 0; None stands for a default."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise InputError(f"{name}: a number above 0 is expected, got {value:g}.")


def require_one_of(options: object, **choices: Iterable[str]) -> None:
    """Refuses words that are not among those an option can have."""
    for name, allowed in choices.items():
        if getattr(options, name) not in (words := tuple(allowed)):
            raise InputError(f"{name}: one of {', '.join(words)} is expected, got '{getattr(options, name)}'.")


def recipe_of(given: object, kind: type[Recipe]) -> Recipe:
    """Returns a recipe, which is a mapping in the options of a saved release."""
    if isinstance(given, Mapping):
        return kind(**given)
    if not isinstance(given, kind):
        raise InputError(
            f"recipe: a Recipe is expected, got '{given}'. For the published one write --preset paper on the command "
            'line, from_preset("paper") in Python.'
        )
    return given
