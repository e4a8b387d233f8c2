"""Mean and extremes of real and synthetic values, channel by channel: what a reader looks at first."""

import numpy as np

from understudy.data import Panel
from understudy.data.channels import num_codes

MAX_CHANNELS = 40


def numbers(real: Panel, synthetic: Panel) -> dict[str, dict[str, dict[str, float]]]:
    """Returns by channel of numbers, then `real` or `synthetic`: mean, least, 1 %, 99 % and greatest value.

    Privacy: internal. The figures of real series are exact.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for place, channel in enumerate(real.schema.channels):
        if num_codes(channel) is None and len(found) < MAX_CHANNELS:
            sides = (("real", real), ("synthetic", synthetic))
            found[channel.name] = {side: _of(panel.values[:, :, place]) for side, panel in sides}
    return found


def _of(values: np.ndarray) -> dict[str, float]:
    seen = values[~np.isnan(values)].astype(np.float64)
    if not len(seen):
        return {}
    low, high = np.quantile(seen, (0.01, 0.99))
    ends = {"least": seen.min(), "1 %": low, "99 %": high, "greatest": seen.max()}
    return {"mean": float(seen.mean()), **{name: float(value) for name, value in ends.items()}}
