import contextlib
import json
import multiprocessing
import os
import resource
import shutil
import sqlite3

import numpy as np
import pytest

from tests.releases import released
from tests.unit.privacy.conftest import gaussian_plan, make_schema
from understudy.errors import BudgetExceeded, InputError, LedgerError, SchemaError
from understudy.privacy import registry
from understudy.privacy.accounting import epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, NonPrivate, PureDP, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

NOISE = NoiseSource.secure()
RUN = Guarantee(1.0, 5e-7)


def make(path, name="meters", **declared):
    facts = {"guarantee": Guarantee(2.0, 1e-6), "max_runs": 2, "population": 10_000} | declared
    return Ledger.create(path / f"{name}.ledger", name=name, unit_sentence="One household.", **facts)


def one_run(noise_multiplier=5.4):
    return gaussian_plan(noise_multiplier)


def test_a_ledger_of_two_pays_for_two_runs_of_one_and_refuses_the_third(tmp_path):
    ledger = make(tmp_path, max_runs=3, guarantee=Guarantee(2.0, 1.5e-6))
    exact = SpendingPlan((PlanEntry("count", PureDP(1.0)),), RUN)
    for _ in range(2):
        ledger.charge(exact, label="run", noise=NOISE)
    head = ledger.head()
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge(one_run(), label="third", noise=NOISE)
    assert caught.value.exit_code == 4
    assert caught.value.label == "third"
    assert caught.value.remaining == pytest.approx(0.0, abs=1e-3)
    assert ledger.head() == head
    assert len(ledger.entries()) == 2


def test_what_is_charged_is_the_plans_own_epsilon(tmp_path):
    ledger = make(tmp_path)
    ledger.charge(one_run(), label="run", noise=NOISE)
    cost = epsilon(one_run().events, 5e-7)
    assert ledger.entries()[0].epsilon == pytest.approx(cost)
    assert ledger.remaining().epsilon == pytest.approx(2.0 - cost)
    assert ledger.remaining().runs == 1


def test_a_charge_survives_reopening(tmp_path):
    make(tmp_path).charge(one_run(), label="run", noise=NOISE)
    again = Ledger.open(tmp_path / "meters.ledger")
    assert [entry.label for entry in again.entries()] == ["run"]
    assert again.entries()[0].plan == one_run()
    assert [path.name for path in tmp_path.iterdir()] == ["meters.ledger"]


def test_a_run_that_asks_for_more_than_its_slice_of_delta_is_refused_in_clear_words(tmp_path):
    ledger = make(tmp_path)
    with pytest.raises(BudgetExceeded, match=r"gives each run at most 5e-07 \(its delta divided by max_runs = 2\)"):
        ledger.charge(gaussian_plan(5.2, delta=1e-6), label="greedy", noise=NOISE)
    assert ledger.entries() == ()


def test_after_max_runs_the_delta_is_spent(tmp_path):
    ledger = make(tmp_path)
    small = gaussian_plan(50.0)
    for _ in range(2):
        ledger.charge(small, label="small", noise=NOISE)
    with pytest.raises(BudgetExceeded, match="would be run 3 of a ledger for 2"):
        ledger.charge(small, label="small", noise=NOISE)
    assert ledger.remaining().epsilon == 0


def test_a_plan_that_costs_more_than_it_promises_is_refused(tmp_path):
    with pytest.raises(InputError, match="costs more than the epsilon = 1 it promises"):
        make(tmp_path).charge(gaussian_plan(1.0), label="liar", noise=NOISE)


def test_a_run_without_private_data_is_recorded_and_costs_nothing(tmp_path):
    ledger = make(tmp_path)
    for _ in range(5):
        ledger.charge(SpendingPlan((), Guarantee(1.0, 1e-6)), label="control", noise=NOISE)
    assert ledger.remaining().epsilon == 2.0
    assert ledger.remaining().runs == 2


def test_a_delta_too_large_for_the_population_is_refused_when_the_ledger_is_made(tmp_path):
    with pytest.raises(InputError, match="too large for a population"):
        make(tmp_path, guarantee=Guarantee(2.0, 1e-3))
    assert not any(tmp_path.iterdir())


def test_a_non_private_run_fits_only_a_ledger_without_limit():
    plan = SpendingPlan((PlanEntry("raw", NonPrivate("as in the paper")),), Guarantee(float("inf"), 1e-6))
    with pytest.raises(BudgetExceeded):
        Ledger.in_memory(Guarantee(5.0, 1e-6)).charge(plan, label="raw", noise=NOISE)
    unlimited = Ledger.in_memory(Guarantee(float("inf"), 1e-5), max_runs=3)
    for _ in range(2):
        unlimited.charge(plan, label="raw", noise=NOISE)


# --- new data of the same people ---------------------------------------------------------------------------


def test_a_monthly_refresh_charges_the_same_ledger_until_it_is_spent(tmp_path):
    """January and February hold different rows of the same households: one ledger, found by the schema."""
    made = []
    for month in ("january", "february", "march"):
        ledger = Ledger.open_for(make_schema(), tmp_path)
        data_of_month = np.full(3, float(len(month)))
        try:
            grant = ledger.charge(one_run(), label=month, noise=NOISE)
        except BudgetExceeded:
            break
        released(grant, "mean", data_of_month[None])
        made.append(month)
    assert made == ["january", "february"]
    assert [entry.label for entry in Ledger.open_for(make_schema(), tmp_path).entries()] == made


def test_a_schema_whose_budget_was_raised_later_is_refused(tmp_path):
    Ledger.open_for(make_schema(), tmp_path)
    with pytest.raises(LedgerError, match="The schema now says otherwise"):
        Ledger.open_for(make_schema(epsilon=20.0), tmp_path)


def test_a_schema_without_a_budget_names_the_missing_key(tmp_path):
    from dataclasses import replace

    with pytest.raises(SchemaError, match="budget"):
        Ledger.open_for(replace(make_schema(), budget=None), tmp_path)


def test_the_ledger_of_a_schema_file_lies_beside_it(tmp_path):
    make_schema().save(tmp_path / "schema.toml")
    assert Ledger.open_for(tmp_path / "schema.toml").path == tmp_path / "meters.ledger"


# --- one ledger for one population -------------------------------------------------------------------------


def test_a_second_ledger_for_one_population_is_refused(tmp_path):
    make(tmp_path)
    (tmp_path / "other").mkdir()
    with pytest.raises(LedgerError, match="already has a ledger"):
        make(tmp_path / "other")
    with pytest.raises(LedgerError, match="already has a ledger"):
        Ledger.open_for(make_schema(), tmp_path / "other")
    assert not any((tmp_path / "other").iterdir())


def test_a_copy_of_a_ledger_is_refused_but_a_moved_one_is_found(tmp_path):
    make(tmp_path)
    shutil.copy(tmp_path / "meters.ledger", tmp_path / "copy.ledger")
    with pytest.raises(LedgerError, match="already has a ledger"):
        Ledger.open(tmp_path / "copy.ledger")
    (tmp_path / "meters.ledger").rename(tmp_path / "moved.ledger")
    assert Ledger.open(tmp_path / "moved.ledger").name == "meters"
    assert registry.populations() == {"meters": tmp_path / "moved.ledger"}


def test_a_ledger_that_is_gone_is_not_silently_replaced(tmp_path):
    Ledger.open_for(make_schema(), tmp_path)
    (tmp_path / "meters.ledger").unlink()
    with pytest.raises(LedgerError, match="is gone"):
        Ledger.open_for(make_schema(), tmp_path)
    with registry._opened() as connection:
        connection.execute("DELETE FROM populations")
    Ledger.open_for(make_schema(), tmp_path)


def test_a_ledger_brought_from_another_computer_is_registered(tmp_path, monkeypatch):
    make(tmp_path)
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "other-home"))
    Ledger.open(tmp_path / "meters.ledger")
    assert "meters" in registry.populations()


def _open_for(directory, home, results):
    os.environ["UNDERSTUDY_HOME"] = home
    try:
        results.put(str(Ledger.open_for(make_schema(), directory).path))
    except LedgerError as problem:
        results.put(f"refused: {problem}")


def test_processes_that_start_together_agree_on_one_ledger(tmp_path):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    folders = [tmp_path / name for name in ("a", "b", "a", "b")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    home = os.environ["UNDERSTUDY_HOME"]
    children = [context.Process(target=_open_for, args=(folder, home, results)) for folder in folders]
    for child in children:
        child.start()
    answers = [results.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    assert len({answer for answer in answers if not answer.startswith("refused")}) == 1
    assert len(list(tmp_path.glob("*/*.ledger"))) == 1


# --- damage ------------------------------------------------------------------------------------------------


def damage_truncate(path):
    with path.open("r+b") as handle:
        handle.truncate(path.stat().st_size // 2)


def damage_empty(path):
    path.write_bytes(b"")


def damage_random(path):
    path.write_bytes(np.random.default_rng(1).bytes(8192))


def damage_edit_charge(path):
    _sql(path, "UPDATE entries SET body = replace(body, '\"amount\":0.', '\"amount\":0.0')")


def damage_delete_first(path):
    _sql(path, "DELETE FROM entries WHERE sequence = 1")


def damage_delete_last(path):
    _sql(path, "DELETE FROM entries WHERE sequence = (SELECT max(sequence) FROM entries)")


def damage_raise_budget(path):
    _sql(path, "UPDATE facts SET body = replace(body, '\"epsilon\":2.0', '\"epsilon\":9.0')")


def damage_drop_table(path):
    _sql(path, "DROP TABLE entries")


def damage_flip_bytes(path):
    data = bytearray(path.read_bytes())
    place = data.find(b'"amount":0.') + len(b'"amount":0.')
    data[place] = ord("1") if data[place] != ord("1") else ord("2")
    path.write_bytes(data)


def _sql(path, statement):
    """Does what somebody does who knows about the triggers: takes them away, and puts them back."""
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    with contextlib.suppress(sqlite3.OperationalError):  # the table itself may be gone
        for _, definition in triggers:
            connection.execute(definition)
    connection.commit()
    connection.close()


DAMAGES = [value for name, value in sorted(globals().items()) if name.startswith("damage_")]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_ledger_is_refused(tmp_path, damage):
    ledger = make(tmp_path)
    released(ledger.charge(one_run(), label="run", noise=NOISE), "mean", np.zeros((1, 1)))
    damage(tmp_path / "meters.ledger")
    with pytest.raises(LedgerError) as caught:
        Ledger.open(tmp_path / "meters.ledger")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("damage", [damage_edit_charge, damage_delete_first, damage_delete_last, damage_raise_budget])
def test_damage_done_while_a_ledger_is_open_is_noticed_before_the_next_charge(tmp_path, damage):
    ledger = make(tmp_path)
    ledger.charge(one_run(), label="run", noise=NOISE)
    damage(tmp_path / "meters.ledger")
    with pytest.raises(LedgerError):
        ledger.charge(one_run(), label="b", noise=NOISE)


def test_rows_cannot_be_changed_through_sqlite_by_mistake(tmp_path):
    make(tmp_path).charge(one_run(), label="run", noise=NOISE)
    connection = sqlite3.connect(tmp_path / "meters.ledger")
    for statement in ("UPDATE entries SET kind = 'x'", "DELETE FROM entries", "DELETE FROM facts"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_a_ledger_of_another_format_is_refused(tmp_path):
    make(tmp_path)
    _sql(tmp_path / "meters.ledger", "UPDATE facts SET body = replace(body, '\"format\":1', '\"format\":9')")
    with pytest.raises(LedgerError, match="format 9, expected 1"):
        Ledger.open(tmp_path / "meters.ledger")


def test_there_is_no_ledger_in_an_empty_folder(tmp_path):
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger.open(tmp_path / "meters.ledger")


def test_a_folder_that_does_not_exist_is_a_clean_refusal(tmp_path):
    with pytest.raises(LedgerError, match="can't be read and written"):
        make(tmp_path / "nowhere")


def test_a_full_disk_is_a_clean_refusal_and_charges_nothing(tmp_path):
    """A limit on file size stands in for a full disk: writes fail the same way."""
    ledger = make(tmp_path)
    size = 1024  # bytes: too few for a journal, without which nothing is written
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    def charge_with_no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            ledger.charge(one_run(), label="run", noise=NOISE)
            results.put("charged")
        except InputError as problem:
            results.put(f"refused {problem.exit_code}")

    child = context.Process(target=charge_with_no_room)
    child.start()
    assert results.get(timeout=60) == "refused 2"
    child.join()
    assert Ledger.open(tmp_path / "meters.ledger").entries() == ()


# --- several writers ---------------------------------------------------------------------------------------


def _charge_until_refused(path, home, results):
    os.environ["UNDERSTUDY_HOME"] = home
    ledger, granted = Ledger.open(path), 0
    plan = SpendingPlan((PlanEntry("count", PureDP(0.05)),), Guarantee(0.1, 1e-9))
    for _ in range(30):
        try:
            ledger.charge(plan, label="race", noise=NOISE)
            granted += 1
        except BudgetExceeded:
            break
    results.put(granted)


def test_two_processes_at_once_cannot_overspend(tmp_path):
    make(tmp_path, guarantee=Guarantee(1.0, 1e-6), max_runs=1000)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    arguments = (tmp_path / "meters.ledger", os.environ["UNDERSTUDY_HOME"], results)
    children = [context.Process(target=_charge_until_refused, args=arguments) for _ in range(2)]
    for child in children:
        child.start()
    granted = sum(results.get(timeout=120) for _ in children)
    for child in children:
        child.join()
    ledger = Ledger.open(tmp_path / "meters.ledger")
    spent = sum(entry.epsilon for entry in ledger.entries())
    assert granted == len(ledger.entries()) == 20 or granted == len(ledger.entries()) == 19
    assert spent <= 1.0 + 1e-6


def test_the_file_holds_nothing_that_was_computed_from_the_data(tmp_path):
    """Two tables of different size and content leave ledgers that differ in times, names and noise only."""
    bodies = []
    for name, rows in (("small", 3), ("large", 500_000)):
        ledger = make(tmp_path, name=name)
        grant = ledger.charge(one_run(), label="run", noise=NOISE)
        released(grant, "mean", np.full((rows, 2), 1.25))
        rows_on_disk = sqlite3.connect(ledger.path).execute("SELECT kind, body FROM entries").fetchall()
        bodies.append([(kind, {**json.loads(body), "recorded_at": ""}) for kind, body in rows_on_disk])
    assert bodies[0] == bodies[1]


# --- composition across runs -------------------------------------------------------------------------------


def test_a_zcdp_ledger_pays_for_more_gaussian_releases_than_a_basic_one():
    plan, granted = gaussian_plan(20.0, delta=1e-6), {}
    for composition in ("basic", "zcdp", "rdp"):
        ledger = Ledger.in_memory(Guarantee(2.0, 1e-6), max_runs=1, composition=composition)
        if composition == "basic":
            ledger = Ledger.in_memory(Guarantee(2.0, 1e-4), max_runs=100)
        granted[composition] = 0
        with contextlib.suppress(BudgetExceeded):
            for _ in range(200):
                ledger.charge(plan, label="release", noise=NOISE)
                granted[composition] += 1
    assert granted["basic"] < granted["rdp"] <= granted["zcdp"]
    assert epsilon([Gaussian(20.0, granted["zcdp"])], 1e-6) <= 2.0


def test_a_zcdp_ledger_refuses_sampled_noise_and_says_what_to_use():
    plan = SpendingPlan((PlanEntry("sgd", SubsampledGaussian(0.01, 2.0, 10)),), Guarantee(1.0, 1e-6))
    with pytest.raises(InputError, match="composition = 'basic'"):
        Ledger.in_memory(Guarantee(2.0, 1e-6), composition="zcdp").charge(plan, label="sgd", noise=NOISE)


def test_an_rdp_ledger_composes_at_one_order_and_stays_within_its_promise():
    ledger = Ledger.in_memory(Guarantee(2.0, 1e-6), composition="rdp")
    sgd = SubsampledGaussian(0.01, 2.0, 100)
    plan, granted = SpendingPlan((PlanEntry("sgd", sgd),), Guarantee(1.0, 1e-6)), 0
    with contextlib.suppress(BudgetExceeded):
        while granted < 100:
            ledger.charge(plan, label="sgd", noise=NOISE)
            granted += 1
    assert 2 <= granted < 100
    assert epsilon([sgd] * granted, 1e-6) <= 2.0


def test_what_remains_can_be_spent_and_a_little_more_cannot():
    from understudy.privacy.plan import noise_multipliers

    for composition in ("basic", "zcdp", "rdp"):
        ledger = Ledger.in_memory(Guarantee(2.0, 1e-6), composition=composition, max_runs=1)
        left = ledger.remaining()
        noise_multiplier = noise_multipliers(Guarantee(left.epsilon, left.delta), {"all": 1.0})["all"]
        greedy = gaussian_plan(noise_multiplier * 0.99, epsilon=5.0, delta=left.delta)
        with pytest.raises(BudgetExceeded):
            ledger.charge(greedy, label="greedy", noise=NOISE)
        ledger.charge(gaussian_plan(noise_multiplier, epsilon=5.0, delta=left.delta), label="all", noise=NOISE)


def test_an_unknown_composition_is_refused():
    with pytest.raises(InputError, match="composition must be one of"):
        Ledger.in_memory(Guarantee(2.0, 1e-6), composition="pld")


def test_entries_of_a_grant_in_memory_are_counted_too():
    ledger = Ledger.in_memory(Guarantee(2.0, 1e-6))
    grant = ledger.charge(gaussian_plan(5.2, delta=1e-6), label="run", noise=NOISE)
    released(grant, "mean", np.zeros((1, 1)))
    assert ledger.entries()[0].executed == {"mean": 1}
    assert grant.receipt.ledger_kind == "in-memory"
    assert ledger.knows(grant.receipt.head)
