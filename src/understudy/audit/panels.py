"""Made-up panels for audits of whole fits: an extreme unit among others who are like it, unlike it, or not there."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from understudy.data import Panel, Schema
from understudy.data.panel import broadcast_context

Series = NDArray[np.float64]  # [step, channel], as shares of the declared range


def panel_scenes(schema: Schema, *, num_others: int = 4, rng: np.random.Generator) -> dict[str, tuple[Panel, Panel]]:
    """Every canary series among every crowd: (without it, with it), by name.

    The same four and four as `canaries.scenes`, in the language of series: everywhere at the upper bound, a single
    spike, alternating between the bounds, random; among nobody, its likeness, its opposite, or ordinary others.
    """
    found = {}
    for name, canary in _canaries(schema, rng).items():
        for crowd, others in _crowds(canary, num_others, rng).items():
            found[f"{name}, others {crowd}"] = (
                _panel(schema, others),
                _panel(schema, np.concatenate([others, canary[None]])),
            )
    return found


def random_panel(schema: Schema, number: int, rng: np.random.Generator) -> Panel:
    """Units that jump between the bounds by coins, one series each: no two alike, and each as loud as can be."""
    return _panel(schema, rng.integers(0, 2, (number, schema.num_steps, schema.num_channels)).astype(np.float64))


def _canaries(schema: Schema, rng: np.random.Generator) -> Mapping[str, Series]:
    shape = schema.num_steps, schema.num_channels
    spike, alternating = np.zeros(shape), np.zeros(shape)
    spike[schema.num_steps // 2] = 1.0
    alternating[::2] = 1.0
    return {"ones": np.ones(shape), "spike": spike, "alternating": alternating, "random": rng.random(shape)}


def _crowds(canary: Series, number: int, rng: np.random.Generator) -> Mapping[str, Series]:
    return {
        "nobody": np.zeros((0, *canary.shape)),
        "aligned": np.tile(canary, (number, 1, 1)),
        "opposed": np.tile(1 - canary, (number, 1, 1)),
        "ordinary": rng.random((number, *canary.shape)),
    }


def _panel(schema: Schema, shares: Series) -> Panel:
    """One series per unit, from shares of the declared ranges; whole numbers where a column needs them."""
    bounds = np.array([channel.bounds for channel in schema.channels])
    values = bounds[:, 0] + shares * (bounds[:, 1] - bounds[:, 0])
    whole = [channel.kind != "continuous" for channel in schema.channels]
    values[..., whole] = np.rint(values[..., whole])
    static = np.tile([column.bounds[0] for column in schema.static], (len(shares), 1))
    return Panel(
        schema=schema,
        values=values.astype(np.float32),
        lengths=np.full(len(shares), schema.num_steps, dtype=np.int32),
        unit=np.arange(len(shares), dtype=np.int64),
        static=static.reshape(len(shares), len(schema.static)).astype(np.float32),
        context=_context(schema, len(shares)),
    )


def _context(schema: Schema, number: int) -> NDArray[np.float32] | None:
    """Public context that rises from bound to bound, the same for all."""
    if not schema.context:
        return None
    low, high = np.array([channel.bounds for channel in schema.context]).T
    shared = low + (high - low) * np.linspace(0, 1, schema.num_steps)[:, None]
    return broadcast_context(shared.astype(np.float32), number)
