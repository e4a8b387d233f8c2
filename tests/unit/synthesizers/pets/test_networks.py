"""Shapes of the autoencoder and of the small encoder."""

import pytest
import torch

from understudy.synthesizers.pets.modules import ConvVAE, PooledConv


@pytest.mark.parametrize("steps", [4, 16, 24, 100, 128, 577])
@pytest.mark.parametrize("channels", [1, 3])
def test_series_of_any_length_come_back_as_long_as_they_were(steps: int, channels: int) -> None:
    network = ConvVAE(channels=channels, steps=steps, latent=8, widths=(8, 8, 16))
    mean, log_variance = network.encode(torch.randn(2, steps, channels))
    assert mean.shape == log_variance.shape == (2, 8)
    assert network.decode(mean).shape == (2, steps, channels)


def test_a_network_is_made_again_from_its_shape() -> None:
    for network in (ConvVAE(channels=2, steps=20, latent=5, widths=(8, 16)), PooledConv(channels=2, output=7)):
        again = type(network)(**network.shape)
        again.load_state_dict(network.state_dict())
        assert again.shape == network.shape


@pytest.mark.parametrize("steps", [4, 31, 128])
def test_the_small_encoder_reads_any_length(steps: int) -> None:
    assert PooledConv(channels=3)(torch.randn(2, steps, 3)).shape == (2, 64)


def test_short_and_long_patterns_both_reach_the_small_encoder() -> None:
    torch.manual_seed(0)
    encoder, steps = PooledConv(channels=1).train(False), torch.arange(128.0)
    waves = [torch.sin(2 * torch.pi * steps / period).reshape(1, 128, 1) for period in (4.0, 64.0)]
    flat = encoder(torch.zeros(1, 128, 1))
    assert all((encoder(wave) - flat).norm() > 1e-2 for wave in waves)
