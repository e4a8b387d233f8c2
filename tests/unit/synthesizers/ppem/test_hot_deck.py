"""x* given x′ from series of `spectral`: charged as `spectral` is, with x′ as wanted, near where data is."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.ppem.toy import method, panel, schema
from understudy.errors import InputError, ReleaseError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, PureDP
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Release, Synthesizer
from understudy.synthesizers.contract import CHECKS
from understudy.synthesizers.ppem import PPEM, hot_deck
from understudy.synthesizers.spectral import Spectral

GUARANTEE = Guarantee(2.0, 1e-6)


@pytest.fixture(autouse=True)
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the series, to be quick."""
    monkeypatch.setattr(hot_deck, "_POOL", 4096)
    monkeypatch.setattr(hot_deck, "_KEPT", 1024)


def asked(**options: object) -> PPEM:
    return method(**{"target": "uniform", **options})


def fit(synthesizer: PPEM, units: int = 400, **changes: object) -> Release:
    """Without noise."""
    return synthesizer.fit(panel(units, **changes), Ledger.in_memory(GUARANTEE), noise=NoiseSource.constant(0))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_the_contract_is_kept_with_donors(check: Callable[[Synthesizer], None]) -> None:
    check(PPEM(sensitive="mean(load)", target="uniform"))


def test_the_plan_is_that_of_spectral_beside_the_check() -> None:
    own = Spectral().plan(schema(), GUARANTEE)
    plan = asked().spending_plan(schema(), GUARANTEE)
    assert {entry.label: entry.event for entry in plan.entries} == {e.label: e.event for e in own.entries}
    checked = asked(effect=0.1).spending_plan(schema(population=4000), GUARANTEE)
    assert checked.event("check") == PureDP(0.1 * GUARANTEE.epsilon)
    unchecked = asked().spending_plan(schema(population=4000), GUARANTEE)
    first, second = (plan.event("dependence") for plan in (unchecked, checked))
    assert isinstance(first, Gaussian)
    assert isinstance(second, Gaussian)
    assert second.noise_multiplier > first.noise_multiplier
    assert 0.8 * GUARANTEE.epsilon < checked.epsilon() <= GUARANTEE.epsilon


@pytest.mark.parametrize(
    "sensitive", ["region", "segment", "mean(spending)", "abroad", ("income+region", "last(spending)")]
)
@pytest.mark.parametrize("target", ["uniform", "different"])
def test_every_kind_of_attribute_can_be_hidden_and_drawn(sensitive: str, target: str) -> None:
    release = fit(asked(sensitive=sensitive, target=target))
    drawn = release.sample(30, label="business")
    assert (drawn.static[:, 2] == 1).all()
    assert not np.isnan(drawn.values).any()


def test_the_marginal_is_the_wanted_one_and_the_rest_given_it_is_that_of_spectral(monkeypatch) -> None:
    """Bounds are five deviations of means over about a thousand series."""
    monkeypatch.setattr(hot_deck, "_POOL", 32_768)
    monkeypatch.setattr(hot_deck, "_KEPT", 8192)
    data, quiet = panel(4000, population=4000), NoiseSource.constant(0)
    drawn, own = (
        one.fit(data, Ledger.in_memory(GUARANTEE), noise=quiet).sample(number, rng=np.random.default_rng(0))
        for one, number in ((asked(sensitive="segment"), 3000), (Spectral(), 20_000))
    )
    assert abs(drawn.static[:, 2].mean() - 0.5) < 0.05
    assert own.static[:, 2].mean() < 0.4
    means = []
    for segment in range(2):
        made, expected = (one.values[one.static[:, 2] == segment] for one in (drawn, own))
        assert abs(made[:, :, 0].mean() - expected[:, :, 0].mean()) < 0.15
        assert abs(made[:, :, 1].mean() - expected[:, :, 1].mean()) < 0.07
        means.append(made[:, :, 0].mean())
    assert means[1] - means[0] > 0.6  # which donors of any segment would miss
    series = np.unique(drawn.values.reshape(3000, -1), axis=0)
    assert len(series) > 2700  # a category has many equally near donors, and each serves


def test_a_release_holds_finished_series_and_nothing_of_the_pool() -> None:
    """Panels that differ in x′ alone, and where nothing else follows it, give series with the same x′."""
    release = fit(asked(sensitive="region"))
    parts = {"rows.values", "rows.values.absent", "rows.static", "rows.static.absent", "rows.lengths"}
    assert set(release.arrays) == {*parts, "rows.common", "obfuscation", "public_context"}
    others = fit(asked(sensitive="region"), 500)
    assert np.array_equal(release.arrays["rows.static"][:, 0], others.arrays["rows.static"][:, 0])


@pytest.mark.parametrize(("sensitive", "labels"), [("region", 2), ("segment", 0)])
def test_labels_have_rows_of_their_own_only_where_they_are_not_hidden(sensitive: str, labels: int) -> None:
    """Rows of every label beside the wanted ones would be a second marginal of x′, which nobody asked for."""
    arrays = fit(asked(sensitive=sensitive)).arrays
    assert len(arrays["rows.values"]) == arrays["rows.common"][0] + 64 * labels


def test_a_donor_serves_once_where_there_are_enough() -> None:
    rng = np.random.default_rng(0)
    pool = rng.uniform(0, 1, (1000, 1))
    chosen = hot_deck.nearest_donors(rng.uniform(0, 1, (300, 1)), pool)
    assert len(set(chosen)) == 300
    far = hot_deck.nearest_donors(np.full((100, 1), 9.0), pool)
    assert len(set(far)) == 32  # nobody is there: the nearest serve again, and the release says so
    assert pool[far].min() > 0.95


def test_values_that_nobody_has_are_released_as_wanted_and_reported() -> None:
    release = fit(asked(sensitive="income", target={"income": [3.5, 3.75]}))
    assert set(release.sample(200).static[:, 1]) == {3.5, 3.75}
    (told,) = asked(sensitive="income").findings(release.schema, release.arrays)
    assert told.startswith("Caution: 100%")


def test_a_label_that_nobody_has_can_be_asked_for_and_is_not_drawn_otherwise() -> None:
    data = panel(400)
    static = np.array(data.static)
    static[:, 2] = 0
    release = asked().fit(replace(data, static=static), Ledger.in_memory(GUARANTEE), noise=NoiseSource.constant(0))
    assert (release.sample(30, label="business").static[:, 2] == 1).all()
    assert release.sample(2000).static[:, 2].mean() < 0.02  # those held beside are 0.06 of all
    assert len(np.unique(release.sample(64, label="business").static[:, 0])) == 3  # x′ is as wanted there too


def test_more_series_than_a_release_holds_are_repeats() -> None:
    release = fit(asked(sensitive="region"))
    number = int(release.arrays["rows.common"][0])
    drawn = release.sample(number + 50, rng=np.random.default_rng(0))
    rows = np.unique(np.concatenate([drawn.values.reshape(len(drawn.values), -1), drawn.static], axis=1), axis=0)
    assert len(rows) <= number


def test_a_check_that_fails_releases_nothing_and_stays_charged() -> None:
    near = asked(target={"region": ["north"] * 7 + ["south"] * 2 + ["east"]}, effect=0.2)
    ledger = Ledger.in_memory(Guarantee(10.0, 1e-6))
    with pytest.raises(ReleaseError, match="nothing is released"):
        near.fit(panel(4000, population=4000), ledger, noise=NoiseSource.constant(0))
    assert ledger.remaining().epsilon < 1e-6
    far = asked(effect=0.1)
    far.fit(panel(4000, population=4000), Ledger.in_memory(Guarantee(10.0, 1e-6)), noise=NoiseSource.constant(0))


def test_held_out_units_are_not_in_the_pool(monkeypatch) -> None:
    sizes: list[int] = []
    learn = Spectral.learn

    def noted(self, private, grant, progress):
        sizes.append(private.panel.num_units)
        return learn(self, private, grant, progress)

    monkeypatch.setattr(Spectral, "learn", noted)
    far = asked(effect=0.1)
    far.fit(panel(4000, population=4000), Ledger.in_memory(Guarantee(10.0, 1e-6)), noise=NoiseSource.constant(0))
    assert 3000 < sizes[0] < 3400


def test_a_label_that_no_series_has_is_refused() -> None:
    release = fit(asked(sensitive="segment", target={"segment": ["retail"]}))
    with pytest.raises(InputError, match="label"):
        release.sample(5, label="business")


def test_the_outlook_speaks_of_what_is_done() -> None:
    told = asked(effect=0.1).outlook(schema(population=4000), GUARANTEE)
    assert len(told) == 1
    assert "check for 0.1 passes" in told[0]
    assert math.isfinite(asked().spending_plan(schema(), GUARANTEE).epsilon())
