"""What a run is going to be like, from public facts: noise, signal against noise, seconds and memory.

Seconds are measured on invented series of the schema's shape at two sizes and continued in a straight line;
every method here is linear in series. Memory is the program's own plus bytes per value, measured once.
"""

import math
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.cli.sample import draw
from understudy.cli.simulation import context_for, simulated
from understudy.data import Panel, Schema, read_panel, windows, write_panel
from understudy.data.channels import is_event_like
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import (
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
)
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers import Synthesizer

# Signal-to-noise of the best release below which, on invented data of several shapes, no method beat the
# control that reads no data, and below which only the distribution of values got better.
BUYS_NOTHING, BUYS_LITTLE = 20.0, 150.0

_WARM_UP_SERIES, _FEW_VALUES, _MANY_VALUES = 100, 50_000, 700_000
_BYTES_PER_VALUE = 18  # table, scores and samples at the fullest moment
_BYTES_PER_WORKING_VALUE, _MAX_WORKING_VALUES = 60, 2_000_000  # copies of the piece that is being worked on


@dataclass(frozen=True)
class Expected:
    """What one run costs on this computer."""

    seconds: float
    peak_bytes: float


def noise_multiplier(event: Event) -> float | None:
    """Returns the noise's standard deviation over one unit's influence, where the event has one."""
    if isinstance(event, Gaussian | DiscreteGaussian | SubsampledGaussian | MixtureOfGaussians):
        return event.noise_multiplier
    return math.sqrt(2) / event.epsilon if isinstance(event, PureDP) else None


def signal_to_noise(event: Event, schema: Schema, population: int, window_steps: int | None) -> float | None:
    """Returns how far a fact that all units share stands above the noise of one release.

    A fact that a share 1/signal_to_noise of the population has in common is as large as the noise: what is
    rarer drowns.
    """
    multiplier = noise_multiplier(event)
    if multiplier is None:
        return None
    contributions = population * _influence_share(schema, window_steps)
    rate = event.sampling_rate if isinstance(event, SubsampledGaussian | MixtureOfGaussians) else 1.0
    return contributions * rate / multiplier


def verdict(plan: SpendingPlan, schema: Schema, population: int, window_steps: int | None) -> str:
    """Says in one line what the budget buys."""
    found = [signal_to_noise(event, schema, population, window_steps) for event in plan.events]
    best = max((ratio for ratio in found if ratio is not None), default=None)
    if best is None:
        return "No private data is read: epsilon is 0 and nothing is learned."
    if best < BUYS_NOTHING:
        return (
            "This budget buys nothing: the noise drowns what this population has in common. Ask for a larger "
            "epsilon, or bring more units."
        )
    if best < BUYS_LITTLE:
        return (
            "This budget buys little: expect the distribution of values, and only traces of how they move. "
            "--simulate shows more."
        )
    return "This budget buys something: expect values and how they move. --simulate shows how well."


def expected_cost(method: Synthesizer, schema: Schema, guarantee: Guarantee, population: int) -> Expected:
    """Returns seconds and memory of a whole `synth` with as many samples as units."""
    started = time.process_time()  # loading the program, which a run also has to do
    values = schema.num_steps * schema.num_channels
    few, many = (min(population, max(_WARM_UP_SERIES, size // values)) for size in (_FEW_VALUES, _MANY_VALUES))
    first = _seconds(method, schema, guarantee, few)
    if many > few:
        slope = max(0.0, _seconds(method, schema, guarantee, many) - _seconds(method, schema, guarantee, few)) / (
            many - few
        )
    else:
        slope = 0.0
    return Expected(started + first + slope * (population - few), _peak_bytes(population * values))


def _peak_bytes(num_values: float) -> float:
    """What the program holds now, plus what grows with the data."""
    unit = 1 if sys.platform == "darwin" else 1024
    now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return now + _BYTES_PER_VALUE * num_values + _BYTES_PER_WORKING_VALUE * min(num_values, _MAX_WORKING_VALUES)


def _seconds(method: Synthesizer, schema: Schema, guarantee: Guarantee, num_series: int) -> float:
    """Runs everything `synth` does on invented series and returns how long it took."""
    panel = simulated(schema, max(2, num_series))
    with tempfile.TemporaryDirectory(prefix="understudy-plan-") as folder:
        table = Path(folder) / "table.parquet"
        if _readable(schema):
            write_panel(panel, table)
        begin = time.perf_counter()
        given = _read_back(table, panel) if _readable(schema) else panel
        ledger = Ledger.in_memory(guarantee)
        release = method.without_checks().fit(given, ledger, guarantee=guarantee, noise=NoiseSource.secure())
        drawn = draw(release, panel.num_series, np.random.default_rng(), context=context_for(release))
        write_panel(drawn, Path(folder) / "samples.parquet")
        return time.perf_counter() - begin


def _read_back(table: Path, panel: Panel) -> Panel:
    context = None if panel.context is None else np.array(panel.context[0])
    return read_panel(table, panel.schema, context=context, allow_few_units=True)


def _readable(schema: Schema) -> bool:
    """Whether a table of invented series looks like the user's; one of event-like records would not."""
    return schema.time.column is not None and not any(is_event_like(channel) for channel in schema.channels)


def _influence_share(schema: Schema, window_steps: int | None) -> float:
    """Returns contributions per unit over the most that one protected unit can touch; 1 for entities."""
    steps = window_steps or schema.num_steps
    if schema.unit.kind != "event":
        return 1.0
    return (schema.num_steps // steps) / (2 * windows.stability(schema, steps, steps))
