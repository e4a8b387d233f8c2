"""Runs a function in a process of its own and makes its nth change of the disk go wrong.

The kernel stops the process before and after each system call (`ptrace`), so nothing of the program is replaced and
what SQLite, Arrow and safetensors write from native code counts like what Python writes. x86-64 Linux only.
"""

import ctypes
import errno
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.disk import Disk
from tests.faults.points import NEEDS_ROOM, TORN, Point, point

KILLS = ("kill before", "kill after", "torn write", "power cut")
ERRORS = ("EIO", "ENOSPC", "EROFS")
_ONCE = ("EIO",)  # a bad sector; a full or read-only disk stays as it is

_TRACE_ME, _POKE_USER, _SYSCALL, _SET_OPTIONS, _GET_SYSCALL_INFO = 0, 6, 24, 0x4200, 0x420E
_OPTIONS = 0x01 | 0x08 | 0x100000  # mark system calls, follow threads, kill the traced with the tracer
_ANY_THREAD = 0x40000000  # __WALL
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_ENTRY, _EXIT = 1, 2
_RAX, _RDX, _ORIG_RAX = 8 * 10, 8 * 12, 8 * 15  # where the registers lie


class _Stop(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint8),
        ("padding", ctypes.c_uint8 * 23),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
        ("more", ctypes.c_uint64),
    )


_c = ctypes.CDLL(None, use_errno=True)
_c.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_c.ptrace.restype = ctypes.c_long


@dataclass(frozen=True)
class Fault:
    """What goes wrong at the nth change of the disk, counted from 0."""

    kind: str
    place: int

    def __post_init__(self) -> None:
        assert self.kind in (*KILLS, *ERRORS)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a process ended: exit code, or minus the signal; and what it changed on the disk until then."""

    code: int
    points: list[str]


@dataclass(kw_only=True)
class Tracer:
    """Follows one process until it ends."""

    process: int
    folders: Sequence[Path]
    fault: Fault | None
    points: list[str] = field(default_factory=list)
    disk: Disk | None = None
    _open: dict[int, tuple[Point, int]] = field(default_factory=dict)  # calls that have begun, by thread

    def follow(self) -> Outcome:
        """Runs the process to its end, whatever the fault makes of it."""
        if self.fault is not None and self.fault.kind == "power cut":
            self.disk = Disk(self.folders)
        os.waitpid(self.process, _ANY_THREAD)
        _ptrace(_SET_OPTIONS, self.process, 0, _OPTIONS)
        thread, deliver = self.process, 0
        while True:
            _ptrace(_SYSCALL, thread, 0, deliver)
            while True:
                thread, status = os.waitpid(-1, _ANY_THREAD)
                if os.WIFSTOPPED(status):
                    break
                if thread == self.process:
                    return self._ended(os.waitstatus_to_exitcode(status))
            deliver = self._stopped(thread, os.WSTOPSIG(status))

    def _stopped(self, thread: int, signal_number: int) -> int:
        """Looks at a stop; returns the signal that the thread is to get."""
        if signal_number == _SYSCALL_STOP:
            stop = _Stop()
            _ptrace(_GET_SYSCALL_INFO, thread, ctypes.sizeof(stop), ctypes.addressof(stop))
            if stop.kind == _ENTRY:
                self._begins(thread, stop)
            elif stop.kind == _EXIT and thread in self._open:
                self._ends(thread, *self._open.pop(thread))
        # Stops of new threads and of tracing itself are not the program's business.
        return 0 if signal_number in (_SYSCALL_STOP, signal.SIGTRAP, signal.SIGSTOP) else signal_number

    def _begins(self, thread: int, stop: _Stop) -> None:
        found = point(thread, stop.number, tuple(stop.arguments))
        if found is None or not any(found.path.is_relative_to(folder) for folder in self.folders):
            return
        place = len(self.points)
        self.points.append(str(found))
        self._open[thread] = (found, place)
        if self.disk is not None and found.name == "unlink":
            self.disk.removed(found.path)
        if self._hits("kill before", place):
            self._kill()
        elif self._hits("torn write", place) and found.number in TORN:
            _ptrace(_POKE_USER, thread, _RDX, max(1, stop.arguments[2] // 2))
        elif self._fails(found, place):
            _ptrace(_POKE_USER, thread, _ORIG_RAX, 2**64 - 1)  # no such call: nothing happens

    def _ends(self, thread: int, found: Point, place: int) -> None:
        if self._fails(found, place):
            assert self.fault is not None
            _ptrace(_POKE_USER, thread, _RAX, 2**64 - getattr(errno, self.fault.kind))
        if self.disk is not None and found.name == "sync":
            self.disk.synced(found.path)
        if any(self._hits(kind, place) for kind in ("kill after", "torn write", "power cut")):
            self._kill()

    def _hits(self, kind: str, place: int) -> bool:
        return self.fault == Fault(kind, place)

    def _fails(self, found: Point, place: int) -> bool:
        if self.fault is None or self.fault.kind not in ERRORS:
            return False
        if self.fault.kind in _ONCE:
            return place == self.fault.place
        stays = found.name in NEEDS_ROOM if self.fault.kind == "ENOSPC" else found.name != "sync"
        return place >= self.fault.place and stays

    def _kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)

    def _ended(self, code: int) -> Outcome:
        if self.disk is not None and code == -signal.SIGKILL:
            self.disk.cut()
        return Outcome(code=code, points=self.points)


def run(function: Callable[[], int], folders: Sequence[Path], fault: Fault | None = None) -> Outcome:
    """Calls `function` in a forked process whose changes below `folders` are counted and may go wrong."""
    process = os.fork()
    if process == 0:
        _ptrace(_TRACE_ME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        code = 70
        try:
            code = function()
        finally:
            os._exit(code)
    return Tracer(process=process, folders=folders, fault=fault).follow()


def _ptrace(request: int, thread: int, address: int, data: int) -> None:
    ctypes.set_errno(0)
    if _c.ptrace(request, thread, address, data) == -1 and ctypes.get_errno() not in (0, errno.ESRCH):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
