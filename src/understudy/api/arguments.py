"""Checks of what a caller hands in: an error says what was expected, what was found, and what to write instead."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from understudy.data import Panel, Schema, Table
from understudy.errors import InputError
from understudy.planning.choices import contract_of
from understudy.privacy.ledger import Ledger
from understudy.synthesizers import Release, Synthesizer

_NO_TABLES = (Schema, Ledger, Release, Synthesizer, bool, int, float, dict, type(None))


def check_names(given: Iterable[str], known: Iterable[str], function: Callable[..., Any]) -> None:
    """Refuses keyword arguments that a function does not have, and names the nearest that it has."""
    names = [*(name for name in function.__annotations__ if name not in ("options", "return")), *known]
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, 1)
            meant = f"Did you mean '{near[0]}'?" if near else f"It takes {', '.join(names)}."
            raise InputError(f"{function.__name__}: '{name}' is not one of its arguments. {meant}")


def check_table(data: Any, argument: str, example: str) -> None:
    """Refuses what can't be a table of series."""
    if isinstance(data, _NO_TABLES):
        raise InputError(
            f"{argument}: a data frame, a path or a Panel is expected, got {type(data).__name__}. Write {example}."
        )


def contract_for(data: Any, schema: Schema | Path | str | None, example: str) -> tuple[Schema, Path | None]:
    """Returns the schema of a table, and the file it was read from; a panel brings its own."""
    check_table(data, "data", example)
    if isinstance(data, Panel | Table):
        given = data.schema if schema is None else contract_of(schema)[0]
        if given != data.schema:
            raise InputError(
                f"schema: a {type(data).__name__} has a schema of its own, and this is another one. Omit `schema`, or "
                "pass the table instead of what was read from it."
            )
        return given, None
    return contract_of(schema)  # type: ignore[arg-type] # refused there if it is none
