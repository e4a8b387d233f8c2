import numpy as np
import pytest
from scipy.special import ndtr

from understudy.synthesizers.spectral import levels
from understudy.synthesizers.spectral.levels import EVEN_EDGES, LEVEL_EDGES, NUM_CELLS, Split


def hump(centre: float, deviation: float, mass: float, edges: np.ndarray = EVEN_EDGES) -> np.ndarray:
    return mass * np.diff(ndtr((edges - centre) / deviation))


def test_each_series_votes_once_per_channel_also_beyond_the_edges() -> None:
    numbers = np.array([[0.1, -99.0], [99.0, 0.1]])
    cells = levels.cells_of(numbers, LEVEL_EDGES)
    assert cells.shape == (2, 2)
    assert cells[0, 1] == 0
    assert cells[1, 0] == NUM_CELLS - 1
    assert LEVEL_EDGES[cells[0, 0]] <= 0.1 < LEVEL_EDGES[cells[0, 0] + 1]
    assert cells[0, 0] == cells[1, 1]


def test_two_clear_modes_are_divided_between_them() -> None:
    votes = np.stack([hump(0, 1, 2000), hump(-1.5, 0.4, 900) + hump(1.5, 0.4, 1100)])
    (split,) = levels.find_splits(votes, noise=5.0, most=2)
    assert split.channel == 1
    assert -0.8 < split.threshold < 0.8


@pytest.mark.parametrize(
    ("votes", "noise", "most"),
    [
        (hump(0, 1, 2000), 5.0, 2),
        (hump(-1.5, 0.4, 900) + hump(1.5, 0.4, 1100), 100.0, 2),
        (hump(-1.5, 0.4, 20) + hump(1.5, 0.4, 1980), 1.0, 2),
        (hump(-1.5, 0.4, 900) + hump(1.5, 0.4, 1100), 5.0, 0),
        (np.zeros(NUM_CELLS), 1.0, 2),
    ],
    ids=["one mode", "too noisy", "hardly anybody on one side", "not affordable", "nobody"],
)
def test_what_is_not_clearly_two_modes_stays_whole(votes: np.ndarray, noise: float, most: int) -> None:
    assert levels.find_splits(votes[None], noise, most) == ()


def test_noise_alone_is_hardly_ever_divided() -> None:
    rng = np.random.default_rng(0)
    found = [levels.find_splits(rng.normal(0, 9, (4, NUM_CELLS)), 9.0, 2) for _ in range(200)]
    assert sum(map(bool, found)) < 20


def test_strata_count_in_binary() -> None:
    kinds = levels.stratum_of(
        np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]), (Split(0, 0.0), Split(1, 0.0))
    )
    assert kinds.tolist() == [0, 1, 2, 3]
    assert levels.stratum_of(np.zeros((3, 2)), ()).tolist() == [0, 0, 0]


def test_numbers_come_back_from_their_scores() -> None:
    shares = hump(-1.0, 0.5, 0.5, LEVEL_EDGES) + hump(1.0, 0.7, 0.5, LEVEL_EDGES)
    distribution = levels.fit_distribution(shares[None], 1e-6, LEVEL_EDGES, LEVEL_EDGES)
    numbers = np.linspace(-2, 2.5, 60)[:, None]
    scores = distribution.scores_of(numbers)
    np.testing.assert_allclose(distribution.numbers_of(ndtr(scores)), numbers, atol=1e-3)
    assert distribution.second_moment[0] == pytest.approx(1 + (0.25 + 0.49) / 2, rel=0.05)


def test_noise_makes_cells_fewer_and_their_edges_stay_among_the_many() -> None:
    for few, many in zip(levels.edges_for(1.0), levels.edges_for(0.0), strict=True):
        assert len(few) < len(many) / 4
        assert np.isin(few, many).all()
        assert (np.diff(few) > 0).all()
        assert (few[0], few[-1]) == (many[0], many[-1])
