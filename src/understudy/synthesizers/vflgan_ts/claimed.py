"""The accounting of paper 004, for reproduction: what it would claim if Theorem 4.3 held. It does not.

Proposition 3 (Wang, Balle and Kasiviswanathan, arXiv:1808.00087, Theorem 9) for batches of a fixed size drawn without
replacement, composed over iterations and converted at the best order.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

_ORDERS = range(2, 257)
_MECHANISMS = 2  # Theorem 4.3 counts an attribute's discriminator and its party's extractor


def claimed_epsilon(
    noise_multiplier: float, rate: float, iterations: int, delta: float, mechanisms: int = _MECHANISMS
) -> float:
    """Returns the epsilon that the paper's formulas give for noise of `noise_multiplier` · 2C."""
    costs = [
        iterations * _subsampled(order, rate, mechanisms / (2 * noise_multiplier**2))
        + math.log(1 / delta) / (order - 1)
        for order in _ORDERS
    ]
    return float(min(costs))


def claimed_noise(epsilon: float, rate: float, iterations: int, delta: float, mechanisms: int = _MECHANISMS) -> float:
    """Returns the noise multiplier at which the paper would claim `epsilon`."""

    def excess(log_noise: float) -> float:
        return math.log(claimed_epsilon(math.exp(log_noise), rate, iterations, delta, mechanisms) / epsilon)

    return math.exp(brentq(excess, math.log(0.05), math.log(1e5), xtol=1e-6))


def _subsampled(order: int, rate: float, slope: float) -> float:
    """Rényi divergence at a whole order, if one execution on a batch has slope · order (Prop. 3; min{2, ∞} is 2)."""
    j = np.arange(2, order + 1)
    log_choose = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
    terms = j * math.log(rate) + log_choose + (j - 1) * slope * j + math.log(2)
    second = 2 * slope  # the divergence at order 2
    log_less = math.log(4) + second + math.log(-math.expm1(-second))  # 4(e^ε(2) − 1)
    terms[0] = 2 * math.log(rate) + log_choose[0] + min(log_less, second + math.log(2))
    return float(logsumexp([0.0, *terms]) / (order - 1))
