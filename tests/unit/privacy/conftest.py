"""A household-like schema and plans small enough to read."""

import pytest

from understudy.data import BudgetDeclaration, Population, PrivacyUnit, Schema
from understudy.data.channels import Continuous
from understudy.data.timegrid import Time
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.plan import PlanEntry, SpendingPlan


@pytest.fixture
def schema():
    return make_schema()


@pytest.fixture
def plan():
    return gaussian_plan()


def make_schema(kind="entity", **budget):
    declared = {"epsilon": 2.0, "delta": 1e-6, "max_runs": 2} | budget
    return Schema(
        name="meters",
        population=Population(size=10_000),
        unit=PrivacyUnit(kind=kind, column="household"),
        time=Time(column="timestamp", steps=4),
        channels=(Continuous("load", 0.0, 10.0),),
        budget=BudgetDeclaration(**declared),
    )


def gaussian_plan(noise_multiplier=5.2, epsilon=1.0, delta=5e-7, count=1):
    return SpendingPlan(
        (PlanEntry("mean", Gaussian(noise_multiplier, count)),), Guarantee(epsilon=epsilon, delta=delta)
    )
