"""A budget is raised on the record: in the ledger's chain and in every later certificate."""

import pytest

from tests.unit.privacy.conftest import gaussian_plan, make_schema
from understudy.errors import BudgetExceeded, InputError, LedgerError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import issue
from understudy.privacy.certificate_page import to_markdown
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource

NOISE = NoiseSource.secure()


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open_for(make_schema(), tmp_path)


def charge(ledger, label="run", **plan):
    return ledger.charge(gaussian_plan(5.4, **plan), label=label, noise=NOISE)


def test_a_raised_budget_pays_for_more_and_every_later_certificate_says_why(ledger, schema):
    before = issue(charge(ledger), schema, method="mean")
    charge(ledger)
    with pytest.raises(BudgetExceeded):
        charge(ledger)
    ledger.raise_budget(epsilon=3.0, max_runs=3, reason="the board agreed on 3 May")
    after = issue(charge(Ledger.open(ledger.path)), schema, method="mean")
    assert before.amendments == ()
    assert "the board agreed on 3 May" in after.amendments[0]
    assert "epsilon = 3 and 3 runs" in after.amendments[0]
    assert "the board agreed on 3 May" in to_markdown(after)
    with pytest.raises(BudgetExceeded):
        charge(ledger)


def test_each_run_keeps_its_share_of_delta(ledger):
    ledger.raise_budget(max_runs=4, reason="two more months")
    assert ledger.remaining().delta == pytest.approx(5e-7)
    assert ledger.guarantee == Guarantee(2.0, 2e-6)
    with pytest.raises(InputError, match="too large for a population"):
        ledger.raise_budget(max_runs=40, reason="forty")


def test_the_schema_may_keep_the_first_budget_or_declare_the_raised_one_and_no_other(ledger):
    ledger.raise_budget(epsilon=5.0, reason="agreed")
    folder = ledger.path.parent
    assert Ledger.open_for(make_schema(), folder).guarantee.epsilon == 5.0
    assert Ledger.open_for(make_schema(epsilon=5.0), folder).guarantee.epsilon == 5.0
    with pytest.raises(LedgerError, match="otherwise"):
        Ledger.open_for(make_schema(epsilon=9.0), folder)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"epsilon": 1.0}, "less"),
        ({"epsilon": 2.0}, "the same"),
        ({"max_runs": 1}, "less"),
        ({"epsilon": float("inf")}, "all"),
        ({"epsilon": float("nan")}, "none"),
        ({"epsilon": 3.0}, "  "),
        ({}, "nothing"),
    ],
)
def test_a_budget_is_not_lowered_nor_raised_without_a_number_and_a_reason(ledger, asked, reason):
    head = ledger.head()
    with pytest.raises(InputError):
        ledger.raise_budget(**asked, reason=reason)
    assert ledger.head() == head


@pytest.mark.parametrize("composition", ["zcdp", "rdp"])
def test_what_was_spent_before_a_raise_stays_spent_by_the_same_rule(composition):
    ledger = Ledger.in_memory(Guarantee(1.0, 1e-6), composition=composition)
    charge(ledger, delta=1e-6)
    left, order = ledger.remaining().epsilon, ledger.composition.order
    ledger.raise_budget(epsilon=2.0, reason="agreed")
    assert ledger.composition.order == order
    assert left < ledger.remaining().epsilon < 2.0
