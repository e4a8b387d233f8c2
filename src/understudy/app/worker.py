"""The process of one job: `python -m understudy.app.worker FOLDER`.

A run calls `understudy.synthesize` and reports its progress; everything else is the command that a person would type.
Whatever happens, the folder says how it ended.
"""

import _thread
import runpy
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from understudy.app.jobs import Job
from understudy.app.project import Project
from understudy.errors import Stopped, UnderstudyError, UnderstudyWarning

_LOOK_SECONDS = 0.2


def main(folder: Path) -> None:
    """Does what the folder's `job.json` says."""
    job = Job(Project(folder.parents[2]), folder.name)
    with job.lock().acquire(timeout=30):  # the server looks at it now and then
        job.write("progress.json", {"stage": "starting", "share": 0.0})
        signal.signal(signal.SIGTERM, _stop)
        threading.Thread(target=_watch, args=(job,), daemon=True).start()
        job.write("end.json", _outcome(job))


def _outcome(job: Job) -> dict[str, Any]:
    task = job.task
    try:
        message = _synthesize(job, task.arguments) if task.kind == "synth" else _command(job, task.arguments)
    except (Stopped, KeyboardInterrupt) as stop:
        return {"state": "stopped", "message": _noted("Stopped before the end; nothing half-written was left.", stop)}
    except UnderstudyError as problem:
        cancelled = (job.folder / "cancel").exists()  # a command has already turned the signal into a message
        return {"state": "stopped" if cancelled else "failed", "message": _noted(str(problem), problem)}
    except MemoryError as problem:
        return {"state": "failed", "message": _noted("Too little memory for this run.", problem)}
    except OSError as problem:
        return {"state": "failed", "message": _noted(f"{problem.strerror or 'Reading or writing failed'}.", problem)}
    except Exception as problem:  # what it says may quote private data
        message = f"Internal error: {type(problem).__name__}. No partly written file was left. Please report it."
        return {"state": "failed", "message": _noted(message, problem)}
    return {"state": "done", "message": message}


def _synthesize(job: Job, arguments: dict[str, Any]) -> str:
    """Makes a release, and the public page and pictures of it, which cost nothing."""
    import understudy as us

    newest = 0.0

    def progress(stage: str, share: float) -> None:
        nonlocal newest
        if share >= 1 or time.monotonic() - newest > _LOOK_SECONDS:
            newest = time.monotonic()
            job.write("progress.json", {"stage": stage, "share": round(share, 3)})

    def caution(message: Warning | str, *_: Any, **__: Any) -> None:
        print(message, file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UnderstudyWarning)
        warnings.showwarning = caution
        release = us.synthesize(**arguments, progress=progress)
    job.write("progress.json", {"stage": "drawing", "share": 0.95})
    context = ["--context", arguments["context"]] if arguments.get("context") else []
    pictures = [*context, "--out", f"{arguments['save_to']}-report.html", "--figures", str(job.folder / "figures")]
    try:
        _command(job, ["report", arguments["save_to"], *pictures])
    except UnderstudyError:
        return f"{release.certificate.sentence()} The pictures could not be drawn; the log says why."
    return release.certificate.sentence()


def _command(job: Job, words: list[str]) -> str:
    """Runs a command of `understudy` in this process, with its own signals and messages."""
    arguments, sys.argv = sys.argv, ["understudy", *words]
    try:
        runpy.run_module("understudy", run_name="__main__")
    except SystemExit as end:
        if end.code not in (0, None, 6):  # 6: an audit that contradicts is an answer
            said = [line for line in job.text("log.txt").splitlines() if line.startswith("error:")]
            raise UnderstudyError(said[-1].removeprefix("error:").strip() if said else "The log says more.") from None
    finally:
        sys.argv = arguments
    return ""


def _noted(message: str, problem: BaseException) -> str:
    """Adds what the library noted on the way up, such as that a charge stays."""
    return " ".join([message, *getattr(problem, "__notes__", [])])


def _stop(*_: Any) -> None:
    raise Stopped


def _watch(job: Job) -> None:
    while not (job.folder / "cancel").exists():
        time.sleep(_LOOK_SECONDS)
    _thread.interrupt_main(signal.SIGTERM)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
