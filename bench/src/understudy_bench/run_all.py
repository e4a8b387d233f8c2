"""`understudy-bench all`: every benchmark, several at a time, then the page; what is finished is not run again."""

import json as json_format
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from filelock import FileLock, Timeout

from understudy.api.arguments import existing, whole_file
from understudy.cli.console import Json, Output, Quiet
from understudy.errors import InputError, MissingData
from understudy.workers import Workers, pool, workers_of
from understudy_bench.cli import Scale, results_of, write_report

_COST = "cost-"  # benchmarks of time and memory: one at a time, when nothing else runs
_FIRST = "record-"  # the longest: begun last, one would run alone on half of the machine
_FOLDER = "understudy-results"
_PAUSE = 0.2  # seconds between looks at what runs


@dataclass(frozen=True)
class Ended:
    """How one benchmark ended."""

    name: str
    code: int

    @property
    def words(self) -> str:
        """For the list of what is missing."""
        return "data are missing" if self.code == MissingData.exit_code else f"ended with {self.code}"


def run_all(
    into: Annotated[Path, typer.Option(help="Folder for results; run again with the same to go on.")] = Path(_FOLDER),
    scale: Annotated[Scale, typer.Option(help="quick: a night on two cores.")] = Scale.quick,
    data: Annotated[Path | None, typer.Option(help="Folder with public data. Default: UNDERSTUDY_DATA.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Benchmarks at a time.")] = 2,
    cluster: Annotated[str | None, typer.Option(help="Dask scheduler that runs them instead, tcp://host:port.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Those whose name begins so; repeat for several.")] = None,
    kept: Annotated[
        Path | None, typer.Option(help="Folder of `bench keep`: what it has whole, at this scale, is not run again.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run every benchmark and write the page. A run that was killed goes on; missing public data are named."""
    from understudy_bench.registry import BENCHMARKS

    output, who = Output(json=json, quiet=quiet), workers_of(workers, cluster)
    names = [name for name in BENCHMARKS if only is None or name.startswith(tuple(only))]
    if not names:
        raise InputError("--only: the beginning of a name that `understudy-bench list` prints is expected.")
    into.mkdir(parents=True, exist_ok=True)
    with _alone_in(into, "--into"):
        if kept is not None:
            _take_over(existing(kept, "--kept"), into, scale)
        waiting = [name for name in names if not (into / f"{name}.json").exists()]
        failed = _failed(waiting, Work(into.resolve(), str(scale), data), who, output)
    pages = write_report(into, into / "results.html", into / "results.md") if any(into.glob("*.json")) else []
    facts = {"finished": len(names) - len(failed), "failed": {one.name: one.words for one in failed}, "files": pages}
    lines = [f"{one.name}: {one.words}; see {into / one.name}.log." for one in failed]
    output.result(
        facts, *lines, f"{len(names) - len(failed)} of {len(names)} finished.", *(f"Wrote {p}." for p in pages)
    )
    if any(one.code != MissingData.exit_code for one in failed):
        raise typer.Exit(1)


@contextmanager
def _alone_in(folder: Path, what: str) -> Iterator[None]:
    """Keeps a folder for this process; the operating system gives it back however the process ends."""
    try:
        held = FileLock(folder / ".lock").acquire(blocking=False)
    except Timeout:
        raise InputError(
            f"{what}: '{folder}' is expected to be free, and another process works in it. Wait for its end, end it, or "
            "choose another folder."
        ) from None
    with held:
        yield


def _failed(names: list[str], work: "Work", workers: Workers, output: Output) -> list[Ended]:
    """Runs benchmarks and returns those that did not end well."""
    failed: list[Ended] = []
    with output.progress() as progress:
        for done, ended in enumerate(_ended(names, work, workers), start=1):
            progress(ended.name, done / len(names))
            if ended.code:
                failed.append(ended)
            else:
                (work.into / f"{ended.name}.log").unlink(missing_ok=True)
    return failed


def _take_over(kept: Path, into: Path, scale: Scale) -> None:
    """Copies results of an earlier record; of what is kept in a few digits only, nothing is taken."""
    for name, result in results_of(kept).items():
        target = into / f"{name}.json"
        if result["scale"] == scale and "kept" not in result["data"] and not target.exists():
            with whole_file(target) as draft:
                draft.write_text(json_format.dumps(result, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Work:
    """How each benchmark is run; on a cluster its workers see the same folders."""

    into: Path
    scale: str
    data: Path | None

    def start(self, name: str) -> "subprocess.Popen[bytes]":
        """Starts one as a process of its own, which ends when this one does: it is tied to a pipe that closes then."""
        command = [sys.executable, "-m", "understudy_bench", "run", name, "--quiet", "--tied"]
        command += ["--scale", self.scale, "--out", str(self.into / f"{name}.json")]
        command += ["--pictures", str(self.into / "pictures" / name)]
        command += [] if self.data is None else ["--data", str(self.data)]
        with (self.into / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def finish(self, name: str) -> Ended:
        """Runs one to its end."""
        with self.start(name) as process:
            return Ended(name, process.wait())


def _ended(names: list[str], work: Work, workers: Workers) -> Iterator[Ended]:
    """Yields benchmarks as they end: several at a time, the longest first, those of cost alone and last."""
    alone, others = _in_turn(names)
    if isinstance(workers, int):
        yield from _ended_here(others, work, workers)
        yield from _ended_here(alone, work, 1)
        return
    import joblib

    with pool(workers) as processes:
        for group in (others, *([name] for name in alone)):
            yield from processes(joblib.delayed(work.finish)(name) for name in group)


def _in_turn(names: list[str]) -> tuple[list[str], list[str]]:
    """Returns those that run alone, and the others in the order in which they are begun."""
    alone = [name for name in names if name.startswith(_COST)]
    others = [name for name in names if name not in alone]
    return alone, sorted(others, key=lambda name: not name.startswith(_FIRST))


def _ended_here(names: list[str], work: Work, most: int) -> Iterator[Ended]:
    """Yields what processes of this machine end; it waits without threads, so that a signal ends it at once."""
    waiting, running = list(names), dict[str, subprocess.Popen[bytes]]()
    while waiting or running:
        while waiting and len(running) < most:
            name = waiting.pop(0)
            running[name] = work.start(name)
        time.sleep(_PAUSE)
        for name, code in [(name, process.poll()) for name, process in running.items()]:
            if code is not None:
                del running[name]
                yield Ended(name, code)
