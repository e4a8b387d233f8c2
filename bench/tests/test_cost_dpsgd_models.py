"""The denoisers keep shapes and start where their papers start."""

import pytest
import torch
from torch import nn
from understudy_bench.cost.dpsgd_models import PlainDiT, ResidualConvDenoiser

MODELS = {
    "dit": lambda: PlainDiT(channels=3, width=16, depth=2, num_heads=4),
    "conv": lambda: ResidualConvDenoiser(channels=3, width=16, depth=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_denoiser_returns_what_it_was_given_the_shape_of(name: str) -> None:
    model = MODELS[name]()
    x, time = torch.randn(4, 12, 3), torch.rand(4) * 1000
    assert model(x, time).shape == x.shape
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_a_denoiser_treats_every_series_on_its_own(name: str) -> None:
    model = MODELS[name]()
    x, time = torch.randn(4, 12, 3), torch.rand(4) * 1000
    other = x.clone()
    other[0] += 1
    assert torch.equal(model(x, time)[1:], model(other, time)[1:])


def test_diffusion_time_matters_once_trained() -> None:
    model = MODELS["conv"]()
    x = torch.randn(2, 12, 3)
    assert not torch.allclose(model(x, torch.zeros(2)), model(x, torch.full((2,), 500.0)))
    assert isinstance(model.time.network, nn.Sequential)
