"""The project folder: every file that the app may read or write, and no other."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.data.io.stores import TABLE_SUFFIXES
from understudy.errors import InputError, UnderstudyError
from understudy.files import whole_file

STATE = ".understudy-app"  # jobs, and which table belongs to which schema; all else lies where the command line puts it
CERTIFICATE = "certificate.json"
_MOST_LISTED = 500


@dataclass(frozen=True)
class Listing:
    """The names in one folder that the app can open, by what they are. No size and no date, which tell of rows."""

    folder: str
    folders: tuple[str, ...]
    tables: tuple[str, ...]
    schemas: tuple[str, ...]
    releases: tuple[str, ...]


@dataclass(frozen=True)
class Project:
    """A folder of tables, schemas, ledgers and releases; texts that name a path in it are relative to it."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> "Project":
        """Returns the project in a folder that is there."""
        if not folder.is_dir():
            raise InputError(f"FOLDER: a folder is expected at '{folder}'. Make it, or name another one.")
        return cls(folder.resolve())

    @property
    def state(self) -> Path:
        """Where the app keeps its jobs; readable by its owner only."""
        folder = self.folder / STATE
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def path(self, text: str) -> Path:
        """Returns the path that a text names; refuses one outside the project, also by way of a link."""
        problem = (
            "path: a file or folder inside the project folder is expected. Move the table there, or stop the app and "
            "start it again with the folder that holds the table: understudy app FOLDER."
        )
        try:
            found = (self.folder / text.strip()).resolve()
            hidden = any(part.startswith(".") for part in found.relative_to(self.folder).parts)
        except (ValueError, OSError, RuntimeError):  # outside, a null byte, too long, a circle of links
            raise InputError(problem) from None
        if hidden:
            raise InputError(problem)
        return found

    def existing(self, text: str) -> Path:
        """Returns the path of something that is there."""
        found = self.path(text)
        try:
            there = found.exists()
        except OSError:
            there = False
        if not there or found == self.folder:
            raise InputError("path: nothing of that name is in the project folder. Check the name.")
        return found

    def name(self, path: Path) -> str:
        """Returns how the app calls a path: relative to the project, with slashes."""
        return path.resolve().relative_to(self.folder).as_posix()

    def listing(self, text: str = "") -> Listing:
        """Returns what one folder holds, and nothing of the folders in it."""
        folder = self.path(text)
        if not folder.is_dir():
            raise InputError("path: a folder of the project is expected. Check the name.")
        inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))[:_MOST_LISTED]
        paths = [path for path in inside if path.resolve().is_relative_to(self.folder)]
        releases = [path for path in paths if (path / CERTIFICATE).is_file()]
        return Listing(
            folder="" if folder == self.folder else self.name(folder),
            folders=self._names(path for path in paths if path.is_dir() and path not in releases),
            tables=self._names(path for path in paths if path.is_file() and path.suffix.lower() in TABLE_SUFFIXES),
            schemas=self._names(path for path in paths if path.is_file() and path.suffix == ".toml"),
            releases=self._names(releases),
        )

    def ledgers(self) -> tuple[Path, ...]:
        """Returns the ledger files of the project and of the folders in it."""
        return tuple(sorted({*self.folder.glob("*.ledger"), *self.folder.glob("[!.]*/*.ledger")}))

    def releases(self) -> tuple[str, ...]:
        """Returns the releases of the project and of the folders in it."""
        found = {*self.folder.glob(f"[!.]*/{CERTIFICATE}"), *self.folder.glob(f"[!.]*/[!.]*/{CERTIFICATE}")}
        return self._names(sorted(path.parent for path in found))

    def tables_of(self, schema: str) -> dict[str, str]:
        """Returns the private table (`table`) and the public one (`context`) that a person named for a schema."""
        return {"table": "", "context": "", **self._chosen().get(schema, {})}

    def table_for(self, population: str) -> dict[str, str]:
        """Returns the tables of the schema whose population has this name, and the schema; empty if none is known."""
        from understudy.data import Schema

        for schema, tables in self._chosen().items():
            try:
                if Schema.load(self.existing(schema), draft=True).name == population:
                    return {**self.tables_of(schema), **tables, "schema": schema}
            except UnderstudyError:
                continue
        return {"table": "", "context": "", "schema": ""}

    def choose(self, schema: str, **tables: str) -> None:
        """Remembers which tables belong to a schema."""
        chosen = self._chosen()
        with whole_file(self.state / "tables.json") as draft:
            draft.write_text(json.dumps(chosen | {schema: tables}, indent=1), encoding="utf-8")

    def unused(self, beside: Path, stem: str, suffix: str = "") -> Path:
        """Returns the path of a file or folder that is not there yet, beside another: stem, stem-2, stem-3, …"""
        names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, 10_000))
        return next(path for name in names if not (path := beside.parent / f"{name}{suffix}").exists())

    def _chosen(self) -> dict[str, Any]:
        try:
            found = json.loads((self.state / "tables.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _names(self, paths: Any) -> tuple[str, ...]:
        return tuple(self.name(path) for path in paths)
