"""The sum of products: who moves it by how much, what it teaches, and how long series hold their values."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.synthesizers.pub2priv.panels import STEPS, correlation, fit, following, following_schema, smooth
from tests.unit.synthesizers.spectral.recording import listening
from understudy.data import Panel, PrivacyUnit
from understudy.errors import InputError
from understudy.privacy.border import lattice_step
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Cells, SideBySide
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.gaps import LENGTH_EDGES
from understudy.statistics.series import to_frequencies, triangle
from understudy.synthesizers import Release
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema
from understudy.synthesizers.pub2priv import Pub2Priv
from understudy.synthesizers.pub2priv.context import FeatureMap
from understudy.synthesizers.pub2priv.estimators import (
    NUM_RUN_CELLS,
    PRODUCTS,
    REGRESSION,
    ContextRegression,
    Layout,
    fit_moments,
    run_length_cells,
    shape_bound,
)
from understudy.synthesizers.pub2priv.recipe import Recipe

CHOSEN = Pub2Priv(recipe=Recipe(model="regression"))
ROUNDED = 1 + 1e-9  # no bound rests on lengths: the border clips


def regression(panel: Panel) -> ContextRegression:
    release = fit(CHOSEN, panel, noise=NoiseSource.seeded(1))
    return estimator_of(CHOSEN, release)


def estimator_of(method: Pub2Priv, release: Release) -> ContextRegression:
    return ContextRegression(method.context(release.schema), release.arrays)


def extreme(size: int) -> Panel:
    """Units of one to three series; some at a bound, some wild, some at rest, with contexts just as odd."""
    panel, rng = following(size, 0.9), np.random.default_rng(3)
    rows = np.concatenate([np.full(1 + unit % 3, unit) for unit in range(size)])
    values, context = np.array(panel.values[rows]), np.array(panel.context[rows])  # type: ignore[index]
    values[0:3], values[3] = 6.0, -6.0
    values[4:7] = np.where(rng.random(values[4:7].shape) < 0.5, -6.0, 6.0)
    values[8, : STEPS // 2], values[9] = 6.0, 0.25
    context[0:3], context[4:7] = 6.0, np.where(rng.random(context[4:7].shape) < 0.5, -6.0, 6.0)
    schema = replace(panel.schema, unit=replace(panel.schema.unit, max_series=3))
    return replace(
        panel, schema=schema, values=values, lengths=panel.lengths[rows], unit=rows.astype(np.int64),
        static=panel.static[rows], context=context,
    )  # fmt: skip


def total(core: ContextRegression, panel: Panel, mapped: FeatureMap) -> np.ndarray:
    """The sum that the border makes."""
    statistic = core.statistic(mapped)
    step = lattice_step(statistic.bound, 0.0)
    return PrivateSeries.of(panel, panel.num_units).total(statistic, step) * step


# --- who moves what by how much -----------------------------------------------------------------------------------


@pytest.mark.parametrize("public", [False, True], ids=["variances are bought", "public windows"])
def test_one_unit_moves_the_sum_by_at_most_its_bound(public: bool) -> None:
    """With odd series and windows that make every clip bite. Controls: the bound is nearly met, twice is beyond."""
    panel = extreme(12)
    core = regression(panel)
    narrow = smooth(50, np.random.default_rng(4))[:, :, None] / 3
    mapped = core.feature_map(narrow if public else None)
    bound, moved = core.statistic(mapped).bound, []
    whole = total(core, panel, mapped)
    for unit in range(12):
        less = panel.take_units(np.delete(np.arange(12), unit))
        moved.append(np.linalg.norm(whole - total(core, less, mapped)))
    assert max(moved) <= bound * ROUNDED
    assert max(moved) > 0.6 * bound
    assert np.linalg.norm(2 * whole - whole) > bound


def test_no_series_is_longer_than_the_reach_of_its_parts() -> None:
    panel = extreme(12)
    core = regression(panel)
    shapes = core.shapes(panel, np.zeros(panel.num_series, dtype=np.int64))
    assert np.linalg.norm(shapes, axis=1).max() <= shape_bound(panel.schema.num_channels) * ROUNDED
    features = core.context.features(panel.context, panel.num_series, core.frequencies)
    assert np.linalg.norm(features, axis=1).max() <= core.context.feature_bound * ROUNDED
    narrow = core.feature_map(smooth(50, np.random.default_rng(4))[:, :, None] / 3)
    assert np.linalg.norm(narrow.of(features), axis=1).max() <= narrow.bound * ROUNDED
    assert np.linalg.norm((features - narrow.centre) @ narrow.turn, axis=1).max() > narrow.clip  # the clip bites


def test_what_crosses_the_border_is_bounded_as_the_layout_says() -> None:
    with listening() as tape:
        release = fit(CHOSEN, following(60, 0.9))
    core = estimator_of(CHOSEN, release)
    layout = Layout.of(core.context, core.feature_map(None))
    assert tape.sums[REGRESSION].reach == pytest.approx(layout.bound)
    expected = np.hypot(
        layout.vote_weight,
        np.sqrt(
            0.75 * 0.25 * (layout.shape_bound**4 + layout.context_bound**4)
            + layout.shape_bound**2 * layout.context_bound**2
        ),
    )
    assert layout.bound == pytest.approx(expected * np.sqrt(1 + 1 / 9))  # with the products of the correlation
    assert tape.sums[REGRESSION].clipped == 0


def test_what_context_looks_like_is_told_by_public_windows_only() -> None:
    """Without any, the map of context is the identity, whatever the private contexts are."""
    arrays = fit(CHOSEN, following(60, 0.9)).arrays
    assert arrays["map.products"].size == 0
    assert not arrays["map.centre"].any()
    assert np.array_equal(arrays["map.turn"], np.eye(len(arrays["map.turn"])))


def test_an_event_moves_the_sum_as_far_as_all_windows_that_it_changes() -> None:
    schema = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    chosen, guarantee = Pub2Priv(knowledge="none"), Guarantee(2.0, 1e-7)
    with listening() as tape:
        release = chosen.fit(make_panel(schema, 60), Ledger.in_memory(guarantee), guarantee=guarantee)
    core = estimator_of(chosen, release)
    assert tape.sums[REGRESSION].reach == core.statistic(core.feature_map(None)).bound * chosen.influence(schema)
    assert chosen.influence(schema) == 2


def test_rows_follow_from_their_own_series_alone() -> None:
    panel = following(30, 0.9)
    core, classes = regression(panel), np.zeros(30, dtype=np.int64)
    fewer = panel.take_units(np.arange(29))
    for of in (
        lambda one: core.shapes(one, classes[: one.num_series]),
        lambda one: core.context.features(one.context, one.num_series, core.frequencies),
        run_length_cells,
    ):
        assert np.allclose(of(panel)[:29], of(fewer), atol=1e-12)


# --- what is learned ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bought", [True, False])
def test_a_regression_without_noise_is_found(bought: bool) -> None:
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((20_000, 3)) * [1.0, 0.5, 0.2]
    gain = rng.standard_normal((3, 5))
    shapes = contexts @ gain + rng.standard_normal((20_000, 5))
    layout = Layout(num_shape=5, num_context=3, shape_bound=9.0, context_bound=5.0, context_known=not bought)
    votes = replace(Cells.one_each(np.full((20_000, 1), 4), NUM_RUN_CELLS), worth=layout.vote_weight)
    parts = layout.contributions(shapes, contexts, votes)
    sums = SideBySide(parts).weighted_sum(np.ones(20_000), 2.0**-30) * 2.0**-30
    found = fit_moments(sums, 1e-6, 20_000, layout, np.zeros((0, 0)) if bought else np.diag([1.0, 0.25, 0.04]))
    assert np.allclose(found.gain, gain, atol=0.15)
    assert np.allclose(found.rest @ found.rest.T, np.eye(5), atol=0.15)
    assert found.runs.argmax() == 4


def test_the_simpler_way_is_taken_where_it_explains_enough_and_only_there() -> None:
    """Series that are their context, and series that are their context turned around in time, which no band can say."""
    panel = following(4000, 0.9)
    assert panel.context is not None
    late = replace(panel, context=panel.context[:, ::-1])
    simple, other = (fit(CHOSEN, one, epsilon=1e3, noise=NoiseSource.seeded(2)) for one in (panel, late))
    assert simple.arrays[PRODUCTS].any()
    assert not other.arrays[PRODUCTS].any()
    context = smooth(300, np.random.default_rng(9))[:, :, None].astype(np.float32)
    assert correlation(simple.sample(300, context=context, rng=np.random.default_rng(1))) > 0.8
    drawn = other.sample(300, context=context, rng=np.random.default_rng(1))
    assert correlation(replace(drawn, context=context[:, ::-1])) > 0.6


def test_what_shapes_have_in_common_is_learned_without_any_context() -> None:
    """All series rise. Without an intercept half of the synthetic ones would fall."""
    panel = following(400, 0.0)
    rising = panel.with_values((0.3 * panel.values + np.linspace(-3, 3, STEPS)[:, None]).astype(np.float32))
    drawn = fit(Pub2Priv(knowledge="none"), rising, epsilon=8.0).sample(200, rng=np.random.default_rng(1))
    assert ((drawn.values[:, -6:].mean((1, 2)) - drawn.values[:, :6].mean((1, 2))) > 0).mean() > 0.95


def test_noise_alone_teaches_nothing() -> None:
    """Only noise, twenty times: what is left of the regression is less than a tenth of what noise put there."""
    layout = Layout(num_shape=16, num_context=12, shape_bound=2.2, context_bound=3.0, context_known=True)
    kept = []
    for seed in range(20):
        noisy = np.random.default_rng(seed).standard_normal(sum(layout.sizes))
        kept.append(np.linalg.norm(fit_moments(noisy, 1.0, 10.0, layout, np.eye(12)).gain))
    assert np.mean(kept) < 0.5 * np.sqrt(16 * 12 / 2) / 10


def test_a_response_is_left_as_it_was_measured_or_left_out() -> None:
    """Noise of a tenth of the first response hides the second, which is a hundredth of it."""
    layout = Layout(num_shape=16, num_context=2, shape_bound=1.0, context_bound=2.0, context_known=True)
    loud, quiet = np.full(16, 0.2), np.full(16, 0.002)
    own, crossed = np.eye(16) / 8, np.stack([loud, quiet], axis=1)
    vector = np.concatenate([0.5 * triangle(own[None])[0], crossed.ravel(), np.zeros(NUM_RUN_CELLS)])
    found = fit_moments(vector, 0.02, 1.0, layout, np.eye(2))
    kept = np.linalg.norm(found.gain, axis=1)
    assert sorted(kept) == pytest.approx([0.0, 0.8])
    louder = fit_moments(vector, 0.2, 1.0, layout, np.eye(2))
    assert not louder.gain.any()


def test_noise_does_not_change_how_long_shapes_are() -> None:
    """Squares of shapes have a known sum; without it noise of this size leaves them far too long."""
    layout = Layout(num_shape=8, num_context=1, shape_bound=1.0, context_bound=1.0, context_known=True)
    noisy = np.random.default_rng(0).standard_normal(sum(layout.sizes))
    whole, guessed = (fit_moments(noisy, 1.0, 2.0, layout, np.eye(1), parts) for parts in ([(np.arange(8), 1.0)], []))
    lengths = [np.trace(one.rest @ one.rest.T) + (one.gain**2).sum() for one in (whole, guessed)]
    assert lengths[0] == pytest.approx(1.0)
    assert lengths[1] > 2


def test_shapes_say_how_series_move_and_not_how_much() -> None:
    panel = following(60, 0.9)
    core, rng = regression(panel), np.random.default_rng(2)
    scores = rng.standard_normal((5, STEPS, panel.schema.num_channels)).cumsum(axis=1)
    shapes = rng.standard_normal((5, len(core.frequencies) + 1))
    places = 1 + core.frequencies
    before, after = (to_frequencies(one)[:, places, 0] for one in (scores, core.with_directions(shapes, scores)))
    assert np.allclose(np.linalg.norm(after, axis=1), np.linalg.norm(before, axis=1))
    wanted = shapes.reshape(5, -1, panel.schema.num_channels)[:, 1:, 0]
    cosines = (after * wanted).sum(axis=1) / np.linalg.norm(after, axis=1) / np.linalg.norm(wanted, axis=1)
    assert np.allclose(cosines, 1)
    assert np.allclose(core.with_directions(shapes, scores).mean(axis=1), scores.mean(axis=1))


def test_public_windows_tell_which_directions_differ() -> None:
    rng = np.random.default_rng(0)
    windows = rng.standard_normal((500, 2)) @ rng.standard_normal((2, 6))
    found = FeatureMap.of_public(windows)
    assert found.turn.shape == (6, 2)
    mapped = found.of(windows)
    assert np.allclose(mapped.T @ mapped / 500, found.products)
    assert (mapped[:, 0] == 1).all()
    assert (np.linalg.norm(mapped, axis=1) >= 0.99 * found.bound).any()  # also where the clip bites
    again = FeatureMap.from_arrays(found.to_arrays())
    assert np.array_equal(again.of(windows), found.of(windows))


def test_public_context_is_named_in_the_certificate_and_travels_with_the_release(tmp_path: Path) -> None:
    file = tmp_path / "signal.npy"
    np.save(file, smooth(80, np.random.default_rng(5))[:, :, None])
    panel = following(400, 0.9)
    release = fit(replace(CHOSEN, public_context=str(file)), panel, epsilon=8.0, noise=NoiseSource.seeded(2))
    file.unlink()
    assert "pub2priv public context" in release.certificate.public_inputs
    other = smooth(300, np.random.default_rng(9))[:, :, None].astype(np.float32)
    assert correlation(release.sample(300, context=other, rng=np.random.default_rng(1))) > 0.5


def test_public_context_of_other_columns_or_too_short_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    for shape in ((STEPS, 2), (STEPS - 1, 1)):
        np.save(tmp_path / "signal.npy", np.zeros(shape))
        with pytest.raises(InputError, match="public_context: 1 columns of numbers over at least"):
            replace(CHOSEN, public_context=str(tmp_path / "signal.npy")).plan(
                following_schema(100), Guarantee(1.0, 1e-6)
            )


@pytest.mark.parametrize("model", ["regression", "correlation", "diffusion"])
def test_public_context_that_never_moves_is_refused_before_anything_is_spent(tmp_path: Path, model: str) -> None:
    np.save(tmp_path / "signal.npy", np.full((2 * STEPS, 1), 0.5))
    method = replace(CHOSEN, recipe=Recipe(model=model), public_context=str(tmp_path / "signal.npy"))
    with pytest.raises(InputError, match="public_context: at least one channel that moves"):
        method.plan(following_schema(100), Guarantee(1.0, 1e-6))


# --- values that are held -----------------------------------------------------------------------------------------


def held(size: int, length: int) -> Panel:
    """Series that keep each value for `length` steps."""
    panel = following(size, 0.5)
    return panel.with_values(panel.values[:, np.arange(STEPS) // length * length])


def repeats(panel: Panel) -> float:
    return float((np.diff(panel.values, axis=1) == 0).mean())


@pytest.mark.parametrize("length", [1, 4])
def test_series_hold_their_values_as_long_as_real_ones_do(length: int) -> None:
    panel = held(400, length)
    context = smooth(200, np.random.default_rng(9))[:, :, None].astype(np.float32)
    drawn = fit(CHOSEN, panel, epsilon=8.0).sample(200, context=context, rng=np.random.default_rng(1))
    assert abs(repeats(drawn) - repeats(panel)) < 0.08


def test_a_series_at_rest_at_a_bound_or_with_gaps_holds_nothing() -> None:
    panel = following(4, 0.5)
    values = np.array(panel.values)
    values[0], values[1, ::2], values[2, :, 0] = 6.0, np.nan, np.repeat(np.arange(6.0), 4)
    cells = run_length_cells(panel.with_values(values))
    assert LENGTH_EDGES[cells].tolist() == [1, 1, 4, 1]


def test_whole_numbers_and_codes_are_not_held() -> None:
    panel = make_panel(rich_schema(constraints=()), 30)
    assert (LENGTH_EDGES[run_length_cells(panel)] == 1).all()
