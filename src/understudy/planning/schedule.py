"""Releases of the same people at regular times, which share one budget."""

import math
import re
from dataclasses import dataclass

from understudy.data import Schema
from understudy.errors import InputError
from understudy.planning.choices import spending_plan
from understudy.privacy.accounting import gaussian_epsilon
from understudy.privacy.budget import Guarantee, at_least, at_most
from understudy.privacy.charges import Composition, declared
from understudy.synthesizers import Synthesizer

MAX_RUNS = 1000
_PERIODS = {"daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter", "yearly": "year"}
_SHORTER = 0.999  # of an epsilon whose plan costs more than its share


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A budget divided over releases of the same people, with what each of them gets."""

    period: str  # what lies between two releases, such as "month"
    runs: int
    composition: str  # how the ledger adds the releases up: "basic", or "zcdp" where all of them are Gaussian
    epsilon: float  # of each release, as delta
    delta: float
    basic_epsilon: float  # of each release if the ledger added up epsilons
    whole: Guarantee  # of all releases together

    def sentence(self) -> str:
        """Returns what each release gets, and what to declare before the first."""
        rule = "the ledger adds up epsilons"
        if self.composition == "zcdp":
            added = at_most(self.basic_epsilon)
            rule = f"all of them are Gaussian and the ledger composes by zCDP (by adding up: {added})"
        return (
            f"{self.runs} releases, one a {self.period}, within epsilon = {at_most(self.whole.epsilon)} at delta = "
            f"{at_most(self.whole.delta)}: epsilon = {at_least(self.epsilon)} at delta = {at_most(self.delta)} each, "
            f"because {rule}. Declare under [budget] before the first release: epsilon = {self.whole.epsilon:g}, "
            f'delta = {self.whole.delta:g}, max_runs = {self.runs}, composition = "{self.composition}".'
        )


def divided(text: str, method: Synthesizer, schema: Schema, epsilon: float | None, delta: float | None) -> Schedule:
    """Returns a budget divided over the releases of a schedule such as "monthly:12", by the rule that gives more.

    Args:
        epsilon, delta: Of all releases together; None takes the schema's whole budget.
    """
    found = re.fullmatch(r"([a-z]+):([0-9]{1,4})", text)
    if found is None or found[1] not in _PERIODS or not 2 <= int(found[2]) <= MAX_RUNS:
        raise InputError(
            f"schedule: one of {', '.join(_PERIODS)} and a number of releases from 2 to {MAX_RUNS} is expected, got "
            f"'{text}'. Write schedule='monthly:12'."
        )
    runs = int(found[2])
    if epsilon is None:
        epsilon = declared(schema)["guarantee"].epsilon
    whole = Guarantee(epsilon, schema.delta if delta is None else delta)
    basic = Guarantee(whole.epsilon / runs, whole.delta / runs)
    concentrated = _concentrated(method, schema, whole, runs)
    best = max((basic, concentrated or basic), key=lambda one: one.epsilon)
    return Schedule(
        period=_PERIODS[found[1]],
        runs=runs,
        composition="basic" if best is basic else "zcdp",
        epsilon=best.epsilon,
        delta=best.delta,
        basic_epsilon=basic.epsilon,
        whole=whole,
    )


def _concentrated(method: Synthesizer, schema: Schema, whole: Guarantee, runs: int) -> Guarantee | None:
    """Returns what each release gets where the ledger composes by zCDP; None where that does not hold."""
    rule = Composition(kind="zcdp", guarantee=whole, max_runs=runs)
    share = rule.limit / runs
    epsilon = gaussian_epsilon(math.sqrt(2 * share), whole.delta)
    while True:
        own = Guarantee(epsilon, whole.delta)
        plan = spending_plan(method, schema, own)
        try:
            if rule.price(plan) <= share:
                return own
        except InputError:  # a release that is not Gaussian
            return None
        epsilon *= _SHORTER
