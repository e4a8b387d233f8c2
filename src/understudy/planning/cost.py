"""What a run costs on this machine, from public facts: time by trials on invented series, memory by their size.

Trials run in a process of their own, which is ended after a few seconds whatever the method does, so that an answer
comes for any schema. Every method is linear in series and in updates: the time of a run follows from a few of both.
"""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Thread

import numpy as np

from understudy.data import Schema, read_panel, write_panel
from understudy.data.channels import is_event_like
from understudy.planning.simulation import context_for, invented, sized
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers import METHODS, Progress, Synthesizer

_PATIENCE_SECONDS = 30.0  # for a trial that does not end by itself; far beyond what it takes on an idle machine
_BYTES_PER_VALUE = 18  # table, scores and samples at the fullest moment
_BYTES_PER_WORKING_VALUE, _MAX_WORKING_VALUES = 60, 2_000_000  # copies of the piece that is being worked on
_PROGRAM_BYTES = 400 << 20
_MUCH = 16.0  # more series in an update than a trial had, beyond which its time is rough
_SECONDS, _BYTES = 3.0, 800 << 20  # of one processor, without loading the program; of memory, the program included
_HELD, _LOOK_SECONDS = Path("/proc/self/statm"), 0.005
_FEW_VALUES, _MANY_VALUES = 50_000, 700_000
_FEWEST_DECLARED = 100  # units, below which some methods refuse
_UPDATES, _MOST_REHEARSED = 4, 64  # updates and series by which a network is timed
_CLEAR_SECONDS = 0.4  # that updates must add before their time is believed
_AMPLE = 1e3  # epsilon of methods whose work does not depend on it: noise is quick to find


@dataclass(frozen=True)
class Expected:
    """What one run costs on this machine.

    Attributes:
        seconds: None where no trial ended.
        rough: Whether one trial on far fewer series had to do, as if all of its time grew with them.
        peak_bytes: Memory at the fullest moment; a lower bound where no trial ended.
        available_bytes: Memory of this machine, or the limit set for this process.
    """

    seconds: float | None
    rough: bool
    peak_bytes: float
    available_bytes: float

    @property
    def fits(self) -> bool:
        """Whether the machine has the memory."""
        return self.peak_bytes <= self.available_bytes

    def sentence(self) -> str:
        """Returns how long a run takes and how much memory it needs, and what is not known of it."""
        memory = f"{self.peak_bytes / 2**30:.1f} GiB"
        if not self.fits:
            return (
                f"This run would not fit: it needs at least {memory} of memory, and this machine has "
                f"{self.available_bytes / 2**30:.1f} GiB. Use fewer steps or channels, or shorter windows."
            )
        if self.seconds is None:
            return (
                "No estimate of the time: a trial on a few invented series of this shape took more time or memory than "
                f"a plan may. Expect a run to take many times as long, and at least {memory}."
            )
        minutes = "0.1 minutes or less," if self.seconds < 6 else f"{self.seconds / 60:.1f} minutes"
        if self.rough:
            return f"A run takes up to about {minutes} and {memory}: a rough figure, from one trial on few series."
        return f"A run takes about {minutes} and {memory} on this machine."


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is to be timed; public facts only."""

    method: Synthesizer
    schema: Schema
    guarantee: Guarantee
    population: int

    def to_json(self) -> str:
        """Returns text from which `from_json` makes the same part in another process."""
        facts = {"method": self.method.name, "options": asdict(self.method), "schema": self.schema.dumps()}
        return json.dumps({**facts, "guarantee": asdict(self.guarantee), "population": self.population})

    @classmethod
    def from_json(cls, text: str) -> "Part":
        """Returns the part that `to_json` wrote."""
        facts = json.loads(text)
        return cls(
            method=METHODS[facts["method"]](**facts["options"]),
            schema=Schema.loads(facts["schema"]),
            guarantee=Guarantee(**facts["guarantee"]),
            population=facts["population"],
        )


@dataclass(frozen=True)
class Trial:
    """One run on invented series.

    Attributes:
        sample_seconds: How long sampling and writing took.
        update_seconds: How long one update took, as the method's progress reports; None if it does not.
    """

    series: int
    updates: int
    seconds: float
    sample_seconds: float
    update_seconds: float | None
    peak_bytes: int


Finish = Callable[[SpendingPlan], Expected]


@contextmanager
def expected_cost(method: Synthesizer, schema: Schema, guarantee: Guarantee, population: int) -> Iterator[Finish]:
    """Starts trials in a process of their own; what it yields waits for them and returns the cost of a run."""
    num_values = population * schema.num_steps * schema.num_channels
    least, available = _least_bytes(num_values), available_bytes()
    if least > available:
        yield lambda plan: Expected(None, False, least, available)
        return
    part = Part(method=method, schema=schema, guarantee=guarantee, population=population)
    command = [sys.executable, "-c", "from understudy.planning.cost import main; main()"]
    with tempfile.TemporaryFile() as question:
        question.write(part.to_json().encode())
        question.seek(0)
        pipes = {"stdin": question, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
            try:
                yield lambda plan: _expected(process, part, plan, available)
            finally:
                process.kill()


def available_bytes() -> float:
    """Returns the memory of this machine, or what this process or its group may take if that is less."""
    limits = [math.inf]
    with suppress(ImportError, AttributeError, ValueError):  # not on Windows
        import resource

        limits.append(float(os.sysconf("SC_PHYS_PAGES")) * resource.getpagesize())
        limits += [float(limit) for limit in resource.getrlimit(resource.RLIMIT_AS) if limit > 0]
    with suppress(OSError, ValueError):  # no such file, or "max", which is no number
        limits.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def extrapolated(trials: list[Trial], population: int, updates: int, batch: float) -> tuple[float, bool] | None:
    """Returns (seconds of a run, whether that is rough); None if no trial says how long an update takes.

    Time is base(series) + updates · update(batch): base a straight line, update in proportion to the series in a
    batch, of which there are `batch` at most. Where the first trial reported its updates, sampling alone grows with
    series; where it is the only one, all of it does.
    """
    if not trials:
        return None
    first, rest = trials[0], trials[1:]
    if first.update_seconds is not None:
        grown = max(1.0, min(population, batch) / min(first.series, batch)) if batch else 1.0
        base = max(0.0, first.seconds - first.update_seconds * first.updates)
        sampling = first.sample_seconds / first.series * (population - first.series)
        return base + sampling + updates * first.update_seconds * grown, grown > _MUCH
    if not rest:
        return (first.seconds * population / first.series, True) if updates == 1 else None
    return _compared(rest, population, updates)


def _compared(trials: list[Trial], population: int, updates: int) -> tuple[float, bool] | None:
    """Returns the same from trials that differ in updates, and in series if there was time for that."""
    many = [trial for trial in trials if trial.series == trials[0].series]
    series, more = many[0].series, many[-1].updates - many[0].updates
    if updates > 1 and not more:
        return None
    update = max(0.0, many[-1].seconds - many[0].seconds) / max(1, more)
    base = max(0.0, many[0].seconds - update * many[0].updates)
    slope, rough = base / series, series < population
    for few in trials[len(many) :]:
        slope, rough = max(0.0, base - max(0.0, few.seconds - update)) / (series - few.series), False
    return base + slope * (population - series) + updates * update, rough


def _expected(process: "subprocess.Popen[bytes]", part: Part, plan: SpendingPlan, available: float) -> Expected:
    try:
        out, _ = process.communicate(timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
    trials = [Trial(**json.loads(line)) for line in out.splitlines()]
    sampled = [event for event in plan.events if isinstance(event, SubsampledGaussian | MixtureOfGaussians)]
    batch = max((event.sampling_rate * part.population for event in sampled), default=0.0)
    found = extrapolated(trials, part.population, num_updates(part.method), batch)
    num_values = part.population * part.schema.num_steps * part.schema.num_channels
    if found is None:
        return Expected(None, False, _least_bytes(num_values), available)
    loading = time.process_time()  # which a run also has to do, as well as finding its noise
    data_bytes = _BYTES_PER_VALUE * num_values + _BYTES_PER_WORKING_VALUE * min(num_values, _MAX_WORKING_VALUES)
    peak = max(trial.peak_bytes for trial in trials) + data_bytes
    return Expected(loading + found[0], found[1], peak, available)


def _least_bytes(num_values: float) -> float:
    return math.ceil(_PROGRAM_BYTES + _BYTES_PER_VALUE * num_values)


def trials(part: Part) -> Iterator[Trial]:
    """Yields a run that also loads what a first run loads, which is enough if its progress reports every update.

    Otherwise the same again, with more updates while these are too quick to time, and then a run on few series.
    """
    few, many = sizes(part.schema, part.population, rehearsed=bool(part.method.rehearsed))
    method = part.method.rehearsal(part.schema, part.guarantee)
    guarantee = (
        replace(part.guarantee, epsilon=_AMPLE)
        if method.rehearsed and math.isfinite(part.guarantee.epsilon)
        else part.guarantee
    )
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
    panel = invented(schema, num_series)
    panel = replace(panel, schema=sized(panel.schema, max(num_series, _FEWEST_DECLARED)))
    short = with_updates(method, updates)
    short.spending_plan(panel.schema, guarantee)  # remembered
    with tempfile.TemporaryDirectory(prefix="understudy-plan-") as folder:
        table = Path(folder) / "table.parquet"
        if _readable(schema):
            write_panel(panel, table)
        reports: dict[str, list[float]] = {}
        note: Progress = lambda stage, share: reports.setdefault(stage, []).append(time.perf_counter())  # noqa: E731
        begin = time.perf_counter()
        given = panel
        if _readable(schema):
            context = None if panel.context is None else np.array(panel.context[0])
            given = read_panel(table, panel.schema, context=context, allow_few_units=True)
        ledger = Ledger.in_memory(guarantee)
        release = short.fit(given, ledger, guarantee=guarantee, noise=NoiseSource.secure(), progress=note)
        fitted = time.perf_counter()
        sampled = release.sample(num_series, rng=np.random.default_rng(), context=context_for(release))
        write_panel(sampled, Path(folder) / "samples.parquet")
        ended = time.perf_counter()
    # The time of an update is that from one report to the next, in a stage that reports every one.
    every = [times for times in reports.values() if updates > 1 and len(times) == updates]
    update = (every[-1][-1] - every[-1][0]) / (updates - 1) if every else None
    return Trial(num_series, updates, ended - begin, ended - fitted, update, _peak_bytes())


def _readable(schema: Schema) -> bool:
    """Whether a table of invented series looks like the user's; one of event-like records would not."""
    return schema.time.column is not None and not any(is_event_like(channel) for channel in schema.channels)


def _peak_bytes() -> int:
    """Returns what this process held at most; on Linux `ru_maxrss` would count the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if "VmHWM" in line)
    try:
        import resource
    except ImportError:  # Windows
        return _PROGRAM_BYTES
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _bound() -> None:
    """Ends this process after `_SECONDS` of work, or when it holds more than `_BYTES`; refuses to reserve far more."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    if _HELD.exists():
        import resource

        reserved = int(_HELD.read_text().split()[5]) * resource.getpagesize()
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = reserved + _BYTES if most < 0 else min(reserved + _BYTES, most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
        Thread(target=_watch_memory, args=(resource.getpagesize(),), daemon=True).start()


def _watch_memory(page_bytes: int) -> None:
    """Looks at what is held; the limit above counts what is reserved, of which libraries use little."""
    while int(_HELD.read_text().split()[1]) * page_bytes < _BYTES:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def main() -> None:
    """Reads a part from standard input and writes one line of JSON for each finished trial."""
    part = Part.from_json(sys.stdin.read())
    _bound()
    for trial in trials(part):
        print(json.dumps(asdict(trial)), flush=True)
