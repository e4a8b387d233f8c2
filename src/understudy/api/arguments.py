"""Checks of what a caller hands in: names, tables, schemas, and places to read or write."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from understudy import files
from understudy.data import Panel, Schema, Table
from understudy.errors import InputError, MissingData, ReleaseError


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
    from understudy.privacy.ledger import Ledger
    from understudy.synthesizers import Release, Synthesizer

    if isinstance(data, Schema | Ledger | Release | Synthesizer | bool | int | float | dict | None):
        raise InputError(
            f"{argument}: a data frame, a path or a Panel is expected, got {type(data).__name__}. Write {example}."
        )


def contract_for(data: Any, schema: Schema | Path | str | None, example: str) -> tuple[Schema, Path | None]:
    """Returns the schema of a table, and the file it was read from; a panel brings its own."""
    from understudy.planning.choices import contract_of

    check_table(data, "data", example)
    if not isinstance(data, Panel | Table):
        return contract_of(schema)  # type: ignore[arg-type] # refused there if it is none
    given = data.schema if schema is None else contract_of(schema)[0]
    if given != data.schema:
        raise InputError(
            f"schema: a {type(data).__name__} has a schema of its own, and this is another one. Omit `schema`, or "
            "pass the table instead of what was read from it."
        )
    return given, None


def existing(path: Path, what: str) -> Path:
    """Returns the path of a file or folder that is there."""
    if not path.exists():
        raise MissingData(f"{what}: nothing is at '{path}'. Check the path.")
    return path


def existing_table(source: Any, what: str) -> Any:
    """Returns a table that is there: a path, the URL of one in a store or a database, or a table in memory as it is."""
    if not isinstance(source, str | Path):
        return source
    from understudy.data.io import stores

    if isinstance(source, Path) or not (stores.is_url(source) or "*" in source):
        return existing(Path(source), what)
    try:
        stores.table_files(source)
    except MissingData as missing:
        raise MissingData(f"{what}: {missing}") from None
    return source


def unused(path: Path, what: str, *, release: Path | None = None) -> Path:
    """Returns a path at which nothing is yet: results never replace what is there.

    Args:
        release: A release within whose directory the path must not be: every file there is certified.
    """
    if release is not None and path.resolve().is_relative_to(release.resolve()):
        raise InputError(
            f"{what}: '{path}' lies inside the release '{release}', which holds what its certificate names "
            "and nothing else. Choose a place outside it."
        )
    if path.exists() or path.is_symlink():
        raise InputError(f"{what}: '{path}' exists already and is not overwritten. Choose another name.")
    return path


def folder_for(path: Path, what: str) -> Path:
    """Returns a folder, made if nothing is there yet, before anything is spent on what goes into it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"{what}: a folder is expected at '{path}', and none can be made there ({problem.strerror}). "
            "Choose another place."
        ) from problem
    return path


def require_room(target: Path, num_bytes: int) -> None:
    """Refuses a place that can't take `num_bytes`, before anything is spent on filling it."""
    folder = next(parent for parent in target.absolute().parents if parent.is_dir())
    try:
        if shutil.disk_usage(folder).free < num_bytes:
            raise OSError(28, os.strerror(28))
        with tempfile.TemporaryFile(dir=folder, prefix=".understudy-room-") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, num_bytes)
    except OSError as problem:
        raise ReleaseError(
            f"'{target}': about {num_bytes / 2**20:.0f} MiB are expected to fit there, and they do not "
            f"({problem.strerror}). Nothing was charged. Free some space, or choose another place."
        ) from problem


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Yields a draft that becomes `target` if the block ends well, in a folder that is made if need be."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with files.whole_file(target) as draft:
        yield draft


def write(target: Path, text: str, *, private: bool = False) -> None:
    """Writes text whole or not at all; a private file is its owner's only."""
    with whole_file(target) as draft:
        if private:
            draft.touch(mode=0o600)
        draft.write_text(text, encoding="utf-8")
