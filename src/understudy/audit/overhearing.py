"""Listens where training adds noise to a sum of clipped gradients.

Methods that train hand no vector to their grant: they ask it for noise. What leaves is the noisy sum, and an audit has
to hear it as it hears every other answer. For that the one place where gradients are noised is wrapped while a fit
runs; nothing about what is computed changes unless the method is told other gradients than its own.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from understudy.synthesizers.vflgan_ts import agreement
from understudy.training import loop
from understudy.training.private_gradient import NormalReserve

GRADIENTS = "gradients"  # label under which noisy sums are heard, one after another
_SEED = 0

Hear = Callable[[str, NDArray[np.float64]], NDArray[np.float64]]


@contextmanager
def overheard(hear: Hear, *, known: bool = True) -> Iterator[None]:
    """Hands every noisy sum of gradients to `hear`, and to the method what that returns.

    Args:
        known: The times, noises and masks at which losses are taken come from a fixed seed meanwhile, so that a lone
            unit's gradient is known beforehand. Among others it is not: their numbers shift by one place when somebody
            joins.

    Privacy: only for made-up data.
    """
    genuine = NormalReserve.add_to

    def add_to(reserve: NormalReserve, vector: Tensor, scale: float, step: float) -> None:
        genuine(reserve, vector, scale, step)
        told = hear(GRADIENTS, vector.detach().cpu().double().numpy().copy())  # the vector is used again
        vector.copy_(torch.from_numpy(np.array(told)).reshape(vector.shape))

    seed = SimpleNamespace(randbits=lambda bits: _SEED)
    with ExitStack() as patches:
        patches.enter_context(patch.object(NormalReserve, "add_to", add_to))
        for module in (loop, agreement) if known else ():
            patches.enter_context(patch.object(module, "secrets", seed))
        yield
