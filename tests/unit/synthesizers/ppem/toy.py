"""A small table of customers: where they live, what they earn, a series of spending that follows both."""

import numpy as np

from understudy.data import Binary, Categorical, Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.synthesizers.ppem import PPEM
from understudy.synthesizers.ppem.recipe import Recipe

STEPS = 4
SMALL = Recipe(iterations=3, batch=500, width=8, rounds=1)  # all units: the cheapest calibration


def schema(population: int = 500, steps: int = STEPS, **changes: object) -> Schema:
    """Two channels, three static columns, one of them a label."""
    fields = {
        "name": "customers",
        "population": Population(population),
        "unit": PrivacyUnit(column="customer"),
        "time": Time(column="when", steps=steps),
        "channels": (Continuous("spending", 0.0, 10.0), Binary("abroad")),
        "static": (
            Categorical("region", ("north", "south", "east")),
            Continuous("income", -4.0, 4.0),
            Categorical("segment", ("retail", "business")),
        ),
        "label": "segment",
        **changes,
    }
    return Schema(**fields)  # type: ignore[arg-type]


def panel(num_units: int = 60, seed: int = 0, **changes: object) -> Panel:
    """Customers of whom most live in the north and are rather poor."""
    rng, contract = np.random.default_rng(seed), schema(**changes)  # type: ignore[arg-type]
    region = rng.choice(3, num_units, p=[0.7, 0.2, 0.1])
    income = np.clip(rng.normal(-1 + 0.5 * region, 0.7), -4, 4)
    level = np.clip(5 + income[:, None] + 0.3 * rng.standard_normal((num_units, contract.num_steps)), 0, 10)
    abroad = rng.random(level.shape) < 0.2 + 0.2 * region[:, None]
    segment = (income > -0.5).astype(float)
    return Panel(
        schema=contract,
        values=np.stack([level, abroad], axis=2).astype(np.float32),
        lengths=np.full(num_units, contract.num_steps, dtype=np.int32),
        unit=np.arange(num_units),
        static=np.stack([region, income, segment], axis=1).astype(np.float32),
        context=None,
    )


def method(**changes: object) -> PPEM:
    """A method that takes no time."""
    return PPEM(**{"sensitive": ("region",), "recipe": SMALL, **changes})  # type: ignore[arg-type]
