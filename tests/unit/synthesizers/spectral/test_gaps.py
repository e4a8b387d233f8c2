import numpy as np
import pytest

from understudy.synthesizers.spectral import gaps


def votes_of(missing: list[list[int]], lengths: list[int], weights: list[float]) -> list[np.ndarray]:
    absent = np.array(missing, dtype=bool)
    votes = gaps.gap_votes(absent, np.zeros(absent.shape), np.array(lengths), np.array(weights))
    return np.split(votes, np.cumsum([len(gaps.COUNT_EDGES), len(gaps.LENGTH_EDGES)]))


def test_runs_are_found_at_both_ends_and_side_by_side() -> None:
    missing = np.array([[1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]], dtype=bool)
    series, begin, size = gaps._runs(missing)
    assert series.tolist() == [0, 0, 0, 2]
    assert begin.tolist() == [0, 3, 5, 0]
    assert size.tolist() == [2, 1, 1, 6]


def test_steps_beyond_the_end_are_not_gaps() -> None:
    counts, lengths, _ = votes_of([[0, 1, 0, 1, 1, 1]], [4], [1.0])
    assert counts[2] == 1
    assert lengths[:2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("missing", [[0] * 6, [1] * 6, [1, 0] * 3, [0, 1, 1, 0, 1, 0]])
def test_each_of_the_three_votes_of_a_series_weighs_at_most_one(missing: list[int]) -> None:
    for votes in votes_of([missing], [6], [1.0]):
        assert votes.sum() <= 1 + 1e-12
        assert np.linalg.norm(votes) <= 1 + 1e-12


def test_a_series_without_gaps_votes_for_none_and_for_no_length() -> None:
    counts, lengths, ranks = votes_of([[0] * 5], [5], [0.5])
    assert counts[0] == 0.5
    assert not lengths.any()
    assert not ranks.any()


def test_the_rank_is_that_of_the_score_just_before_the_gap() -> None:
    scores = np.array([[-3.0, 3.0, 0.0, 0.0]])
    missing = np.array([[False, False, True, False]])
    votes = gaps.gap_votes(missing, scores, np.array([4]), np.ones(1))
    assert votes[-gaps.NUM_RANKS :].argmax() == gaps.NUM_RANKS - 1


def test_drawn_gaps_follow_the_released_model() -> None:
    counts = np.zeros(len(gaps.COUNT_EDGES))
    counts[[0, 1]] = 0.5
    lengths = np.zeros(len(gaps.LENGTH_EDGES))
    lengths[2] = 1.0  # three steps
    model = gaps.Gaps(counts, lengths, np.full(gaps.NUM_RANKS, 1 / gaps.NUM_RANKS))
    missing = gaps.draw_gaps(model, np.zeros((4000, 40)), np.full(4000, 40), np.random.default_rng(0))
    assert missing.any(axis=1).mean() == pytest.approx(0.5, abs=0.04)
    sizes = gaps._runs(missing)[2]
    assert (sizes == 3).mean() > 0.9  # a gap at the very end is cut off


def test_no_series_is_drawn_without_a_single_value() -> None:
    counts, lengths = np.zeros(len(gaps.COUNT_EDGES)), np.zeros(len(gaps.LENGTH_EDGES))
    counts[-1] = lengths[-1] = 1.0
    model = gaps.Gaps(counts, lengths, np.full(gaps.NUM_RANKS, 1 / gaps.NUM_RANKS))
    ends = np.random.default_rng(1).integers(1, 6, 300)
    missing = gaps.draw_gaps(model, np.zeros((300, 5)), ends, np.random.default_rng(2))
    assert (missing.sum(axis=1) < ends).all()


@pytest.mark.parametrize(("fewest", "steps"), [(1, 1), (3, 8), (120, 168), (1, 500)])
def test_every_declared_length_has_a_cell_and_drawn_lengths_stay_declared(fewest: int, steps: int) -> None:
    edges = gaps.length_edges(fewest, steps)
    assert edges[0] == fewest
    assert edges[-1] == steps
    assert len(edges) <= 65
    votes = gaps.length_votes(np.array([fewest, steps]), np.array([0.25, 0.75]), edges)
    assert votes[-1] == (1.0 if fewest == steps else 0.75)
    share = np.full(len(edges), 1 / len(edges))
    drawn = gaps.draw_lengths(share, edges, steps, 500, np.random.default_rng(3))
    assert drawn.min() >= fewest
    assert drawn.max() <= steps


@pytest.mark.parametrize("votes", [np.zeros(5), np.full(5, -3.0), np.array([90.0, 1.0, -2.0, 0.5, 0.0])])
def test_noisy_votes_become_a_distribution_without_invented_cells(votes: np.ndarray) -> None:
    shares = gaps.believable(votes, noise=2.0)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    if votes.max() > 10:
        assert shares.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
