"""One noisy mean embedding: who moves it by how much, and what its weights do to a public pool."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.pets.recording import tape_of
from tests.unit.synthesizers.pets.stand_in import Counter, use_stand_in
from understudy.data import Panel, PrivacyUnit
from understudy.data import Population as DeclaredPopulation
from understudy.errors import InputError
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.contract.checks import BUDGET, fit
from understudy.synthesizers.contract.panels import make_panel, one_unit_more, plain_schema, rich_schema
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.recipe import Recipe
from understudy.synthesizers.pets.selection import FEATURES, MEAN, Features, maximum_entropy, mean_embedding

METHOD = PETS(selection="mean")


@pytest.fixture(autouse=True)
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return use_stand_in(monkeypatch)


def points(rng: np.random.Generator, number: int, centre: float = 0.0) -> np.ndarray:
    return (centre + rng.standard_normal((number, 3))).astype(np.float32)


def test_every_vector_has_length_one() -> None:
    rng = np.random.default_rng(0)
    embeddings = points(rng, 400)
    vectors = Features.around(embeddings, rng)(10 * embeddings)
    assert vectors.shape == (400, FEATURES)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)


def test_features_are_near_where_embeddings_are_near() -> None:
    """The product of two vectors is a mixture of Gaussian kernels, up to the chance of 300 frequencies."""
    rng = np.random.default_rng(1)
    embeddings = points(rng, 500)
    vectors = Features.around(embeddings, rng)(embeddings)
    apart = np.linalg.norm(embeddings[:, None] - embeddings, axis=2)
    median = np.median(apart[np.triu_indices(500, 1)])
    kernel = np.mean([np.exp(-(apart**2) / (2 * (width * median) ** 2)) for width in (0.5, 1, 2)], axis=0)
    assert np.abs(vectors @ vectors.T - kernel).max() < 0.25
    assert np.abs(vectors @ vectors.T - kernel).mean() < 0.04


def test_one_point_and_equal_points_have_features() -> None:
    rng = np.random.default_rng(2)
    for embeddings in (np.zeros((1, 3), np.float32), np.ones((5, 3), np.float32)):
        assert np.isfinite(Features.around(embeddings, rng)(embeddings)).all()


def test_weights_give_the_pool_the_mean_that_was_asked_for() -> None:
    rng = np.random.default_rng(3)
    pool, wanted = points(rng, 4000), points(rng, 4000, centre=0.5)
    features = Features.around(pool, rng)
    shown = features(pool)
    mean = features(wanted).mean(axis=0, dtype=np.float64)
    weights = maximum_entropy(shown, mean, noise=1e-3)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ pool, wanted.mean(axis=0), atol=0.1)
    assert np.linalg.norm(weights @ shown - mean) < 0.1 * np.linalg.norm(shown.mean(axis=0) - mean)


def test_noise_leaves_the_pool_as_it_is() -> None:
    rng = np.random.default_rng(4)
    pool = points(rng, 1000)
    shown = Features.around(pool, rng)(pool)
    weights = maximum_entropy(shown, shown.mean(axis=0) + rng.standard_normal(FEATURES), noise=100.0)
    np.testing.assert_allclose(weights, 1e-3, rtol=0.05)


def test_no_candidate_stands_for_many() -> None:
    """A mean that a single candidate has would put all weight on it."""
    rng = np.random.default_rng(5)
    pool = points(rng, 1000)
    shown = Features.around(pool, rng)(pool)
    weights = maximum_entropy(shown, shown[0].astype(np.float64), noise=1e-4)
    assert 1 / (weights**2).sum() >= 200
    assert np.linalg.norm(weights @ pool - pool[0]) < 0.7 * np.linalg.norm(pool.mean(axis=0) - pool[0])


@pytest.mark.parametrize("max_series", [1, 3])
def test_one_unit_moves_the_mean_by_at_most_its_bound(max_series: int) -> None:
    panel = make_panel(rich_schema(unit=PrivacyUnit(column="home", max_series=max_series)), 40)
    first = tape_of(panel, METHOD)
    assert first.labels.count(MEAN) == 1
    for neighbour in (panel.take_units(np.arange(1, 40)), one_unit_more(panel)):
        moved = first.distances(tape_of(neighbour, METHOD, frozen=first))
        assert max(moved.values()) <= 1 + 1e-9
        assert moved[MEAN] > (0.9 if max_series == 1 else 0.2)


def test_an_event_moves_the_mean_by_at_most_its_bound() -> None:
    schema = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    panel, method = make_panel(schema, 40), PETS(window_steps=3, selection="mean")
    values = np.array(panel.values)
    values[7, 2:4] = 20.0  # another reading in two consecutive steps, in two windows of three
    first = tape_of(panel, method)
    assert 0 < first.distances(tape_of(panel.with_values(values), method, frozen=first))[MEAN] <= 1


def test_one_more_unit_changes_no_other_units_vector() -> None:
    """To the last bit, also where the number of series is no multiple of a batch."""
    schema, rng = plain_schema(), np.random.default_rng(0)
    panel = make_panel(schema, 300)
    bought = _bought(panel)
    here = PETS(scale="bounds", selection="mean").prepared(schema, bought, 24, rng)
    features = Features.around(here.environment.embed(here.population.series, here.population.static), rng)
    statistic = mean_embedding(here.encoding, here.environment, features)

    def vectors(of: Panel) -> np.ndarray:
        return statistic.contributions(of).vectors

    alone = vectors(panel)
    assert alone.shape == (300, FEATURES)
    np.testing.assert_array_equal(vectors(one_unit_more(panel))[:-1], alone)
    np.testing.assert_array_equal(vectors(panel.take_units(np.arange(1, 300))), alone[1:])


def _bought(panel: Panel) -> dict[str, np.ndarray]:
    release = fit(PETS(scale="bounds", selection="mean"), panel)
    return {name: release.arrays[name] for name in release.arrays if "." not in name and name != "nodes"}


def test_the_released_arrays_are_a_function_of_the_answers_alone() -> None:
    """Other people, same answers: bit by bit the same release."""
    first = tape_of(make_panel(rich_schema(), 50), METHOD, noise=None)
    other = tape_of(make_panel(rich_schema(), 33, seed=8), METHOD, frozen=first)
    assert set(first.arrays) == set(other.arrays)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])


def test_sizes_follow_from_the_declared_population_alone() -> None:
    shapes = [fit(METHOD, make_panel(plain_schema(), number)).arrays["population.group"].shape for number in (1, 250)]
    assert shapes[0] == shapes[1]
    more = fit(METHOD, make_panel(plain_schema(population=DeclaredPopulation(2000)), 250)).arrays
    assert more["population.group"].shape != shapes[0]


def test_the_plan_costs_the_guarantee_and_never_more() -> None:
    plan = METHOD.plan(rich_schema(), BUDGET)
    assert 0.99 * BUDGET.epsilon < plan.epsilon() <= BUDGET.epsilon
    assert plan.executions(MEAN) == 1


def test_the_mean_draws_the_pool_towards_the_private_series_class_by_class() -> None:
    """Without noise: the two classes have different levels, and the pool knows neither."""
    schema = rich_schema(population=DeclaredPopulation(400))
    panel = make_panel(schema, 400)
    low, high = schema.channels[0].bounds
    label = np.asarray(panel.label)
    level = np.where(label == 0, low + 0.2 * (high - low), low + 0.8 * (high - low))
    values = np.array(panel.values)
    values[:, :, 0] = np.where(np.isnan(values[:, :, 0]), np.nan, level[:, None])
    release = fit(
        PETS(scale="bounds", selection="mean"), panel.with_values(values.astype(np.float32)), NoiseSource.constant(0)
    )
    rng = np.random.default_rng(0)  # the means are 8.8 and 11.9; of 200 series they would wander by 0.15
    means = [np.nanmean(release.sample(200, label=own, rng=rng).values[:, :, 0]) for own in ("flat", "night")]
    assert means[0] < low + 0.45 * (high - low) < low + 0.55 * (high - low) < means[1]


def test_the_mean_is_for_public_starts_unless_one_is_asked_for() -> None:
    public = PETS(start="public", public="table.csv")
    assert (public.selection, public.recipe) == ("mean", None)
    assert PETS().selection == "votes"
    assert replace(public, recipe=Recipe(), selection="votes").selection == "votes"
    assert PETS.from_preset("votes", start="public", public="table.csv").recipe is not None
    assert PETS.from_preset("paper").selection == "votes"
    with pytest.raises(InputError, match="selection = 'votes'"):
        PETS(selection="mean", recipe=Recipe())
    with pytest.raises(InputError, match="mean, votes"):
        PETS(selection="both")
    assert replace(METHOD, seed=3).selection == "mean"


def test_the_outlook_says_when_noise_swamps_the_mean() -> None:
    few = METHOD.outlook(plain_schema(population=DeclaredPopulation(30)), BUDGET)[0]
    assert "guided by the public prior only" in few
    assert "prior only" not in METHOD.outlook(plain_schema(population=DeclaredPopulation(50_000)), BUDGET)[0]
