"""Noisy answers are recorded, earlier ones replayed if asked, and otherwise a grant is what it always is."""

import numpy as np
import pytest
from understudy_bench.audit.canaries import recorded_answers

from understudy.errors import BudgetExceeded
from understudy.privacy.border import Given, Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Rows
from understudy.privacy.events import DiscreteGaussian, Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

PLAN = SpendingPlan(
    (PlanEntry("sum", Gaussian(2.0, count=2)), PlanEntry("votes", DiscreteGaussian(3.0))), Guarantee(9.0, 1e-6)
)


def charged(ledger: Ledger) -> Grant:
    return ledger.charge(PLAN, label="run", noise=NoiseSource.constant(1.0))


def a_ledger() -> Ledger:
    return Ledger.in_memory(Guarantee(9.0, 1e-6))


def release(grant: Grant, label: str, rows: np.ndarray) -> np.ndarray:
    step = 1.0 if label == "votes" else None
    return grant.release(Statistic(label=label, shape=rows.shape[1:], bound=1.0, step=step), Given(Rows(rows)))


def ask(grant: Grant) -> list[np.ndarray]:
    sums = [release(grant, "sum", np.full((units, 3), 0.5)) for units in (2, 10)]
    return [*sums, release(grant, "votes", np.eye(2)[[0] * 7 + [1] * 8])]


def test_every_answer_is_heard_under_its_label_and_turn() -> None:
    with recorded_answers() as heard:
        answers = ask(charged(a_ledger()))
    assert list(heard) == ["sum", "sum 2", "votes"]
    assert all(np.array_equal(own, told) for own, told in zip(heard.values(), answers, strict=True))
    assert answers[0].tolist() == pytest.approx([3.0, 3.0, 3.0], rel=1e-3)
    assert answers[2].tolist() == [10.0, 11.0]


def test_a_method_is_told_earlier_answers_while_its_own_are_heard() -> None:
    told = {"sum": np.zeros(3), "sum 2": np.ones(3), "votes": np.array([40.0, 50.0])}
    with recorded_answers(told) as heard:
        answers = ask(charged(a_ledger()))
    assert [answer.tolist() for answer in answers] == [[0, 0, 0], [1, 1, 1], [40, 50]]
    assert heard["votes"].tolist() == [10, 11]


def test_charges_and_executions_are_counted_as_ever() -> None:
    ledger = a_ledger()
    grant = charged(ledger)
    with recorded_answers():
        ask(grant)
        assert grant.executed == {"sum": 2, "votes": 1}
        with pytest.raises(BudgetExceeded):
            release(grant, "sum", np.zeros((1, 3)))
    assert ledger.entries()[0].executed == {"sum": 2, "votes": 1}
