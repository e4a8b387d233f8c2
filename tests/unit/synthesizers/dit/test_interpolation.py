"""Hidden scores are measured from what is shown, as the normal distribution has it; what is bought is bounded."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.unit.synthesizers.dit.small import waves
from tests.unit.synthesizers.spectral.recording import listening
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.dit.interpolation import (
    NO_AUTOCOVARIANCE,
    autocovariance_of,
    interpolate,
    products,
    release_autocovariance,
)


def _series(num_series: int, num_steps: int, level: float, smooth: float, pace: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    movement = rng.standard_normal((num_series, num_steps))
    for step in range(1, num_steps):
        movement[:, step] = pace * movement[:, step - 1] + np.sqrt(1 - pace**2) * movement[:, step]
    own = np.sqrt(level) * rng.standard_normal((num_series, 1)) + np.sqrt(smooth) * movement
    noise = np.sqrt(max(0.0, 1 - level - smooth)) * rng.standard_normal((num_series, num_steps))
    return (own + noise).astype(np.float32)[:, :, None]


def _memory(level: float, smooth: float, pace: float, *daily: float) -> torch.Tensor:
    return torch.tensor([level, 1 - level, smooth, pace, *(daily or NO_AUTOCOVARIANCE[4:])])[:, None]


@pytest.mark.parametrize("smooth", [1.0, 0.6])
def test_mean_and_variance_are_those_of_the_conditional_normal_distribution(smooth: float) -> None:
    """Against the textbook formula for the two nearest neighbours; gaps inside, at the start and at the end."""
    pace, steps = 0.8, 9
    shown = np.array([0, 1, 0, 0, 1, 0, 0, 0, 0], dtype=bool)
    values = torch.randn(1, steps, 1, generator=torch.Generator().manual_seed(0))
    covariance = smooth * pace ** np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
    covariance += (1 - smooth) * np.eye(steps)
    found = interpolate(values, torch.from_numpy(shown)[None, :, None].float(), _memory(0.0, smooth, pace), 0)
    for step, near in ((0, [1]), (2, [1, 4]), (3, [1, 4]), (7, [4])):
        weights = covariance[step, near] @ np.linalg.inv(covariance[np.ix_(near, near)])
        assert float(found[0][0, step]) == pytest.approx(float(weights @ values[0, near, 0].numpy()), abs=1e-5)
        assert float(found[1][0, step]) == pytest.approx(np.sqrt(1 - weights @ covariance[near, step]), abs=1e-5)


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.7), (0.0, 0.6, 0.9), (0.8, 0.0, 0.0)])
def test_what_is_hidden_is_as_far_from_its_mean_as_the_deviation_says(shares: tuple[float, float, float]) -> None:
    """Mean square of the measured scores is one, within a sixth: 2000 series, half of their steps hidden."""
    values = torch.from_numpy(_series(2000, 24, *shares))
    shown = (torch.rand(values.shape, generator=torch.Generator().manual_seed(1)) < 0.5).float()
    mean, deviation, _ = interpolate(values, shown, _memory(*shares), 0)
    measured = ((values - mean) / deviation)[shown == 0]
    assert float(measured.square().mean()) == pytest.approx(1.0, abs=1 / 6)
    assert float((values - mean)[shown == 0].square().mean()) < float(values[shown == 0].square().mean())


@pytest.mark.parametrize("repeated", [0.8, 0.0])
def test_the_day_before_counts_as_far_as_days_repeat(repeated: float) -> None:
    """Steps that repeat every day and movements that do not; the last of three days is hidden.

    The deviation is right within a sixth either way. Where days repeat, the day before more than halves the squared
    error; where they do not, it makes it no larger than by a twentieth.
    """
    rng, day, pace = np.random.default_rng(3), 12, 0.6
    moving, daily = _series(3000, 3 * day, 0.0, 1.0, pace), np.tile(rng.standard_normal((3000, day, 1)), (1, 3, 1))
    values = torch.from_numpy(np.sqrt(1 - repeated) * moving + np.sqrt(repeated) * daily).float()
    shown = torch.ones(values.shape)
    shown[:, 2 * day :] = 0.0
    memory = torch.from_numpy(_found(values.numpy(), day)).float()
    errors = []
    for season in (day, 0):
        mean, deviation, _ = interpolate(values, shown, memory, season)
        wrong = (values - mean)[shown == 0]
        assert float((wrong / deviation[shown == 0]).square().mean()) == pytest.approx(1.0, abs=1 / 6)
        errors.append(float(wrong.square().mean()))
    assert errors[0] < (0.5 if repeated else 1.05) * errors[1]


def test_without_memory_or_anything_shown_nothing_is_said() -> None:
    values, nothing = torch.randn(2, 5, 1), torch.tensor(NO_AUTOCOVARIANCE)[:, None]
    for shown, memory in (
        (torch.zeros(2, 5, 1), _memory(0.3, 0.5, 0.9)),
        ((torch.rand(2, 5, 1) < 0.5).float(), nothing),
    ):
        for season in (0, 2):
            mean, deviation, level = interpolate(values, shown, memory, season)
            hidden = shown == 0
            assert not mean[hidden].any()
            assert not level.any()
            assert torch.allclose(deviation[hidden], torch.ones(()))


def test_hidden_values_are_not_read() -> None:
    values, shown = torch.randn(3, 8, 2), (torch.rand(3, 8, 2) < 0.5).float()
    other = torch.where(shown > 0, values, values + 100)
    memory = torch.cat([_memory(0.2, 0.5, 0.5, 0.5, 0.4, 0.7), _memory(0.0, 0.9, 0.9, 0.5, 0.4, 0.7)], dim=1)
    for season in (0, 2):
        for first, second in zip(*(interpolate(x, shown, memory, season) for x in (values, other)), strict=True):
            hidden = (shown == 0) if len(first[0]) > 1 else slice(None)  # a level is the same for all steps
            assert torch.equal(first[hidden], second[hidden])


def _found(scores: np.ndarray, season: int) -> np.ndarray:
    totals = products(scores, np.ones(scores.shape, dtype=bool), season).sum(axis=0)
    return autocovariance_of(totals, np.ones(scores.shape[2]), scores.shape[1], season)


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.7), (0.0, 0.9, 0.5), (0.7, 0.0, 0.0)])
def test_the_shares_of_level_and_movement_are_found(shares: tuple[float, float, float]) -> None:
    level, own, smooth, pace = _found(_series(4000, 60, *shares), 0)[:4, 0]
    assert (level, smooth) == pytest.approx(shares[:2], abs=0.12)
    if smooth:  # of no movement there is no pace
        assert pace == pytest.approx(shares[2], abs=0.12)
    assert level + own == pytest.approx(1.0)


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_noise_on_the_sums_does_not_make_movements_slow(noise: float) -> None:
    """The noise of one sum is a tenth of a series' share, or all of it: the pace moves by less than a twelfth."""
    scores, rng = _series(400, 192, 0.2, 0.8, 0.93), np.random.default_rng(0)
    totals = products(scores, np.ones(scores.shape, dtype=bool), 0).sum(axis=0)
    deviation = noise * totals[0]
    paces = [
        autocovariance_of(totals + deviation * rng.standard_normal(totals.shape), np.ones(1), 192, 0, deviation)[3, 0]
        for _ in range(50)
    ]
    assert np.mean(paces) == pytest.approx(0.93, abs=0.93 / 12)


def test_one_series_moves_the_sums_by_no_more_than_the_bound() -> None:
    rng = np.random.default_rng(1)
    for scores in (np.full((4, 6, 3), 3.5), np.full((4, 6, 3), -3.5), rng.choice([-3.5, 3.5], (4, 6, 3))):
        for known in (np.ones((4, 6, 3), dtype=bool), rng.random((4, 6, 3)) < 0.5, np.zeros((4, 6, 3), dtype=bool)):
            for season in (0, 2):
                assert (np.linalg.norm(products(scores, known, season), axis=1) <= np.sqrt(19) + 1e-12).all()


@pytest.mark.parametrize("steps", [1, 2])
def test_series_too_short_for_a_movement_have_none(steps: int) -> None:
    scores = np.ones((5, steps, 2))
    assert np.isfinite(_found(scores, 0)).all()


def test_sums_that_are_noise_alone_give_shares_that_are_possible() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        memory = autocovariance_of(rng.normal(scale=5, size=19), np.ones(3), 24, 12, noise=5.0)
        assert (memory[0] > 0).all()
        for own, smooth, pace in (memory[1:4], memory[4:]):
            assert ((smooth >= 0) & (smooth <= own)).all()
            assert ((pace > 0) & (pace < 1)).all()


def test_the_series_of_a_unit_share_its_weight() -> None:
    """Three equal series of one unit add as much as one of them."""
    plan = SpendingPlan((PlanEntry("autocovariance", Gaussian(1.0)),), Guarantee(9.0, 1e-6))
    heard: list[np.ndarray] = []
    for number in (1, 3):
        with listening() as tape:
            examples = {"x": np.ones((number, 6, 2), dtype=np.float32), "known": np.ones((number, 6, 2), dtype=bool)}
            together = replace(waves(number), unit=np.zeros(number, dtype=np.int64))
            grant = Ledger.in_memory(plan.guarantee).charge(plan, label="run", noise=NoiseSource.constant(0))
            release_autocovariance(PrivateSeries.of(together, 100), examples, np.ones(2), 0, grant)
        heard.append(tape.sums["autocovariance"].value)
        assert tape.sums["autocovariance"].reach == pytest.approx(np.sqrt(13))
    np.testing.assert_allclose(heard[0], heard[1], atol=1e-6)
    assert heard[0].any()
