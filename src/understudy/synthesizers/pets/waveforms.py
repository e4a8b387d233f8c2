"""What modules do to series as tensors: another length, shape apart from level, the steps that stand out."""

import torch
from torch import Tensor
from torch.nn import functional

SOFTENING = 0.1  # a channel that moves much less than this in working scale has no shape worth comparing
PEAK_SHARE = 0.05  # of the steps stand out


def resampled(x: Tensor, num_steps: int) -> Tensor:
    """Returns [row, num_steps, channel]: averages where steps get fewer, straight lines where they get more."""
    if x.shape[1] == num_steps:
        return x
    mode = "area" if num_steps < x.shape[1] else "linear"
    return functional.interpolate(x.transpose(1, 2), size=num_steps, mode=mode).transpose(1, 2)


def shape_and_level(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns series without level and scale, and [series, 2 · channel] means and deviations.

    Division by the deviation is softened, so that a channel which hardly moves is nearly flat and not magnified noise.
    """
    mean = x.mean(1, keepdim=True)
    deviation = (x - mean).square().mean(1, keepdim=True).sqrt()
    return (x - mean) / (deviation + SOFTENING), torch.cat([mean, deviation], dim=2).squeeze(1)


def peaks(standard: Tensor) -> Tensor:
    """Returns where standardised series [series, step, channel] are furthest from their mean."""
    distance = standard.abs()
    return distance >= torch.quantile(distance, 1 - PEAK_SHARE, dim=1, keepdim=True)
