"""An older copy of a ledger is refused where the newer one was seen; a person may go on with it, on the record."""

import multiprocessing
import shutil

import numpy as np
import pytest

from tests.releases import released
from tests.unit.privacy.conftest import gaussian_plan, make_schema
from understudy.errors import BudgetExceeded, InputError, LedgerError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import issue
from understudy.privacy.events import Gaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

NOISE = NoiseSource.secure()


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open_for(make_schema(), tmp_path)


def charge(ledger, label="run"):
    return ledger.charge(gaussian_plan(5.4), label=label, noise=NOISE)


def keep(ledger):
    shutil.copy(ledger.path, ledger.path.with_suffix(".backup"))


def roll_back(ledger):
    shutil.copy(ledger.path.with_suffix(".backup"), ledger.path)


def test_an_older_copy_is_refused_and_the_error_says_how_to_go_on(ledger):
    keep(ledger)
    charge(ledger)
    roll_back(ledger)
    with pytest.raises(LedgerError, match="Put the newest copy back") as caught:
        Ledger.open(ledger.path)
    assert "ledger adopt" in str(caught.value)
    assert caught.value.exit_code == 2
    with pytest.raises(LedgerError, match="older copy"):
        Ledger.open_for(make_schema(), ledger.path.parent)


def test_the_newest_copy_put_back_is_accepted_again(ledger):
    keep(ledger)
    charge(ledger)
    newest = ledger.path.read_bytes()
    roll_back(ledger)
    ledger.path.write_bytes(newest)
    assert len(Ledger.open(ledger.path).entries()) == 1


def test_executions_cannot_be_rolled_back_either(ledger):
    """The charge is in both copies: only the note that it was executed is gone, and with it the right to refuse."""
    plan = SpendingPlan((PlanEntry("mean", Gaussian(9.0, count=2)),), Guarantee(1.0, 5e-7))
    grant = ledger.charge(plan, label="run", noise=NOISE)
    keep(ledger)
    released(grant, "mean", np.zeros((1, 1)))
    roll_back(ledger)
    with pytest.raises(LedgerError):
        Ledger.open(ledger.path).resume(1, noise=NOISE)


def test_a_copy_put_back_beneath_an_open_ledger_is_refused_at_the_charge(ledger):
    keep(ledger)
    opened = Ledger.open(ledger.path)
    charge(ledger)
    roll_back(ledger)
    with pytest.raises(LedgerError, match="older copy"):
        charge(opened)


def test_another_computer_has_not_seen_the_newer_copy_but_the_certificate_tells(ledger, tmp_path, monkeypatch):
    keep(ledger)
    newer = charge(ledger).receipt.head
    roll_back(ledger)
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "other-home"))
    restored = Ledger.open(ledger.path)
    assert restored.entries() == ()
    assert not restored.knows(newer)


def test_processes_that_charge_and_open_at_once_never_take_each_other_for_a_rollback(tmp_path):
    facts = {"guarantee": Guarantee(20.0, 1e-6), "max_runs": 1000, "population": 10_000}
    made = Ledger.create(tmp_path / "busy.ledger", name="busy", unit_sentence="One.", **facts)
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    def work():
        try:
            for _ in range(15):
                Ledger.open(made.path).charge(SpendingPlan((), Guarantee(1.0, 1e-9)), label="none", noise=NOISE)
            results.put("done")
        except LedgerError as problem:
            results.put(str(problem))

    children = [context.Process(target=work) for _ in range(3)]
    for child in children:
        child.start()
    assert [results.get(timeout=120) for _ in children] == ["done"] * 3
    for child in children:
        child.join()
    assert len(Ledger.open(made.path).entries()) == 45


# --- adopting an older copy ----------------------------------------------------------------------------------


def test_adopting_an_older_copy_gives_no_budget_back(ledger):
    charge(ledger, "first")
    keep(ledger)
    charge(ledger, "second")
    before = ledger.remaining()
    roll_back(ledger)
    adopted = Ledger.adopt(ledger.path, reason="the disk died")
    assert len(adopted.entries()) == 1
    assert adopted.remaining().epsilon == pytest.approx(before.epsilon, abs=1e-9)
    assert adopted.remaining().runs == before.runs == 0
    with pytest.raises(BudgetExceeded):
        charge(adopted, "third")
    assert Ledger.open(ledger.path).amendments() == adopted.amendments()


def test_every_certificate_after_an_adoption_names_it(ledger, schema):
    keep(ledger)
    charge(ledger)
    roll_back(ledger)
    grant = charge(Ledger.adopt(ledger.path, reason="the disk died"), "later")
    certificate = issue(grant, schema, method="mean")
    assert "the disk died" in certificate.amendments[0]
    assert "1 runs" in certificate.amendments[0]


def test_a_run_from_before_an_adoption_is_not_resumed(ledger):
    charge(ledger)
    keep(ledger)
    charge(ledger, "second")
    roll_back(ledger)
    with pytest.raises(LedgerError, match="Start a new run"):
        Ledger.adopt(ledger.path, reason="the disk died").resume(1, noise=NOISE)


def test_only_an_older_copy_is_adopted_and_only_with_a_reason(ledger):
    with pytest.raises(LedgerError, match="nothing to adopt"):
        Ledger.adopt(ledger.path, reason="for fun")
    keep(ledger)
    charge(ledger)
    roll_back(ledger)
    with pytest.raises(InputError, match="reason"):
        Ledger.adopt(ledger.path, reason=" ")


def test_a_fork_with_more_rows_is_refused(ledger, tmp_path, monkeypatch):
    """Another computer went on with the older copy: neither file holds what was spent on both."""
    keep(ledger)
    charge(ledger, "here")
    roll_back(ledger)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("UNDERSTUDY_HOME", str(tmp_path / "other-home"))
        there = Ledger.open(ledger.path)
        charge(there, "there")
        there.charge(SpendingPlan((), Guarantee(1.0, 5e-7)), label="nothing", noise=NOISE)
    with pytest.raises(LedgerError, match="older copy"):
        Ledger.open(ledger.path)
    assert Ledger.adopt(ledger.path, reason="both machines are ours").remaining().runs == 0
