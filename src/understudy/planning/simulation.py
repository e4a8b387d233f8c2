"""Public stand-ins for a private table, and what several epsilons buy on them.

Nothing here has seen private data: series come from the schema, from the package's own simulator, or from a
public file that the user names.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import RenderableType
from scipy.signal import lfilter
from scipy.special import ndtr

from understudy import display
from understudy.data import Channel, Panel, Population, Schema, read_panel
from understudy.data.channels import num_codes
from understudy.data.panel import broadcast_context
from understudy.errors import InputError, MissingData
from understudy.evaluation.measures import autocorrelations
from understudy.privacy.accounting import gaussian_epsilon, gaussian_mu
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import METHODS, Progress, Release, SampleRequest, Synthesizer
from understudy.synthesizers.sampling import shared_context

_TRIED = (0.5, 1.0, 2.0, 5.0, 10.0)  # epsilons
_FEWEST_TRIED = 100
_MAX_TRIED = 4_000_000  # values in a trial; a larger population is tried with fewer units and less noise
_SEED = 7
_SKEW = 2.5  # most values low, a few high: what meters, vitals and accounts have in common
_MEMORY = 0.8
_MAX_LAG = 24
_MAX_VALUES = 400_000  # distances are computed on this many values; more would not change a digit that is shown


@dataclass(frozen=True)
class Tried:
    """How far synthetic series are from the public ones they were made from; 0 is perfect."""

    method: str
    epsilon: float
    marginal_distance: float  # Kolmogorov–Smirnov distance of the values, the mean over channels
    autocorrelation_error: float  # mean difference of autocorrelations over lags and channels
    better_than_control: str  # what is closer to the truth than with the control: values, movement, both or nothing


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Trials at several epsilons."""

    data: str  # what the series are
    units_tried: int
    noise_scaled: bool  # whether fewer units were tried than the population has, with less noise
    rows: tuple[Tried, ...]
    control: Tried  # which reads no data

    def parts(self) -> list[RenderableType]:
        """Returns the trials for a person at a terminal."""
        scaled = ", with noise scaled to the population" if self.noise_scaled else ""
        rows = (
            (
                f"{one.epsilon:g}",
                f"{one.marginal_distance:.3f}",
                f"{one.autocorrelation_error:.3f}",
                one.better_than_control,
            )
            for one in (*self.rows, self.control)
        )
        columns = (">epsilon", ">marginal distance", ">autocorrelation error", "better than the control on")
        tried = f"Tried on {self.units_tried} {self.data}{scaled}; 0 is perfect:"
        return [tried, display.table(*columns, rows=rows)]


def simulate(
    method: Synthesizer,
    schema: Schema,
    guarantee: Guarantee,
    *,
    public: Path | None = None,
    context: Path | None = None,
    progress: Progress,
) -> Simulation:
    """Returns what several epsilons buy on invented series, or on those of a public table.

    A trial with fewer units than the population gets less noise, so that the signal-to-noise ratio is the same.
    """
    size, values = schema.population.size or 1, schema.num_steps * schema.num_channels
    if _FEWEST_TRIED * values > _MAX_TRIED:
        raise InputError(
            f"simulate: at most {_MAX_TRIED // _FEWEST_TRIED} values in a series are expected, got {values}. Use "
            "`window_steps` or fewer channels."
        )
    units = min(size, max(_FEWEST_TRIED, _MAX_TRIED // values))  # what fits into seconds
    panel, source = invented(schema, units), "units invented from the schema"
    if public is not None:
        if not public.exists():
            raise MissingData(f"public: nothing is at '{public}'. Check the path.")
        table = read_panel(public, schema, context=context, allow_few_units=True)
        chosen = np.random.default_rng(_SEED).integers(0, table.num_units, units)
        panel = replace(table, private=False, unit_ids=None).take_units(chosen)
        panel, source = replace(panel, schema=sized(schema, units)), f"units of {public.name}, sampled with replacement"
    idle = _errors(METHODS["independent"](window_steps=method.window_steps), panel, guarantee)
    scale, rows = size / panel.num_units, []
    epsilons = sorted({*_TRIED, guarantee.epsilon})
    for place, epsilon in enumerate(epsilons):
        progress(f"trying epsilon = {epsilon:g}", place / len(epsilons))
        mu = gaussian_mu(epsilon, guarantee.delta) * scale
        same = epsilon if scale == 1 else gaussian_epsilon(mu, guarantee.delta)
        found = _errors(method, panel, replace(guarantee, epsilon=same))
        gains = [gain for gain, ours, theirs in zip(("values", "movement"), found, idle, strict=True) if ours < theirs]
        rows.append(Tried(method.name, epsilon, *found, " and ".join(gains) or "nothing"))
    control = Tried("independent", 0.0, *idle, "(the control: reads no data)")
    return Simulation(data=source, units_tried=units, noise_scaled=units != size, rows=tuple(rows), control=control)


def invented(schema: Schema, num_series: int) -> Panel:
    """Returns invented series that obey the schema: levels, a rhythm, memory, skewed values, gaps, early ends."""
    schema, rng = sized(schema, num_series), np.random.default_rng(_SEED)
    level = rng.standard_normal((num_series, 1))
    columns = [_channel(channel, place, level, schema.num_steps, rng) for place, channel in enumerate(schema.channels)]
    static = [
        _skewed(column, ndtr(0.6 * level[:, 0] + 0.8 * rng.standard_normal(num_series))) for column in schema.static
    ]
    lengths = np.full(num_series, schema.num_steps)
    if schema.time.min_steps is not None:
        early = rng.integers(schema.time.min_steps, schema.num_steps + 1, num_series)
        lengths = np.where(rng.random(num_series) < 0.2, early, lengths)
    context = broadcast_context(shared_context(schema), num_series) if schema.context else None
    request = SampleRequest(num_series=num_series, rng=rng, context=context)
    stacked = np.stack(static, axis=1) if static else np.zeros((num_series, 0))
    return request.panel(schema, np.stack(columns, axis=2), lengths, stacked)


def sized(schema: Schema, num_units: int) -> Schema:
    """Returns the schema with a declared population of this size."""
    return replace(schema, population=Population(num_units))


def context_for(release: Release) -> np.ndarray | None:
    """Returns an invented context for a release that needs one to be sampled; None for others."""
    return shared_context(release.schema) if release.synthesizer.needs_context(release.schema) else None


def _errors(method: Synthesizer, panel: Panel, guarantee: Guarantee) -> tuple[float, float]:
    """Fits a public panel as if it were private, with a ledger that is thrown away; returns how far its series are."""
    release = method.fit(panel, Ledger.in_memory(guarantee), guarantee=guarantee, noise=NoiseSource.seeded(_SEED))
    context = context_for(release)
    if context is not None and panel.context is not None and panel.num_steps == release.schema.num_steps:
        context = np.array(panel.context)
    synthetic = release.sample(panel.num_series, rng=np.random.default_rng(_SEED), context=context).values
    distances = [_distance(panel.values[:, :, c], synthetic[:, :, c]) for c in range(panel.schema.num_channels)]
    lags = min(_MAX_LAG, panel.num_steps - 1, synthetic.shape[1] - 1)
    gaps = np.abs(_correlations(panel.values, lags) - _correlations(synthetic, lags))
    return float(np.mean(distances)), float(np.mean(gaps)) if lags > 0 else 0.0


def _distance(real: np.ndarray, drawn: np.ndarray) -> float:
    """Returns the Kolmogorov–Smirnov distance of what was observed."""
    from scipy.stats import ks_2samp  # half a second, which a plan without a simulation never needs

    observed = (values[~np.isnan(values)] for values in (real, drawn))
    one, other = (values[:: max(1, len(values) // _MAX_VALUES)] for values in observed)
    return float(ks_2samp(one, other, method="asymp").statistic) if len(one) and len(other) else 1.0


def _correlations(values: np.ndarray, lags: int) -> np.ndarray:
    """Returns autocorrelations [lag, channel], the mean over series; 0 where nothing was observed."""
    found = autocorrelations(values, lags)
    return np.asarray(np.nansum(found, axis=0) / np.maximum(1, (~np.isnan(found)).sum(axis=0)))


def _channel(channel: Channel, place: int, level: np.ndarray, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    steps = np.arange(num_steps)
    rhythm = np.sin(2 * np.pi * steps / max(4, min(24, num_steps // 2)) + place)
    fresh = rng.standard_normal((num_steps, len(level))).T
    fresh[:, 1:] *= np.sqrt(1 - _MEMORY**2)
    movement = lfilter([1.0], [1.0, -_MEMORY], fresh, axis=1)
    values = _skewed(channel, ndtr(0.6 * level + 0.5 * rhythm + 0.6 * movement))
    return np.where(rng.random(values.shape) < 0.03, np.nan, values) if channel.missing else values


def _skewed(channel: Channel, ranks: np.ndarray) -> np.ndarray:
    low, high = channel.bounds
    codes = num_codes(channel)
    if codes is not None:
        return np.asarray(np.minimum(np.floor(ranks**_SKEW * codes), codes - 1))
    return np.asarray(low + (high - low) * ranks**_SKEW)
