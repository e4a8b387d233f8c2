"""Jobs: runs in processes of their own, whose whole state is files, so that no tab and no server has to live.

A job is a folder: `job.json` (what is run, as typed), `progress.json`, `log.txt`, `output.txt`, and `end.json` once it
is over. Its process holds a lock; a job without an end whose lock is free has been lost.
"""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from understudy.app.project import Project
from understudy.errors import InputError
from understudy.files import whole_file

State = Literal["running", "done", "failed", "stopped", "lost"]
MOST_AT_ONCE = 4
_PATIENCE_SECONDS = 60.0  # until a new process holds its lock
_TAIL_BYTES = 20_000
_NAME = re.compile(r"[0-9a-f]{16,64}")


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a job does.

    Attributes:
        kind: `synth`, or the command of `understudy` that is run.
        title: What it does, in words.
        schema: Schema that it belongs to, as the project names it.
        arguments: Of `understudy.synthesize` by name, or the words of the command line.
        command: The line that a person would type for the same.
        python: The same in Python, where there is one call for it.
        makes: The file or folder that it writes.
        internal: Whether it shows what was computed from real series.
        ledger: The ledger that it charges, if any.
    """

    kind: str
    title: str
    arguments: Any
    command: str
    schema: str = ""
    python: str = ""
    makes: str = ""
    internal: bool = False
    ledger: str = ""
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True)
class Job:
    """One job of a project, as its files tell it."""

    project: Project
    name: str

    @classmethod
    def named(cls, project: Project, name: str) -> "Job":
        """Returns a job that was started before."""
        job = cls(project, name)
        if not _NAME.fullmatch(name) or not (job.folder / "job.json").is_file():
            raise InputError("job: no run of that name is in this project. The start page lists all runs.")
        return job

    @classmethod
    def start(cls, project: Project, name: str, task: Task) -> "Job":
        """Starts a job; the same name starts nothing twice, however often a form is sent."""
        if not _NAME.fullmatch(name):
            raise InputError("once: the form is incomplete. Load the page again.")
        job = cls(project, name)
        if sum(other.state == "running" for other in all_jobs(project)) >= MOST_AT_ONCE:
            raise InputError(f"At most {MOST_AT_ONCE} runs at once are expected. Wait for one to end, or cancel it.")
        try:
            job.folder.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            return job
        job.write("job.json", asdict(task))
        with (job.folder / "log.txt").open("wb") as log, (job.folder / "output.txt").open("wb") as output:
            subprocess.Popen(
                [sys.executable, "-m", "understudy.app.worker", str(job.folder)],
                cwd=project.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                env={name: value for name, value in os.environ.items() if name != "UNDERSTUDY_DEBUG"},  # no values
                start_new_session=True,  # it outlives the server
            )
        return job

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.project.state / "jobs" / self.name

    @property
    def task(self) -> Task:
        """What it does."""
        return Task(**self.read("job.json"))

    @property
    def state(self) -> State:
        """How it stands."""
        ended = self.end.get("state")
        if ended in ("done", "failed", "stopped"):
            return ended
        return "running" if self._is_alive() else "lost"

    @property
    def end(self) -> dict[str, Any]:
        """How it ended (`state`, `message`); empty before."""
        return self.read("end.json")

    @property
    def progress(self) -> dict[str, Any]:
        """The stage and the share done, public facts only."""
        return {"stage": "starting", "share": 0.0, **self.read("progress.json")}

    def text(self, name: Literal["log.txt", "output.txt"]) -> str:
        """Returns the last part of what its process said."""
        try:
            with (self.folder / name).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def cancel(self) -> None:
        """Asks its process to stop, which it does as after Ctrl-C."""
        (self.folder / "cancel").touch()

    def charges(self) -> int | None:
        """Returns how many charges its ledger has recorded since it began; None where there is no ledger to ask."""
        from understudy.privacy.ledger import Ledger

        task = self.task
        if not task.ledger or not Path(task.ledger).is_file():
            return None if not task.ledger else 0
        return sum(entry.recorded_at >= task.started for entry in Ledger.look(task.ledger).entries())

    def read(self, name: str) -> dict[str, Any]:
        """Returns one of its files; empty while it is not there."""
        try:
            found: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    def write(self, name: str, facts: dict[str, Any]) -> None:
        """Writes one of its files, whole or not at all."""
        with whole_file(self.folder / name) as draft:
            draft.write_text(json.dumps(facts), encoding="utf-8")

    def lock(self) -> FileLock:
        """Returns the lock that its process holds as long as it lives."""
        return FileLock(self.folder / "lock")

    def _is_alive(self) -> bool:
        try:
            with self.lock().acquire(timeout=0):
                begun = (self.folder / "progress.json").exists()
        except Timeout:
            return True
        return not begun and time.time() - (self.folder / "job.json").stat().st_mtime < _PATIENCE_SECONDS


def all_jobs(project: Project) -> list[Job]:
    """Returns all jobs of a project, the newest first."""
    files = sorted((project.state / "jobs").glob("*/job.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [Job(project, path.parent.name) for path in files]
