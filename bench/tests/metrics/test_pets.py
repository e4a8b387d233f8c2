"""The metrics of PETS on known answers, each with something it must notice."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import wasserstein_distance_nd
from understudy_bench.metrics.pets import METRICS, frechet_distance
from understudy_bench.metrics.pets.embedding import (
    PROJECTIONS,
    encoder_sha256,
    judge,
    matched_distance,
    sliced_distance,
)
from understudy_bench.metrics.pets.forecast import forecast_errors

from tests.unit.evaluation.odd import LEAST, ODD, odd_comparison, outcome
from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Panel
from understudy.evaluation.metric import QUICK
from understudy.evaluation.panels import Comparison

BY_NAME = {metric.name.removeprefix("pets."): metric for metric in METRICS}
FEW = replace(LEAST, iteration_cap=30)


def exactly_normal(mean: np.ndarray, root: np.ndarray, number: int = 400) -> np.ndarray:
    """Points whose sample mean and sample covariance are exactly `mean` and `root`ᵀ`root`."""
    points = np.random.default_rng(0).standard_normal((number, len(mean)))
    points -= points.mean(axis=0)
    return mean + points @ np.linalg.inv(np.linalg.cholesky(np.cov(points, rowvar=False)).T) @ root


def test_the_frechet_distance_of_two_known_gaussians_is_the_closed_form() -> None:
    shift = np.array([1.0, -2.0, 0.5])
    same = exactly_normal(np.zeros(3), np.eye(3))
    assert frechet_distance(same, exactly_normal(shift, np.eye(3))) == pytest.approx(shift @ shift)
    # Commuting covariances: the squared difference of the standard deviations.
    first, second = (exactly_normal(np.zeros(3), np.diag(spread)) for spread in ([1.0, 2.0, 3.0], [2.0, 2.0, 0.5]))
    assert frechet_distance(first, second) == pytest.approx(1.0 + 0.0 + 6.25)


def test_the_frechet_distance_agrees_with_the_root_of_a_matrix() -> None:
    rng = np.random.default_rng(1)
    roots = [rng.standard_normal((4, 4)) for _ in range(2)]
    first, second = (exactly_normal(rng.standard_normal(4), root) for root in roots)
    covariances = [root.T @ root for root in roots]
    trace = sum(map(np.trace, covariances)) - 2 * np.trace(np.real(sqrtm(covariances[0] @ covariances[1])))
    expected = float(np.sum((first.mean(axis=0) - second.mean(axis=0)) ** 2) + trace)
    assert frechet_distance(first, second) == pytest.approx(expected, rel=1e-6)
    assert frechet_distance(second, first) == pytest.approx(expected, rel=1e-6)
    assert frechet_distance(first, 1.1 * second) != pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("number", [6, 500])
def test_a_set_is_at_no_frechet_distance_from_itself_even_without_full_rank(number: int) -> None:
    points = np.random.default_rng(2).standard_normal((number, 20)).astype(np.float32)
    assert frechet_distance(points, points) <= 1e-6 * np.trace(np.cov(points, rowvar=False))


def test_the_cheapest_matching_is_the_wasserstein_distance() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.standard_normal((12, 3)), rng.standard_normal((12, 3)) + 0.5
    assert matched_distance(first, second) == pytest.approx(wasserstein_distance_nd(first, second), rel=1e-6)
    assert matched_distance(first, first[::-1]) == pytest.approx(0.0, abs=1e-7)
    assert matched_distance(first, first + np.array([3.0, 4.0, 0.0])) == pytest.approx(5.0)


def test_a_shift_is_seen_along_random_directions_by_its_share() -> None:
    points = np.random.default_rng(4).standard_normal((50, 3))
    shift = np.array([3.0, 4.0, 0.0])
    directions = np.random.default_rng(9).standard_normal((3, PROJECTIONS))
    share = np.abs(shift @ (directions / np.linalg.norm(directions, axis=0))).mean()
    assert sliced_distance(points, points + shift, 9) == pytest.approx(share)
    assert share == pytest.approx(2.5, abs=0.5)  # half the length, in three dimensions
    assert sliced_distance(points, points[::-1], 9) == pytest.approx(0.0, abs=1e-12)


@pytest.fixture(scope="module")
def unseen() -> Panel:
    return waves(80, seed=7)


def compare(candidate: Panel, unseen: Panel, real: Panel | None = None) -> Comparison:
    real = waves(120, seed=1) if real is None else real
    return Comparison(real=real, candidate=candidate, reference=unseen, unseen=unseen)


# In many dimensions even series of one kind have far to go to match exactly, so their distance is never small.
@pytest.mark.parametrize(("name", "times"), [("context_fid", 3), ("wasserstein", 1.25)])
def test_representations_tell_shuffled_series_from_other_ones(name: str, times: float, unseen: Panel) -> None:
    real, other = waves(120, seed=1), waves(120, seed=2)
    shuffled = panel_of(np.random.default_rng(0).permuted(other.values, axis=1))
    itself, near, far = (
        BY_NAME[name].measure(compare(candidate, unseen, real), FEW, 0).value for candidate in (real, other, shuffled)
    )
    assert itself == pytest.approx(0.0, abs=1e-4)
    assert far > times * near > 0


def test_one_frozen_encoder_judges_a_whole_evaluation_and_is_named(unseen: Panel) -> None:
    judge.cache_clear()
    for candidate, effort in ((waves(60, seed=2), FEW), (waves(60, seed=3), replace(FEW, repeats=9, replicates=0))):
        for name in ("context_fid", "wasserstein"):
            found = BY_NAME[name].measure(compare(candidate, unseen), effort, seed=effort.repeats)
            assert encoder_sha256(judge(unseen, FEW.iteration_cap).encoder) in found.notes[0]
    assert judge.cache_info().misses == 1


def test_another_training_set_or_budget_makes_another_encoder(unseen: Panel) -> None:
    hashes = {judge(panel, cap).sha256 for panel, cap in ((unseen, 3), (unseen, 4), (waves(80, seed=8), 3))}
    assert len(hashes) == 3
    assert judge(unseen, 3).sha256 in hashes


def test_a_panel_is_forgotten_when_the_evaluation_lets_go_of_it(unseen: Panel) -> None:
    by = judge(unseen, 3)
    panel = waves(20)
    by.embed(panel)
    assert len(by._seen) == 1
    del panel
    assert len(by._seen) == 0


def test_the_last_quarter_of_waves_is_learned_from_waves_and_not_from_shuffled_ones(unseen: Panel) -> None:
    effort = replace(QUICK, repeats=2)
    taught, misled = (
        BY_NAME["forecast_rmse"].measure(compare(candidate, unseen), effort, 0)
        for candidate in (waves(400, seed=1), panel_of(np.random.default_rng(0).permuted(waves(400).values, axis=1)))
    )
    assert taught.value < 0.5 * taught.parts["zero RMSE"]
    assert misled.value > 0.8 * misled.parts["zero RMSE"]
    assert len(taught.replicates) == 2
    assert taught.kind == "repeats"


def test_forecasting_zero_errs_by_about_one_and_baselines_are_those_of_the_reference(unseen: Panel) -> None:
    comparison = compare(waves(60, seed=2), unseen)
    found = {name: BY_NAME[f"forecast_{name}"].measure(comparison, FEW, 0) for name in ("rmse", "mae")}
    assert found["rmse"].parts["zero RMSE"] == pytest.approx(1.0, abs=0.1)
    values, real = unseen.values.astype(np.float64), comparison.real.values.astype(np.float64)
    scaled = (values - real.mean(axis=(0, 1))) / real.std(axis=(0, 1))
    repeated = np.abs(scaled[:, 18:] - scaled[:, 17:18]).mean()
    assert found["mae"].parts["persistence MAE"] == pytest.approx(repeated, rel=1e-4)
    assert found["mae"].value < found["rmse"].value


def test_the_forecast_ends_where_three_quarters_are_known() -> None:
    steps = np.tile(np.arange(8.0)[None, :, None], (40, 1, 1))
    mae, rmse = forecast_errors(steps[:30], steps[30:], steps[30:], seed=0, most_iterations=200)
    assert mae < 0.5  # steps 6 and 7 of the only series there is
    assert mae <= rmse


@pytest.mark.parametrize("name", ODD)
def test_odd_series_give_a_figure_or_a_reason(name: str) -> None:
    comparison = odd_comparison(name)
    found = {key: outcome(metric, comparison) for key, metric in BY_NAME.items()}
    if "every kind" in name:
        assert not [key for key, figure in found.items() if isinstance(figure, str)]
    if name == "one step":
        assert all("too short" in str(figure) for figure in found.values())
    if name == "categories only":
        assert "no channel holds numbers" in str(found["forecast_mae"])
