"""Owners of blocks execute one mechanism together."""

import math
from dataclasses import replace

import pytest

from understudy.errors import InputError
from understudy.privacy.events import SubsampledGaussian
from understudy.training.plan import SMALLEST_CLIP, DPSGDConfig, block_of


@pytest.mark.parametrize("influence", [1, 6])
@pytest.mark.parametrize("num_blocks", [2, 3, 11])
def test_blocks_together_are_as_long_as_the_clip_norm_and_noised_like_the_whole(
    num_blocks: int, influence: int
) -> None:
    config = DPSGDConfig(sampling_rate=0.1, iterations=5, expected_batch=7.0, clip_norm=15.0, noise_multiplier=0.8)
    whole = config.plan()
    block = block_of(whole, num_blocks, influence)
    assert math.isclose(influence * math.sqrt(num_blocks) * block.clip_norm, whole.clip_norm)
    assert math.isclose(block.noise_scale, whole.noise_scale)
    assert block.expected_batch == whole.expected_batch
    assert isinstance(block.event, SubsampledGaussian)
    assert math.isclose(block.event.noise_multiplier, 0.8 * influence * math.sqrt(num_blocks))


@pytest.mark.parametrize("influence", [40, 1000])
def test_a_clip_that_float32_could_not_vouch_for_grows_together_with_its_noise(influence: int) -> None:
    config = DPSGDConfig(sampling_rate=0.1, iterations=5, expected_batch=7.0, clip_norm=1.5, noise_multiplier=0.8)
    block = block_of(config.plan(), 3, influence)
    reach = influence * math.sqrt(3) * block.clip_norm  # of a unit, over all blocks
    assert block.clip_norm == SMALLEST_CLIP
    assert math.isclose(block.noise_scale, 0.8 * reach)


def test_no_plan_has_a_smaller_clip() -> None:
    plan = DPSGDConfig(sampling_rate=0.1, iterations=5, expected_batch=7.0, noise_multiplier=0.8).plan()
    with pytest.raises(InputError, match="clip_norm"):
        replace(plan, clip_norm=SMALLEST_CLIP / 2)
