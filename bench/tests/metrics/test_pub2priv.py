"""The metrics of Pub2Priv on known answers, each with something it must notice."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm
from understudy_bench.metrics.pub2priv import METRICS
from understudy_bench.metrics.pub2priv.context import correlations
from understudy_bench.metrics.pub2priv.neighbours import identifiability_adsgan, identifiability_syn
from understudy_bench.metrics.pub2priv.recurrent import (
    classifier_probabilities,
    discriminative_score,
    forecast_error,
    predictive_error,
)

from tests.unit.evaluation.labels import labelled
from tests.unit.evaluation.odd import LEAST, ODD, odd_comparison, outcome
from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Continuous, Panel
from understudy.data.panel import broadcast_context
from understudy.evaluation.metric import Undefined
from understudy.evaluation.panels import Comparison

BY_NAME = {metric.name.removeprefix("pub2priv."): metric for metric in METRICS}
CHEAP = ("ks_returns", "ks_autocorrelation")


def compare(real: Panel, candidate: Panel, reference: Panel | None = None) -> Comparison:
    reference = candidate if reference is None else reference
    return Comparison(real=real, candidate=candidate, reference=reference, unseen=reference)


def measured(name: str, comparison: Comparison, **effort):
    return BY_NAME[name].measure(comparison, replace(LEAST, **effort), 0)


def test_forecasts_are_of_all_channels_and_as_good_as_what_was_learned_from() -> None:
    """Waves foretell themselves. Control: a network that learned from shuffled steps errs as the mean does."""
    rng, step = np.random.default_rng(0), np.arange(24)
    phase = rng.uniform(0, 2 * np.pi, (200, 1))
    series = np.stack([np.sin(step / 3 + phase), np.cos(step / 2 + phase)], axis=2) / 2 + 0.5
    train, test = series[:150].astype(np.float32), series[150:].astype(np.float32)
    good = forecast_error(train, test, epochs=60, seed=0, hidden=16)
    bad = forecast_error(rng.permuted(train, axis=1), test, epochs=60, seed=0, hidden=16)
    assert good < 0.02 < 0.1 < bad
    one_lost = np.array(test)
    one_lost[:, :, 0] = rng.random(one_lost.shape[:2])  # what it forecasts of one channel counts as much
    assert forecast_error(train, one_lost, epochs=60, seed=0, hidden=16) > 0.03


@pytest.mark.parametrize("name", CHEAP)
def test_series_are_at_no_distance_from_themselves(name: str) -> None:
    assert measured(name, compare(waves(40), waves(40))).value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", CHEAP)
def test_other_series_of_the_kind_are_near_and_shuffled_ones_far(name: str) -> None:
    shuffled = np.random.default_rng(0).permuted(waves(200, seed=1).values, axis=1)
    assert measured(name, compare(waves(200), waves(200, seed=1))).value < 0.12
    assert measured(name, compare(waves(200), panel_of(shuffled))).value > 0.2


def test_returns_of_two_normal_walks_are_as_far_apart_as_their_distributions() -> None:
    # Greatest difference of Φ(x) and Φ(x/2), at x² = 8 ln 2 / 3. Each of the two distribution functions, of 60,000
    # returns, is off by more than 0.014 with a probability below 1.3e-10 (Dvoretzky–Kiefer–Wolfowitz).
    place = np.sqrt(8 * np.log(2) / 3)
    expected = norm.cdf(place) - norm.cdf(place / 2)
    rng = np.random.default_rng(0)
    walks = [0.5 + scale * rng.standard_normal((2_000, 31, 1)).cumsum(axis=1) for scale in (1e-3, 2e-3, 1.5e-3)]
    real, twice, less = (panel_of(walk) for walk in walks)
    assert measured("ks_returns", compare(real, twice)).value == pytest.approx(expected, abs=0.028)
    assert measured("ks_returns", compare(real, less)).value < expected - 0.028


def test_lags_reach_a_quarter_of_the_steps_and_thirty_at_most() -> None:
    for steps, lags in ((24, 6), (400, 30)):
        found = measured("ks_autocorrelation", compare(waves(30, steps=steps), waves(30, seed=1, steps=steps)))
        assert list(found.parts) == [f"lag {lag}" for lag in range(1, lags + 1)]


# --- public context -------------------------------------------------------------------------------------------------


def with_context(values: np.ndarray, context: np.ndarray) -> Panel:
    panel = panel_of(values)
    channels = tuple(Continuous(f"public{place}", -10.0, 10.0) for place in range(context.shape[-1]))
    schema = replace(panel.schema, context=channels, time=replace(panel.schema.time, align="relative"))
    if context.ndim == 2:
        context = broadcast_context(context, len(values))
    return replace(panel, schema=schema, context=context.astype(np.float32) if context.strides[0] else context)


def test_correlations_are_those_of_numpy_and_zero_at_rest() -> None:
    rng = np.random.default_rng(0)
    series, context = rng.normal(size=(5, 9, 2)), rng.normal(size=(5, 9, 3))
    series[0, :, 0], series[1, 3:5, 0] = 0.7, np.nan
    found = correlations(series, context)
    assert found[0, 0, 0] == 0
    kept = [0, 1, 2, 5, 6, 7, 8]
    assert found[1, 0, 2] == pytest.approx(np.corrcoef(series[1, kept, 0], context[1, kept, 2])[0, 1])
    assert found[4, 1, 1] == pytest.approx(np.corrcoef(series[4, :, 1], context[4, :, 1])[0, 1])


def test_each_series_meets_the_real_one_of_its_own_context() -> None:
    rng = np.random.default_rng(1)
    context = rng.normal(size=(40, 12, 1))
    real = with_context(0.5 + 0.1 * rng.normal(size=(40, 12, 1)), context)
    order = rng.permutation(40)
    same = with_context(real.values[order], context[order])
    against = with_context(1 - real.values[order], context[order])
    found = measured("corr_meta", compare(real, same))
    assert found.value == pytest.approx(0.0, abs=1e-6)
    assert "100 %" in found.notes[0]
    expected = 2 * np.abs(correlations(real.values, context)).mean()
    assert measured("corr_meta", compare(real, against)).value == pytest.approx(expected, rel=1e-4)


def test_a_new_context_meets_the_nearest_one_and_the_note_says_so() -> None:
    rng = np.random.default_rng(2)
    context = rng.normal(size=(40, 12, 1))
    real = with_context(0.5 + 0.1 * rng.normal(size=(40, 12, 1)), context)
    moved = with_context(real.values, context + 1e-3)
    found = measured("corr_meta", compare(real, moved))
    assert found.value == pytest.approx(0.0, abs=1e-4)
    assert "0 %" in found.notes[0]


def test_one_context_for_all_pairs_series_at_random() -> None:
    rng = np.random.default_rng(3)
    context = rng.normal(size=(12, 1))
    following = 0.5 + 0.1 * np.broadcast_to(context, (60, 12, 1)) + 1e-3 * rng.normal(size=(60, 12, 1))
    real = with_context(following, context)
    assert measured("corr_meta", compare(real, real)).value < 0.01
    noise = with_context(0.5 + 0.1 * rng.normal(size=(60, 12, 1)), context)
    assert measured("corr_meta", compare(real, noise)).value > 0.6


def test_a_context_at_rest_says_nothing() -> None:
    real = with_context(waves(30, steps=12, channels=1).values, np.ones((12, 1)))
    with pytest.raises(Undefined, match="never moves"):
        measured("corr_meta", compare(real, real))


# --- recurrent networks ---------------------------------------------------------------------------------------------


def halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values[: len(values) // 2], values[len(values) // 2 :]


def test_series_of_one_kind_can_not_be_told_apart_and_constants_can() -> None:
    first, second = waves(300, seed=1).values, waves(300, seed=2).values
    still = np.zeros_like(second)
    scores = [
        discriminative_score(*zip(halves(first), halves(other), strict=True), iterations=80, seed=0)
        for other in (second, still)
    ]
    # 300 tested: chance alone gives more than 0.12 with probability 3e-5, and the seed is fixed.
    assert scores[0] < 0.12
    assert scores[1] >= 0.45


def test_unequal_sets_are_made_equal_so_that_guessing_the_larger_one_gains_nothing() -> None:
    found = measured("discriminative", compare(waves(300), waves(60, seed=1)), iteration_cap=1)
    assert found.value < 0.45
    assert "cut at random" in found.notes[0]
    assert len(measured("discriminative", compare(waves(40), waves(30, seed=1)), repeats=2).replicates) == 2


def echoes(num_series: int, seed: int) -> np.ndarray:
    """The last channel repeats the first one step later: all that is to be learned."""
    first = np.random.default_rng(seed).uniform(0.1, 0.9, (num_series, 12))
    return np.stack([first, np.concatenate([first[:, :1], first[:, :-1]], axis=1)], axis=2)


def test_the_next_step_is_learned_from_echoes_and_not_from_strangers() -> None:
    train, real = echoes(300, 1), echoes(200, 2)
    strangers = np.stack([train[:, :, 0], np.roll(train[:, :, 1], 1, axis=0)], axis=2)
    taught, misled = (predictive_error(series, real, target=1, iterations=600, seed=0) for series in (train, strangers))
    assert taught < 0.3 * real[:, 1:, 1].var()
    assert misled > 0.95 * real[:, 1:, 1].var()


def test_the_error_is_absolute_where_timegan_asks_for_it() -> None:
    still = np.full((40, 6, 1), 0.5)
    squared, absolute = (
        predictive_error(still, still + 0.2, target=0, iterations=1, seed=0, mode=mode) for mode in ("mse", "mae")
    )
    assert squared == pytest.approx(absolute**2, rel=0.05)
    assert absolute > 0.05


def test_the_figure_stands_beside_persistence() -> None:
    comparison = compare(panel_of(echoes(60, 1)), panel_of(echoes(50, 2)))
    unit = comparison.unit(comparison.real)[:, :, 1].astype(np.float64)
    found = measured("predictive", comparison)
    assert found.parts["persistence MSE"] == pytest.approx((np.diff(unit, axis=1) ** 2).mean(), rel=1e-5)


def test_a_label_is_learned_from_labelled_series_and_not_from_shuffled_labels() -> None:
    reference = labelled(300, 3)
    right, wrong = (
        measured("classification", compare(reference, candidate, reference), iteration_cap=120)
        for candidate in (labelled(200, 1), labelled(200, 1, shuffled=True))
    )
    assert right.value > 0.97
    assert right.parts["AUROC"] > 0.97
    assert wrong.value < 0.75
    assert right.parts["always the commonest label"] == pytest.approx(np.bincount(reference.label).max() / 300)


def test_probabilities_add_up_and_are_the_same_for_the_same_seed() -> None:
    panel = labelled(60, 1)
    twice = [
        classifier_probabilities(panel.values, panel.label, panel.values, num_classes=2, iterations=3, seed=5)
        for _ in range(2)
    ]
    np.testing.assert_allclose(twice[0].sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(*twice)


# --- nearest neighbours ---------------------------------------------------------------------------------------------


def _by_hand(queries: np.ndarray, base: np.ndarray) -> np.ndarray:
    own = cdist(queries, queries)
    np.fill_diagonal(own, np.inf)
    return cdist(queries, base).min(axis=1) < own.min(axis=1)


def test_neighbours_are_those_found_by_hand_from_either_side() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = rng.random((80, 5)).astype(np.float32), rng.random((80, 5)).astype(np.float32)
    np.testing.assert_array_equal(identifiability_syn(real, synthetic), _by_hand(synthetic, real))
    np.testing.assert_array_equal(identifiability_adsgan(real, synthetic, "none"), _by_hand(real, synthetic))


def test_copies_give_one_far_away_series_zero_and_independent_ones_a_half() -> None:
    real, other = waves(400).values.reshape(400, -1), waves(400, seed=1).values.reshape(400, -1)
    for ratio in (identifiability_syn, identifiability_adsgan):
        assert ratio(real, real).mean() == 1
        assert ratio(real, other + 9).mean() == 0
        # The share of 400 dependent choices has a standard deviation below 0.05; the seed is fixed.
        assert ratio(real, other).mean() == pytest.approx(0.5, abs=0.15)


def test_features_are_divided_by_the_entropy_of_their_rounded_values() -> None:
    rng = np.random.default_rng(1)
    real = np.stack([np.tile([0.1, 0.9], 50), np.tile([0.2, 0.4, 0.6, 0.8], 25), np.full(100, 0.5)], axis=1)
    real = (real + rng.uniform(-0.004, 0.004, real.shape)).astype(np.float32)
    other = (real + 0.002 * rng.standard_normal(real.shape)).astype(np.float32)
    spread = np.array([np.log(2), np.log(4), 1.0])  # the last one has no entropy and stays as it is
    weighted = identifiability_adsgan(real, other)
    np.testing.assert_array_equal(weighted, _by_hand(real / spread, other / spread))
    assert 0 < weighted.sum() < 100
    assert (weighted != _by_hand(real, other)).any()


@pytest.mark.parametrize("name", ["identifiability", "identifiability_adsgan"])
def test_the_ratio_compares_equally_many_series_and_shows_its_baseline(name: str) -> None:
    found = measured(name, compare(waves(400), waves(150, seed=1)))
    assert found.value == pytest.approx(0.5, abs=0.2)
    assert found.parts["independent draws of one kind"] == 0.5
    assert "150 real and 150 other" in found.notes[0]
    assert BY_NAME[name].direction == "near"


# --- odd series -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ODD)
def test_odd_series_give_a_figure_or_a_reason(name: str) -> None:
    comparison = odd_comparison(name)
    found = {key: outcome(metric, comparison) for key, metric in BY_NAME.items()}
    if name == "every kind of column, lengths, context, label":
        assert not [key for key, figure in found.items() if isinstance(figure, str)]
    if name == "categories only":
        assert "no channel holds numbers" in str(found["ks_returns"])
        assert not isinstance(found["identifiability"], str)
    if name == "plain":
        assert "no public context" in str(found["corr_meta"])
        assert "no label" in str(found["classification"])


def test_only_trained_metrics_say_that_they_train() -> None:
    trained = {metric.name for metric in METRICS if metric.trained}
    assert trained == {f"pub2priv.{name}" for name in ("discriminative", "predictive", "forecast", "classification")}
