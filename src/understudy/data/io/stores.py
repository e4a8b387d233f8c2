"""Where tables lie: files and folders of this machine, or of a store that fsspec reaches (`s3://`, `memory://`, …)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from understudy.errors import DataError, InputError, MissingData
from understudy.extras import require_extra

TABLE_SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")
_KIND = re.compile(r"\.[a-z]{1,8}")
_LOCAL = "file://"


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
        system, path = _system(self.url)
        options = {} if "b" in mode else {"encoding": encoding, "newline": newline}
        opened: IO[Any] = system.open(path, mode, **options)
        return opened


Place = Path | StoredFile
Fingerprint = tuple[int, str]
_AnyPlace = TypeVar("_AnyPlace", bound=Path | StoredFile)


def located(place: str | Path | StoredFile) -> Place:
    """Returns a place of this machine as a path and any other as a file of its store."""
    if isinstance(place, Path | StoredFile):
        return place
    if place.startswith(_LOCAL):
        return Path(place.removeprefix(_LOCAL))
    return StoredFile(place) if "://" in place else Path(place)


def is_folder(place: Place) -> bool:
    """Returns whether a folder is there."""
    if isinstance(place, Path):
        return place.is_dir()
    system, path = _system(place.url)
    return bool(system.isdir(path))


def existing(place: _AnyPlace) -> _AnyPlace:
    """Returns the place of a file that is there."""
    if isinstance(place, Path):
        found, shown = place.is_file(), str(place)
    else:
        system, path = _system(place.url)
        found, shown = bool(system.isfile(path)), place.url
    if not found:
        raise MissingData(f"No file at {shown}. Check the path.")
    return place


def is_array_file(source: Any) -> bool:
    """Returns whether a source is a numpy file."""
    return isinstance(source, str | Path) and Path(source).suffix.lower() in (".npy", ".npz")


def table_files(folder: Place) -> list[Place]:
    """Returns the tables of a folder by name; hidden files (`.name`, `_name`) are left out.

    Privacy: names of files may be identifiers. Errors name the folder and kinds of files, never a file.
    """
    found = [(place, inner) for place, inner in _listed(folder) if not place.name.startswith((".", "_"))]
    for place, inner in found:
        if inner:
            raise DataError(
                f"{folder.name}: files are expected in the folder, and it holds another folder. Move it elsewhere."
            )
        if place.suffix.lower() not in TABLE_SUFFIXES:
            kind = f" of kind '{place.suffix}'" if _KIND.fullmatch(place.suffix) else ""
            raise DataError(
                f"{folder.name}: files ending in {', '.join(TABLE_SUFFIXES)} are expected in the folder, and it holds "
                f"a file{kind}. Move it elsewhere, or convert it."
            )
    if not found:
        raise MissingData(
            f"{folder.name}: the folder holds no table. Files ending in {', '.join(TABLE_SUFFIXES)} are expected."
        )
    return sorted((place for place, _ in found), key=lambda place: place.name)


def fingerprint(file: Place) -> Fingerprint:
    """Returns size and time of the last change, by which a file that was written again is recognised."""
    if isinstance(file, Path):
        facts = file.stat()
        return facts.st_size, str(facts.st_mtime_ns)
    system, path = _system(file.url)
    info = system.info(path)
    changed = next((str(info[key]) for key in ("ETag", "etag", "mtime", "LastModified", "updated") if key in info), "")
    try:
        return int(info["size"] or 0), changed or str(system.modified(path))
    except NotImplementedError:
        return int(info["size"] or 0), changed


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


def _listed(folder: Place) -> Sequence[tuple[Place, bool]]:
    """Returns what a folder holds, and of each whether it is a folder."""
    if isinstance(folder, Path):
        return [(place, place.is_dir()) for place in folder.iterdir()]
    system, path = _system(folder.url)
    own = path.rstrip("/")
    items = [item for item in system.ls(path, detail=True) if str(item["name"]).rstrip("/") != own]
    return [(StoredFile(system.unstrip_protocol(item["name"])), item["type"] == "directory") for item in items]


def _system(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system of a URL and the path in it."""
    require_extra("fsspec", by="a table in a store")
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as problem:
        protocol = url.split("://", 1)[0]
        raise InputError(
            f"'{protocol}://': a kind of store that fsspec knows is expected. Check the URL, or install "
            "fsspec's package for this store."
        ) from problem
    return system, path
