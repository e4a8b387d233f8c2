import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from understudy.data import Binary, Categorical, Channel, Continuous, Integer
from understudy.statistics.counts import cumulative_of
from understudy.statistics.marginals import (
    SCORE_LIMIT,
    Marginal,
    bounded_scores,
    grid_of,
    marginal_from,
    vote_counts,
)

NO_NOISE = 0.0
COLUMNS: list[Channel] = [
    Continuous("wide", -1e6, 1e6),
    Continuous("narrow", 0.1, 0.3),
    Integer("visits", 0, 50),
    Integer("few", 0, 1),
    Categorical("state", ("a", "b", "c")),
    Binary("alarm"),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_cells_cover_the_declared_bounds_without_gaps(column: Channel) -> None:
    grid, (low, high) = grid_of(column, NO_NOISE), column.bounds
    assert grid.left[0] == low
    assert grid.right[-1] == high
    if isinstance(column, Continuous | Integer):
        np.testing.assert_allclose(grid.left[1:], grid.right[:-1])
    assert (grid.right >= grid.left).all()


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_every_value_is_counted_in_the_cell_that_holds_it(column: Channel) -> None:
    grid, (low, high) = grid_of(column, NO_NOISE), column.bounds
    values = np.linspace(low, high, 501)
    values = values if isinstance(column, Continuous) else np.rint(values)
    cells = grid.cells_of(values)
    assert (values >= grid.left[cells] - 1e-9 * (high - low)).all()
    assert (values <= grid.right[cells] + 1e-9 * (high - low)).all()


def test_values_at_a_bound_have_cells_of_their_own() -> None:
    grid = grid_of(Continuous("load", 0.0, 20.0), NO_NOISE)
    assert grid.cells_of(np.array([0.0, 20.0])).tolist() == [0, grid.num_cells - 1]
    assert (grid.left == grid.right).sum() == 2


def test_values_beyond_the_bounds_are_counted_at_the_bounds() -> None:
    grid = grid_of(Continuous("load", 0.0, 20.0), NO_NOISE)
    assert grid.cells_of(np.array([-1e30, 1e30])).tolist() == [0, grid.num_cells - 1]
    codes = grid_of(Categorical("state", ("a", "b", "c")), NO_NOISE)
    assert codes.cells_of(np.array([-7.0, 99.0])).tolist() == [0, 2]


def test_a_column_with_one_category_has_one_cell() -> None:
    grid = grid_of(Categorical("state", ("only",)), NO_NOISE)
    assert grid.cells_of(np.zeros(3)).tolist() == [0, 0, 0]
    assert marginal_from(np.array([5.0]), grid, 1.0).values_of(np.array([0.5])).tolist() == [0.0]


def test_missing_values_vote_for_nothing() -> None:
    grid = grid_of(Binary("alarm"), NO_NOISE)
    values = np.array([[0.0, 1.0, np.nan, 1.0], [np.nan] * 4])
    assert vote_counts(values, np.array([0.25, 0.25]), grid).tolist() == [0.25, 0.5]


@pytest.mark.parametrize("column", COLUMNS[:2], ids=lambda column: column.name)
def test_scores_and_values_are_inverse_of_each_other(column: Channel) -> None:
    grid, rng = grid_of(column, NO_NOISE), np.random.default_rng(4)
    marginal = marginal_from(rng.random(grid.num_cells) + 0.1, grid, 0.0)
    values = rng.uniform(*column.bounds, 400)
    scores = marginal.scores_of(values)
    inside = np.abs(scores) < SCORE_LIMIT
    width = column.bounds[1] - column.bounds[0]
    np.testing.assert_allclose(marginal.values_of(norm.cdf(scores[inside])), values[inside], rtol=0, atol=1e-6 * width)


def test_categories_come_back_from_their_scores() -> None:
    grid = grid_of(Categorical("state", ("a", "b", "c")), NO_NOISE)
    marginal = marginal_from(np.array([10.0, 30.0, 60.0]), grid, 0.0)
    codes = np.array([0.0, 1.0, 2.0])
    assert marginal.values_of(norm.cdf(marginal.scores_of(codes))).tolist() == codes.tolist()


def test_whole_numbers_come_back_as_often_as_they_were() -> None:
    """Shares of 20,000 draws, five deviations; a number at the end of its cell would be shared with its neighbour."""
    column, rng = Integer("score", -15, 15), np.random.default_rng(6)
    numbers, shares = np.array([-15.0, -2.0, 0.0, 1.0, 3.0]), np.array([0.05, 0.1, 0.7, 0.1, 0.05])
    values = rng.choice(numbers, (20_000, 1), p=shares)
    grid = grid_of(column, NO_NOISE)
    marginal = marginal_from(vote_counts(values, np.ones(20_000), grid), grid, 0.0)
    drawn = np.rint(marginal.values_of(rng.random(20_000)))
    found = np.array([(drawn == number).mean() for number in numbers])
    np.testing.assert_allclose(found, shares, atol=0.025)
    assert (np.rint(marginal.values_of(norm.cdf(marginal.scores_of(numbers)))) == numbers).all()


def test_scores_of_values_from_the_distribution_are_standard_normal() -> None:
    rng, column = np.random.default_rng(5), Continuous("load", 0.0, 20.0)
    values = np.clip(rng.gamma(2.0, 1.5, (4000, 1)), 0, 20)
    grid = grid_of(column, NO_NOISE)
    marginal = marginal_from(vote_counts(values, np.ones(4000), grid), grid, 0.0)
    scores = marginal.scores_of(values)
    assert abs(scores.mean()) < 0.02
    assert abs(scores.std() - 1) < 0.02


def test_missing_values_have_no_score() -> None:
    marginal = Marginal(grid_of(Binary("alarm"), NO_NOISE), np.array([0.0, 0.5, 1.0]))
    assert np.isnan(marginal.scores_of(np.array([np.nan, 1.0]))).tolist() == [True, False]


def test_scores_are_bounded() -> None:
    assert bounded_scores(np.array([0.0, 0.5, 1.0])).tolist() == [-SCORE_LIMIT, 0.0, SCORE_LIMIT]


@pytest.mark.parametrize("counts", [0.0, -5.0, 1e-300])
def test_a_count_that_noise_has_eaten_still_gives_a_distribution(counts: float) -> None:
    grid = grid_of(Continuous("load", 0.0, 20.0), NO_NOISE)
    marginal = marginal_from(np.full(grid.num_cells, counts), grid, 3.0)
    assert marginal.cumulative[0] == 0
    assert marginal.cumulative[-1] == pytest.approx(1)
    assert np.isfinite(marginal.values_of(np.linspace(0, 1, 11))).all()


def test_noise_makes_a_grid_coarser_and_never_finer() -> None:
    sizes = [grid_of(Continuous("load", 0.0, 20.0), noise).num_cells for noise in (0.0, 0.01, 0.1, 10.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 2


def test_cells_that_noise_alone_could_have_filled_are_empty_far_out() -> None:
    """A wide grid is mostly empty, and what is drawn from an empty end would be an invented extreme."""
    grid, noise = grid_of(Continuous("load", 0.0, 20.0), NO_NOISE), 5.0
    counts = vote_counts(np.full((2000, 1), 0.3), np.ones(2000), grid)
    largest = []
    for seed in range(20):
        noisy = counts + noise * np.random.default_rng(seed).normal(size=grid.num_cells)
        largest.append(marginal_from(noisy, grid, noise).values_of(np.array([0.97]))[0])
    assert np.median(largest) < 1.0


def test_the_distribution_of_two_hundred_units_is_near_the_true_one_at_epsilon_one() -> None:
    """Speeds around 60 in bounds of 0 and 100; seven votes of noise on each cell. Control: cells taken as they are."""
    rng, noise = np.random.default_rng(5), 7.0
    column = Continuous("speed", 0.0, 100.0)
    grid = grid_of(column, noise / 200)
    votes = 200 * np.diff(ndtr((np.append(grid.left[1:-1], 100.0) - 60) / 8))
    at, errors = np.linspace(0.05, 0.95, 19), []
    for _ in range(40):
        noisy = np.concatenate([[0.0], votes, [0.0]]) + noise * rng.normal(size=grid.num_cells)
        raw = Marginal(grid, cumulative_of(noisy))
        errors.append(
            [
                np.abs(found.values_of(at) - (60 + 8 * ndtri(at))).mean()
                for found in (marginal_from(noisy, grid, noise), raw)
            ]
        )
    settled, raw_error = np.mean(errors, axis=0)
    assert settled < 2.5
    assert settled < 0.5 * raw_error
