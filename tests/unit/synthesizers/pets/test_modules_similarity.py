"""Embeddings: one series at a time, level beside shape, and a small encoder that learned from a large one."""

import numpy as np
import pytest
import torch

from understudy.synthesizers.pets.modules import EncoderSimilarity, PooledConv, Similarity, TS2Vec
from understudy.synthesizers.pets.pretraining import distil, principal_components
from understudy.synthesizers.pets.rules import RuleBased


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def small() -> PooledConv:
    torch.manual_seed(0)
    return PooledConv(channels=1, output=16, widths=(8, 8, 16)).train(False)


def large() -> TS2Vec:
    torch.manual_seed(1)
    return TS2Vec(channels=1, depth=2, hidden=8, output=24).train(False)


SIMILARITIES = {
    "small": EncoderSimilarity(network=small(), level_weight=1.0),
    "small, resampled": EncoderSimilarity(network=small(), level_weight=1.0, num_steps=32),
    "TS2Vec": EncoderSimilarity(network=large()),
}


@pytest.mark.parametrize("name", SIMILARITIES)
def test_an_embedding_depends_on_its_own_series_alone_to_the_last_bit(name: str) -> None:
    """Otherwise one more private series could change how the others' votes are rounded."""
    embed: Similarity = SIMILARITIES[name]
    series = RuleBased(num_steps=50, num_channels=2)(150, rng(1))
    whole = embed(series)
    assert whole.dtype == np.float32
    assert np.isfinite(whole).all()
    for rows in (np.arange(1), np.arange(63), np.arange(65), rng(2).permutation(150), np.arange(7, 150)):
        np.testing.assert_array_equal(embed(series[rows]), whole[rows])
    assert embed(series[:0]).shape == (0, whole.shape[1])


@pytest.mark.parametrize("name", SIMILARITIES)
def test_alike_series_are_nearer_than_unlike_ones(name: str) -> None:
    steps = np.arange(64)
    slow, fast = (np.sin(2 * np.pi * steps / period)[None, :, None] for period in (32, 8))
    near = slow + 0.02 * rng(3).normal(size=slow.shape)
    a, b, c = (SIMILARITIES[name](series.astype(np.float32))[0] for series in (slow, near, fast))
    assert np.linalg.norm(a - b) < 0.5 * np.linalg.norm(a - c)


def test_a_network_of_one_channel_puts_channels_side_by_side() -> None:
    series = RuleBased(num_steps=40, num_channels=3)(5, rng(4))
    embed = EncoderSimilarity(network=large())
    alone = [embed(series[:, :, [channel]]) for channel in range(3)]
    np.testing.assert_allclose(embed(series), np.concatenate(alone, axis=1), atol=1e-6)


def test_ts2vec_as_published_sees_series_as_they_are() -> None:
    series = RuleBased(num_steps=40)(70, rng(5))
    with torch.no_grad():
        expected = large()(torch.as_tensor(series)).amax(dim=1).numpy()
    np.testing.assert_allclose(EncoderSimilarity(network=large())(series), expected, atol=1e-6)


def test_level_and_scale_stand_beside_the_shape() -> None:
    series = RuleBased(num_steps=64)(20, rng(6))
    embed = EncoderSimilarity(network=small(), level_weight=2.0)
    plain, raised, stretched = embed(series), embed(series + 1.5), embed(1.5 * series)
    np.testing.assert_allclose(raised[:, :16], plain[:, :16], atol=1e-4)
    np.testing.assert_allclose(raised[:, 16] - plain[:, 16], 3.0, atol=1e-4)
    np.testing.assert_allclose(stretched[:, 17] - plain[:, 17], 1.0, atol=1e-4)


def test_the_shape_of_a_channel_that_hardly_moves_hardly_counts() -> None:
    ours, theirs = (RuleBased(num_steps=64)(20, rng(seed)) for seed in (7, 8))
    embed = EncoderSimilarity(network=small(), level_weight=1.0)
    apart, hardly = (np.linalg.norm(embed(f * ours) - embed(f * theirs), axis=1).mean() for f in (1.0, 0.001))
    assert hardly < 0.05 * apart


def test_principal_components_keep_distances_and_have_mean_squared_distance_one() -> None:
    low = rng(10).normal(size=(300, 4)) @ rng(11).normal(size=(4, 20))
    parts = principal_components(low, 4)
    ratio = np.linalg.norm(parts[1:] - parts[:-1], axis=1) / np.linalg.norm(low[1:] - low[:-1], axis=1)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    gaps = parts[:, None] - parts[None]
    assert (gaps**2).sum(axis=2).mean() == pytest.approx(1, rel=0.01)
    assert principal_components(low, 64).shape == (300, 64)


def test_the_small_encoder_learns_the_large_ones_distances() -> None:
    series = RuleBased(num_steps=32, preset="pets")(500, rng(12))
    learned = distil(large(), series, iterations=60, batch=64, seed=0, num_steps=32, output=8)
    barely = distil(large(), series, iterations=1, batch=64, seed=0, num_steps=32, output=8)
    assert learned[1] > 0.5 > barely[1]
