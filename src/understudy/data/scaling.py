"""Scaling by public bounds, so that no value of one unit moves the scale of another."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32

from understudy.data.channels import Channel, Continuous


def to_unit_interval(
    values: Float[np.ndarray, "*batch channel"], channels: Sequence[Channel]
) -> Float32[np.ndarray, "*batch channel"]:
    """Maps each channel's public bounds onto [0, 1]; missing stays missing.

    Categories map onto evenly spaced points.

    Privacy: uses declared bounds only, so the result for one unit does not depend on any other unit. Values
    outside the bounds are clipped to them, which keeps every sensitivity derived from the bounds true.
    """
    low, width = _low_and_width(channels)
    scaled: np.ndarray = np.clip((np.asarray(values, dtype=np.float64) - low) / width, 0.0, 1.0)
    return scaled.astype(np.float32)


def from_unit_interval(
    scaled: Float[np.ndarray, "*batch channel"], channels: Sequence[Channel]
) -> Float32[np.ndarray, "*batch channel"]:
    """Maps [0, 1] back onto the public bounds; whole numbers and categories come back whole.

    Privacy: post-processing; takes values that are public already or stay on the private side.
    """
    low, width = _low_and_width(channels)
    values = low + np.clip(np.asarray(scaled, dtype=np.float64), 0.0, 1.0) * width
    whole = [not isinstance(channel, Continuous) for channel in channels]
    restored: np.ndarray = np.where(whole, np.rint(values), values)
    return restored.astype(np.float32)


def _low_and_width(
    channels: Sequence[Channel],
) -> tuple[Float[np.ndarray, " channel"], Float[np.ndarray, " channel"]]:
    bounds = np.array([channel.bounds for channel in channels], dtype=np.float64).reshape(-1, 2)
    width = bounds[:, 1] - bounds[:, 0]
    return bounds[:, 0], np.where(width > 0, width, 1.0)  # a single category has no width
