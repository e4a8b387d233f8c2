"""The toy of Pub2Priv, Appendix G.1: private series of trend, season and noise, with a public one correlated by α.

The paper computes the public series from the private one, c = αx + √(1 − α²) noise. Such a context is part of the
private record: here it belongs to each series (`align = "relative"`) and nothing may read it but the method's own
clipped gradients. It shows what context is worth and is no example of public data.
"""

import numpy as np

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.data.panel import Panel
from understudy.errors import InputError

STEPS = 100
BOUND = 4.0


def correlated_schema(num_series: int, steps: int = STEPS) -> Schema:
    """Returns the public contract of the toy."""
    return Schema(
        name="correlated",
        population=Population(num_series),
        unit=PrivacyUnit(column="series", dtype="int64"),
        time=Time(column="step", frequency="1d", steps=steps, align="relative"),
        channels=(Continuous("x", -BOUND, BOUND, out_of_bounds="clip"),),
        context=(Continuous("c", -BOUND, BOUND, out_of_bounds="clip"),),
    )


def simulate_correlated(num_series: int, correlation: float, *, steps: int = STEPS, seed: int = 7) -> Panel:
    """Returns standardised series whose context has the given correlation with them.

    The same seed gives the same private series whatever the correlation.
    """
    if not 0 <= correlation <= 1:
        raise InputError(f"correlation: a number from 0 to 1 is expected, got {correlation:g}.")
    series_rng, noise_rng = (np.random.default_rng([seed, stream]) for stream in (0, 1))
    x = _standardised(_shapes(num_series, steps, series_rng))
    noise = noise_rng.standard_normal((num_series, steps))
    c = correlation * x + np.sqrt(1 - correlation**2) * noise  # App. G.1
    values, context = (np.clip(part, -BOUND, BOUND).astype(np.float32)[:, :, None] for part in (x, c))
    return Panel(
        schema=correlated_schema(num_series, steps),
        values=values,
        lengths=np.full(num_series, steps, dtype=np.int32),
        unit=np.arange(num_series, dtype=np.int64),
        static=np.zeros((num_series, 0), dtype=np.float32),
        context=context,
        private=False,
    )


def _shapes(num_series: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """A trend up or down, a season of a period and phase of its own, and small noise."""
    time = np.linspace(0, 1, steps)
    trend = rng.normal(0, 1, (num_series, 1)) * time
    periods = rng.uniform(2, 6, (num_series, 1))
    season = rng.uniform(0.3, 0.8, (num_series, 1)) * np.sin(2 * np.pi * (periods * time + rng.random((num_series, 1))))
    shapes: np.ndarray = trend + season + 0.05 * rng.standard_normal((num_series, steps))
    return shapes


def _standardised(series: np.ndarray) -> np.ndarray:
    centred = series - series.mean(axis=1, keepdims=True)
    standard: np.ndarray = centred / centred.std(axis=1, keepdims=True)
    return standard
