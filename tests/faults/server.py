"""A warmed process that forks one child per command, so that a thousand kills need one import of the package.

with Server() as server:
    report = server.run("understudy.cli.main:main", ["ledger", "list"], folder=..., fault=Fault("kill after", 3))
"""

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.tracing import Fault

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "understudy.cli.main:main"


@dataclass(frozen=True, kw_only=True)
class Report:
    """What became of one command: its end, its changes of the disk, its words, and what it was granted and did."""

    code: int
    points: list[str]
    out: str
    err: str
    granted: int
    executed: int


class Server:
    """The client's side: one job at a time."""

    def __init__(self) -> None:
        quiet = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NO_COLOR": "1"}
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **quiet, "PYTHONPATH": path},
        )

    def run(
        self, function: str, arguments: Sequence[str], *, folder: Path, place: str = ".", fault: Fault | None = None
    ) -> Report:
        """Calls `module:function` with arguments in `folder`/`place`; what happens below `folder` is counted."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"function": function, "arguments": list(arguments), "folder": str(folder), "place": place}
        job["fault"] = None if fault is None else [fault.kind, fault.place]
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the server died"
        return Report(**json.loads(answer))

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_problem: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def serve() -> None:
    """The server's side: reads jobs until there are no more."""
    from tests.faults.scenes import warm_up

    seen: set[str] = set()
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        job = json.loads(line)
        module, _, name = job["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        if job["function"] not in seen:
            seen.add(job["function"])
            warm_up(job["function"])
            gc.freeze()  # a collection in a child would copy every page of the parent
        print(json.dumps(_report(function, job)), file=answers, flush=True)


def _report(function: Any, job: dict[str, Any]) -> dict[str, Any]:
    from tests.faults.diary import DIARY
    from tests.faults.tracing import run

    folder = Path(job["folder"])
    DIARY.read()
    with tempfile.TemporaryDirectory() as outside:
        out, err = Path(outside) / "out", Path(outside) / "err"

        def act() -> int:
            for handle, file in ((1, out), (2, err)):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), handle)
            sys.stdout = sys.__stdout__
            os.chdir(folder / job["place"])
            os.environ["UNDERSTUDY_HOME"] = str(folder / "home")
            DIARY.keep()
            code = function(job["arguments"])
            sys.stdout.flush()
            return int(code)

        fault = None if job["fault"] is None else Fault(*job["fault"])
        outcome = run(act, [folder], fault)
        granted, executed = DIARY.read()
        texts = {"out": out.read_text() if out.exists() else "", "err": err.read_text() if err.exists() else ""}
    return {"code": outcome.code, "points": outcome.points, **texts, "granted": granted, "executed": executed}


if __name__ == "__main__":
    serve()
