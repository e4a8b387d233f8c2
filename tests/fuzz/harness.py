"""Runs a command on damaged input and says which rules it broke.

Whatever the input: no traceback, an exit code that is documented and not that of an internal error, one line of
error that quotes no private cell, and where the command refuses, every file as it was: nothing charged, nothing left
behind.
"""

import io
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

import jaxtyping

from tests.e2e.commands import Outcome, finish, start
from tests.fuzz.case import Case, Content, Contents
from tests.fuzz.commands import LEDGER, MAKES
from tests.fuzz.limits import TooSlow, limited
from tests.fuzz.place import HOME, MARKS, SCRATCH, build, contents

DOCUMENTED, TOO_SLOW, NOT_CAUGHT = (0, 2, 3, 4, 5), -1, -2
_CPU_SECONDS = 20.0  # an input that takes longer hangs the tool
_SHOWN = 4000
Entry = Callable[[list[str]], int]


class Harness:
    """A folder that is put back in order after every input."""

    def __init__(self, folder: Path, entry: Entry | None = None, cpu_seconds: float = _CPU_SECONDS) -> None:
        self.folder = folder
        self.entry = entry
        self.cpu_seconds = cpu_seconds
        with self._inside():
            build(folder)
        self.pristine = contents(folder)
        self.undamaged = lru_cache(maxsize=None)(self._undamaged)

    def check(self, case: Case, *, subprocess: bool = False) -> Outcome:
        """Runs one input and raises an `AssertionError` that names every broken rule."""
        outcome, broken = self.trial(case, subprocess=subprocess)
        assert not broken, f"{'; '.join(broken)}\n{case}\n{str(outcome)[:_SHOWN]}"
        return outcome

    def trial(self, case: Case, *, subprocess: bool = False) -> tuple[Outcome, list[str]]:
        """Returns what a command did with one input, and the rules it broke."""
        with self._inside():
            for name, content in case.files.items():
                _put(self.folder / name, content)
            before = contents(self.folder)
            try:
                outcome = self._start(case.arguments) if subprocess else self._run(case.arguments)
            finally:
                after = self._restored()
        broken = [*_broken_words(outcome), *_broken_files(case, outcome, before, after)]
        if case.damaged and outcome.code == 0 and outcome.out != self.undamaged(case.arguments):
            broken.append("accepted, and says something else than the undamaged one")
        return outcome, broken

    def _undamaged(self, arguments: tuple[str, ...]) -> str:
        with self._inside():
            outcome = self._run(arguments)
            self._restored()
        assert outcome.code == 0, outcome
        return outcome.out

    def _run(self, arguments: tuple[str, ...]) -> Outcome:
        from understudy.cli.main import main

        out, err, code = io.StringIO(), io.StringIO(), NOT_CAUGHT
        with redirect_stdout(out), redirect_stderr(err), _warnings_shown(), limited(self.cpu_seconds) as expired:
            try:
                code = (self.entry or main)(list(arguments))
            except TooSlow:
                pass
            except Exception:
                traceback.print_exc(file=err)
        return Outcome(TOO_SLOW if expired else code, out.getvalue(), err.getvalue())

    def _start(self, arguments: tuple[str, ...]) -> Outcome:
        return finish(start(*arguments, variables={"TMPDIR": SCRATCH}))

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """As a user's process, without the tests' type checks; home and all files are below the folder."""
        home, scratch = str(self.folder / HOME), str(self.folder / SCRATCH)
        with (
            chdir(self.folder),
            patch.dict(os.environ, UNDERSTUDY_HOME=home),
            patch.object(tempfile, "tempdir", scratch),
            patch.object(jaxtyping.config, "jaxtyping_disable", True),
        ):
            yield

    def _restored(self) -> Contents:
        """Puts the folder in order and returns what was there."""
        now = contents(self.folder)
        for name in sorted(set(now) - set(self.pristine), reverse=True):
            _put(self.folder / name, None)
        for name, content in self.pristine.items():
            if name not in now or now[name] != content:
                if content is None:
                    (self.folder / name).mkdir(exist_ok=True)
                else:
                    _put(self.folder / name, content)
        return now


def _put(path: Path, content: Content) -> None:
    """Makes `path` hold exactly that, or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content) if isinstance(content, bytes) else path.symlink_to(content.target)


def _broken_words(outcome: Outcome) -> list[str]:
    shown, broken = outcome.out + outcome.err, []
    if outcome.code not in DOCUMENTED:
        broken.append("takes too long" if outcome.code == TOO_SLOW else f"exit code {outcome.code}")
    if "Traceback" in shown:
        broken.append("a traceback")
    if outcome.code == 0 and outcome.err:
        broken.append("something on standard error although it succeeded")
    if outcome.code != 0 and not (outcome.err.startswith("error: ") and outcome.err.count("\n") == 1):
        broken.append("not one line of error")
    if not shown.replace("\n", "").isprintable():
        broken.append("control characters on the screen")
    quoted = [mark for mark in MARKS if mark in shown]
    return broken + ([f"quotes private cells: {', '.join(quoted)}"] if quoted else [])


def _broken_files(case: Case, outcome: Outcome, before: Contents, after: Contents) -> list[str]:
    changed = [name for name in before.keys() | after.keys() if _at(before, name) != _at(after, name)]
    strange = sorted(name for name in changed if not _may_change(name, case, succeeded=outcome.code == 0))
    return [f"changed or left behind: {', '.join(strange)}"] if strange else []


def _may_change(name: str, case: Case, *, succeeded: bool) -> bool:
    """What a command makes if it succeeds, and SQLite's own companions of a ledger that it can't read."""
    if f"{LEDGER}-" in name:
        return any(LEDGER in damaged for damaged in case.files)
    makes = MAKES.get(case.arguments[0], ())
    return succeeded and (name.startswith((*makes, f"{HOME}/populations")) or name.endswith(makes))


def _at(found: Contents, name: str) -> tuple[bool, Content]:
    return name in found, found.get(name)


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """A warning of numpy's would reach a user's screen; pytest must not keep it for itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # as Python itself does
        warnings.showwarning = lambda *facts, **_: print(warnings.formatwarning(*facts[:4]), file=sys.stderr)
        yield
