"""Updates work on gradients written out by hand, and do with them what torch and the clipping engine do."""

import torch
from torch import Tensor, nn

from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.backpropagation import Perceptron
from understudy.synthesizers.vflgan_ts.network import AttributeDiscriminators, masks
from understudy.synthesizers.vflgan_ts.updates import ClippedUpdate, advance
from understudy.training import DPSGDConfig
from understudy.training.clipping import PerUnitClipper

ROWS, WIDTHS = 9, (5, 4)
PLAN = DPSGDConfig(sampling_rate=1.0, iterations=1, expected_batch=1.0, clip_norm=0.5, noise_multiplier=1.0)


def test_rows_are_clipped_as_the_engine_clips_them() -> None:
    """With dropout; a third of the rows are below the clip norm, the others above."""
    network = AttributeDiscriminators(3, 7, WIDTHS)
    update = ClippedUpdate(((network, 1e-3),), PLAN, NoiseSource.constant(0))
    update.flat.values.mul_(20)
    series = torch.randn(ROWS, 3, 7) * torch.tensor([0.1, 10.0, 100.0]).repeat(3)[:, None, None]
    kept = masks(ROWS, WIDTHS, 0.3, torch.Generator().manual_seed(2))
    clipper, expected = PerUnitClipper(network, PLAN.clip_norm), torch.zeros_like(update.flat.gradient).double()
    targets = _cut(expected, list(network.parameters()))
    clipper.add_clipped_sum(lambda: network(series, kept).sum(1), ROWS, targets, ROWS)
    slopes = Perceptron(network, update.flat.views)(series.transpose(0, 1), kept).back(torch.ones(3, ROWS, 1))
    update((slopes,), ())
    assert torch.allclose(update.flat.gradient, expected.float(), atol=PLAN.clip_norm * 2**-11)
    assert expected.norm() > PLAN.clip_norm


def test_an_update_is_that_of_adam() -> None:
    """Also after the first one, and with the same state for a checkpoint."""
    start = torch.randn(50)
    parts = [nn.Parameter(start.clone()) for _ in range(2)]
    optimisers = [torch.optim.Adam([part], lr=0.01, betas=(0.5, 0.9), fused=True) for part in parts]
    for gradient in torch.randn(4, 50):
        for part in parts:
            part.grad = gradient.clone()
        advance(optimisers[0])
        optimisers[1].step()
    assert torch.equal(*parts)
    assert not torch.equal(parts[0], start)
    assert str(optimisers[0].state_dict()) == str(optimisers[1].state_dict())


def _cut(vector: Tensor, parameters: list[nn.Parameter]) -> dict[int, Tensor]:
    """Returns views of a vector by parameter."""
    parts = vector.split([parameter.numel() for parameter in parameters])
    return {id(parameter): part.view(parameter.shape) for parameter, part in zip(parameters, parts, strict=True)}
