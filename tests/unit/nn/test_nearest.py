"""Tiled search finds what a plain search finds, in whatever pieces it works."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from understudy.nn.nearest import nearest


def whole_numbers(rng: np.random.Generator, count: int, dimension: int = 40) -> np.ndarray:
    """Coordinates for which float32 sums are exact."""
    return rng.integers(-90, 91, (count, dimension)).astype(np.float32)


@pytest.mark.parametrize("neighbours", [1, 2, 7])
@pytest.mark.parametrize("tile_bytes", [64, 4000, 4 * 2**20])
def test_it_agrees_with_a_search_over_all_pairs(neighbours: int, tile_bytes: int) -> None:
    rng = np.random.default_rng(1)
    queries, base = rng.normal(size=(61, 12)), rng.normal(size=(203, 12))
    places, squared = nearest(queries, base, neighbours, tile_bytes)
    distances, expected = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(base).kneighbors(queries)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_allclose(squared, distances**2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("neighbours", [1, 3])
def test_among_equally_near_points_the_earlier_one_wins_across_tiles(neighbours: int) -> None:
    rng = np.random.default_rng(2)
    base = np.tile(whole_numbers(rng, 5), (6, 1))  # every point six times
    places, squared = nearest(base[:5], base, neighbours, tile_bytes=200)
    np.testing.assert_array_equal(places[:, 0], np.arange(5))
    np.testing.assert_array_equal(places, np.arange(5)[:, None] + 5 * np.arange(neighbours))
    assert (squared == 0).all()


@pytest.mark.parametrize("neighbours", [1, 4])
def test_the_answer_for_one_query_does_not_depend_on_the_others(neighbours: int) -> None:
    rng = np.random.default_rng(3)
    queries, base = whole_numbers(rng, 300), whole_numbers(rng, 500)
    places, squared = nearest(queries, base, neighbours)
    for one in (0, 7, 299):
        alone = nearest(queries[one : one + 1], base, neighbours, tile_bytes=999)
        np.testing.assert_array_equal(alone[0][0], places[one])
        np.testing.assert_array_equal(alone[1][0], squared[one])


def test_whole_numbers_give_exact_distances() -> None:
    rng = np.random.default_rng(4)
    queries, base = whole_numbers(rng, 20, 300), whole_numbers(rng, 30, 300)
    exact = ((queries[:, None].astype(np.int64) - base[None].astype(np.int64)) ** 2).sum(axis=2)
    places, squared = nearest(queries, base, 30)
    np.testing.assert_array_equal(squared, np.take_along_axis(exact, places, axis=1).astype(np.float32))


def test_no_query_is_no_answer_and_too_many_neighbours_are_refused() -> None:
    base = np.zeros((3, 2), dtype=np.float32)
    assert nearest(np.zeros((0, 2)), base)[0].shape == (0, 1)
    with pytest.raises(ValueError, match="1 to 3"):
        nearest(base, base, 4)
