"""Panels with a label that a network can learn, or can't."""

from dataclasses import replace

import numpy as np

from tests.unit.evaluation.sets import panel_of
from understudy.data import Categorical, Panel


def labelled(num_series: int, seed: int, *, shuffled: bool = False) -> Panel:
    """Series of class 1 rise and those of class 0 fall, unless the labels are shuffled."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, num_series)
    slope = np.where(label == 1, 1, -1)[:, None, None] * np.linspace(-0.2, 0.2, 10)[None, :, None]
    panel = panel_of(0.5 + slope + 0.05 * rng.standard_normal((num_series, 10, 1)))
    static = (rng.permutation(label) if shuffled else label)[:, None].astype(np.float32)
    schema = replace(panel.schema, static=(Categorical("direction", ("down", "up")),), label="direction")
    return replace(panel, schema=schema, static=static)
