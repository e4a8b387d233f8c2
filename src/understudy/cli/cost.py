"""What a run costs on this machine, from public facts: time by trials on invented series, memory by their size.

A trial takes seconds and is ended if it takes longer, so that an answer comes for any schema. Every method here is
linear in series and in updates; the time of a run follows from trials with few and with more of both.
"""

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from understudy.cli.rehearsal import Part, Trial, num_updates
from understudy.data import Schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers import Synthesizer

_PATIENCE_SECONDS = 30.0  # for a trial that does not end by itself; far beyond what it takes on an idle machine
_BYTES_PER_VALUE = 18  # table, scores and samples at the fullest moment
_BYTES_PER_WORKING_VALUE, _MAX_WORKING_VALUES = 60, 2_000_000  # copies of the piece that is being worked on
_PROGRAM_BYTES = 400 << 20
_MUCH = 16.0  # more series in an update than a trial had, beyond which its time is rough


@dataclass(frozen=True)
class Expected:
    """What one run costs on this machine.

    Attributes:
        seconds: None where no trial ended.
        rough: Whether one trial on far fewer series had to do, as if all of its time grew with them.
        peak_bytes: Memory at the fullest moment; at least so much where no trial ended.
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
        """Says how long a run takes and how much memory it needs, and what is not known of it."""
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


Finish = Callable[[SpendingPlan], Expected]


@contextmanager
def expected_cost(method: Synthesizer, schema: Schema, guarantee: Guarantee, population: int) -> Iterator[Finish]:
    """Starts trials in a process of their own; what it yields waits for them and returns the cost of a `synth`."""
    num_values = population * schema.num_steps * schema.num_channels
    least, available = _least_bytes(num_values), available_bytes()
    if least > available:
        yield lambda plan: Expected(None, False, least, available)
        return
    part = Part(method=method, schema=schema, guarantee=guarantee, population=population)
    command = [sys.executable, "-m", "understudy.cli.rehearsal"]
    with tempfile.TemporaryFile() as question:
        question.write(part.to_json().encode())
        question.seek(0)
        pipes = {"stdin": question, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
            try:
                yield lambda plan: _expected(_finished(process), part, plan, available)
            finally:
                process.kill()


def available_bytes() -> float:
    """Returns the memory of this machine, or what this process or its group may take if that is less."""
    limits = [float(os.sysconf("SC_PHYS_PAGES")) * resource.getpagesize()]
    limits += [float(limit) for limit in resource.getrlimit(resource.RLIMIT_AS) if limit > 0]
    with suppress(OSError, ValueError):  # no such file, or "max", which is no number
        limits.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def extrapolated(trials: list[Trial], population: int, updates: int, batch: float) -> tuple[float, bool] | None:
    """Returns (seconds of a run, whether that is rough); None if no trial says how long an update takes.

    Time is base(series) + updates · update(drawn series): base a straight line, update in proportion to the drawn
    series, of which there are `batch` at most. Where the first trial told its updates, sampling alone grows with
    series; where it is the only one, all of it does.
    """
    if not trials:
        return None
    first, rest = trials[0], trials[1:]
    if first.update_seconds is not None:
        grown = max(1.0, min(population, batch) / min(first.series, batch)) if batch else 1.0
        base = max(0.0, first.seconds - first.update_seconds * first.updates)
        sampling = first.draw_seconds / first.series * (population - first.series)
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


def _finished(process: "subprocess.Popen[bytes]") -> list[Trial]:
    try:
        out, _ = process.communicate(timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
    return [Trial(**json.loads(line)) for line in out.splitlines()]


def _expected(trials: list[Trial], part: Part, plan: SpendingPlan, available: float) -> Expected:
    drawn = [event for event in plan.events if isinstance(event, SubsampledGaussian | MixtureOfGaussians)]
    batch = max((event.sampling_rate * part.population for event in drawn), default=0.0)
    found = extrapolated(trials, part.population, num_updates(part.method), batch)
    num_values = part.population * part.schema.num_steps * part.schema.num_channels
    if found is None:
        return Expected(None, False, _least_bytes(num_values), available)
    loading = time.process_time()  # which a run also has to do, as well as finding its noise
    peak = max(trial.peak_bytes for trial in trials) + _data_bytes(num_values)
    return Expected(loading + found[0], found[1], peak, available)


def _data_bytes(num_values: float) -> float:
    return _BYTES_PER_VALUE * num_values + _BYTES_PER_WORKING_VALUE * min(num_values, _MAX_WORKING_VALUES)


def _least_bytes(num_values: float) -> float:
    return math.ceil(_PROGRAM_BYTES + _BYTES_PER_VALUE * num_values)
