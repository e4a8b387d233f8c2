import numpy as np
import pytest
from scipy.special import ndtr

from understudy.data import Integer
from understudy.statistics.counts import cumulative_of
from understudy.statistics.marginals import Marginal, grid_of, marginal_from
from understudy.statistics.shapes import with_tails

EDGES = np.linspace(0, 20, 201)
EXPONENTIAL, NOISE = np.diff(-np.exp(-EDGES)), 0.003


def test_a_tail_holds_what_its_end_holds_on_average_and_falls_off() -> None:
    """The far end of an exponential distribution, drowned in noise, comes back with its mass and close to its mean."""
    rng, middle = np.random.default_rng(5), (EDGES[1:] + EDGES[:-1]) / 2
    settled = np.stack([with_tails(EXPONENTIAL + NOISE * rng.normal(size=200), NOISE, EDGES) for _ in range(200)])
    first = int(np.argmax(EXPONENTIAL < NOISE))  # from here on every cell holds less than noise
    far = settled[:, first:]
    assert far.sum(1).mean() == pytest.approx(EXPONENTIAL[first:].sum(), abs=0.25 * EXPONENTIAL[first:].sum())
    raw = np.abs(NOISE * rng.normal(size=(200, 200)) @ middle).mean()
    assert np.abs(settled @ middle - EXPONENTIAL @ middle).mean() < 0.7 * raw


@pytest.mark.parametrize("outward", [1, -1], ids=["upper", "lower"])
def test_what_a_tail_holds_is_told_better_than_by_the_sum_of_its_cells(outward: int) -> None:
    """Over 200 draws of noise the error is at most two thirds of a plain sum's, and hardly any tail is empty."""
    rng, first = np.random.default_rng(6), 60  # the last twentieth of what lies beyond
    noisy, edges = EXPONENTIAL + NOISE * rng.normal(size=(200, 200)), EDGES if outward > 0 else 20 - EDGES[::-1]
    settled = np.stack([with_tails(cells[::outward], NOISE, edges)[::outward] for cells in noisy])
    errors = [
        np.sqrt(np.mean((cells[:, first:].sum(1) - EXPONENTIAL[first:].sum()) ** 2)) for cells in (settled, noisy)
    ]
    assert errors[0] < 2 / 3 * errors[1]
    assert (settled[:, first:].sum(1) > 0).mean() > 0.95


def test_a_grid_without_a_quiet_end_is_only_smoothed() -> None:
    cells = np.full(20, 0.05)
    np.testing.assert_allclose(with_tails(cells, 0.001, np.arange(21.0)), cells)


def test_two_humps_do_not_invent_a_third_far_out() -> None:
    """A simple shape is fitted to as much of the end as it fits, not to both humps."""
    humps = 0.7 * np.diff(ndtr((EDGES - 4) / 0.6)) + 0.3 * np.diff(ndtr((EDGES - 12) / 1.0))
    rng = np.random.default_rng(7)
    settled = np.stack([with_tails(humps + NOISE * rng.normal(size=200), NOISE, EDGES) for _ in range(100)])
    assert np.median(settled[:, 160:].sum(1)) < 0.003
    assert settled[:, 140:].sum(1).mean() == pytest.approx(humps[140:].sum(), abs=0.01)


def counts(giants: bool, num_units: int = 3000, days: int = 344) -> np.ndarray:
    """Daily counts with a mean of 18: four tenths zero, else log-normal; giants are a unit in a thousand, times 100."""
    rng = np.random.default_rng(1)
    values = np.exp(rng.normal(size=(num_units, 1)) + 0.8 * rng.normal(size=(num_units, days)))
    values *= rng.random(values.shape) > 0.4
    values[:: 1000 if giants else num_units] *= 100 if giants else 1
    return np.minimum(np.rint(values * 18 / values.mean()), 20_000)


@pytest.mark.parametrize(("giants", "most"), [(False, 0.1), (True, 0.15)])
def test_counts_with_bounds_a_thousand_times_their_mean_keep_their_mean(giants: bool, most: float) -> None:
    """At ε = 2, 4.7 votes of noise a cell among 3,000 units: median errors over 15 draws of noise.

    Three giants hold a tenth of the mean, and three units do not show in that noise. Control: the same cells
    projected onto distributions, as if there were no noise, are off by half and more.
    """
    values, rng, noise = counts(giants), np.random.default_rng(8), 4.7
    grid = grid_of(Integer("sales", 0, 20_000), noise / len(values))
    votes = np.bincount(grid.cells_of(values.ravel()), minlength=grid.num_cells) * len(values) / values.size
    ranks, errors, spreads = (np.arange(100_000) + 0.5) / 100_000, [], []
    for _ in range(15):
        noisy = votes + noise * rng.normal(size=grid.num_cells)
        found = [marginal_from(noisy, grid, noise), Marginal(grid, cumulative_of(noisy))]
        sampled = [np.rint(marginal.values_of(ranks)) for marginal in found]
        errors.append([abs(drawn.mean() / values.mean() - 1) for drawn in sampled])
        spreads.append(sampled[0].std() / values.std())
    settled, raw = np.median(errors, axis=0)
    assert settled < most
    assert raw > 0.5
    assert giants or 0.75 < np.median(spreads) < 1.25, spreads
