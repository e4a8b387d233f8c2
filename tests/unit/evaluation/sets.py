"""Small public panels for the tests of metrics."""

import numpy as np

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time


def waves(num_series: int, *, seed: int = 0, steps: int = 24, channels: int = 2, **changes) -> Panel:
    """Sine waves of random level and phase with a little noise, in [0, 1]."""
    rng = np.random.default_rng(seed)
    phase, level = (
        rng.uniform(0, 2 * np.pi, (num_series, 1, channels)),
        rng.uniform(0.4, 0.6, (num_series, 1, channels)),
    )
    clock = np.arange(steps)[None, :, None] / steps
    values = (
        level + 0.25 * np.sin(4 * np.pi * clock + phase) + 0.03 * rng.standard_normal((num_series, steps, channels))
    )
    return panel_of(np.clip(values, 0, 1), **changes)


def panel_of(values: np.ndarray, **changes) -> Panel:
    """Returns a panel of the values, every series a unit of its own; changes go to the schema."""
    num_series, steps, channels = values.shape
    fields = {
        "name": "waves",
        "population": Population(max(num_series, 1)),
        "unit": PrivacyUnit(column="person"),
        "time": Time(column="when", frequency="1h", start="2024-01-01T00:00:00", steps=steps),
        "channels": tuple(Continuous(f"wave{place}", 0.0, 1.0, missing=True) for place in range(channels)),
    }
    return Panel(
        schema=Schema(**{**fields, **changes}),
        values=values.astype(np.float32),
        lengths=np.full(num_series, steps, dtype=np.int32),
        unit=np.arange(num_series, dtype=np.int64),
        static=np.zeros((num_series, 0), dtype=np.float32),
        private=False,
    )
