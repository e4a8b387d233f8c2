"""Runs the command line as a person would, on small tables with marks that must never be printed."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.synthesizers.registry import METHODS

MAGIC_VALUE, MAGIC_PERSON, MAGIC_CATEGORY = "6.28318", "person-Zx81", "Quux77"
NUM_PERSONS, STEPS = 120, 6
Rows = list[list[str]]
_BRIEF = ("--set", "recipe.iterations=20")  # what is seen of a run does not depend on how long it trains
OPTIONS = {
    "ppem": ("--set", "sensitive=mean(pulse)", *_BRIEF),  # which it can't do without
    "vflgan-ts": _BRIEF,
    "dit": _BRIEF,
}

SCHEMA = """\
version = 1
name = "clinic"
population = 120

[unit]
column = "person"
dtype = "string"

[time]
column = "when"
frequency = "1h"
start = "2024-01-01T00:00:00"
steps = 6
dtype = "string"

[[channels]]
kind = "continuous"
name = "pulse"
low = 0
high = 10

[[static]]
kind = "categorical"
name = "ward"
categories = ["north", "south"]

[budget]
epsilon = 2.0
max_runs = 8
"""


@dataclass(frozen=True)
class Outcome:
    """What a command left on the screen, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> dict[str, Any]:
        """The object that `--json` printed."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Clinic:
    """A folder with a private table and its schema."""

    folder: Path

    @property
    def table(self) -> Path:
        """The private table."""
        return self.folder / "clinic.csv"

    @property
    def schema(self) -> Path:
        """Its public contract."""
        return self.folder / "schema.toml"

    @property
    def ledger(self) -> Path:
        """Where the ledger will be."""
        return self.folder / "clinic.ledger"

    @property
    def release(self) -> Path:
        """Where releases go unless a test says otherwise."""
        return self.folder / "release"

    def edit_rows(self, edit: Callable[[Rows], Rows]) -> None:
        """Rewrites the table; the first row is the header."""
        rows = [line.split(",") for line in self.table.read_text().splitlines()]
        self.table.write_text("".join(",".join(row) + "\n" for row in edit(rows)))

    def edit_schema(self, old: str, new: str) -> None:
        """Rewrites one place of the schema."""
        text = self.schema.read_text()
        assert old in text
        self.schema.write_text(text.replace(old, new))

    def synth(self, *more: str, epsilon: str = "0.5", out: Path | None = None) -> list[str]:
        """The arguments of a run."""
        target = str(out or self.release)
        return [
            "synth",
            str(self.table),
            "--schema",
            str(self.schema),
            "--epsilon",
            epsilon,
            "--out",
            target,
            *more,
        ]

    def files(self) -> dict[str, bytes]:
        """Everything in the folder, hidden drafts included."""
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}


def schema_for(clinic: Clinic, method: str) -> tuple[str, ...]:
    """The options that name a schema, and for a method that follows a public context the context of that schema."""
    if method != "pub2priv":
        return "--schema", clinic.schema.name
    context = '[[context]]\nkind = "continuous"\nname = "warmth"\nlow = 0\nhigh = 9\n\n[budget]'
    (clinic.folder / "warmth.toml").write_text(clinic.schema.read_text().replace("[budget]", context))
    rows = (f"2024-01-01T{step:02d}:00:00,{step}\n" for step in range(STEPS))
    (clinic.folder / "warmth.csv").write_text("when,warmth\n" + "".join(rows))
    return "--schema", "warmth.toml", "--context", "warmth.csv"


def make_clinic(folder: Path, persons: int = NUM_PERSONS) -> Clinic:
    """Writes a table of persons by hours; one value and one identifier are easy to recognise."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    lines = ["person,when,pulse,ward"]
    for number in range(persons):
        name = MAGIC_PERSON if number == 7 else f"person-{number:04d}"
        ward = ("north", "south")[number % 2]
        for step in range(STEPS):
            value = MAGIC_VALUE if (number, step) == (7, 2) else f"{rng.uniform(1, 9):.3f}"
            lines.append(f"{name},2024-01-01T{step:02d}:00:00,{value},{ward}")
    clinic = Clinic(folder)
    clinic.table.write_text("\n".join(lines) + "\n")
    clinic.schema.write_text(SCHEMA.replace(f"population = {NUM_PERSONS}", f"population = {persons}"))
    return clinic


def run(*arguments: str | Path, main: Callable[[list[str]], int] | None = None) -> Outcome:
    """Runs a command inside this process; `main` is that of another program than `understudy`."""
    if main is None:
        from understudy.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Outcome(code, out.getvalue(), err.getvalue())


def start(*arguments: str | Path, **options: Any) -> "subprocess.Popen[str]":
    """Starts a command as a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("variables", {})}
    program = options.pop("module", "understudy.cli.main")
    command = [sys.executable, "-m", program, *(str(argument) for argument in arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **(pipes | options))


_LAUNCHER = """
import json, os, resource, subprocess, sys
limit = int(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
_, status, usage = os.wait4(subprocess.Popen(sys.argv[3:]).pid, 0)
found = [os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]
open(sys.argv[2], "w").write(json.dumps(found))
"""


def measured(
    folder: Path, *arguments: str | Path, processor_seconds: int = 0, **options: Any
) -> tuple[int, float, int]:
    """Runs a command and returns its exit code, its processor seconds and the bytes of its largest process.

    A small process starts it, because a process inherits the peak memory of the process that started it.
    """
    usage = folder / "usage.json"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("variables", {})}
    command = [sys.executable, "-m", "understudy.cli.main", *(str(argument) for argument in arguments)]
    launcher = [sys.executable, "-c", _LAUNCHER, str(processor_seconds), str(usage), *command]
    subprocess.run(launcher, env=environment, check=True, **options)
    code, seconds, peak = json.loads(usage.read_text())
    return code, seconds, peak


def finish(process: "subprocess.Popen[str]") -> Outcome:
    """Waits for a started command."""
    out, err = process.communicate(timeout=120)
    return Outcome(process.returncode, out or "", err or "")


def charges(ledger: Path) -> list[Any]:
    """What a ledger holds; nothing if it is not there."""
    from understudy.privacy.ledger import Ledger

    return list(Ledger.open(ledger).entries()) if ledger.exists() else []


def one_per_mechanism(names: Iterable[str]) -> list[Any]:
    """Returns names to parametrize by; `synth METHOD` is slow but for one method per mechanism.

    Noisy sums: spectral. Noisy votes: pets. Noisy gradients: dit.
    """
    quick = {f"synth {method}" for method in ("spectral", "pets", "dit")}
    slow = {name for name in names if name.startswith("synth ") and name.removeprefix("synth ") in METHODS} - quick
    return [pytest.param(name, marks=pytest.mark.slow if name in slow else ()) for name in names]
