"""What options of methods and recipes are checked for, in the same words everywhere."""

import math
from collections.abc import Iterable

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee


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
