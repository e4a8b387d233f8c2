"""Where tables lie: files of this machine, of a store that fsspec or Arrow reaches (`s3://`, `memory://`), databases.

A URL with a password or a key in it is refused: drivers find credentials in the environment or in files of their own.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, overload

from understudy.data.io.databases import DatabaseTable, is_database
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
        return self.url.partition("?")[0].rstrip("/").rsplit("/", 1)[-1]

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
        return (_in_store(name, self.url) for name in names if name.strip("/") != path.strip("/"))

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


@dataclass(frozen=True)
class Pattern:
    """The files whose names match a pattern with `*`, opened as a folder of them."""

    pattern: str  # a path or a URL
    suffix = ""

    @property
    def name(self) -> str:
        """The last part of the pattern."""
        return self.pattern.rsplit("/", 1)[-1]

    def is_dir(self) -> bool:
        """Returns whether several files may be meant: always."""
        return True

    def iterdir(self) -> Iterator["Path | StoredFile"]:
        """Yields the files that match."""
        if "://" not in self.pattern:
            path = Path(self.pattern)
            return Path(path.anchor).glob(str(path.relative_to(path.anchor)))
        system, inside = _store(self.pattern)
        return (_in_store(str(name), self.pattern) for name in system.glob(inside))

    def __str__(self) -> str:
        return self.pattern


File = Path | StoredFile | DatabaseTable
Place = File | Pattern


def is_url(text: str) -> bool:
    """Returns whether a text names a store or a database, and no path of this machine."""
    return "://" in text or is_database(text)


def located(place: str | Place) -> Place:
    """Returns a place of this machine as a path, any other as a file of its store or a table of its database."""
    if not isinstance(place, str | Path):
        return place
    if is_database(place):
        return DatabaseTable.at(str(place))
    path = str(place).removeprefix("file://")
    if "*" in path:
        return Pattern(path)
    return StoredFile(path) if "://" in path else Path(path)


@overload
def existing(place: Path) -> Path: ...
@overload
def existing(place: Place) -> File: ...
def existing(place: Place) -> File:
    """Returns the place of a file that is there."""
    if isinstance(place, Pattern) or not place.is_file():
        raise MissingData(f"No file at {place}. Check the path.")
    return place


def is_array_file(source: Any) -> bool:
    """Returns whether a source is a numpy file."""
    return isinstance(source, str | Path) and Path(source).suffix.lower() in (".npy", ".npz")


def table_files(folder: Place) -> list[File]:
    """Returns the tables of a folder by name; hidden files (`.name`, `_name`) are left out.

    Privacy: names of files may be identifiers. Errors name the folder and kinds of files, never a file.
    """
    if isinstance(folder, DatabaseTable):
        return [folder]
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


def fingerprint(file: File) -> Fingerprint:
    """Returns size and time of the last change, by which a file that was written again is recognised."""
    if not isinstance(file, Path):
        return file.fingerprint()
    facts = file.stat()
    return facts.st_size, str(facts.st_mtime_ns)


def require_unchanged(file: File, before: Fingerprint) -> None:
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


def _in_store(name: str, url: str) -> StoredFile:
    """Returns a file by the name that its store gives, in the store of a URL and with its options."""
    options = url.partition("?")[1:]
    return StoredFile(f"{url.partition('://')[0]}://{name}{''.join(options)}")


@cache
def _store(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system of a URL and the path in it."""
    require_extra("fsspec", by="a table in a store")
    import fsspec

    protocol, _, rest = url.partition("://")
    if ":" in rest.split("/")[0].partition("@")[0] and "@" in rest.split("/")[0]:
        raise InputError(
            f"A URL without credentials is expected after '{protocol}://'. Give them in the environment (such as "
            "AWS_ACCESS_KEY_ID) or in the store's own configuration."
        )
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError:  # no package of fsspec for it: Arrow knows S3, Google's and Azure's stores
        return _arrow_store(url)
    except ValueError:
        raise _unknown_store(url) from None
    return system, path


def _arrow_store(url: str) -> tuple[Any, str]:
    """Returns Arrow's file system of a URL, as fsspec would, and the path in it."""
    import pyarrow as pa
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import FileSystem

    try:
        system, path = FileSystem.from_uri(url)
    except (pa.ArrowException, OSError):
        raise _unknown_store(url) from None
    return ArrowFSWrapper(system), path


def _unknown_store(url: str) -> InputError:
    protocol = url.partition("://")[0]
    return InputError(
        f"'{protocol}://': a kind of store that fsspec or Arrow knows is expected. Check the URL, or install the "
        "store's package."
    )
