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
from operator import attrgetter
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
_AMPLE = 1e3  # epsilon of methods whose work does not depend on it: noise is quick to find


@dataclass(frozen=True)
class Expected:
    """What one run costs on this machine."""

    seconds: float | None  # None where no trial ended
    rough: bool  # whether one trial on far fewer series had to do, as if all of its time grew with them
    peak_bytes: float  # memory at the fullest moment; a lower bound where no trial ended
    available_bytes: float  # memory of this machine, or the limit set for this process

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


@dataclass(frozen=True)
class Trial:
    """One run on invented series."""

    series: int
    updates: int
    seconds: float
    sample_seconds: float  # of sampling and writing
    update_seconds: float | None  # of one update, as the method's progress reports; None if it does not
    peak_bytes: int


Finish = Callable[[SpendingPlan], Expected]


@contextmanager
def expected_cost(method: Synthesizer, schema: Schema, guarantee: Guarantee, population: int) -> Iterator[Finish]:
    """Starts trials in a process of their own; what it yields waits for them and returns the cost of a run."""
    num_values = population * schema.num_steps * schema.num_channels
    least, available = float(_PROGRAM_BYTES + _BYTES_PER_VALUE * num_values), available_bytes()
    if least > available:
        yield lambda plan: Expected(None, False, least, available)
        return
    own = {"method": method.name, "options": asdict(method)}
    facts = own | {"schema": schema.dumps(), "guarantee": asdict(guarantee), "population": population}
    command = [sys.executable, "-c", "from understudy.planning.cost import main; main()"]

    def finish(plan: SpendingPlan) -> Expected:
        try:
            out, _ = process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as late:
            out = late.stdout or b""
        ended = [Trial(**json.loads(line)) for line in out.splitlines()]
        sampled = [event for event in plan.events if isinstance(event, SubsampledGaussian | MixtureOfGaussians)]
        batch = max((event.sampling_rate * population for event in sampled), default=0.0)
        found = extrapolated(ended, population, num_updates(method), batch)
        if found is None:
            return Expected(None, False, least, available)
        loading = time.process_time()  # which a run also has to do, as well as finding its noise
        data_bytes = _BYTES_PER_VALUE * num_values + _BYTES_PER_WORKING_VALUE * min(num_values, _MAX_WORKING_VALUES)
        peak = max(trial.peak_bytes for trial in ended) + data_bytes
        return Expected(loading + found[0], found[1], peak, available)

    with tempfile.TemporaryFile() as question:
        question.write(json.dumps(facts).encode())
        question.seek(0)
        pipes = {"stdin": question, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
            try:
                yield finish
            finally:
                process.kill()


def available_bytes() -> float:
    """Returns the memory of this machine, or what this process or its group may take if that is less."""
    limits = [math.inf]
    with suppress(ImportError, AttributeError, ValueError):  # not on Windows
        import resource

        limits.append(float(os.sysconf("SC_PHYS_PAGES")) * resource.getpagesize())
        limits += [float(limit) for limit in resource.getrlimit(resource.RLIMIT_AS) if limit > 0]
    with suppress(OSError, ValueError):  # no such file, or "max"
        limits.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def extrapolated(trials: list[Trial], population: int, updates: int, batch: float) -> tuple[float, bool] | None:
    """Returns (seconds of a run, whether that is rough); None if no trial says how long an update takes.

    Where the first trial reported its updates, these grow with the series in a batch, of which there are `batch` at
    most, and sampling with all series. The others are whole runs: their time is a straight line in series; all of it
    grows with series where one trial has to do.
    """
    if not trials:
        return None
    first, whole = trials[0], trials[1:]
    if first.update_seconds is not None:
        grown = max(1.0, min(population, batch) / min(first.series, batch)) if batch else 1.0
        base = max(0.0, first.seconds - first.update_seconds * first.updates)
        sampling = first.sample_seconds / first.series * (population - first.series)
        return base + sampling + updates * first.update_seconds * grown, grown > _MUCH
    if not whole and first.updates != updates:
        return None
    many, few = (whole[0], whole[-1]) if whole else (first, first)
    if few.series == many.series:
        return many.seconds * population / many.series, not whole or many.series < population
    slope = max(0.0, many.seconds - few.seconds) / (many.series - few.series)
    return many.seconds + slope * (population - many.series), False


def trials(method: Synthesizer, schema: Schema, guarantee: Guarantee, population: int) -> Iterator[Trial]:
    """Yields a run that also loads what a first run loads, of a few updates; enough if its progress reports each.

    Otherwise whole runs follow, on more series and on few.
    """
    short = method.rehearsal(schema, guarantee)
    if method.rehearsed and math.isfinite(guarantee.epsilon):
        guarantee = replace(guarantee, epsilon=_AMPLE)
    few, many = sizes(schema, population)
    updates, trained = num_updates(short), min(population, max(4, min(_MOST_REHEARSED, few)))
    first = _timed(short, schema, guarantee, trained if method.rehearsed else many, min(_UPDATES, updates))
    yield first
    if first.update_seconds is None:
        for number in dict.fromkeys((many, few)):
            yield _timed(short, schema, guarantee, number, updates)


def sizes(schema: Schema, population: int) -> tuple[int, int]:
    """Returns how few and how many series whole runs are tried on."""
    values = schema.num_steps * schema.num_channels
    few = min(population, max(2, _FEW_VALUES // values))
    return few, min(population, max(2 * few, _MANY_VALUES // values))


def num_updates(method: Synthesizer) -> int:
    """Returns how often a run repeats what `rehearsed` counts; 1 for a method without such an option."""
    return int(attrgetter(method.rehearsed)(method)) if method.rehearsed else 1


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
    # A table of invented series looks like the user's, but for one of event-like records.
    readable = schema.time.column is not None and not any(is_event_like(channel) for channel in schema.channels)
    with tempfile.TemporaryDirectory(prefix="understudy-plan-") as folder:
        table = Path(folder) / "table.parquet"
        if readable:
            write_panel(panel, table)
        reports: dict[str, list[float]] = {}
        note: Progress = lambda stage, share: reports.setdefault(stage, []).append(time.perf_counter())  # noqa: E731
        begin = time.perf_counter()
        given = panel
        if readable:
            context = None if panel.context is None else np.array(panel.context[0])
            given = read_panel(table, panel.schema, context=context, allow_few_units=True)
        ledger = Ledger.in_memory(guarantee)
        release = short.fit(given, ledger, guarantee=guarantee, noise=NoiseSource.secure(), progress=note)
        fitted = time.perf_counter()
        sampled = release.sample(num_series, rng=np.random.default_rng(), context=context_for(release))
        write_panel(sampled, Path(folder) / "samples.parquet")
        ended = time.perf_counter()
    # The time of an update is that from one report to the next, in a stage that reports every one, and may its start.
    every = [times[-updates:] for times in reports.values() if updates > 1 and len(times) in (updates, updates + 1)]
    update = (every[-1][-1] - every[-1][0]) / (updates - 1) if every else None
    return Trial(num_series, updates, ended - begin, ended - fitted, update, peak_bytes())


def peak_bytes() -> int:
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

        page_bytes = resource.getpagesize()
        reserved = int(_HELD.read_text().split()[5]) * page_bytes
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = reserved + _BYTES if most < 0 else min(reserved + _BYTES, most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))

        def watch() -> None:  # what is held: the limit counts what is reserved, of which libraries use little
            while int(_HELD.read_text().split()[1]) * page_bytes < _BYTES:
                time.sleep(_LOOK_SECONDS)
            os._exit(1)

        Thread(target=watch, daemon=True).start()


def main() -> None:
    """Reads from standard input what is to be timed, and writes one line of JSON for each finished trial."""
    facts = json.loads(sys.stdin.read())
    method, schema = METHODS[facts["method"]](**facts["options"]), Schema.loads(facts["schema"])
    _bound()
    for trial in trials(method, schema, Guarantee(**facts["guarantee"]), facts["population"]):
        print(json.dumps(asdict(trial)), flush=True)
