"""What one run is going to do to private data, frozen before it reads any, and the least noise for it."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from understudy.errors import InputError
from understudy.privacy import accounting, losses
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Event, from_json, to_json

_QUICK = 10 * losses.INTERVAL  # grid on which the root is looked for first
_NEAR, _FAR = 1e-3, math.log(4)  # how far from there it is looked for next, and at most in one step, in logarithms
_HAIR = 4e-6  # how exactly it is found


@dataclass(frozen=True)
class PlanEntry:
    """One labelled event; the label is how the code that executes it asks for its noise."""

    label: str
    event: Event


@dataclass(frozen=True)
class SpendingPlan:
    """All events of one run and the guarantee that they stay within."""

    entries: tuple[PlanEntry, ...]
    guarantee: Guarantee

    def __post_init__(self) -> None:
        labels = [entry.label for entry in self.entries]
        if len(set(labels)) != len(labels):
            raise InputError("Every entry of a spending plan needs a label of its own.")

    @property
    def events(self) -> tuple[Event, ...]:
        """The events without their labels, in order."""
        return tuple(entry.event for entry in self.entries)

    def event(self, label: str) -> Event:
        """The event charged under `label`."""
        for entry in self.entries:
            if entry.label == label:
                return entry.event
        known = ", ".join(entry.label for entry in self.entries) or "none"
        raise InputError(f"Nothing was charged under the label '{label}'. Labels of this plan: {known}.")

    def executions(self, label: str) -> int:
        """How often `label` may be executed."""
        return self.event(label).executions

    def epsilon(self) -> float:
        """Epsilon of all events together, at the guarantee's delta."""
        return accounting.epsilon(self.events, self.guarantee.delta)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "guarantee": {"epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta},
            "entries": [{"label": entry.label, "event": to_json(entry.event)} for entry in self.entries],
        }

    @classmethod
    def from_json(cls, body: Any) -> "SpendingPlan":
        """The plan that `to_json` wrote."""
        try:
            promised = body["guarantee"]
            entries = tuple(PlanEntry(entry["label"], from_json(entry["event"])) for entry in body["entries"])
            return cls(entries, Guarantee(float(promised["epsilon"]), float(promised["delta"])))
        except (KeyError, TypeError) as problem:
            raise InputError(
                "A spending plan needs 'guarantee' and labelled 'entries'. Pass what `to_json` wrote."
            ) from problem


def noise_multipliers(guarantee: Guarantee, shares: Mapping[str, float]) -> dict[str, float]:
    """Noise multiplier of each of several Gaussian releases, where `shares` divide mu².

    Example:
        >>> noise_multipliers(Guarantee(0.7, 1e-5), {"votes": 1.0})
        {'votes': 5.1665}
    """
    _require_finite(guarantee)
    if not shares or min(shares.values()) <= 0 or sum(shares.values()) > 1 + 1e-9:
        raise InputError("shares must be positive and add up to at most 1, as parts of mu². Change them.")
    mu = accounting.gaussian_mu(guarantee.epsilon, guarantee.delta)
    total = max(1.0, sum(shares.values()))
    return {label: round_up(1 / (mu * math.sqrt(share / total))) for label, share in shares.items()}


def smallest_noise_multiplier(
    event_factory: Callable[[float], Event], guarantee: Guarantee, others: Iterable[Event] = ()
) -> float:
    """Least noise multiplier for which `event_factory(noise_multiplier)` and `others` meet `guarantee`.

    Raises:
        InputError: `others` alone use up the guarantee.
    """
    _require_finite(guarantee)
    fixed = tuple(others)
    if fixed and accounting.epsilon(fixed, guarantee.delta) >= guarantee.epsilon:
        raise InputError("The other events alone cost more than the guarantee: give them less, or ask for more.")

    def excess(noise: float, interval: float = losses.INTERVAL) -> float:
        cost = accounting.epsilon((*fixed, event_factory(noise)), guarantee.delta, interval)
        return min(cost, 1e6) - guarantee.epsilon

    near = _root(partial(excess, interval=_QUICK), 0.0, _FAR)  # a looser bound: a little too much noise
    noise, step = round_up(math.exp(_root(excess, near, _NEAR))), _HAIR
    while excess(noise) > 0:  # a root may lie on the wrong side, and where delta is tiny the cost does not quite fall
        noise, step = round_up(noise * (1 + step)), 2 * step
    return noise


def _require_finite(guarantee: Guarantee) -> None:
    if math.isinf(guarantee.epsilon):
        raise InputError("epsilon: a finite number is expected, because noise is calibrated to it. 1 is strict.")


def round_up(value: float) -> float:
    """`value` with six significant digits, never smaller than it was."""
    if value <= 0 or not math.isfinite(value):
        raise InputError(f"A noise multiplier must be positive and finite, got {value}.")
    step = 10.0 ** (math.floor(math.log10(value)) - 5)
    rounded = float(f"{math.ceil(value / step) * step:.5e}")
    return rounded if rounded >= value else float(f"{(math.ceil(value / step) + 1) * step:.5e}")


def _root(excess: Callable[[float], float], start: float, step: float) -> float:
    """Returns the logarithm of where `excess`, which falls, is zero, or of the least that is looked at.

    Steps from `start`, where the root is thought to be near, grow up to the factor 4.
    """
    from scipy.optimize import brentq  # a tenth of a second, which most commands never need

    def of_logarithm(log_noise: float) -> float:
        return excess(math.exp(log_noise))

    low = high = start
    while of_logarithm(high) > 0:
        low, high, step = high, high + step, min(4 * step, _FAR)
        if high > math.log(1e9):
            raise InputError("No noise multiplier below 10⁹ meets the guarantee: lower the rate or the iterations.")
    while low == high or of_logarithm(low) <= 0:
        low, high, step = low - step, low, min(4 * step, _FAR)
        if low < math.log(1e-3):  # even little noise fits
            return high
    return float(brentq(of_logarithm, low, high, xtol=_HAIR))
