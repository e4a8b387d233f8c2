"""The entry point, and the one place where errors become messages and the exit codes that `understudy --help` lists."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from understudy.errors import CertificateError, Stopped, UnderstudyError
from understudy.extras import naming_extras

BAD_INPUT, OUR_FAULT = 2, 1
_PATIENCE_SECONDS = 2.0  # a second Ctrl-C this soon must not cut the clean-up short
_DEBUG_VARIABLE = "UNDERSTUDY_DEBUG"


def main(arguments: Sequence[str] | None = None, commands: Any = None, program: str = "understudy") -> int:
    """Runs one of a program's commands, by default of `understudy` itself, and returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _signals_raise_stopped():
            return _run(given, commands, program)
    except Stopped as stop:
        return _report(given, "Stopped before the end; nothing half-written was left.", stop)


def _run(given: list[str], commands: Any, program: str) -> int:
    try:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError):
                stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        with naming_extras(" ".join([program, *given[:1]])):
            from understudy.cli import app

            return app.call(given, commands or app.app, program)
    except UnderstudyError as problem:
        return _report(given, str(problem), problem, problem.exit_code)
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as problem:
        where = f"'{problem.filename}': " if problem.filename else ""
        text = f"{where}{problem.strerror or 'reading or writing failed'}. Free some space, or choose another place."
        return _report(given, text, problem)
    except MemoryError as problem:
        text = "Too little memory. `understudy plan` says how much a run needs; a plan itself takes up to 1 GiB."
        return _report(given, text, problem)
    except Exception as problem:  # the last line of defence: whatever it says may quote private data
        return _report(given, _our_fault(problem), problem, OUR_FAULT)


def _report(given: list[str], message: str, problem: BaseException, exit_code: int = BAD_INPUT) -> int:
    """Prints what went wrong, with what commands noted on the way up, such as that a charge stays."""
    from understudy.cli.console import clean, console, plain

    message = " ".join([message, *getattr(problem, "__notes__", [])])
    facts = problem.facts if isinstance(problem, CertificateError) else {}
    with suppress(BrokenPipeError):
        if not getattr(problem, "logged", False):
            console(stderr=True).print("error:", style="bold red", end=" ")
            console(stderr=True).print(clean(message.replace("\n", " ")), style="red", soft_wrap=True)
        if "--json" in given:
            print(json.dumps({"error": message, "exit_code": exit_code, **plain(facts)}), flush=True)
    return exit_code


def _our_fault(problem: Exception) -> str:
    """Names the error's type and place in the program, and not its text, which may quote private data."""
    if os.environ.get(_DEBUG_VARIABLE) == "1":
        import traceback

        traceback.print_exception(problem)
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f" in {place.tb_frame.f_globals.get('__name__')}, line {place.tb_lineno}"
    return (
        f"Internal error: {type(problem).__name__}{where}. No partly written file was left. "
        f"Please report it. {_DEBUG_VARIABLE}=1 shows details; they may quote private data: read them first."
    )


@contextmanager
def _signals_raise_stopped() -> Iterator[None]:
    """Turns Ctrl-C and `kill` into `Stopped`; a repetition while cleaning up is let pass."""
    last = -_PATIENCE_SECONDS

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before >= _PATIENCE_SECONDS:
            raise Stopped

    old: dict[int, Any] = {}
    with suppress(ValueError):  # not the main thread: the caller handles signals
        old = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
