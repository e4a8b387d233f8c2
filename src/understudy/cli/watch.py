"""What a command leaves for machines: a line of JSON for each event, and at its end a record and OpenMetrics.

Privacy: public facts only: the command, its options with files by name, stages, cautions, charges, and what the
certificate says. Seconds and memory are those of work on private data, and no guarantee covers them: keep these files
where the table is. Of internal findings, such as scores, nothing is written.
"""

import json as json_format
import logging
import platform
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer

from understudy.api.arguments import folder_for, unused, write
from understudy.cli.console import LOG, Output, console, note, plain
from understudy.errors import Stopped, UnderstudyError

_PACKAGES = ("numpy", "scipy", "pyarrow", "torch", "sklearn", "psycopg")


class _Log(logging.Handler):
    """Keeps the events of one command, and writes each at once where that was asked for."""

    def __init__(self, command: str, place: str | None) -> None:
        super().__init__(logging.INFO)
        self.command, self.complete = command, True
        self.events: list[dict[str, Any]] = []
        path = None if place in (None, "-") else folder_for(Path(str(place)).absolute().parent, "--log-json") / place
        self.sink: Any = sys.stderr if place == "-" else path and path.open("a", encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        """Writes an event of ours; records of other kinds may quote anything and are passed over."""
        if not hasattr(record, "facts"):
            return
        self.events.append({"event": record.getMessage(), "command": self.command, "at": _now(), **record.facts})
        try:
            if self.sink is not None:
                print(json_format.dumps(plain(self.events[-1])), file=self.sink, flush=True)
        except OSError:  # a run that was charged does not end because its log can't be written
            self.complete = False

    def of(self, event: str) -> list[dict[str, Any]]:
        """Returns the facts of every event of one kind."""
        found = (one for one in self.events if one["event"] == event)
        return [{name: fact for name, fact in one.items() if name not in ("event", "command")} for one in found]


@contextmanager
def watching(output: Output, command: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Notes what happens within the block, and writes at its end what `output` was asked for."""
    record = None if output.run_record is None else _record_file(output.run_record, command)
    if output.metrics is not None:
        folder_for(output.metrics.absolute().parent, "--metrics")
    log, level, begin, busy = _Log(command, output.log_json), LOG.level, time.monotonic(), time.process_time()
    asked = {name: _told(value) for name, value in options.items() if value not in (None, False)}
    LOG.addHandler(log)
    LOG.setLevel(logging.INFO)
    end: dict[str, Any] = {"outcome": "done", "exit_code": 0}
    try:
        note("started", options=asked, versions=_versions())
        yield
    except BaseException as problem:
        end = _end_of(problem)
        problem.logged = output.log_json == "-"  # type: ignore[attr-defined] # as JSON and not once more as text
        raise
    finally:
        spent = {"seconds": time.monotonic() - begin, "processor_seconds": time.process_time() - busy}
        note("ended", **end, **spent, peak_bytes=_peak_bytes())
        LOG.removeHandler(log)
        LOG.setLevel(level)
        facts = _record(log)
        if record is not None:
            write(record, json_format.dumps(plain(facts), indent=2) + "\n")
        if output.metrics is not None:
            write(output.metrics, openmetrics(facts))
        if log.sink not in (None, sys.stderr):
            log.sink.close()
        if not log.complete:
            console(stderr=True).print(f"The log of this run is not complete: '{output.log_json}' can't be written.")


def _record(log: _Log) -> dict[str, Any]:
    """Returns the events of a command as one object."""
    (started,), (ended,) = log.of("started"), log.of("ended")
    found = {name: fact for one in log.of("found") for name, fact in one.items() if name != "at"}
    return {
        "command": log.command,
        "started": started["at"],
        **{name: fact for name, fact in started.items() if name != "at"},
        "found": found,
        "charges": log.of("charged"),
        "cautions": [one["text"] for one in log.of("caution")],
        "stages": log.of("stage"),
        "ended": ended["at"],
        **{name: fact for name, fact in ended.items() if name != "at"},
        "not_covered_by_the_guarantee": ["times", "peak_bytes"],
    }


def openmetrics(record: Mapping[str, Any]) -> str:
    """Returns the figures of a record in the OpenMetrics text format, version 1.0."""
    found, ended = record["found"], datetime.fromisoformat(record["ended"]).timestamp()
    about = {name: record[name] for name in ("command", "outcome")} | {"method": found.get("method", "")}
    charges = [
        ({name: one[name] for name in ("population", "label", "run")}, one["epsilon"]) for one in record["charges"]
    ]
    left = found.get("ledger", {})
    figures = {
        "duration_seconds": ("Time it took.", record["seconds"]),
        "processor_seconds": ("Its processor time.", record["processor_seconds"]),
        "peak_bytes": ("Most memory it held.", record["peak_bytes"]),
        "ended_seconds": ("Unix time of its end.", ended),
        "exit_code": ("Its exit code.", record["exit_code"]),
        "epsilon_left": ("Left in the ledger.", left.get("epsilon_left")),
        "runs_left": ("Runs left in the ledger.", left.get("runs_left")),
    }
    lines = _family("info", "", "Command that ran.", [(about | {"version": record["versions"]["understudy"]}, 1)])
    lines += _family("gauge", "_charged_epsilon", "Epsilon of each charge.", charges)
    for name, (text, figure) in figures.items():
        lines += _family("gauge", f"_{name}", text, [] if figure is None else [({}, figure)])
    return "\n".join([*lines, "# EOF"]) + "\n"


def _family(kind: str, name: str, text: str, samples: Sequence[tuple[Mapping[str, Any], float]]) -> list[str]:
    """Returns the lines of one family of metrics; none without a sample."""
    family, unit = f"understudy_run{name}", name.rpartition("_")[2]
    lines = [f"# TYPE {family} {kind}", *([f"# UNIT {family} {unit}"] if unit in ("seconds", "bytes") else [])]
    sample = f"{family}_info" if kind == "info" else family
    lines += [f"# HELP {family} {text}", *(f"{sample}{_labels(own)} {float(figure)!r}" for own, figure in samples)]
    return lines if samples else []


def _labels(labels: Mapping[str, Any]) -> str:
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    told = (f'{name}="{str(value).translate(escaped)}"' for name, value in labels.items())
    return f"{{{','.join(told)}}}" if labels else ""


def _record_file(place: str, command: str) -> Path:
    """Returns the file of a record; a folder gets one named by the command and the time."""
    path = Path(place)
    if place.endswith("/") or path.is_dir():
        path = path / f"{command.replace(' ', '-')}.{_now().replace(':', '')}.json"
    folder_for(path.absolute().parent, "--run-record")
    return unused(path, "--run-record")


def _told(value: Any) -> Any:
    """Returns an option without folders, servers and passwords."""
    if isinstance(value, list | tuple):
        return [_told(one) for one in value]
    if not isinstance(value, str | Path):
        return value
    scheme, apart, _ = str(value).partition("://")
    return f"{scheme}://…" if apart else re.sub(r"[^\s=]*/(?=[^\s/])", "", str(value))


def _end_of(problem: BaseException) -> dict[str, Any]:
    """Returns how a command ended; of an error of ours its text, of any other its type alone, which quotes nothing."""
    if isinstance(problem, typer.Exit):
        return {"outcome": "done", "exit_code": problem.exit_code}
    if isinstance(problem, Stopped):
        return {"outcome": "stopped", "exit_code": 2}
    if isinstance(problem, UnderstudyError):
        return {
            "outcome": "refused",
            "exit_code": problem.exit_code,
            "error": " ".join([str(problem), *_notes(problem)]),
        }
    return {"outcome": "failed", "exit_code": 1, "error": " ".join([type(problem).__name__, *_notes(problem)])}


def _notes(problem: BaseException) -> list[str]:
    return getattr(problem, "__notes__", [])


def _versions() -> dict[str, str]:
    loaded = {name: str(getattr(sys.modules.get(name), "__version__", "")) for name in _PACKAGES}
    own = {"understudy": version("understudy"), "python": platform.python_version(), "system": platform.system()}
    return own | {name: text for name, text in loaded.items() if text}


def _peak_bytes() -> int:
    """Returns the most memory of this process in steps of 64 MiB: what a few units more take does not show."""
    from understudy.planning.cost import peak_bytes

    return -(-peak_bytes() // 2**26) * 2**26


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
