"""Which series a caller asks for: static values, rules of their own, other lengths."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.data import Population, simulate_households
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.release import Release
from understudy.synthesizers.spectral import Spectral

BUDGET = Guarantee(8.0, 1e-6)


@pytest.fixture(scope="module")
def rich() -> Release:
    return Spectral().fit(make_panel(rich_schema()), Ledger.in_memory(BUDGET))


@pytest.fixture(scope="module")
def homes() -> Release:
    panel = simulate_households(1500)
    return Spectral().fit(replace(panel, private=True), Ledger.in_memory(BUDGET))


def test_static_values_are_those_that_were_asked_for(rich: Release) -> None:
    where = {"tariff": "night", "region": "south", "people": (2, 6)}
    drawn = rich.sample(40, where=where, rng=np.random.default_rng(0))
    assert drawn.num_series == 40
    assert (drawn.static[:, 0] == 1).all()
    assert (drawn.static[:, 2] == 1).all()
    assert ((drawn.static[:, 3] >= 2) & (drawn.static[:, 3] <= 6)).all()
    np.testing.assert_array_equal(drawn.unit, np.arange(40))


def test_a_rule_keeps_what_it_says_and_the_acceptance_is_stated(rich: Release) -> None:
    def high(panel):  # type: ignore[no-untyped-def]
        return np.nanmean(panel.values[:, :, 1], axis=1) > 3.5

    drawn = rich.sample(30, rule=high, rng=np.random.default_rng(0))
    assert high(drawn).all()
    share = rich.acceptance(rule=high, rng=np.random.default_rng(1))
    counted = high(rich.sample(2_000, rng=np.random.default_rng(1))).mean()
    assert 0 < share < 1
    assert abs(share - counted) < 1e-12


def test_what_hardly_any_series_satisfies_is_refused_with_its_share(rich: Release) -> None:
    with pytest.raises(InputError, match=r"0 of \d+ synthetic series satisfy"):
        rich.sample(5, rule=lambda panel: np.zeros(panel.num_series, dtype=bool))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"colour": "red"}, "a static column is expected"),
        ({"region": "west"}, "one of north, south is expected"),
        ({"area": 50.0}, r"a pair \(low, high\) is expected"),
        ({"people": "two"}, "a number or a pair"),
        ({"tariff": "free"}, "one of flat, night, dynamic is expected"),
    ],
)
def test_wrong_wishes_say_what_is_expected(rich: Release, where: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rich.sample(5, where=where)


def test_a_rule_that_is_not_about_series_is_refused(rich: Release) -> None:
    with pytest.raises(InputError, match="True or False for each of"):
        rich.sample(5, rule=lambda panel: panel.values > 0)


def test_fewer_steps_are_the_first_steps_of_any_method() -> None:
    release = Independent().fit(make_panel(plain_schema()), Ledger.in_memory(BUDGET))
    whole, first = (release.sample(9, rng=np.random.default_rng(3), steps=steps) for steps in (None, 5))
    np.testing.assert_array_equal(first.values, whole.values[:, :5])
    assert first.schema.num_steps == 5
    with pytest.raises(InputError, match="use `spectral`, which continues a declared season"):
        release.sample(9, steps=20)


def test_series_without_a_season_do_not_go_on() -> None:
    schema = plain_schema(population=Population(500), time=replace(plain_schema().time, align="relative"))
    release = Spectral().fit(make_panel(schema), Ledger.in_memory(BUDGET))
    with pytest.raises(InputError, match="no season that fits twice"):
        release.sample(3, steps=99)


def test_a_declared_season_goes_on_beyond_the_steps_that_were_learned(homes: Release) -> None:
    week = np.array(homes.public_context)
    three = np.concatenate([week, week, week])[:400]
    drawn = homes.sample(1200, steps=400, context=three, rng=np.random.default_rng(0))
    assert drawn.values.shape == (1200, 400, 2)
    assert drawn.schema.num_steps == 400
    load = np.where(drawn.lengths[:, None] == 400, drawn.values[:, :, 0], np.nan)
    profile = np.nanmean(load, axis=0)
    assert np.corrcoef(profile[:168], profile[168:336])[0, 1] > 0.95
    load = load[drawn.lengths == 400]
    level = [np.nanmean(load[:, part], axis=1) for part in (slice(0, 168), slice(168, 400))]
    assert np.corrcoef(*level)[0, 1] > 0.8  # a home stays the home that it is
    change = np.nanmean(np.abs(np.diff(load, axis=1)), axis=0)
    seam, hours_alike = change[167], change[167 - 24 * np.arange(1, 6)]
    assert 0.6 * hours_alike.min() < seam < 1.5 * hours_alike.max()  # no jump where windows meet
    gaps = [np.isnan(load[:, part]).mean() for part in (slice(0, 168), slice(168, 400))]
    assert abs(gaps[0] - gaps[1]) < 0.02
    with pytest.raises(InputError, match="public context of all 400 steps"):
        homes.sample(3, steps=400)
