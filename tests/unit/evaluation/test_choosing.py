"""A charged choice among releases: ratings stay within a unit, the best release wins, nothing is free."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.evaluation.sets import panel_of, waves
from tests.unit.report.toy import real_waves
from understudy.data import Panel, PrivacyUnit
from understudy.errors import BudgetExceeded, InputError
from understudy.evaluation.choosing import LABEL, PrivateChoice
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource

ALIKE = waves(400, seed=1)


def _collapsed() -> Panel:
    return panel_of(np.broadcast_to(ALIKE.values.mean(axis=0), ALIKE.values.shape).copy())


def _shuffled() -> Panel:
    order = np.random.default_rng(0).permuted(np.arange(24)[None].repeat(400, 0), axis=1)
    return panel_of(np.take_along_axis(ALIKE.values, order[:, :, None], axis=1))


def _shifted() -> Panel:
    return panel_of(np.clip(ALIKE.values + 0.1, 0, 1))


def _a_part() -> Panel:
    """Knows three fifths of the population, and those best of all."""
    low = ALIKE.values[ALIKE.values[:, 0, 0] < np.quantile(ALIKE.values[:, 0, 0], 0.6)]
    return panel_of(np.concatenate([low, low])[:400])


FAKES = {"collapsed": _collapsed, "shuffled": _shuffled, "shifted": _shifted, "a part": _a_part}


def _granted(choice: PrivateChoice, epsilon: float = 1.0):
    ledger = Ledger.in_memory(Guarantee(epsilon, 1e-6))
    plan = choice.plan(Guarantee(epsilon, 1e-6))
    return ledger, ledger.charge(plan, label="choose", noise=NoiseSource.secure())


@pytest.mark.parametrize("fake", FAKES)
def test_series_of_the_right_distribution_beat(fake: str) -> None:
    choice = PrivateChoice(candidates=(FAKES[fake](), ALIKE))
    totals = choice.ratings(waves(400, seed=7)).sum(axis=0)
    assert totals[1] > totals[0] + 25  # the wrong one would win with probability exp(−25)
    _, grant = _granted(choice)
    assert choice.run(grant, waves(400, seed=7)) == 1


def test_candidates_that_are_alike_share_the_wins() -> None:
    choice = PrivateChoice(candidates=(waves(400, seed=3), ALIKE))
    totals = choice.ratings(waves(400, seed=7)).sum(axis=0)
    assert abs(totals[0] - totals[1]) < 60


def test_a_units_ratings_do_not_depend_on_any_other_unit_to_the_last_bit() -> None:
    choice, units = PrivateChoice(candidates=(_shifted(), ALIKE, _collapsed())), waves(300, seed=7)
    whole = choice.ratings(units)
    for kept in (np.arange(150, 300), np.array([7]), np.random.default_rng(2).permutation(300)):
        assert np.array_equal(choice.ratings(units.take_units(kept)), whole[kept])


def test_ratings_lie_between_0_and_1_whatever_a_unit_holds() -> None:
    values = np.concatenate([waves(5).values, np.full((1, 24, 2), 1e30), np.full((1, 24, 2), np.nan)])
    found = PrivateChoice(candidates=(_shifted(), ALIKE)).ratings(panel_of(values))
    assert found.shape == (7, 2)
    assert ((found >= 0) & (found <= 1)).all()


def test_a_unit_with_a_hundred_series_rates_once() -> None:
    panel = waves(110, seed=7)
    owners = np.r_[np.zeros(100, dtype=np.int64), np.arange(1, 11)]
    found = PrivateChoice(candidates=(_shifted(), ALIKE)).ratings(replace(panel, unit=owners))
    assert found.shape == (11, 2)


def test_categories_gaps_and_static_columns_are_rated_too() -> None:
    real, units = real_waves(400, planted=None), real_waves(400, seed=4, planted=None)
    wrong = np.stack([np.zeros(400), np.zeros(400)], axis=1).astype(np.float32)
    gaps, modes = real.values.copy(), real.values.copy()
    gaps[:, ::2, 0] = np.nan
    modes[:, :, 2] = 1 - (np.arange(24) % 2)
    for fake in (replace(real, static=wrong), replace(real, values=gaps), replace(real, values=modes)):
        totals = PrivateChoice(candidates=(fake, real)).ratings(units).sum(axis=0)
        assert totals[1] > totals[0] + 25


def test_a_choice_is_executed_once_for_its_charge() -> None:
    choice = PrivateChoice(candidates=(_shifted(), ALIKE))
    ledger, grant = _granted(choice)
    choice.run(grant, waves(30))
    assert ledger.entries()[0].executed == {LABEL: 1}
    with pytest.raises(BudgetExceeded):
        choice.run(grant, waves(30))


def test_the_price_does_not_grow_with_the_candidates() -> None:
    asked = Guarantee(0.5, 1e-6)
    for candidates in ((ALIKE, _shifted()), (ALIKE, _shifted(), _collapsed(), _shuffled())):
        assert PrivateChoice(candidates=candidates).plan(asked).epsilon() == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("kind", ["event", "overlapping-window"])
def test_units_of_which_a_neighbour_lacks_a_part_only_are_refused(kind: str) -> None:
    choice = PrivateChoice(candidates=(_shifted(), ALIKE))
    with pytest.raises(InputError, match="Nothing was charged"):
        choice.check(waves(30, unit=PrivacyUnit(kind=kind, column="person")).schema)


def test_candidates_have_to_be_public_alike_and_several() -> None:
    with pytest.raises(ValueError, match="synthetic"):
        PrivateChoice(candidates=(ALIKE, replace(ALIKE, private=True)))
    with pytest.raises(InputError, match="two or more"):
        PrivateChoice(candidates=(ALIKE,))
    with pytest.raises(InputError, match="same columns and steps"):
        PrivateChoice(candidates=(ALIKE, waves(30, steps=12))).check(ALIKE.schema)
