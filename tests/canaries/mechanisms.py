"""Runs a mechanism over and over on neighbouring tables and tries to contradict what it was charged as.

A mechanism is anything that turns one vector per unit into released vectors, `runs` times on its own noise. Those of
the privacy core go through a `Grant`, like any other release; those of training are in `audit.training`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from understudy_bench.audit.shift import mu_test

from tests.canaries.scenes import Scene
from understudy.auditing.scores import LowerBound, Scores
from understudy.privacy.border import Given, Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Rows
from understudy.privacy.events import DiscreteGaussian, Event, Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

# (one vector per unit, how often) → released vectors [run, coordinate]
Mechanism = Callable[[NDArray[np.float64], int], NDArray[np.float64]]

LABEL = "audit"
_AMPLE = Guarantee(1e9, 1e-9)  # an audit pays for nothing: its tables are made up


def observe(mechanism: Mechanism, scene: Scene, runs: int) -> Scores:
    """What the mechanism released along the canary's axis, without the canary and with it."""
    absent, present = (mechanism(rows, runs) @ scene.axis for rows in (scene.others, scene.everybody))
    return Scores(absent, present)


def audit_mechanism(
    mechanism: Mechanism, scenes: Iterable[Scene], *, runs: int, delta: float = 1e-5, confidence: float = 0.95
) -> LowerBound:
    """The mu-test over all scenes; ask the result whether it `refutes` the event that was charged."""
    family = {scene.name: observe(mechanism, scene, runs) for scene in scenes}
    return mu_test(family, delta=delta, confidence=confidence)


def gaussian_sum(event: Gaussian, radius: float) -> Mechanism:
    """`Grant.release` of a sum of clipped rows."""

    def run(rows: NDArray[np.float64], runs: int) -> NDArray[np.float64]:
        grant = grant_for(replace(event, count=runs))
        statistic = Statistic(label=LABEL, shape=rows.shape[1:], bound=radius)
        return np.stack([grant.release(statistic, Given(Rows(rows))) for _ in range(runs)])

    return run


def discrete_gaussian_sum(event: DiscreteGaussian, l2_bound: float) -> Mechanism:
    """`Grant.release` of a sum of whole-numbered rows, clipped to `l2_bound`.

    Its noise is not normal, but from a scale of one on its first moments are those of a normal to a part in a
    million, and the mu-test looks at nothing else.
    """

    def run(rows: NDArray[np.float64], runs: int) -> NDArray[np.float64]:
        grant = grant_for(replace(event, count=runs))
        statistic = Statistic(label=LABEL, shape=rows.shape[1:], bound=l2_bound, step=1.0)
        return np.stack([grant.release(statistic, Given(Rows(rows))) for _ in range(runs)])

    return run


def grant_for(event: Event, noise: NoiseSource | None = None) -> Grant:
    """A grant over made-up data, charged to a ledger that ends with the process.

    It counts its executions but does not write each of them down: that costs ten times what is audited here.
    """
    plan, source = SpendingPlan((PlanEntry(LABEL, event),), _AMPLE), noise or NoiseSource.secure()
    receipt = Ledger.in_memory(_AMPLE).charge(plan, label=LABEL, noise=source).receipt
    return Grant(plan=plan, noise=source, receipt=receipt, record=lambda _label, number: number)
