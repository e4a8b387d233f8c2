"""What the pictures of Pub2Priv show, as numbers: clouds of series (Fig. 4), series of one condition (Fig. 8), and
distributions of changes, autocorrelations and correlations with the context (Fig. 9). `report` draws them.
"""

from typing import Any

import numpy as np

from understudy.data import Panel
from understudy.evaluation.measures import autocorrelations
from understudy.evaluation.panels import Comparison
from understudy.evaluation.portraits import embedding
from understudy_bench.metrics.pub2priv.context import correlations

_SHOWN, _MOST_STEPS, _BINS, _LAG = 4, 180, 40, 1
_TAILS = (0.002, 0.998)


def pictures(real: Panel, synthetic: Panel, epsilon: float) -> dict[str, Any]:
    """Returns all three; for public or simulated series, whose single series may be shown."""
    if real.private:
        raise ValueError("Expected public or simulated series: a picture of single series shows whose they are.")
    comparison = Comparison(real=real, candidate=synthetic, reference=real, unseen=real)
    return {
        "epsilon": epsilon,
        "clouds": embedding(comparison),
        "same_condition": _pairs(real, synthetic),
        "distributions": _distributions(real, synthetic),
    }


def _pairs(real: Panel, synthetic: Panel) -> list[dict[str, Any]]:
    """Series of the first conditions, all channels: real, and synthetic for the same context."""
    steps = np.unique(np.linspace(0, real.num_steps - 1, _MOST_STEPS).round().astype(int))
    return [
        {
            "steps": steps.tolist(),
            "names": [channel.name for channel in real.schema.channels],
            "real": _plain(real.values[place, steps].T),
            "synthetic": _plain(synthetic.values[place, steps].T),
        }
        for place in range(min(_SHOWN, real.num_series))
    ]


def _distributions(real: Panel, synthetic: Panel) -> dict[str, Any]:
    views = {
        "change from step to step": lambda panel: np.diff(panel.values, axis=1),
        f"autocorrelation at lag {_LAG}": lambda panel: autocorrelations(panel.values, _LAG),
        "correlation with the context": lambda panel: correlations(panel.values, panel.context),
    }
    found = {}
    for name, view in views.items():
        pools = [values[~np.isnan(values)] for values in (view(real).ravel(), view(synthetic).ravel())]
        low, high = np.quantile(np.concatenate(pools), _TAILS)
        edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
        shares = [np.histogram(np.clip(pool, edges[0], edges[-1]), edges)[0] / max(1, len(pool)) for pool in pools]
        found[name] = {"edges": _plain(edges), "real": _plain(shares[0]), "synthetic": _plain(shares[1])}
    return found


def _plain(values: np.ndarray) -> list[Any]:
    """Returns four digits, enough to draw; None where there is no number."""
    if values.ndim > 1:
        return [_plain(part) for part in values]
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
