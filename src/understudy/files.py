"""Files and folders that appear whole or not at all, and that a power cut does not take back."""

import glob
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(target: Path, *, replace: bool = True) -> Iterator[Path]:
    """Yields a draft in the folder of `target` that takes its place if the block ends well and vanishes if not.

    Args:
        replace: False raises FileExistsError where something is at `target` already.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.draft")
    try:
        yield draft
        sync(draft)  # before it gets its name: a name may reach the disk sooner than bytes
        if replace:
            draft.replace(target)
        else:
            os.link(draft, target)
        sync(target.parent)
    except OSError as problem:
        if str(problem.filename) in ("None", str(draft)):
            problem.filename = str(target)  # callers know nothing of drafts
        raise
    finally:
        for leftover in target.parent.glob(f"{glob.escape(draft.name)}*"):
            with suppress(OSError):
                leftover.unlink()


@contextmanager
def whole_folder(target: Path, *, mode: int = 0o755) -> Iterator[Path]:
    """Yields a draft that only its owner can read; it becomes `target`, readable by all, if the block ends well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield draft
        for path in (*draft.rglob("*"), draft):
            sync(path)
        draft.chmod(mode)
        draft.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def sync(path: Path) -> None:
    """Returns when the bytes of a file, or the names in a folder, are on the disk."""
    if os.name != "posix" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
