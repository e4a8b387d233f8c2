"""What options of methods and recipes are checked for, in the same words everywhere."""

from collections.abc import Iterable

from understudy.errors import InputError


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
