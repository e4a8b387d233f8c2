"""The metrics of PPEM on known answers, each with something it must notice."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score, roc_auc_score
from understudy_bench.metrics.ppem import METRICS
from understudy_bench.metrics.ppem.attributes import attribute_densities, dimension_probabilities
from understudy_bench.metrics.ppem.mixture import Mixture, series_density
from understudy_bench.metrics.ppem.models import area_under_curve, determination

from tests.unit.evaluation.labels import labelled
from tests.unit.evaluation.odd import LEAST, ODD, odd_comparison, outcome
from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Categorical, Panel
from understudy.evaluation.metric import Measured, Undefined
from understudy.evaluation.panels import Comparison
from understudy.synthesizers.contract.panels import make_panel, rich_schema

BY_NAME = {metric.name.removeprefix("ppem."): metric for metric in METRICS}


def compare(real: Panel, candidate: Panel, reference: Panel | None = None) -> Comparison:
    reference = candidate if reference is None else reference
    return Comparison(real=real, candidate=candidate, reference=reference, unseen=reference)


def measured(name: str, *panels: Panel, **effort) -> Measured:
    return BY_NAME[name].measure(compare(*panels), replace(LEAST, **effort), 0)


@pytest.mark.parametrize("odd", ODD)
def test_odd_panels_give_a_figure_or_a_reason(odd: str) -> None:
    comparison = odd_comparison(odd)
    for metric in METRICS:
        outcome(metric, comparison)


def test_the_score_of_a_mixture_is_the_slope_of_its_log_density() -> None:
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((3, 2, 2))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(2)
    mixture = Mixture(
        weights=np.array([0.5, 0.3, 0.2]), means=rng.standard_normal((3, 2)), precisions=np.linalg.inv(covariances)
    )

    def log_density(point: np.ndarray) -> float:
        parts = zip(mixture.weights, mixture.means, covariances, strict=True)
        return float(np.log(sum(w * multivariate_normal(m, c).pdf(point) for w, m, c in parts)))

    for point in rng.standard_normal((5, 2)):
        slope = [(log_density(point + step) - log_density(point - step)) / 2e-5 for step in 1e-5 * np.eye(2)]
        np.testing.assert_allclose(mixture.score(point[None])[0], slope, rtol=1e-5)


def test_real_series_are_standardised_points_of_their_density() -> None:
    real = waves(400)
    points = series_density(real).points(real)
    assert points.shape == (400, 5)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.cov(points.T), np.eye(5), atol=1e-3)


@pytest.mark.parametrize("name", ["mmd", "ksd", "ksd_linear", "ksd_normalised"])
def test_other_series_are_further_away_than_more_of_the_same(name: str) -> None:
    real = waves(400)
    same, other = waves(300, seed=1), panel_of(waves(300, seed=2).values * 0.3 + 0.7)
    near, far = (measured(name, real, candidate, replicates=20) for candidate in (same, other))
    assert far.value > 5 * max(near.value, 0.01)
    assert far.parts["p-value"] < 0.01
    assert near.replicates is not None
    assert near.replicates.std() > 0


def test_the_mean_discrepancy_of_the_same_series_is_not_significant() -> None:
    found = [measured("mmd", waves(150, seed=2 * seed), waves(150, seed=2 * seed + 1)) for seed in range(12)]
    # Twelve even p-values all above 0.3 happen once in 70, all below it once in two million.
    assert max(one.parts["p-value"] for one in found) > 0.3
    assert abs(np.mean([one.parts["squared, unbiased"] for one in found])) < 0.002


def test_areas_under_the_curve_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth, score = rng.random(50) < 0.4, rng.random(50)
    assert area_under_curve(truth, score) == roc_auc_score(truth, score)
    assert area_under_curve(np.ones(5, dtype=bool), score[:5]) == 0.5
    assert determination(np.arange(5.0), np.arange(5.0)) == 1.0


def test_labels_are_learned_from_the_candidate() -> None:
    real, reference = labelled(200, 0), labelled(200, 2)
    right, shuffled = (measured("auroc", real, labelled(200, 1, shuffled=mixed), reference) for mixed in (False, True))
    turned = labelled(200, 1)
    wrong = measured("auroc", real, replace(turned, static=1 - turned.static), reference)
    assert right.value > 0.99
    assert abs(shuffled.value - 0.5) < 0.4  # a random direction: anything but knowledge
    assert wrong.value < 0.01
    assert set(right.parts) == {"direction is down", "direction is up"}
    one = measured("auroc", real, replace(turned, static=np.zeros_like(turned.static)), reference)
    assert one.value == 0.5


def switches(num_series: int, seed: int, *, follows: bool = True) -> Panel:
    """A channel of three states and a number that is higher in the third."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 3, (num_series, 6))
    level = 0.3 + 0.4 * ((state if follows else rng.permuted(state)) == 2) + 0.05 * rng.standard_normal(state.shape)
    channels = (Categorical("state", ("a", "b", "c")), *panel_of(np.zeros((1, 1, 1))).schema.channels)
    return panel_of(np.stack([state, level], axis=2), channels=channels)


def test_categories_are_predicted_from_the_other_channels() -> None:
    real, reference = switches(80, 0), switches(80, 2)
    found = measured("auroc", real, switches(80, 1), reference)
    assert found.parts["state is c"] > 0.99
    assert abs(found.parts["state is a"] - 0.75) < 0.06  # known not to be c, no more
    broken = measured("auroc", real, switches(80, 1, follows=False), reference)
    assert broken.parts["state is c"] < found.parts["state is c"]


def linked(num_series: int, seed: int, slope: float) -> Panel:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num_series, 10))
    y = slope * x + rng.standard_normal(x.shape)
    return panel_of(np.stack([x, y], axis=2))


def test_regressions_are_those_of_scikit_learn() -> None:
    real, candidate, reference = (linked(100, seed, 1.5) for seed in range(3))
    (x, y), (tested, truth) = (panel.values.reshape(-1, 2).astype(float).T for panel in (candidate, reference))
    predicted = LinearRegression().fit(x[:, None], y).predict(tested[:, None])
    found = measured("regression_r2", real, candidate, reference)
    assert found.parts["wave1"] == pytest.approx(r2_score(truth, predicted), abs=1e-4)
    error = measured("regression_mse", real, candidate, reference)
    spread = real.values[:, :, 1].std()
    assert error.parts["wave1"] == pytest.approx(((truth - predicted) ** 2).mean() / spread**2, rel=1e-3)


def test_a_wrong_slope_is_worse_than_none() -> None:
    real, reference = linked(100, 0, 1.5), linked(100, 2, 1.5)
    assert measured("regression_r2", real, linked(100, 1, 1.5), reference).value == pytest.approx(
        1.5**2 / (1 + 1.5**2), abs=0.05
    )
    assert measured("regression_r2", real, linked(100, 1, -1.5), reference).value < -0.5
    with pytest.raises(Undefined, match="forecast_skill"):
        measured("regression_r2", waves(30, channels=1), waves(30, channels=1))


def test_probabilities_of_categories_are_counted() -> None:
    real, candidate = make_panel(rich_schema(), 60), make_panel(rich_schema(), 60, seed=9)
    found = dimension_probabilities(compare(real, candidate))
    seen = real.values[:, :, 3][~np.isnan(real.values[:, :, 3])]
    assert found["state is on"][0] == pytest.approx((seen == 2).mean())
    assert found["region is south"][1] == pytest.approx(candidate.static[:, 2].mean())
    gaps = [abs(first - second) for first, second in found.values()]
    error = measured("dimension_probability", real, candidate)
    assert error.value == pytest.approx(np.mean(gaps), rel=1e-5)
    assert measured("dimension_probability", real, real).value == 0.0
    assert error.value > 0


def test_densities_integrate_to_one_on_a_common_grid() -> None:
    real, candidate = waves(100), panel_of(np.stack([waves(100).values[:, :, 0], np.full((100, 24), 0.5)], axis=2))
    found = attribute_densities(compare(real, candidate))
    assert set(found) == {"wave0"}  # a channel at rest has no density
    for side in ("real", "candidate"):
        assert np.trapezoid(found["wave0"][side], found["wave0"]["grid"]) == pytest.approx(1.0, abs=0.05)
