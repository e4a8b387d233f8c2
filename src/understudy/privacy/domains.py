"""Which categories exist, without revealing one that a single unit holds."""

import math
from collections import Counter
from collections.abc import Sequence

from understudy.privacy.noise import NoiseSource


def domain_threshold(epsilon: float, delta: float) -> int:
    """Least T with P[1 + noise > T] ≤ delta for discrete Laplace noise of scale 1/epsilon.

    P[noise ≥ T] = e^(−epsilon·T) / (1 + e^(−epsilon)) for whole T ≥ 1; rounded up: fewer categories.
    """
    if delta <= 0:
        raise ValueError("delta must be positive")
    return max(1, math.ceil(-(math.log(delta) + math.log1p(math.exp(-epsilon))) / epsilon))


def first_keys_by_noisy_count(
    votes_one_per_unit: Sequence[str], scale: float, threshold: int, noise: NoiseSource
) -> tuple[str, ...]:
    """Sorted keys whose noisy count exceeds the threshold; sorted, because order of arrival is private."""
    counts = Counter(votes_one_per_unit)
    keys = sorted(counts)
    drawn = noise.discrete_laplace(scale, len(keys))
    return tuple(key for key, extra in zip(keys, drawn, strict=True) if counts[key] + int(extra) > threshold)
