"""The smallest network that shows what `dit` does, and series whose gaps can be filled from what is around them."""

from dataclasses import replace

import numpy as np

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.synthesizers.contract.checks import fit
from understudy.synthesizers.contract.panels import make_panel, rich_schema
from understudy.synthesizers.dit import DiT
from understudy.synthesizers.dit.recipe import Network, Recipe
from understudy.synthesizers.release import Release

SMALL = DiT(
    recipe=Recipe(network=Network(width=8, depth=1, num_heads=2), iterations=20, batch=64, draws=2),
    sampling_steps=2,
)


def small_release() -> Release:
    """Returns a release of the contract's richest schema that has learned next to nothing."""
    return fit(SMALL, make_panel(rich_schema()))


def waves(num_series: int, *, steps: int = 24, seed: int = 0, **changes: object) -> Panel:
    """Returns sines of any phase with a little noise, around a level of their own."""
    rng = np.random.default_rng([seed, num_series])
    phase, level = rng.uniform(0, 2 * np.pi, (2, num_series, 1))
    values = 5 + 0.3 * (level - np.pi) + np.sin(2 * np.pi * np.arange(steps) / 12 + phase)
    values = np.clip(values + 0.3 * rng.standard_normal((num_series, steps)), 0, 10)
    schema = Schema(
        name="waves",
        population=Population(num_series),
        unit=PrivacyUnit(column="home"),
        time=Time(column="when", steps=steps),
        channels=(Continuous("load", 0.0, 10.0, missing=True),),
    )
    return Panel(
        schema=replace(schema, **changes),
        values=values[:, :, None].astype(np.float32),
        lengths=np.full(num_series, steps, dtype=np.int32),
        unit=np.arange(num_series, dtype=np.int64),
        static=np.zeros((num_series, 0), dtype=np.float32),
    )
