"""Several iterations in a row, with subsampling: is a unit hidden as well as the privacy loss distribution says?

A single iteration tests the noise. What is charged for a whole run also rests on coins: in most iterations the unit
was not drawn, and nobody knows in which. The audit sees every noisy sum of a run, as the analysis allows, weighs them
by the likelihood of the claimed mixture, and compares error rates with the claimed trade-off curve.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tests.canaries.scenes import Scene
from tests.canaries.training import training_iteration
from understudy.auditing.scores import LowerBound, Scores, audit_scores
from understudy.training import DPSGDConfig


def audit_composition(
    plan: DPSGDConfig,
    blocks: Sequence[int],
    scenes: Iterable[Scene],
    *,
    runs: int,
    delta: float = 1e-5,
    confidence: float = 0.95,
) -> LowerBound:
    """Runs all iterations of `plan` again and again; ask the result whether it `refutes` the plan's event.

    Args:
        scenes: Crowds should stay out of the canary's way (zero, orthogonal): their own coins only blur the picture.
    """
    family = {scene.name: composed_scores(plan, blocks, scene, runs) for scene in scenes}
    return audit_scores(family, delta=delta, confidence=confidence, aim="mu")


def composed_scores(plan: DPSGDConfig, blocks: Sequence[int], scene: Scene, runs: int) -> Scores:
    """One likelihood ratio per run of all iterations, without the canary and with it."""
    iteration = training_iteration(plan, blocks, rate=plan.sampling_rate)
    times = plan.iterations

    def scored(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        seen = (iteration(rows, runs * times) @ scene.axis).reshape(runs, times)
        return log_likelihood_ratio(seen, plan.sampling_rate, plan.noise_multiplier)

    return Scores(scored(scene.others), scored(scene.everybody))


def log_likelihood_ratio(
    seen: NDArray[np.float64], rate: float, noise_multiplier: float
) -> NDArray[np.float64]:  # [run, iteration] → [run]
    """log of (1 − q) + q · N(1, σ²)/N(0, σ²), summed over iterations: no other score tells neighbours apart better."""
    exponent = (2 * seen - 1) / (2 * noise_multiplier**2)
    per_iteration = np.logaddexp(np.log1p(-rate) if rate < 1 else -np.inf, np.log(rate) + exponent)
    return np.asarray(per_iteration.sum(axis=1))
