"""How closely few units follow their context: who moves the sum by how much, when it is bought, what it teaches."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.pub2priv.panels import STEPS, correlation, fit, following, following_schema, smooth
from tests.unit.synthesizers.pub2priv.test_regression import extreme
from tests.unit.synthesizers.spectral.recording import listening
from understudy.data import Panel, Population, PrivacyUnit
from understudy.privacy.budget import Guarantee
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.series import to_frequencies, unit_length
from understudy.synthesizers.contract.panels import make_panel, plain_schema
from understudy.synthesizers.pub2priv import Pub2Priv
from understudy.synthesizers.pub2priv.estimators import (
    CORRELATION,
    PRODUCTS,
    REGRESSION,
    ContextCorrelation,
    explained_share,
    significant,
)
from understudy.synthesizers.pub2priv.recipe import Recipe

CHOSEN = Pub2Priv(recipe=Recipe(model="correlation"))


def correlated(panel: Panel) -> ContextCorrelation:
    arrays = fit(CHOSEN, panel, noise=NoiseSource.seeded(1)).arrays
    return ContextCorrelation(CHOSEN.context(panel.schema), arrays)


def waves(size: int, *, own: float) -> Panel:
    """Series whose slow wave is their context's, with a fast wave of their own of the given size."""
    panel, rng = following(size, 0.9), np.random.default_rng(5)
    time = np.arange(STEPS) + 0.5
    slow = rng.normal(size=(size, 1)) * np.cos(np.pi * time / STEPS)
    fast = rng.normal(size=(size, 1)) * np.cos(np.pi * 20 * time / STEPS)
    values = (slow + own * fast)[:, :, None].clip(-6, 6).astype(np.float32)
    return replace(panel, values=values, context=slow[:, :, None].clip(-6, 6).astype(np.float32))


def total(core: ContextCorrelation, panel: Panel) -> np.ndarray:
    """The sum that the border makes."""
    return PrivateSeries.of(panel, panel.num_units).total(core.correlations(), 2.0**-32) * 2.0**-32


# --- who moves what by how much -----------------------------------------------------------------------------------


def test_one_unit_moves_the_sum_by_at_most_its_bound() -> None:
    """Odd series, and series that are nothing but their context. Controls: the bound is nearly met, twice is beyond."""
    moved = []
    for panel in (extreme(12), waves(12, own=0.0)):
        core = correlated(panel)
        whole, statistic = total(core, panel), core.correlations()
        assert statistic.contributions(panel).norms().max() <= statistic.bound * (1 + 1e-9)  # nothing to clip
        for unit in range(12):
            less = panel.take_units(np.delete(np.arange(12), unit))
            moved.append(np.linalg.norm(whole - total(core, less)))
        assert np.linalg.norm(whole) > core.correlations().bound
    assert max(moved) <= core.correlations().bound * (1 + 1e-9)
    assert max(moved) > 0.95 * core.correlations().bound


def test_several_columns_that_are_one_are_bounded_as_several() -> None:
    """Three columns that are the same signal: a series that is it adds three products of one."""
    panel = waves(12, own=0.0)
    context = tuple(replace(panel.schema.context[0], name=name) for name in ("first", "second", "third"))
    assert panel.context is not None
    panel = replace(panel, schema=replace(panel.schema, context=context), context=panel.context.repeat(3, axis=2))
    core = correlated(panel)
    moved = np.linalg.norm(total(core, panel.take_units(np.array([0]))))
    assert 0.9 * core.correlations().bound < moved <= core.correlations().bound * (1 + 1e-9)
    assert core.correlations().bound == pytest.approx(np.sqrt(3 + 3 / 9))


def test_what_crosses_the_border_is_bounded_as_one_vote_and_one_cosine_a_pair() -> None:
    with listening() as tape:
        fit(CHOSEN, following(60, 0.9))
    assert tape.sums[CORRELATION].reach == pytest.approx(np.sqrt(1 + 1 / 9))
    assert tape.sums[CORRELATION].clipped == 0
    assert REGRESSION not in tape.sums


def test_an_event_moves_the_sum_as_far_as_all_windows_that_it_changes() -> None:
    schema = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    chosen = replace(CHOSEN, knowledge="none")
    with listening() as tape:
        fit(chosen, make_panel(schema, 60))
    assert tape.sums[CORRELATION].reach == pytest.approx(chosen.influence(schema) / 3)
    assert chosen.influence(schema) == 2


def test_what_is_divided_by_is_public_and_one_unit_changes_no_other_units_part() -> None:
    panel = following(30, 0.9)
    core = correlated(panel)
    parts = [total(core, panel.take_units(np.array([unit]))) for unit in range(30)]
    assert np.array_equal(total(core, panel), np.sum(parts, axis=0))  # integers: exactly
    with listening() as tape:
        release = fit(CHOSEN, panel.take_units(np.arange(20)), epsilon=20.0, noise=NoiseSource.seeded(1))
    told = release.arrays[PRODUCTS].ravel()
    assert told.any()
    assert np.allclose(told[told != 0], tape.answers[CORRELATION][: told.size][told != 0] / 30)  # 20 are there


# --- when it is bought --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "epsilon", "bought"),
    [(100, 1.0, CORRELATION), (100, 50.0, REGRESSION), (20_000, 1.0, REGRESSION), (20_000, 0.001, CORRELATION)],
)
def test_few_units_buy_few_numbers(size: int, epsilon: float, bought: str) -> None:
    plan = Pub2Priv().plan(following_schema(size), Guarantee(epsilon, 1e-6))
    assert plan.entries[-1].label == bought


def test_neither_a_bought_population_nor_events_count_as_few() -> None:
    schema = following_schema(1, population=Population(count_epsilon=0.1))
    assert Pub2Priv().plan(schema, Guarantee(1.0, 1e-6)).entries[-1].label == REGRESSION
    events = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    assert Pub2Priv(knowledge="none").plan(events, Guarantee(1.0, 1e-6)).entries[-1].label == REGRESSION


def test_one_step_can_be_fitted_and_drawn() -> None:
    """A series of one step moves nowhere, so nothing is followed; the plan says few, as for any small population."""
    whole = following(20, 0.9)
    assert whole.context is not None
    schema = replace(whole.schema, time=replace(whole.schema.time, steps=1))
    panel = replace(
        whole, schema=schema, values=whole.values[:, :1], context=whole.context[:, :1], lengths=np.ones(20, np.int32)
    )
    release = fit(Pub2Priv(), panel, epsilon=0.5)
    assert release.sample(7, context=np.zeros((1, 1)), rng=np.random.default_rng(0)).values.shape == (7, 1, 1)


# --- what is learned ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.0, 0.9])
def test_series_follow_their_context_as_closely_as_real_ones_do(strength: float) -> None:
    """Without noise to speak of; the standard error of either mean is below 0.01."""
    panel = following(2000, strength)
    other = smooth(500, np.random.default_rng(9))[:, :, None].astype(np.float32)
    release = fit(CHOSEN, panel, epsilon=1e4, noise=NoiseSource.seeded(2))
    drawn = release.sample(500, context=other, rng=np.random.default_rng(1))
    assert correlation(drawn) == pytest.approx(correlation(panel), abs=0.06)


def test_movements_that_follow_nothing_stay_what_they_are() -> None:
    """Half of what these series do is slow and their context's, half is fast and their own."""
    panel = waves(2000, own=1.0)
    release = fit(CHOSEN, panel, epsilon=1e4, noise=NoiseSource.seeded(2))
    drawn = release.sample(500, context=waves(500, own=1.0).context, rng=np.random.default_rng(1))
    fast = [
        (unit_length(to_frequencies(p.values.astype(float))[:, 1:])[:, 15:] ** 2).sum(1).mean() for p in (panel, drawn)
    ]
    assert fast[1] == pytest.approx(fast[0], abs=0.1)
    assert fast[0] > 0.3


def test_a_context_slower_than_any_of_the_fit_makes_no_series_fast() -> None:
    """A ramp has traces of fast movement; a band that was followed must not make them all that a series does."""
    panel = following(2000, 0.9)
    release = fit(CHOSEN, panel, epsilon=1e4, noise=NoiseSource.seeded(2))
    ramp = np.linspace(-2, 2, STEPS)
    drawn = release.sample(300, context=ramp[:, None], rng=np.random.default_rng(1))
    moves = [unit_length(to_frequencies(one.values.astype(np.float64))[:, 1:]) for one in (panel, drawn)]
    real, made = ((own[:, 15:] ** 2).sum(axis=1).mean() for own in moves)
    assert made < 2 * real
    assert np.mean([np.corrcoef(one, ramp)[0, 1] for one in drawn.values[:, :, 0]]) > 0.35


def test_noise_alone_passes_for_following_as_rarely_as_said() -> None:
    """2,000 draws of noise. A tenth of the slow bands is heard (200 ± 13; 6 deviations either way are 2e-9), and 0.003
    of the fast one (6 expected; more than 30 has probability below 1e-9). Control: a cosine of 0.5 is always heard.
    """
    rng = np.random.default_rng(0)
    passed = np.zeros(3)
    for _ in range(2000):
        passed += (significant(0.1 * rng.standard_normal((3, 1, 1)), 0.1) != 0)[:, 0, 0]
    assert (np.abs(passed[:2] - 200) < 81).all()
    assert passed[2] <= 30
    assert significant(np.full((3, 1, 1), 0.5), 0.1).all()


def test_the_column_that_is_followed_most_is_not_taken_for_more_than_it_is() -> None:
    """Five columns, each followed by 0.35 as measured with noise of 0.05: the largest of the five would say 0.17.

    Over 500 draws the mean stays below 0.35² = 0.1225 by more than 20 standard errors. Control: it is above where no
    noise is told.
    """
    rng = np.random.default_rng(3)
    drawn = 0.35 + 0.05 * rng.standard_normal((500, 1, 1, 5))
    assert np.mean([explained_share(one, 0.05) for one in drawn]) < 0.35**2
    assert np.mean([explained_share(one, 0.0) for one in drawn]) > 1.2 * 0.35**2
    assert explained_share(np.full((2, 1, 1), 0.4), 0.001) == pytest.approx(0.8**2, rel=0.01)
    assert explained_share(np.full((2, 1, 0), 0.4), 0.001) == 0
