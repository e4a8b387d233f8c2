"""Small panels of series that follow a public signal, for tests."""

from dataclasses import replace

import numpy as np

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Release, Synthesizer

STEPS = 24


def following_schema(size: int, **changes: object) -> Schema:
    """One channel and one public signal; every series starts at a time of its own."""
    schema = Schema(
        name="following",
        population=Population(size),
        unit=PrivacyUnit(column="home"),
        time=Time(column="when", steps=STEPS, align="relative"),
        channels=(Continuous("load", -6.0, 6.0),),
        context=(Continuous("signal", -6.0, 6.0),),
    )
    return replace(schema, **changes)


def following(size: int, strength: float, *, seed: int = 0) -> Panel:
    """Returns series with correlation `strength` with the signal, whatever stretch of it they meet."""
    rng = np.random.default_rng(seed)
    context = smooth(size, rng)
    own = smooth(size, rng)
    values = strength * context + np.sqrt(1 - strength**2) * own
    return Panel(
        schema=following_schema(size),
        values=np.clip(values, -6, 6).astype(np.float32)[:, :, None],
        lengths=np.full(size, STEPS, dtype=np.int32),
        unit=np.arange(size, dtype=np.int64),
        static=np.zeros((size, 0), dtype=np.float32),
        context=np.clip(context, -6, 6).astype(np.float32)[:, :, None],
        private=True,
    )


def smooth(number: int, rng: np.random.Generator) -> np.ndarray:
    """Returns smooth random series [series, step] with variance one."""
    noise = rng.standard_normal((number, STEPS + 4))
    return np.asarray(sum(noise[:, lag : lag + STEPS] for lag in range(5)) / np.sqrt(5))


def correlation(panel: Panel) -> float:
    """Returns the mean correlation over time between the channel and the signal."""
    assert panel.context is not None
    parts = [np.corrcoef(x, c)[0, 1] for x, c in zip(panel.values[:, :, 0], panel.context[:, :, 0], strict=True)]
    return float(np.mean(parts))


def fit(method: Synthesizer, panel: Panel, epsilon: float = 2.0, noise: NoiseSource | None = None) -> Release:
    """Fits with all of a new budget."""
    guarantee = Guarantee(epsilon, 1e-6)
    return method.fit(panel, Ledger.in_memory(guarantee), guarantee=guarantee, noise=noise)
