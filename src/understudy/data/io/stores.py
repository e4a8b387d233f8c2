"""Where tables lie: files and folders of this machine, or of a store that fsspec reaches (`s3://`, `memory://`, …)."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

from understudy.errors import DataError, InputError, MissingData
from understudy.extras import require_extra

TABLE_SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")
_KIND = re.compile(r"\.[a-z]{1,8}")
_CHANGED = ("ETag", "etag", "mtime", "LastModified", "updated")
Fingerprint = tuple[int, str]


@dataclass(frozen=True)
class StoredFile:
    """A file or folder of a store, named and opened as a `Path` is."""

    url: str

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rstrip("/").rsplit("/", 1)[-1]

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return Path(self.name).suffix

    def open(self, mode: str = "r", encoding: str | None = None, newline: str | None = None) -> IO[Any]:
        """Opens the file for reading."""
        options = {} if "b" in mode else {"encoding": encoding, "newline": newline}
        opened: IO[Any] = self._ask("open", mode, **options)
        return opened

    def is_file(self) -> bool:
        """Returns whether a file is there."""
        return bool(self._ask("isfile"))

    def is_dir(self) -> bool:
        """Returns whether a folder is there."""
        return bool(self._ask("isdir"))

    def iterdir(self) -> Iterator["StoredFile"]:
        """Yields what the folder holds."""
        system, path = _store(self.url)
        names = (str(name) for name in system.ls(path, detail=False))
        return (StoredFile(system.unstrip_protocol(name)) for name in names if name.strip("/") != path.strip("/"))

    def fingerprint(self) -> Fingerprint:
        """Returns size and time of the last change, or what the store has in its place."""
        info = self._ask("info")
        changed = next((str(info[key]) for key in _CHANGED if key in info), "")
        with suppress(NotImplementedError):
            changed = changed or str(self._ask("modified"))
        return int(info["size"] or 0), changed

    def _ask(self, question: str, *arguments: Any, **options: Any) -> Any:
        system, path = _store(self.url)
        return getattr(system, question)(path, *arguments, **options)

    def __str__(self) -> str:
        return self.url


Place = Path | StoredFile
_AnyPlace = TypeVar("_AnyPlace", bound=Path | StoredFile)


def located(place: str | Path | StoredFile) -> Place:
    """Returns a place of this machine as a path and any other as a file of its store."""
    if isinstance(place, Path | StoredFile):
        return place
    path = place.removeprefix("file://")
    return StoredFile(path) if "://" in path else Path(path)


def existing(place: _AnyPlace) -> _AnyPlace:
    """Returns the place of a file that is there."""
    if not place.is_file():
        raise MissingData(f"No file at {place}. Check the path.")
    return place


def is_array_file(source: Any) -> bool:
    """Returns whether a source is a numpy file."""
    return isinstance(source, str | Path) and Path(source).suffix.lower() in (".npy", ".npz")


def table_files(folder: Place) -> list[Place]:
    """Returns the tables of a folder by name; hidden files (`.name`, `_name`) are left out.

    Privacy: names of files may be identifiers. Errors name the folder and kinds of files, never a file.
    """
    found = [place for place in folder.iterdir() if not place.name.startswith((".", "_"))]
    for place in found:
        if place.is_dir():
            raise DataError(f"{folder.name}: files are expected in the folder, and it holds another folder. Move it.")
        if place.suffix.lower() not in TABLE_SUFFIXES:
            kind = f" of kind '{place.suffix}'" if _KIND.fullmatch(place.suffix) else ""
            raise DataError(
                f"{folder.name}: files ending in {', '.join(TABLE_SUFFIXES)} are expected in the folder, and it holds "
                f"a file{kind}. Move it elsewhere, or convert it."
            )
    if not found:
        raise MissingData(
            f"{folder.name}: files ending in {', '.join(TABLE_SUFFIXES)} are expected, and there is no table."
        )
    return sorted(found, key=lambda place: place.name)


def fingerprint(file: Place) -> Fingerprint:
    """Returns size and time of the last change, by which a file that was written again is recognised."""
    if isinstance(file, StoredFile):
        return file.fingerprint()
    facts = file.stat()
    return facts.st_size, str(facts.st_mtime_ns)


def require_unchanged(file: Place, before: Fingerprint) -> None:
    """Refuses a file that is not the one that was checked."""
    try:
        same = fingerprint(file) == before
    except (OSError, MissingData):
        same = False
    if not same:
        raise InputError(
            "The table is expected to stay as it was when it was opened, and a file of it was changed or removed. Open "
            "the table again, and leave its files alone while it is read."
        )


@cache
def _store(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system of a URL and the path in it."""
    require_extra("fsspec", by="a table in a store")
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as problem:
        protocol = url.split("://", 1)[0]
        told = f"'{protocol}://': a kind of store that fsspec knows is expected. Check the URL, or install its package."
        raise InputError(told) from problem
    return system, path
