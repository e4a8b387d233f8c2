"""What a series says of its gaps is bounded, and what is drawn from released facts has the gaps they tell of."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.data import Continuous, Panel, Time
from understudy.privacy.contributions import SideBySide
from understudy.statistics import gaps
from understudy.statistics.basis import basis_of
from understudy.statistics.facts import facts_of
from understudy.statistics.gaps import GapModel
from understudy.synthesizers.contract.panels import plain_schema

NO_LENGTHS = np.zeros(0, dtype=np.int64)
SERIES, STEPS = 4000, 48


def panel_of(observed: np.ndarray, lengths: np.ndarray | None = None) -> Panel:
    """Series of random values where they are observed [series, step, channel]."""
    number, steps, channels = observed.shape
    ends = np.full(number, steps) if lengths is None else lengths
    inside = (np.arange(steps) < ends[:, None])[:, :, None]
    values = np.random.default_rng(0).uniform(0, 20, observed.shape)
    columns = tuple(Continuous(f"load {place}", 0.0, 20.0, missing=True) for place in range(channels))
    return Panel(
        schema=plain_schema(channels=columns, time=Time(column="when", steps=steps, min_steps=1)),
        values=np.where(observed & inside, values, np.nan).astype(np.float32),
        lengths=ends.astype(np.int32),
        unit=np.arange(number),
        static=np.zeros((number, 0), dtype=np.float32),
        context=None,
    )


def learned(panel: Panel, noise: float = 1e-6, seed: int = 0) -> GapModel:
    channels = list(range(panel.schema.num_channels))
    votes = gaps.absence_votes(panel, channels, NO_LENGTHS)
    sums = votes.weighted_sum(np.ones(panel.num_series), 1e-6) * 1e-6
    noisy = sums + noise * np.random.default_rng(seed).normal(size=len(sums))
    running = (panel.lengths[:, None] > np.arange(panel.num_steps)).sum(axis=0).astype(np.float64)
    return gaps.gap_model(noisy, noise, len(channels), running, basis_of(panel.schema))


def drawn(model: GapModel, number: int = SERIES) -> np.ndarray:
    """Observed [series, step, channel] of synthetic series."""
    rng = np.random.default_rng(1)
    channels, steps = model.ease.shape
    ranks, scores = rng.random((number, channels)), rng.normal(size=(number, steps, channels))
    return ~model.sample(ranks, scores, np.full(number, steps), rng)


def awkward() -> np.ndarray:
    """A channel that most never have, one without nights, one in long runs; the last two are missing together."""
    rng = np.random.default_rng(2)
    own = (rng.random((SERIES, 1)) < 0.3) & (rng.random((SERIES, STEPS)) < 0.25)
    days = (np.arange(STEPS) % 24 >= 8) & (rng.random((SERIES, STEPS)) < 0.6)
    runs = np.repeat(rng.random((SERIES, STEPS // 8)) < 0.7, 8, axis=1)
    return np.stack([own, days, runs, runs ^ (rng.random(runs.shape) < 0.02)], axis=2)


@pytest.mark.parametrize("what", ["nothing", "everything", "alternating", "one step", "two ends"])
def test_what_a_series_says_is_no_longer_than_the_bound(what: str) -> None:
    steps = np.arange(12)
    row = {"nothing": steps < 0, "everything": steps >= 0, "alternating": steps % 2 == 0, "one step": steps == 5}
    observed = np.repeat(row.get(what, (steps < 3) | (steps > 8))[None, :, None], 3, axis=2)
    edges = gaps.length_edges(1, 12)
    votes = gaps.absence_votes(panel_of(observed), [0, 1, 2], edges)
    assert isinstance(votes, SideBySide)
    assert votes.norms()[0] <= gaps.absence_bound(3, edges)
    assert votes.norms()[0] >= np.sqrt(2 * 3 + 1) - 1e-9
    assert len(votes.weighted_sum(np.ones(1), 1e-3)) == gaps.num_figures(3, 12) + len(edges)


def test_steps_beyond_the_end_are_neither_observed_nor_missing() -> None:
    observed = np.ones((2, 8, 1), dtype=bool)
    panel = panel_of(observed, np.array([8, 4]))
    assert gaps.numbers_of(panel, [0]).tolist() == [[8], [8]]
    model = learned(panel)
    assert model.numbers[0, -1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("steps", [1, 2, 5, 48, 500])
def test_numbers_from_none_to_all_have_cells_and_come_back_from_their_ranks(steps: int) -> None:
    edges = gaps.number_edges(steps)
    assert (edges[0], edges[-1]) == (0, steps)
    rows = np.full((1, len(edges) + steps + 4), 1 / len(edges))
    model = GapModel.of(rows, steps)
    numbers = np.arange(steps + 1)[:, None]
    back = model.numbers_at(model.ranks_of(numbers))
    assert (gaps._cell(back, edges) == gaps._cell(numbers, edges)).all()
    assert np.array_equal(model.packed(), rows)


def test_drawn_gaps_are_those_that_were_released() -> None:
    real = awkward()
    made = drawn(learned(panel_of(real)))
    assert np.abs(made.mean(axis=(0, 1)) - real.mean(axis=(0, 1))).max() < 0.01
    assert np.abs(made.mean(axis=0) - real.mean(axis=0)).max() < 0.05
    assert made.any(axis=1).mean(axis=0)[0] == pytest.approx(0.3, abs=0.02)  # a channel few have
    assert not made[:, np.arange(STEPS) % 24 < 8, 1].any()  # hours that are never observed
    for channel in (2, 3):
        same = [(own[:, 1:, channel] == own[:, :-1, channel]).mean() for own in (real, made)]
        assert same[0] - 0.15 < same[1] < same[0]  # runs; by chance it would be 0.58
    together = [(own[:, :, 2] == own[:, :, 3]).mean() for own in (real, made)]
    assert together[1] > 0.75 < together[0]  # 0.58 by chance


def test_missing_after_high_values_stays_so() -> None:
    rng = np.random.default_rng(3)
    panel = panel_of(np.ones((SERIES, STEPS, 1), dtype=bool))
    level = np.cumsum(rng.normal(size=(SERIES, STEPS)), axis=1)
    level -= level.mean(axis=1, keepdims=True)
    observed = rng.random(level.shape) < np.where(level > 1, 0.5, 0.9)
    panel = panel.with_values(np.where(observed, level, np.nan)[:, :, None].clip(-20, 20))
    model = learned(panel)
    missing = model.sample(rng.random((SERIES, 1)), level[:, :, None], np.full(SERIES, STEPS), rng)[:, :, 0]
    assert missing[level > 1].mean() - missing[level <= 1].mean() > 0.2


def test_much_noise_invents_no_channel_that_is_never_there_and_keeps_the_share() -> None:
    real = np.random.default_rng(4).random((200, STEPS, 2)) < np.array([0.9, 0.5])
    for seed in range(5):
        made = drawn(learned(panel_of(real), noise=20.0, seed=seed))
        assert np.isfinite(made).all()
        assert np.abs(made.mean(axis=(0, 1)) - [0.9, 0.5]).max() < 0.25
        assert (~made.any(axis=1)).mean() < 0.1
    nothing = drawn(learned(panel_of(real), noise=1e6))
    assert nothing.shape == (SERIES, STEPS, 2)


def test_no_series_is_drawn_without_a_single_value() -> None:
    panel = panel_of(np.zeros((50, 6, 2), dtype=bool))
    model = replace(learned(panel), response=np.zeros(2))
    rng, ends = np.random.default_rng(5), np.random.default_rng(6).integers(1, 7, 300)
    facts = facts_of([], np.ones(1), np.zeros(0), model.packed(), np.zeros(0))
    missing = facts.sample_missing(panel.schema, np.zeros((300, 6, 2)), ends, rng)
    inside = np.arange(6) < ends[:, None]
    assert (~missing & inside[:, :, None]).any(axis=(1, 2)).all()


@pytest.mark.parametrize(("fewest", "steps"), [(1, 1), (3, 8), (120, 168), (1, 500)])
def test_every_declared_length_has_a_cell_and_drawn_lengths_stay_declared(fewest: int, steps: int) -> None:
    edges = gaps.length_edges(fewest, steps)
    assert edges[0] == fewest
    assert edges[-1] == steps
    assert len(edges) <= 65
    panel = panel_of(np.ones((2, steps, 1), dtype=bool), np.array([fewest, steps]))
    votes = gaps.absence_votes(panel, [], edges).weighted_sum(np.ones(2), 1.0)
    assert len(votes) == len(edges)
    assert (votes[0], votes[-1]) == ((2, 2) if fewest == steps else (1, 1))
    share = np.full(len(edges), 1 / len(edges))
    lengths = gaps.sample_lengths(share, edges, steps, 500, np.random.default_rng(3))
    assert lengths.min() >= fewest
    assert lengths.max() <= steps
