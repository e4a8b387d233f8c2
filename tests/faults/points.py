"""The system calls that change a disk, by their numbers on x86-64 Linux, and the file each one is about."""

import os
from dataclasses import dataclass
from pathlib import Path

_FOLDER_OF_PROCESS = -100  # AT_FDCWD: a relative path means the working directory
_LONGEST_PATH = 4096

# How a call names its file: a path, a folder's handle and a path, or a handle. Second number: which argument.
_PATH, _AT, _HANDLE = "path", "at", "handle"
_CALLS: dict[int, tuple[str, str, int]] = {
    1: ("write", _HANDLE, 0), 18: ("write", _HANDLE, 0), 20: ("write", _HANDLE, 0),
    40: ("write", _HANDLE, 0), 295: ("write", _HANDLE, 0), 326: ("write", _HANDLE, 2), 328: ("write", _HANDLE, 0),
    2: ("open", _PATH, 0), 85: ("open", _PATH, 0), 257: ("open", _AT, 0),
    74: ("sync", _HANDLE, 0), 75: ("sync", _HANDLE, 0),
    76: ("truncate", _PATH, 0), 77: ("truncate", _HANDLE, 0), 285: ("allocate", _HANDLE, 0),
    82: ("rename", _PATH, 1), 264: ("rename", _AT, 2), 316: ("rename", _AT, 2),
    83: ("mkdir", _PATH, 0), 258: ("mkdir", _AT, 0), 84: ("rmdir", _PATH, 0),
    86: ("link", _PATH, 1), 265: ("link", _AT, 2), 88: ("link", _PATH, 1), 266: ("link", _AT, 1),
    87: ("unlink", _PATH, 0), 263: ("unlink", _AT, 0), 90: ("chmod", _PATH, 0), 91: ("chmod", _HANDLE, 0),
    268: ("chmod", _AT, 0),
}  # fmt: skip
_OPEN_FLAGS = {2: 1, 257: 2}  # which argument says how a file is opened
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
TORN = (1, 18)  # calls whose third argument is the number of bytes to write
NEEDS_ROOM = ("write", "open", "allocate", "mkdir", "link")


@dataclass(frozen=True)
class Point:
    """One system call that changes the disk."""

    number: int
    name: str
    path: Path

    def __str__(self) -> str:
        return f"{self.name} {self.path.name}"


def point(process: int, number: int, arguments: tuple[int, ...]) -> Point | None:
    """Returns what a call of `process` is about to change, None if it changes nothing."""
    if number not in _CALLS:
        return None
    if number in _OPEN_FLAGS and not arguments[_OPEN_FLAGS[number]] & _CHANGES:
        return None
    name, way, place = _CALLS[number]
    if way == _HANDLE:
        found = _opened(process, _signed(arguments[place]))
    else:
        folder = _FOLDER_OF_PROCESS if way == _PATH else _signed(arguments[place])
        found = _named(process, folder, arguments[place + (way == _AT)])
    return None if found is None else Point(number, name, found)


def _opened(process: int, handle: int) -> Path | None:
    try:
        return Path(f"/proc/{process}/fd/{handle}").readlink()
    except OSError:
        return None


def _named(process: int, folder: int, address: int) -> Path | None:
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - buffers would read too far
        memory.seek(address)
        text = b""
        while b"\0" not in text and len(text) < _LONGEST_PATH:
            text += memory.read(256 - (address + len(text)) % 256)  # never across a page that may not be there
    path = Path(os.fsdecode(text.split(b"\0")[0]))
    if path.is_absolute():
        return path
    start = Path(f"/proc/{process}/cwd").readlink() if folder == _FOLDER_OF_PROCESS else _opened(process, folder)
    return None if start is None else start / path


def _signed(register: int) -> int:
    low = register & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low
