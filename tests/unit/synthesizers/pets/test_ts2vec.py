"""TS2Vec: crops, losses, masks, and an encoder that learned something."""

import math

import numpy as np
import pytest
import torch

from understudy.synthesizers.pets.modules import EncoderSimilarity, SameConv, TS2Vec
from understudy.synthesizers.pets.pretraining import contrast, hierarchical_loss, overlapping_crops, train_ts2vec


def small(channels: int = 1) -> TS2Vec:
    torch.manual_seed(0)
    return TS2Vec(channels=channels, depth=2, hidden=8, output=12).train(False)


def test_the_published_shape_is_the_default() -> None:
    encoder = TS2Vec(channels=3)
    assert encoder.shape == {"channels": 3, "depth": 10, "hidden": 64, "output": 320}
    assert [block.first.dilation[0] for block in encoder.blocks] == [2**k for k in range(11)]
    assert encoder(torch.zeros(2, 20, 3)).shape == (2, 20, 320)


@pytest.mark.parametrize("dilation", [1, 4, 9, 10, 64])
def test_taps_that_only_see_padding_are_left_out_without_a_difference(dilation: int) -> None:
    torch.manual_seed(1)
    layer, x = SameConv(3, 5, dilation), torch.randn(2, 3, 10)
    whole = torch.nn.functional.conv1d(x, layer.weight, layer.bias, padding=dilation, dilation=dilation)
    torch.testing.assert_close(layer(x), whole)
    zero = torch.autograd.grad(layer(x).sum(), layer.weight)[0][:, :, 0]
    assert bool((zero == 0).all()) == (dilation >= 10)


def test_crops_share_exactly_the_overlap() -> None:
    rng = np.random.default_rng(3)
    steps = torch.arange(30.0).expand(5, 30).unsqueeze(2)
    lengths = set()
    for _ in range(200):
        first, second, overlap = overlapping_crops(steps, rng)
        torch.testing.assert_close(first[:, -overlap:], second[:, :overlap])
        assert first.diff(dim=1).eq(1).all()
        lengths.add(overlap)
    assert min(lengths) <= 4
    assert max(lengths) >= 27


def naive_contrast(ours: np.ndarray, theirs: np.ndarray) -> float:
    """−log of the twin's share among all others, by the definition, one vector at a time."""
    losses = []
    for group in range(len(ours)):
        both = np.concatenate([ours[group], theirs[group]])
        number = len(ours[group])
        for i in range(2 * number):
            scores = {j: math.exp(float(both[i] @ both[j])) for j in range(2 * number) if j != i}
            losses.append(-math.log(scores[(i + number) % (2 * number)] / sum(scores.values())))
    return float(np.mean(losses))


def test_contrast_follows_its_definition() -> None:
    rng = np.random.default_rng(4)
    ours, theirs = rng.normal(size=(2, 3, 4, 5)) * 0.5
    assert contrast(torch.tensor(ours), torch.tensor(theirs)).item() == pytest.approx(naive_contrast(ours, theirs))
    assert contrast(torch.tensor(ours[:, :1]), torch.tensor(theirs[:, :1])).item() == 0


def test_the_loss_is_the_mean_over_scales() -> None:
    rng = np.random.default_rng(5)
    ours, theirs = rng.normal(size=(2, 3, 5, 4)) * 0.5
    levels = []
    a, b = ours, theirs
    while True:
        temporal = naive_contrast(a, b) if a.shape[1] > 1 else 0.0
        levels.append(0.5 * naive_contrast(a.swapaxes(0, 1), b.swapaxes(0, 1)) + 0.5 * temporal)
        if a.shape[1] == 1:
            break
        pairs = a.shape[1] // 2
        a, b = (z[:, : 2 * pairs].reshape(3, pairs, 2, 4).max(axis=2) for z in (a, b))
    assert len(levels) == 3
    assert hierarchical_loss(torch.tensor(ours), torch.tensor(theirs)).item() == pytest.approx(np.mean(levels))


def test_a_step_with_a_missing_channel_says_nothing() -> None:
    encode, rng = EncoderSimilarity(network=small(channels=2)), np.random.default_rng(6)
    series = rng.normal(size=(4, 16, 2)).astype(np.float32)
    series[:, 5, 0] = np.nan
    other = series.copy()
    other[:, 5, 1] = 100.0
    np.testing.assert_array_equal(encode(series), encode(other))
    other[:, 6, 1] += 1
    assert not np.array_equal(encode(series), encode(other))
    assert np.isfinite(encode(series)).all()


def test_training_repeats_with_its_seed_and_leaves_the_global_generator_alone() -> None:
    series = np.random.default_rng(7).normal(size=(20, 24, 1)).astype(np.float32)
    state = torch.random.get_rng_state()
    seen: list[tuple[int, int]] = []
    weights = [
        train_ts2vec(series, iterations=3, batch=8, seed=seed, depth=2, hidden=8, output=8, progress=report)
        .blocks[0]
        .first.weight
        for seed, report in ((1, lambda done, planned: seen.append((done, planned))), (1, None), (2, None))
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(state, torch.random.get_rng_state())
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_training_lowers_the_loss_on_series_it_never_saw() -> None:
    steps = np.arange(32)
    rng = np.random.default_rng(8)
    waves = np.sin(2 * np.pi * steps / rng.uniform(4, 16, (96, 1)) + rng.uniform(0, 6, (96, 1)))
    series = (waves + 0.1 * rng.normal(size=waves.shape))[:, :, None].astype(np.float32)
    shape = {"depth": 3, "hidden": 16, "output": 16}
    trained = train_ts2vec(series[:64], iterations=150, batch=16, seed=0, **shape)
    torch.manual_seed(0)
    losses = []
    for encoder in (trained, TS2Vec(channels=1, **shape).train(False)):
        crops = np.random.default_rng(9)
        figures = []
        for _ in range(20):
            first, second, overlap = overlapping_crops(torch.as_tensor(series[64:]), crops)
            with torch.no_grad():
                loss = hierarchical_loss(encoder(first)[:, -overlap:], encoder(second)[:, :overlap])
            figures.append(loss.item())
        losses.append(np.mean(figures))
    assert losses[0] < 0.93 * losses[1]  # seen: 0.86 of the untrained loss
