"""Simulated homes that were metered in different weeks, each with the weather and the prices of its own week.

In one shared week the public context tells nothing that the hour does not tell; over many weeks it does.
"""

from dataclasses import replace

import numpy as np

from understudy.data import NonNegative, Population, Schema
from understudy.data.panel import Panel, concatenate
from understudy.data.simulators import households_schema, simulate_context, simulate_households

WARMTH, DEARNESS = 5.0, 25.0  # how far weeks differ in mean temperature and mean price


def household_weeks_schema(num_homes: int) -> Schema:
    """Returns the public contract: every home begins with a Monday of its own."""
    schema = households_schema(num_homes)
    time = replace(schema.time, align="relative")
    return replace(schema, name="household-weeks", time=time, constraints=(NonNegative("load_kw"),))


def week_contexts(num_weeks: int, seed: int = 7) -> np.ndarray:
    """Returns temperature and price of invented weeks [week, step, context]; anybody may know them."""
    levels = np.random.default_rng([seed, 6]).normal(0, 1, (num_weeks, 1, 2)) * (WARMTH, DEARNESS)
    weeks = np.stack([simulate_context(seed + place) for place in range(num_weeks)])
    bounds = np.array([channel.bounds for channel in households_schema(1).context])
    return np.clip(weeks + levels, bounds[:, 0], bounds[:, 1]).astype(np.float32)


def simulate_household_weeks(homes_per_week: int, weeks: np.ndarray, seed: int = 7) -> Panel:
    """Returns `homes_per_week` homes for each of the `weeks` [week, step, context], in the order of the weeks."""
    schema = household_weeks_schema(homes_per_week * len(weeks))
    parts = [
        replace(simulate_households(homes_per_week, seed + place, context), schema=schema)
        for place, context in enumerate(weeks)
    ]
    homes = concatenate(parts)
    return replace(homes, schema=replace(schema, population=Population(homes.num_units)))
