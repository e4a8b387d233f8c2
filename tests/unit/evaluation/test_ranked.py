"""Distances of pooled values agree with SciPy's, for any weights, ties and gaps."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, wasserstein_distance

from understudy.evaluation.measures import RankedPools

REFERENCE = {"kolmogorov": lambda a, b: ks_2samp(a, b).statistic, "wasserstein": wasserstein_distance}


def _pools(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Values [series, value, column] with ties and, in the last column, gaps."""
    rng = np.random.default_rng(seed)
    real, candidate = rng.normal(size=(30, 4, 3)).round(1), rng.normal(0.4, 1.5, size=(17, 4, 3)).round(1)
    for values in (real, candidate):
        values[..., 2][rng.random(values.shape[:2]) < 0.4] = np.nan
    return real, candidate


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("seed", range(3))
def test_distances_are_those_of_scipy(name: str, seed: int) -> None:
    real, candidate = _pools(seed)
    pools = RankedPools.of(real, candidate)
    found = getattr(pools, name)(np.ones(len(real)), np.ones(len(candidate)))
    for column in range(3):
        pair = [values[:, :, column][~np.isnan(values[:, :, column])] for values in (real, candidate)]
        assert found[column] == pytest.approx(REFERENCE[name](*pair), abs=1e-12)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_weight_is_as_good_as_so_many_copies_of_a_series(name: str) -> None:
    real, candidate = _pools(5)
    rng = np.random.default_rng(6)
    rows = [rng.integers(0, len(values), len(values)) for values in (real, candidate)]
    weights = [np.bincount(drawn, minlength=len(v)) for drawn, v in zip(rows, (real, candidate), strict=True)]
    copied = RankedPools.of(real[rows[0]], candidate[rows[1]])
    drawn = getattr(RankedPools.of(real, candidate), name)(*(w.astype(float) for w in weights))
    np.testing.assert_allclose(drawn, getattr(copied, name)(np.ones(30), np.ones(17)), atol=1e-12)
    assert not np.allclose(drawn, getattr(RankedPools.of(real, candidate), name)(np.ones(30), np.ones(17)))


@pytest.mark.parametrize("name", REFERENCE)
def test_one_empty_pool_is_far_away_and_two_are_nowhere(name: str) -> None:
    full, empty = np.ones((3, 2, 1)), np.full((4, 2, 1), np.nan)
    for real, candidate, expected in ((full, empty, 1.0), (empty, full, np.nan), (empty, empty, np.nan)):
        pools = RankedPools.of(real, candidate)
        np.testing.assert_equal(getattr(pools, name)(np.ones(len(real)), np.ones(len(candidate))), [expected])
