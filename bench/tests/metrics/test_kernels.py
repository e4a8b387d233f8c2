"""Kernel tests agree with closed forms, and their p-values mean what they say."""

import numpy as np
import pytest
from scipy.stats import kstest
from understudy_bench.metrics.kernels import (
    gram,
    linear_test,
    normalised_test,
    quadratic_test,
    shuffled_pairs,
    squared_discrepancy,
    stein_gram,
    two_sample_test,
    unbiased_discrepancy,
)


def expected_kernel(distance: float, dimension: int, width: float) -> float:
    """E exp(−‖x − y‖²/h) for x and y from normals with unit variances that are `distance` apart."""
    return float((1 + 4 / width) ** (-dimension / 2) * np.exp(-(distance**2) / (width + 4)))


@pytest.mark.parametrize("distance", [0.0, 1.5])
def test_the_discrepancy_of_two_normals_is_the_closed_form(distance: float) -> None:
    dimension, width = 3, 4.0
    expected = 2 * (expected_kernel(0, dimension, width) - expected_kernel(distance, dimension, width))
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        first, second = rng.standard_normal((300, dimension)), rng.standard_normal((300, dimension))
        second[:, 0] += distance
        found.append(unbiased_discrepancy(gram(np.concatenate([first, second]), width), 300))
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert abs(np.mean(found) - expected) < 7 * error  # false alarm about 1e-8 with 39 degrees of freedom
    assert distance == 0 or 7 * error < 0.15 * expected


def test_weights_say_how_often_a_point_counts() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((7, 2))
    matrix = gram(points, 1.5)
    first, second = np.array([2, 0, 1, 0, 0, 0, 0.0]), np.array([0, 0, 0, 1, 3, 0, 1.0])
    repeated = points[[0, 0, 2, 3, 4, 4, 4, 6]]
    plain = gram(repeated, 1.5)
    expected = plain[:3, :3].mean() + plain[3:, 3:].mean() - 2 * plain[:3, 3:].mean()
    assert float(squared_discrepancy(matrix, first, second)) == pytest.approx(expected)
    assert squared_discrepancy(matrix, np.stack([first, second]), np.stack([second, first])) == pytest.approx(expected)


def test_the_bandwidth_is_the_median_squared_distance_unless_that_is_nothing() -> None:
    points = np.array([[0.0], [1.0], [3.0]])
    assert gram(points)[0, 1] == pytest.approx(np.exp(-1 / 4))
    mostly_equal = np.array([[0.0]] * 9 + [[2.0]])
    assert gram(mostly_equal)[0, 9] == pytest.approx(np.exp(-4 / 0.8))
    assert (gram(np.ones((4, 2))) == 1).all()


def two_sample_p_values(shift: float, number: int) -> list[float]:
    found = []
    for seed in range(number):
        rng = np.random.default_rng(seed)
        points = rng.standard_normal((60, 2))
        points[30:] += shift
        found.append(two_sample_test(gram(points), 30, rng, draws=199).p_value)
    return found


def test_two_sample_p_values_are_even_when_nothing_differs() -> None:
    even, shifted = two_sample_p_values(0.0, 200), two_sample_p_values(0.4, 60)
    assert kstest(even, "uniform").pvalue > 0.01
    assert kstest(shifted, "uniform").pvalue < 1e-6  # the same test does see a shift


def normal_score(points: np.ndarray) -> np.ndarray:
    return -points


def stein_p_values(shift: float, number: int = 150) -> dict[str, np.ndarray]:
    found = []
    for seed in range(number):
        rng = np.random.default_rng(seed)
        points = rng.standard_normal((120, 2)) + shift
        pairs = shuffled_pairs(points, normal_score, rng)
        tests = (
            quadratic_test(stein_gram(points, normal_score), rng, draws=199),
            linear_test(pairs),
            normalised_test(pairs),
        )
        found.append([test.p_value for test in tests])
    return dict(zip(("quadratic", "linear", "normalised"), np.array(found).T, strict=True))


def test_stein_tests_reject_a_true_density_seldom_and_a_wrong_one_often() -> None:
    true, wrong = stein_p_values(0.0), stein_p_values(1.0)
    for name in true:
        # 150 sets at 5 %: more than 22 rejections happen with probability 1e-5 at most.
        assert (true[name] <= 0.05).sum() <= 22, name
        assert (wrong[name] <= 0.05).mean() > 0.5, name
    assert kstest(true["quadratic"], "uniform").pvalue > 0.001


def test_the_quadratic_test_sees_more_than_pairs_do() -> None:
    wrong = stein_p_values(0.3)
    assert (wrong["quadratic"] <= 0.05).mean() > (wrong["normalised"] <= 0.05).mean() + 0.2
