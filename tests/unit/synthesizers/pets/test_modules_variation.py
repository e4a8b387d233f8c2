"""Variations: nothing at degree 0, everything at 100, and the numbers of Eq. 3 and 4 in between."""

from typing import Any

import numpy as np
import pytest
import torch

from understudy.synthesizers.packs import load_pack
from understudy.synthesizers.pets.modules import ConvVAE, Strengths, VAEVariation, fitted, strengths
from understudy.synthesizers.pets.pretraining import explained, train_vae, vae_loss
from understudy.synthesizers.pets.rules import RuleBased


@pytest.fixture(scope="module")
def network() -> ConvVAE:
    variation = fitted(load_pack("general", "pets"), 128, 1).variation
    assert isinstance(variation, VAEVariation)
    return variation.network


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([np.corrcoef(x.ravel(), y.ravel())[0, 1] for x, y in zip(a, b, strict=True)])


def moved(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(((a - b) ** 2).mean()))


@pytest.mark.parametrize("shape", [(128, 1), (168, 2), (20, 3), (400, 1)])
@pytest.mark.parametrize("published", [True, False])
def test_without_noise_and_with_the_whole_input_it_is_the_identity(
    network: ConvVAE, shape: tuple[int, int], published: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = RuleBased(num_steps=shape[0], num_channels=shape[1], levels="spread")(30, rng(1))
    nothing = Strengths(posterior=0, direction=0.5, prior=0, blend=1)
    monkeypatch.setattr("understudy.synthesizers.pets.modules.strengths", lambda degree: nothing)
    np.testing.assert_array_equal(VAEVariation(network=network, as_published=published)(series, 0, rng()), series)


def test_degree_zero_keeps_the_series_if_the_residual_is_kept(network: ConvVAE) -> None:
    series = RuleBased(num_steps=128)(30, rng(1))
    np.testing.assert_allclose(VAEVariation(network=network)(series, 0, rng()), series, atol=1e-4)
    published = VAEVariation(network=network, as_published=True)
    assert moved(published(series, 0, rng()), series) > 0.05


@pytest.mark.parametrize("shape", [(128, 1), (168, 2), (576, 1)])
@pytest.mark.parametrize("published", [True, False])
def test_at_degree_100_hardly_anything_of_the_shape_is_left(
    network: ConvVAE, shape: tuple[int, int], published: bool
) -> None:
    """The mean over 400 series has a standard error below 0.02; 0.2 is ten of them away. Control: degree 40."""
    series = RuleBased(num_steps=shape[0], num_channels=shape[1])(400, rng(2))
    variation = VAEVariation(network=network, as_published=published)
    assert abs(correlations(series, variation(series, 100, rng(3))).mean()) < 0.2
    assert correlations(series, variation(series, 40, rng(3))).mean() > 0.5


def test_a_degree_moves_a_series_by_about_as_many_percent_of_its_deviation(network: ConvVAE) -> None:
    series = RuleBased(num_steps=128)(300, rng(4))
    far = [moved(VAEVariation(network=network)(series, degree, rng(5)), series) for degree in (5, 20, 60)]
    for degree, distance in zip((5, 20, 60), far, strict=True):
        assert 0.5 < distance / (degree / 100) < 2


def test_strengths_follow_the_degree() -> None:
    all_of_them = [strengths(degree) for degree in range(0, 101, 10)]
    for name, sign in (("posterior", 1), ("prior", 1), ("blend", -1)):
        assert (sign * np.diff([getattr(one, name) for one in all_of_them]) > 0).all()
    assert all_of_them[0].posterior == all_of_them[0].prior == all_of_them[-1].blend == 0


def test_equal_seeds_give_equal_variations_and_each_series_its_own(network: ConvVAE) -> None:
    series = np.repeat(RuleBased(num_steps=128)(1, rng(6)), 300, axis=0)
    variation = VAEVariation(network=network)
    first = variation(series, 30, rng(7))
    np.testing.assert_array_equal(first, variation(series, 30, rng(7)))
    assert len(np.unique(first[:, 64, 0])) == 300
    assert variation(series[:0], 30, rng()).shape == (0, 128, 1)


def test_channels_that_move_together_are_moved_together(network: ConvVAE) -> None:
    one, other = (RuleBased(num_steps=128, preset="pets")(200, rng(seed)) for seed in (8, 9))
    variation = VAEVariation(network=network, as_published=True)
    series = np.concatenate([one, one, other], axis=2)
    change = variation(series, 40, rng(10)) - series
    assert correlations(change[:, :, 0], change[:, :, 1]).mean() > 0.9
    assert abs(correlations(change[:, :, 0], change[:, :, 2])).mean() < 0.5


def test_a_channel_that_does_not_move_can_start_to(network: ConvVAE) -> None:
    flat = np.zeros((50, 128, 2), dtype=np.float32)
    varied = VAEVariation(network=network)(flat, 30, rng(11))
    assert np.isfinite(varied).all()
    assert 0 < varied.std(axis=1).mean() < 0.2


def test_level_and_scale_are_kept_as_published_and_move_otherwise(network: ConvVAE) -> None:
    series = 2 + RuleBased(num_steps=128)(200, rng(12))
    still, jittered = (VAEVariation(network=network, as_published=one)(series, 30, rng(13)) for one in (True, False))
    drift = [abs(varied.mean(axis=1) - series.mean(axis=1)).mean() for varied in (still, jittered)]
    assert drift[1] > 2 * drift[0]


def test_detail_finer_than_the_network_survives(network: ConvVAE) -> None:
    steps = np.arange(1024)
    fast = np.sin(2 * np.pi * steps / 5)[None, :, None] + np.sin(2 * np.pi * steps / 400)[None, :, None]
    varied = VAEVariation(network=network)(np.repeat(fast, 20, 0).astype(np.float32), 20, rng(16))
    strength = np.abs(np.fft.rfft(varied[:, :, 0], axis=1))[:, 205].mean()
    assert strength > 0.7 * np.abs(np.fft.rfft(fast[0, :, 0]))[205]


def test_the_loss_has_the_five_terms_of_equation_3() -> None:
    x, decoded = rng(17).normal(size=(2, 4, 40, 2))
    mean, log_variance = 0.3 * rng(18).normal(size=(2, 4, 6))
    spectrum = [np.abs(np.fft.rfft(v, axis=1, norm="ortho")) for v in (x, decoded)]
    peaks = abs(x) >= np.quantile(abs(x), 0.95, axis=1, keepdims=True)
    expected = (
        ((x - decoded) ** 2).mean()
        + 1e-3 * 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance).sum(axis=1).mean()
        + 0.1 * ((spectrum[0] - spectrum[1]) ** 2).mean()
        + 0.5 * ((np.diff(x, axis=1) - np.diff(decoded, axis=1)) ** 2).mean()
        + 0.1 * ((x - decoded)[peaks] ** 2).mean()
    )
    tensors = (torch.tensor(v) for v in (x, decoded, mean, log_variance))
    assert vae_loss(*tensors, kl_weight=1e-3).item() == pytest.approx(expected)
    zero = torch.zeros(4, 6, dtype=torch.float64)
    assert vae_loss(torch.tensor(x), torch.tensor(x), zero, zero, kl_weight=1.0).item() == pytest.approx(0)


def test_training_repeats_with_its_seed_and_learns() -> None:
    public = RuleBased(num_steps=32, preset="pets")
    state = torch.random.get_rng_state()
    short = [train_vae(public, iterations=2, batch=16, seed=seed, latent=8) for seed in (1, 1, 2)]
    weights = [network.from_latent.weight for network in short]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(state, torch.random.get_rng_state())
    longer = train_vae(public, iterations=40, batch=32, seed=1, latent=8)
    unseen = public(200, rng(99))
    assert explained(longer, unseen) > explained(short[0], unseen) + 0.2


def test_relatives_of_one_series_share_its_encoding(network: ConvVAE, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two series, asked for three and two relatives: two rows are encoded, five decoded beside the two themselves."""
    seen: dict[str, int] = {"encode": 0, "decode": 0}

    def counted(name: str) -> None:
        genuine = getattr(network, name)

        def count(x: torch.Tensor) -> Any:
            seen[name] += len(x)
            return genuine(x)

        monkeypatch.setattr(network, name, count, raising=True)

    series = RuleBased(num_steps=128)(2, rng(1)).repeat([3, 2], axis=0)
    for name in seen:
        counted(name)
    varied = VAEVariation(network=network)(series, 20, rng(2))
    assert seen == {"encode": 2, "decode": 7}
    assert len(np.unique(varied, axis=0)) == 5  # and they are five different relatives
    near = correlations(varied, series)
    far = correlations(varied, series[[3, 3, 3, 0, 0]])
    assert near.min() > 0.8 > far.max()
