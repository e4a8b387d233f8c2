"""All that somebody can see of a command besides released numbers, in a form that two runs can be compared by.

What may differ between two runs, and is taken out by name:

- times, hashes, keys and signatures, and the folder's own path;
- a fact that was bought: its number is noisy and paid for. It stands in `buy`'s first line, under "bought" in its JSON,
  and in the schema that it writes;
- synthetic values: they are drawn from what was released, by coins of their own, and so is how well they compress. Of
  their file only columns, types and the number of series are looked at;
- sentences about a release, if the release alone gives the same ones;
- the list of kept-out units, which is private and says so, as large as it has to be.
"""

import io
import json
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors import safe_open

from understudy.synthesizers import Release

_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
_CHANGING = re.compile(r"\b[0-9a-f]{64,128}\b|\b([0-9a-f]{4} ){7}[0-9a-f]{4}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
PRIVATE_LIST = ".holdout.csv"
_TOLD = "Of the release: "


@dataclass(frozen=True, kw_only=True)
class View:
    """What a run showed: each field has to be the same for twins."""

    exit_code: int
    printed: str
    complained: str
    logged: tuple[str, ...]
    progress: tuple[Any, ...]
    files: dict[str, Any]
    ledger: tuple[Any, ...]

    def differences(self, other: "View") -> list[str]:
        """Names what tells two views apart."""
        found = [field.name for field in fields(self) if getattr(self, field.name) != getattr(other, field.name)]
        if "files" in found:
            names = self.files.keys() | other.files.keys()
            changed = sorted(name for name in names if self.files.get(name) != other.files.get(name))
            found[found.index("files")] = f"files: {', '.join(changed)}"
        return found


def view(folder: Path, arguments: Sequence[str]) -> View:
    """Runs a command in `folder`, with a home beside it, and returns what can be seen of it."""
    from understudy.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with _inside(folder), _logged() as logged, _progress() as progress, redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    return View(
        exit_code=code,
        printed=_without_bought(_plain(_without_findings(out.getvalue(), folder), folder)),
        complained=_plain(err.getvalue(), folder),
        logged=tuple(logged),
        progress=tuple(progress),
        files={str(path.relative_to(folder)): _outline(path, folder) for path in _files(folder)},
        ledger=tuple(row for path in sorted(folder.glob("*.ledger")) for row in rows(path)),
    )


def rows(ledger: Path) -> Iterator[tuple[str, Any]]:
    """Yields what a ledger's rows say, but for the time of day."""
    connection = sqlite3.connect(ledger)
    try:
        for kind, body in connection.execute("SELECT kind, body FROM entries ORDER BY sequence").fetchall():
            yield kind, {**json.loads(body), "recorded_at": ""}
    finally:
        connection.close()


def _files(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(PRIVATE_LIST))
    return sorted(path for path in found if path.name not in ("clinic.csv",))


def _outline(path: Path, folder: Path) -> Any:
    """Everything about a file that is neither a released number nor drawn from one."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return table.schema, len(table.column("person").unique())
    if path.suffix == ".safetensors":
        return path.stat().st_size, tensors(path)
    if path.suffix in (".json", ".toml", ".html", ".md"):
        text = _plain(path.read_text(), folder)
        return _NUMBER.sub("#", text) if path.name == "bought.toml" else text
    return path.stat().st_size


def tensors(path: Path) -> dict[str, Any]:
    """Returns the shapes and types in a file of arrays."""
    with safe_open(path, framework="numpy") as opened:
        slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
        return {name: (tuple(found.get_shape()), found.get_dtype()) for name, found in slices.items()}


def _plain(text: str, folder: Path) -> str:
    return _CHANGING.sub("*", text.replace(str(folder), "FOLDER"))


def _without_bought(text: str) -> str:
    """Takes the noisy fact out of what `buy` prints; delta has to do with a bought population."""
    if text.startswith("{"):
        facts = json.loads(text)
        facts["bought"] = _NUMBER.sub("#", json.dumps(facts.get("bought")))
        return json.dumps(facts)
    return "\n".join(_NUMBER.sub("#", line) if line.startswith("Bought:") else line for line in text.splitlines())


def _without_findings(text: str, folder: Path) -> str:
    """Takes out what `synth` reads off released numbers, if the release says the same: so it came from nowhere else."""
    expected = [
        sentence
        for place in sorted(path.parent for path in folder.glob("*/release.json"))
        for release in (Release.load(place),)
        for sentence in (*release.synthesizer.findings(release.schema, release.arrays), *release.certificate.findings)
    ]
    if text.startswith("{"):
        facts = json.loads(text)
        return json.dumps({**facts, "findings": []}) if facts.get("findings") == expected else text
    told = [line for line in text.splitlines(keepends=True) if line.startswith(_TOLD)]
    same = [line.removeprefix(_TOLD).strip() for line in told] == expected
    return "".join(line for line in text.splitlines(keepends=True) if line not in told) if same else text


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd(), os.environ["UNDERSTUDY_HOME"]
    os.chdir(folder)
    os.environ["UNDERSTUDY_HOME"] = str(folder / "home")
    try:
        yield
    finally:
        os.chdir(before[0])
        os.environ["UNDERSTUDY_HOME"] = before[1]


@contextmanager
def _logged() -> Iterator[list[str]]:
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield records
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@contextmanager
def _progress() -> Iterator[list[tuple[str, float]]]:
    """Collects what a person at a terminal would see moving."""
    from understudy.cli.console import Output

    calls: list[tuple[str, float]] = []

    @contextmanager
    def listening(_output: Output) -> Iterator[Callable[[str, float], None]]:
        yield lambda stage, share: calls.append((stage, share))

    usual, Output.progress = Output.progress, listening  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Output.progress = usual  # type: ignore[method-assign]
