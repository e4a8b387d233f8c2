import numpy as np
import pytest

from understudy.data import Continuous, Panel, Time
from understudy.privacy.contributions import Cells
from understudy.statistics import gaps
from understudy.synthesizers.contract.panels import plain_schema

NO_LENGTHS = np.zeros(0, dtype=np.int64)


def panel_of(missing: list[list[int]], lengths: list[int], *more: list[list[int]]) -> Panel:
    """Series that are zero where they are not missing; one channel, or one more for each of `more`."""
    absent = np.stack([np.array(own, dtype=bool) for own in (missing, *more)], axis=2)
    absent |= (np.arange(absent.shape[1]) >= np.array(lengths)[:, None])[:, :, None]
    channels = tuple(Continuous(f"load {place}", 0.0, 20.0, missing=True) for place in range(absent.shape[2]))
    return Panel(
        schema=plain_schema(channels=channels, time=Time(column="when", steps=absent.shape[1], min_steps=1)),
        values=np.where(absent, np.nan, 0.0).astype(np.float32),
        lengths=np.array(lengths, dtype=np.int32),
        unit=np.arange(len(absent)),
        static=np.zeros((len(absent), 0), dtype=np.float32),
        context=None,
    )


def sums_of(votes: Cells) -> np.ndarray:
    """Votes for each cell, in whole thousandths, rounded towards zero."""
    return votes.weighted_sum(np.ones(votes.num_vectors), 1e-3) / 1000


def votes_of(missing: list[list[int]], lengths: list[int], scores: np.ndarray | None = None) -> list[np.ndarray]:
    panel = panel_of(missing, lengths)
    found = np.zeros(panel.values.shape) if scores is None else scores
    sums = sums_of(gaps.absence_votes(panel, found, [0], NO_LENGTHS))
    return np.split(sums, np.cumsum(gaps.SIZES)[:-1])


def test_runs_are_found_at_both_ends_and_side_by_side() -> None:
    missing = np.array([[1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]], dtype=bool)
    series, begin, size = gaps._runs(missing)
    assert series.tolist() == [0, 0, 0, 2]
    assert begin.tolist() == [0, 3, 5, 0]
    assert size.tolist() == [2, 1, 1, 6]


def test_steps_beyond_the_end_are_not_gaps() -> None:
    counts, lengths, _ = votes_of([[0, 1, 0, 1, 1, 1]], [4])
    assert counts[2] == 1
    assert lengths[:2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("missing", [[0] * 6, [1] * 6, [1, 0] * 3, [0, 1, 1, 0, 1, 0]])
def test_each_of_the_three_votes_of_a_series_weighs_at_most_one(missing: list[int]) -> None:
    for votes in votes_of([missing], [6]):
        assert votes.sum() <= 1
        assert votes.sum() == pytest.approx(1, abs=0.005) or not any(missing)
    cells = gaps.absence_votes(panel_of([missing], [6]), np.zeros((1, 6, 1)), [0], gaps.length_edges(1, 6))
    assert cells.norms()[0] <= np.sqrt(4) + 1e-12  # the bound: three for a channel, one for the length


def test_a_series_without_gaps_votes_for_none_and_for_no_length() -> None:
    counts, lengths, ranks = votes_of([[0] * 5], [5])
    assert counts[0] == 1
    assert not lengths.any()
    assert not ranks.any()


def test_every_channel_that_may_be_missing_has_ballots_of_its_own() -> None:
    both = panel_of([[0, 1, 0], [0, 0, 0]], [3, 3], [[1, 1, 1], [1, 0, 1]])
    sums = sums_of(gaps.absence_votes(both, np.zeros(both.values.shape), [1, 0], NO_LENGTHS))
    alone = [sums_of(gaps.absence_votes(both, np.zeros(both.values.shape), [own], NO_LENGTHS)) for own in (1, 0)]
    assert np.array_equal(sums, np.concatenate(alone))
    assert not np.array_equal(alone[0], alone[1])


def test_the_rank_is_that_of_the_score_just_before_the_gap() -> None:
    ranks = votes_of([[0, 0, 1, 0]], [4], np.array([-3.0, 3.0, 0.0, 0.0])[None, :, None])[2]
    assert ranks.argmax() == gaps.NUM_RANKS - 1


def test_drawn_gaps_follow_the_released_model() -> None:
    counts = np.zeros(len(gaps.COUNT_EDGES))
    counts[[0, 1]] = 0.5
    lengths = np.zeros(len(gaps.LENGTH_EDGES))
    lengths[2] = 1.0  # three steps
    model = gaps.GapModel(counts, lengths, np.full(gaps.NUM_RANKS, 1 / gaps.NUM_RANKS))
    missing = gaps.sample_gaps(model, np.zeros((4000, 40)), np.full(4000, 40), np.random.default_rng(0))
    assert missing.any(axis=1).mean() == pytest.approx(0.5, abs=0.04)
    sizes = gaps._runs(missing)[2]
    assert (sizes == 3).mean() > 0.9  # a gap at the very end is cut off


def test_no_series_is_drawn_without_a_single_value() -> None:
    counts, lengths = np.zeros(len(gaps.COUNT_EDGES)), np.zeros(len(gaps.LENGTH_EDGES))
    counts[-1] = lengths[-1] = 1.0
    model = gaps.GapModel(counts, lengths, np.full(gaps.NUM_RANKS, 1 / gaps.NUM_RANKS))
    ends = np.random.default_rng(1).integers(1, 6, 300)
    missing = gaps.sample_gaps(model, np.zeros((300, 5)), ends, np.random.default_rng(2))
    assert (missing.sum(axis=1) < ends).all()


@pytest.mark.parametrize(("fewest", "steps"), [(1, 1), (3, 8), (120, 168), (1, 500)])
def test_every_declared_length_has_a_cell_and_drawn_lengths_stay_declared(fewest: int, steps: int) -> None:
    edges = gaps.length_edges(fewest, steps)
    assert edges[0] == fewest
    assert edges[-1] == steps
    assert len(edges) <= 65
    panel = panel_of([[0] * steps] * 2, [fewest, steps])
    votes = sums_of(gaps.absence_votes(panel, np.zeros(panel.values.shape), [], edges))
    assert len(votes) == len(edges)
    assert (votes[0], votes[-1]) == ((2, 2) if fewest == steps else (1, 1))
    share = np.full(len(edges), 1 / len(edges))
    drawn = gaps.sample_lengths(share, edges, steps, 500, np.random.default_rng(3))
    assert drawn.min() >= fewest
    assert drawn.max() <= steps


@pytest.mark.parametrize("votes", [np.zeros(5), np.full(5, -3.0), np.array([90.0, 1.0, -2.0, 0.5, 0.0])])
def test_noisy_votes_become_a_distribution_without_invented_cells(votes: np.ndarray) -> None:
    shares = gaps.believable(votes, noise=2.0)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    if votes.max() > 10:
        assert shares.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
