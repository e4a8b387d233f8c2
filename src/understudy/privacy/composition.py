"""How the runs of one population add up, when each run may be chosen after seeing the results of the last.

Inside a run all parameters are frozen first, so the run has one privacy loss distribution. Across runs they
are not, and then only some rules hold: basic composition of each run's (epsilon, delta) (Rogers et al.
2016), Rényi divergence at one order chosen beforehand (Feldman & Zrnic 2021), and concentrated DP. Adding up
privacy loss distributions of adaptively chosen runs is *not* among them.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from understudy.errors import InputError
from understudy.privacy.accountants import renyi_at
from understudy.privacy.budget import Guarantee
from understudy.privacy.gaussian import gaussian_epsilon
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.renyi import ORDERS, concentrated_budget, concentrated_rho

COMPOSITIONS = ("basic", "rdp", "zcdp")
TOLERANCE = 1e-9  # rounding only: a budget of 2 must pay for two runs of 1


@dataclass(frozen=True, kw_only=True)
class Composition:
    """The rule a ledger was created with. Its kind never changes; its budget may be raised, on the record.

    Attributes:
        first: The budget before it was raised, for which an "rdp" ledger chose its order; None if it never was.
    """

    kind: str
    guarantee: Guarantee
    max_runs: int = 1
    first: Guarantee | None = None

    def __post_init__(self) -> None:
        if self.kind not in COMPOSITIONS:
            raise InputError(f"composition must be one of {', '.join(COMPOSITIONS)}, got '{self.kind}'.")
        if self.max_runs < 1:
            raise InputError(f"max_runs must be at least 1, got {self.max_runs}.")
        if self.kind != "basic" and math.isinf(self.guarantee.epsilon):
            raise InputError("An infinite budget (for runs that are not private) needs composition = 'basic'.")

    @property
    def run_delta(self) -> float:
        """The most delta one run may use: an equal slice under basic composition, else all of it."""
        return self.guarantee.delta / self.max_runs if self.kind == "basic" else self.guarantee.delta

    @cached_property
    def order(self) -> float:
        """The one Rényi order of an "rdp" ledger: where Gaussian releases get most out of the budget."""
        chosen_for = self.first or self.guarantee  # what was charged at one order can't be told at another
        room = [(_renyi_room(chosen_for, order) / order, order) for order in ORDERS]
        return float(max(room)[1])

    @cached_property
    def limit(self) -> float:
        """The whole budget in the rule's own currency: epsilon, Rényi divergence or rho."""
        if self.kind == "basic":
            return self.guarantee.epsilon
        if self.kind == "rdp":
            return max(0.0, _renyi_room(self.guarantee, self.order))
        return concentrated_budget(self.guarantee.epsilon, self.guarantee.delta)

    def price(self, plan: SpendingPlan) -> float:
        """What a run costs in the rule's own currency."""
        if self.kind == "basic":
            return plan.epsilon()
        if self.kind == "rdp":
            return renyi_at(plan.events, self.order)
        rho = concentrated_rho(plan.events)
        if rho is None:
            raise InputError(
                "This ledger composes by zCDP, which holds only un-subsampled Gaussian (and pure) releases; "
                "DP-SGD would lose its amplification. Use a ledger with composition = 'basic'."
            )
        return rho

    def epsilon_left(self, left: float) -> float:
        """Epsilon that one more run may ask for: exact under "basic", else for one Gaussian release."""
        if self.kind == "basic" or left <= 0:
            return max(0.0, left)
        rho = left / self.order if self.kind == "rdp" else left
        return gaussian_epsilon(math.sqrt(2 * rho), self.run_delta)


def _renyi_room(guarantee: Guarantee, order: float) -> float:
    """Divergence at `order` that (epsilon, delta) pays for (arXiv:2004.00010v4, Proposition 12, inverted)."""
    return guarantee.epsilon - math.log1p(-1 / order) + math.log(guarantee.delta * order) / (order - 1)
