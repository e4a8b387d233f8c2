"""The least noise that meets a guarantee, always rounded up: more noise, never less."""

import math
from collections.abc import Callable, Iterable, Mapping

from scipy.optimize import brentq

from understudy.errors import InputError
from understudy.privacy.accountants import epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Event
from understudy.privacy.gaussian import gaussian_mu


def noise_multipliers(guarantee: Guarantee, shares: Mapping[str, float]) -> dict[str, float]:
    """Noise multiplier of each of several Gaussian releases, where `shares` divide mu².

    Example:
        >>> noise_multipliers(Guarantee(0.7, 1e-5), {"votes": 1.0})
        {'votes': 5.1665}
    """
    if not shares or min(shares.values()) <= 0 or sum(shares.values()) > 1 + 1e-9:
        raise InputError("shares must be positive and add up to at most 1; they divide the run's mu².")
    mu = gaussian_mu(guarantee.epsilon, guarantee.delta)
    total = max(1.0, sum(shares.values()))
    return {label: round_up(1 / (mu * math.sqrt(share / total))) for label, share in shares.items()}


def smallest_noise_multiplier(
    event_factory: Callable[[float], Event], guarantee: Guarantee, others: Iterable[Event] = ()
) -> float:
    """Least noise multiplier for which `event_factory(noise_multiplier)` and `others` meet `guarantee`.

    Raises:
        InputError: `others` alone use up the guarantee.
    """
    fixed = tuple(others)
    if fixed and epsilon(fixed, guarantee.delta) >= guarantee.epsilon:
        raise InputError("The other events alone cost more than the guarantee: give them less, or ask for more.")

    def excess(log_noise: float) -> float:
        cost = epsilon((*fixed, event_factory(math.exp(log_noise))), guarantee.delta)
        return min(cost, 1e6) - guarantee.epsilon

    low, high = _bracket(excess)
    root = brentq(excess, low, high, xtol=4e-6) if low < high else high
    while excess(root) > 0:  # the root may lie a hair on the wrong side
        root += 4e-6
    return round_up(math.exp(root))


def round_up(value: float, digits: int = 6) -> float:
    """`value` with `digits` significant digits, never smaller than it was."""
    if value <= 0 or not math.isfinite(value):
        raise InputError(f"A noise multiplier must be positive and finite, got {value}.")
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    rounded = float(f"{math.ceil(value / step) * step:.{digits - 1}e}")
    return rounded if rounded >= value else float(f"{(math.ceil(value / step) + 1) * step:.{digits - 1}e}")


def _bracket(excess: Callable[[float], float]) -> tuple[float, float]:
    """Logarithms of a noise multiplier that costs too much and of one that does not; equal if even little fits."""
    low = high = 0.0
    while excess(high) > 0:
        low, high = high, high + math.log(4)
        if high > math.log(1e9):
            raise InputError("No noise multiplier below 10⁹ meets the guarantee: lower the rate or the iterations.")
    while low == high or excess(low) <= 0:
        low, high = low - math.log(4), low
        if low < math.log(1e-3):
            return high, high
    return low, high
