"""The mechanism plan ties sampler, clip, noise and event together."""

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.privacy.accounting import epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.noise import NoiseSource
from understudy.training import DPSGDConfig
from understudy.training.plan import SMALLEST_CLIP

CONFIG = DPSGDConfig(sampling_rate=0.05, iterations=40, expected_batch=50.0)
GUARANTEE = Guarantee(2.0, 1e-6)


def test_a_calibrated_plan_meets_its_guarantee_and_not_much_more() -> None:
    plan = CONFIG.calibrated(GUARANTEE)
    assert 0.99 * GUARANTEE.epsilon < epsilon([plan.event], GUARANTEE.delta) <= GUARANTEE.epsilon


def test_other_events_of_the_run_leave_less_for_training() -> None:
    alone = CONFIG.calibrated(GUARANTEE).noise_multiplier
    beside = CONFIG.calibrated(GUARANTEE, others=[Gaussian(10.0)]).noise_multiplier
    assert beside > alone


def test_drawing_units_is_a_subsampled_gaussian() -> None:
    assert replace(CONFIG, noise_multiplier=1.5).event == SubsampledGaussian(0.05, 1.5, 40)


def test_drawing_windows_is_a_mixture_and_costs_more_at_the_same_noise() -> None:
    capped = replace(CONFIG, max_windows=4)
    assert replace(capped, noise_multiplier=1.5).event == MixtureOfGaussians(0.05, 1.5, 4, 40)
    costs = [epsilon([replace(config, noise_multiplier=4.0).event], 1e-6) for config in (capped, CONFIG)]
    assert costs[0] > 2 * costs[1]


def test_a_plan_is_frozen_and_its_event_follows_from_it() -> None:
    plan = replace(CONFIG, noise_multiplier=1.5)
    for name in ("clipping_norm", "event"):
        with pytest.raises(FrozenInstanceError):
            setattr(plan, name, None)
    assert replace(plan, noise_multiplier=0.1).event == SubsampledGaussian(0.05, 0.1, 40)


def test_noise_is_scaled_by_the_clipping_norm() -> None:
    assert replace(CONFIG, clipping_norm=0.5, noise_multiplier=3.0).noise_scale == 1.5


def test_a_plan_without_noise_is_refused() -> None:
    with pytest.raises(InputError, match="calibrated"):
        CONFIG.event  # noqa: B018


@pytest.mark.parametrize(
    "changes",
    [
        {"sampling_rate": 0.0},
        {"sampling_rate": 1.1},
        {"iterations": 0},
        {"max_windows": 0},
        {"expected_batch": 0.0},
        {"clipping_norm": 0.0},
        {"clipping_norm": float("nan")},
    ],
    ids=str,
)
def test_impossible_numbers_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"Expected|must"):
        replace(CONFIG, **changes)


@pytest.mark.parametrize("influence", [1, 6])
@pytest.mark.parametrize("num_blocks", [2, 3, 11])
def test_blocks_together_are_as_long_as_the_clipping_norm_and_noised_like_the_whole(
    num_blocks: int, influence: int
) -> None:
    config = DPSGDConfig(sampling_rate=0.1, iterations=5, expected_batch=7.0, clipping_norm=15.0, noise_multiplier=0.8)
    whole = config
    block = whole.split(num_blocks, influence)
    assert math.isclose(influence * math.sqrt(num_blocks) * block.clipping_norm, whole.clipping_norm)
    assert math.isclose(block.noise_scale, whole.noise_scale)
    assert block.expected_batch == whole.expected_batch
    assert isinstance(block.event, SubsampledGaussian)
    assert math.isclose(block.event.noise_multiplier, 0.8 * influence * math.sqrt(num_blocks))


@pytest.mark.parametrize("influence", [40, 1000])
def test_a_clip_that_float32_could_not_vouch_for_grows_together_with_its_noise(influence: int) -> None:
    config = DPSGDConfig(sampling_rate=0.1, iterations=5, expected_batch=7.0, clipping_norm=1.5, noise_multiplier=0.8)
    block = config.split(3, influence)
    reach = influence * math.sqrt(3) * block.clipping_norm  # of a unit, over all blocks
    assert block.clipping_norm == SMALLEST_CLIP
    assert math.isclose(block.noise_scale, 0.8 * reach)


def test_no_plan_has_a_smaller_clip() -> None:
    plan = DPSGDConfig(sampling_rate=0.1, iterations=5, expected_batch=7.0, noise_multiplier=0.8)
    with pytest.raises(InputError, match="clipping_norm"):
        replace(plan, clipping_norm=SMALLEST_CLIP / 2)


def draws(sampling_rate: float, iterations: int, num_units: int, noise: NoiseSource, done: int = 0) -> list:
    config = replace(CONFIG, sampling_rate=sampling_rate, iterations=iterations)
    return list(config.draw(num_units, noise, done=done))


def test_every_iteration_yields_a_batch_even_if_it_is_empty() -> None:
    assert [len(batch) for batch in draws(1e-9, 5, 10, NoiseSource.secure())] == [0] * 5


def test_resuming_draws_only_what_is_left() -> None:
    assert len(draws(0.5, 5, 10, NoiseSource.secure(), done=3)) == 2


def test_a_rate_of_one_takes_everybody() -> None:
    (batch,) = draws(1.0, 1, 1000, NoiseSource.secure())
    assert np.array_equal(batch, np.arange(1000))


def test_every_batch_is_drawn_at_exactly_the_rate_of_the_sampler() -> None:
    """No statistics: the same coins, thrown at that rate."""
    coins = NoiseSource.seeded(7)
    for batch in draws(0.3, 4, 1000, NoiseSource.seeded(7)):
        assert np.array_equal(batch, coins.poisson_selection(0.3, 1000))
