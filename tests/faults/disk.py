"""What a power cut leaves of a folder: the bytes that were synced, and every name as it was last."""

from collections.abc import Iterable, Iterator
from pathlib import Path


class Disk:
    """Remembers each file as of its last sync.

    A harsh disk: names reach it at once, and bytes only when they are synced. File systems that delay writing do
    this to a program that renames a file into place before syncing it.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)
        self._synced = {file.stat().st_ino: file.read_bytes() for file in self._files()}

    def synced(self, path: Path) -> None:
        """Takes note that the bytes of a file are on the disk."""
        if path.is_file():
            self._synced[path.stat().st_ino] = path.read_bytes()

    def removed(self, path: Path) -> None:
        """Forgets a file whose last name goes away: its number may be given to another."""
        if path.is_file() and path.stat().st_nlink == 1:
            self._synced.pop(path.stat().st_ino, None)

    def cut(self) -> None:
        """Takes away what was never synced."""
        for file in self._files():
            kept = self._synced.get(file.stat().st_ino, b"")
            if file.read_bytes() != kept:
                file.write_bytes(kept)

    def _files(self) -> Iterator[Path]:
        for folder in self._folders:
            yield from (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
