"""A running average of the noisy iterates: post-processing, so it costs no privacy."""

import torch
from torch import Tensor


class RunningAverage:
    """Exponential average of a flat parameter vector; early on it averages over what there is."""

    def __init__(self, values: Tensor, decay: float) -> None:
        self.decay = decay
        self.values = values.detach().clone()
        self.updates = 0

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Takes in the next iterate; the weight of the past grows to `decay`, so the start is soon forgotten."""
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 10))
        self.values.lerp_(values, 1 - decay)
