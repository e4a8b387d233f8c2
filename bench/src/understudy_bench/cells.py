"""Finished parts of a long benchmark, one file each, so that a run which was cut goes on where it was."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Cells:
    """A folder of finished parts; without a folder every part is computed anew."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def __call__(self, key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Returns the part called `key`, from its file if an earlier run finished it."""
        if self._folder is None:
            return compute()
        file = self._folder / f"{re.sub(r'[^a-z0-9.-]+', '-', key.lower())}.json"
        if file.exists():
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return found
        part = compute()
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(part), encoding="utf-8")
        draft.replace(file)
        return part

    def remove(self) -> None:
        """Forgets the parts, once the whole is written."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
