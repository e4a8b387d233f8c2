import numpy as np

from understudy.statistics.series import num_pairs, symmetric, triangle


def test_symmetric_matrices_come_back_from_their_triangles() -> None:
    matrices = np.random.default_rng(6).normal(size=(4, 5, 5))
    matrices = matrices + matrices.transpose(0, 2, 1)
    pairs = triangle(matrices)
    assert pairs.shape == (4, num_pairs(5))
    assert np.array_equal(symmetric(pairs, 5), matrices)


def test_triangles_are_laid_out_as_the_border_sums_products() -> None:
    """Releases of `Products` are read with `symmetric`."""
    from understudy.privacy.contributions import Products

    rows = np.random.default_rng(7).integers(-9, 10, (20, 4)).astype(np.float64)
    total = Products(rows[:, None]).weighted_sum(np.ones(20), 1.0)
    assert np.array_equal(symmetric(total[None].astype(np.float64), 4)[0], rows.T @ rows)
