"""Owners of blocks execute one mechanism together."""

import math

import pytest

from understudy.privacy.events import SubsampledGaussian
from understudy.training.blocks import block_of
from understudy.training.plan import DPSGDConfig


@pytest.mark.parametrize("influence", [1, 6])
@pytest.mark.parametrize("num_blocks", [2, 3, 11])
def test_blocks_together_are_as_long_as_the_clip_norm_and_noised_like_the_whole(
    num_blocks: int, influence: int
) -> None:
    config = DPSGDConfig(sampling_rate=0.1, iterations=5, expected_batch=7.0, clip_norm=1.5, noise_multiplier=0.8)
    whole = config.plan()
    block = block_of(whole, num_blocks, influence)
    assert math.isclose(influence * math.sqrt(num_blocks) * block.clip_norm, whole.clip_norm)
    assert math.isclose(block.noise_scale, whole.noise_scale)
    assert block.expected_batch == whole.expected_batch
    assert isinstance(block.event, SubsampledGaussian)
    assert math.isclose(block.event.noise_multiplier, 0.8 * influence * math.sqrt(num_blocks))
