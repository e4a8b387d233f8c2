"""The exact trade-off between epsilon, delta and mu of Gaussian mechanisms, stable far into the tail.

Notation: mu = 1/noise_multiplier of one release; releases compose as mu² = sum of mu_i². Balle & Wang
(arXiv:1805.06530, Theorem 8): delta = Φ(mu/2 − epsilon/mu) − e^epsilon Φ(−mu/2 − epsilon/mu).
"""

import math

from scipy.special import erfcx, log_ndtr

_ROOT_HALF_PI = math.sqrt(math.pi / 2)


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """Natural logarithm of delta.

    Written with Mills' ratio R, because e^epsilon·φ(x + mu) = φ(x) for x = epsilon/mu − mu/2 turns the
    difference of two tiny tails into φ(x)·(R(x) − R(x + mu)), which does not cancel.
    """
    x = epsilon / mu - mu / 2
    if x < -20:  # delta is 1 to double precision or nearly so, and R(x) would overflow
        second = min(-1e-9, epsilon + float(log_ndtr(-x - mu)))  # far below 0; two huge numbers may cancel badly
        return float(log_ndtr(-x)) + math.log1p(-math.exp(second))
    difference = _ROOT_HALF_PI * float(erfcx(x / math.sqrt(2)) - erfcx((x + mu) / math.sqrt(2)))
    if difference <= 0:
        return -math.inf
    return -x * x / 2 - 0.5 * math.log(2 * math.pi) + math.log(difference)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon at `delta`, rounded up by less than one part in 10¹⁰."""
    if mu == 0:
        return 0.0
    target = math.log(delta)
    if gaussian_log_delta(mu, 0.0) <= target:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(-2 * target) + mu  # Gaussian tail bound, then some
    low = 0.0
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        if gaussian_log_delta(mu, middle) > target:
            low = middle
        else:
            high = middle
    return high


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu that (epsilon, delta) pays for, rounded down: more noise."""
    target = math.log(delta)
    high = 1.0
    while gaussian_log_delta(high, epsilon) <= target:
        high *= 2
    low = 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if gaussian_log_delta(middle, epsilon) <= target:
            low = middle
        else:
            high = middle
    return low
