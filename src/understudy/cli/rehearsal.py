"""Times a method on a few invented series, in a process of its own that can be ended whatever the method does.

`understudy.cli.cost` starts it, hands it a `Part` as JSON, and reads one line of JSON for each finished trial. Memory
and time are bounded here and by the process that started it.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Thread

import numpy as np

from understudy.data import Panel, Schema
from understudy.privacy.budget import Guarantee
from understudy.synthesizers import METHODS, Synthesizer
from understudy.synthesizers.base import Progress

SECONDS, BYTES = 3.0, 800 << 20  # of one processor beside loading the program; of memory, the program included
_HELD, _LOOK_SECONDS = Path("/proc/self/statm"), 0.005
_FEW_VALUES, _MANY_VALUES = 50_000, 700_000
_FEWEST_DECLARED = 100  # units, below which some methods refuse
_UPDATES, _MOST_REHEARSED = 4, 64  # updates and series by which a network is timed
_CLEAR_SECONDS = 0.4  # that updates must add before their time is believed
_AMPLE = 1e3  # epsilon of methods whose work does not depend on it: noise is quick to find


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is to be timed; public facts only."""

    method: Synthesizer
    schema: Schema
    guarantee: Guarantee
    population: int

    def to_json(self) -> str:
        """Plain text, from which `from_json` makes the same part in another process."""
        told = {"method": self.method.name, "options": asdict(self.method), "schema": self.schema.dumps()}
        return json.dumps({**told, "guarantee": asdict(self.guarantee), "population": self.population})

    @classmethod
    def from_json(cls, text: str) -> "Part":
        """The part that `to_json` wrote."""
        told = json.loads(text)
        return cls(
            method=METHODS[told["method"]](**told["options"]),
            schema=Schema.loads(told["schema"]),
            guarantee=Guarantee(**told["guarantee"]),
            population=told["population"],
        )


@dataclass(frozen=True)
class Trial:
    """One run on invented series.

    Attributes:
        draw_seconds: How long sampling and writing took.
        update_seconds: How long one update took, as the method's progress tells; None if it does not.
    """

    series: int
    updates: int
    seconds: float
    draw_seconds: float
    update_seconds: float | None
    peak_bytes: int


def trials(part: Part) -> Iterator[Trial]:
    """Yields a run that also loads what a first run loads, which is enough if its progress tells every update.

    Otherwise the same again, with more updates while these are too quick to time, and then a run on few series.
    """
    few, many = sizes(part.schema, part.population, rehearsed=bool(part.method.rehearsed))
    method = part.method.rehearsal(part.schema, part.guarantee)
    guarantee = replace(part.guarantee, epsilon=_AMPLE) if method.rehearsed else part.guarantee
    total = num_updates(method)
    updates = min(_UPDATES, total)
    first = _timed(method, part.schema, guarantee, many, updates)
    yield first
    if first.update_seconds is not None:
        return
    alone = last = _timed(method, part.schema, guarantee, many, updates)
    yield last
    while updates < total and last.seconds - alone.seconds < _CLEAR_SECONDS:
        updates = min(8 * updates, total)
        last = _timed(method, part.schema, guarantee, many, updates)
        yield last
    if few < many:
        yield _timed(method, part.schema, guarantee, few, 1)


def sizes(schema: Schema, population: int, *, rehearsed: bool) -> tuple[int, int]:
    """Returns how many series the trials have; fewer for networks, whose updates take most of the time."""
    values = schema.num_steps * schema.num_channels
    if rehearsed:
        return min(population, 2), min(population, max(4, min(_MOST_REHEARSED, _FEW_VALUES // values)))
    few = min(population, max(2, _FEW_VALUES // values))
    return few, min(population, max(2 * few, _MANY_VALUES // values))


def num_updates(method: Synthesizer) -> int:
    """Returns how often a run repeats what `rehearsed` counts; 1 for a method without such an option."""
    found: object = method
    for name in method.rehearsed.split("."):
        found = getattr(found, name) if name else 1
    assert isinstance(found, int)
    return found


def with_updates(method: Synthesizer, number: int) -> Synthesizer:
    """Returns the method with another number of repetitions."""
    outer, _, inner = method.rehearsed.partition(".")
    if not outer:
        return method
    return replace(method, **{outer: replace(getattr(method, outer), **{inner: number}) if inner else number})


def _timed(method: Synthesizer, schema: Schema, guarantee: Guarantee, num_series: int, updates: int) -> Trial:
    """Runs everything `synth` does on invented series; finding the noise is not timed, which `plan` does itself."""
    from understudy.cli.sample import draw
    from understudy.cli.simulation import context_for, simulated, sized
    from understudy.data import write_panel
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.noise import NoiseSource

    panel = simulated(schema, num_series)
    panel = replace(panel, schema=sized(panel.schema, max(num_series, _FEWEST_DECLARED)))
    short = with_updates(method, updates)
    short.spending_plan(panel.schema, guarantee)  # remembered
    with tempfile.TemporaryDirectory(prefix="understudy-plan-") as folder:
        table = Path(folder) / "table.parquet"
        if _readable(schema):
            write_panel(panel, table)
        heard: dict[str, list[float]] = {}
        hear: Progress = lambda stage, share: heard.setdefault(stage, []).append(time.perf_counter())  # noqa: E731
        begin = time.perf_counter()
        given = _read_back(table, panel) if _readable(schema) else panel
        ledger = Ledger.in_memory(guarantee)
        release = short.fit(given, ledger, guarantee=guarantee, noise=NoiseSource.secure(), progress=hear)
        fitted = time.perf_counter()
        drawn = draw(release, num_series, np.random.default_rng(), context=context_for(release))
        write_panel(drawn, Path(folder) / "samples.parquet")
        ended = time.perf_counter()
        told = _update_seconds(heard, updates)
        return Trial(num_series, updates, ended - begin, ended - fitted, told, _peak_bytes())


def _update_seconds(heard: dict[str, list[float]], updates: int) -> float | None:
    """Returns the time from one report to the next in a stage that reports every update."""
    every = [times for times in heard.values() if updates > 1 and len(times) == updates]
    return None if not every else (every[-1][-1] - every[-1][0]) / (updates - 1)


def _read_back(table: Path, panel: Panel) -> Panel:
    from understudy.data import read_panel

    context = None if panel.context is None else np.array(panel.context[0])
    return read_panel(table, panel.schema, context=context, allow_few_units=True)


def _readable(schema: Schema) -> bool:
    """Whether a table of invented series looks like the user's; one of event-like records would not."""
    from understudy.data.channels import is_event_like

    return schema.time.column is not None and not any(is_event_like(channel) for channel in schema.channels)


def _peak_bytes() -> int:
    """What this process held at most; on Linux `ru_maxrss` would count the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _bound() -> None:
    """Ends this process after `SECONDS` of work, or when it holds more than `BYTES`; refuses to reserve far more."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    if _HELD.exists():
        reserved = int(_HELD.read_text().split()[5]) * resource.getpagesize()
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = reserved + BYTES if most < 0 else min(reserved + BYTES, most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
        Thread(target=_watch_memory, daemon=True).start()


def _watch_memory() -> None:
    """Looks at what is held; the limit above counts what is reserved, of which libraries use little."""
    while int(_HELD.read_text().split()[1]) * resource.getpagesize() < BYTES:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def main() -> None:
    """Reads a part from standard input and writes what its trials took."""
    part = Part.from_json(sys.stdin.read())
    _bound()
    for trial in trials(part):
        print(json.dumps(asdict(trial)), flush=True)


if __name__ == "__main__":
    main()
