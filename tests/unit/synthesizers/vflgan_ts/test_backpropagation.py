"""Slopes written out by hand are those of autograd."""

import torch
from torch import Tensor, nn

from understudy.synthesizers.vflgan_ts.backpropagation import Cells, Perceptron
from understudy.synthesizers.vflgan_ts.network import (
    AttributeDiscriminators,
    AttributeGenerators,
    FeatureExtractor,
    SharedDiscriminator,
    masks,
)

ROWS, ATTRIBUTES, STEPS, WIDTHS = 6, 3, 7, (5, 4)


def lively(module: nn.Module) -> dict[int, Tensor]:
    """Gives a module weights far from zero, and returns memory for gradients."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(parameter.numel()))
    return {id(parameter): torch.zeros_like(parameter) for parameter in module.parameters()}


def assert_same(module: nn.Module, gradients: dict[int, Tensor], loss: Tensor, along: Tensor, slope: Tensor) -> None:
    """Compares gradients of all parameters, and slopes along the input, with autograd's."""
    expected = torch.autograd.grad(loss, [along, *module.parameters()])
    found = [slope, *(gradients[id(parameter)] for parameter in module.parameters())]
    for one, other in zip(found, expected, strict=True):
        assert one.abs().max() > 1e-2
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def test_discriminators_of_attributes_go_back_as_autograd_does() -> None:
    module = AttributeDiscriminators(ATTRIBUTES, STEPS, WIDTHS)
    gradients, kept = lively(module), masks(ROWS, WIDTHS, 0.3, torch.Generator().manual_seed(1))
    series, wanted = torch.randn(ROWS, ATTRIBUTES, STEPS, requires_grad=True), torch.randn(ROWS, ATTRIBUTES)
    passed = Perceptron(module, gradients)(series.detach().transpose(0, 1), kept)
    logits = module(series, kept)
    assert torch.allclose(passed.output.squeeze(-1).t(), logits, atol=1e-5)
    slopes = passed.back(wanted.t().unsqueeze(-1))
    slopes.add()
    assert_same(module, gradients, (logits * wanted).sum(), series, slopes.along_input().transpose(0, 1))


def test_a_network_that_ends_in_dropout_goes_back_as_autograd_does() -> None:
    module = FeatureExtractor(STEPS, WIDTHS[0])
    gradients, (kept,) = lively(module), masks(ROWS, WIDTHS[:1], 0.3, torch.Generator().manual_seed(1))
    inputs, wanted = torch.randn(ROWS, STEPS, requires_grad=True), torch.randn(ROWS, WIDTHS[0])
    slopes = Perceptron(module, gradients)(inputs.detach(), [kept]).back(wanted)
    slopes.add()
    assert_same(module, gradients, (module(inputs, kept) * wanted).sum(), inputs, slopes.along_input())


def test_gradients_of_single_rows_are_outer_products() -> None:
    module = SharedDiscriminator(STEPS, WIDTHS)
    gradients, kept = lively(module), masks(ROWS, WIDTHS, 0.3, torch.Generator().manual_seed(1))
    inputs = torch.randn(ROWS, STEPS)
    slopes = Perceptron(module, gradients)(inputs, kept).back(torch.ones(ROWS, 1))
    own = dict(zip(module.parameters(), torch.autograd.grad(module(inputs, kept)[2], module.parameters()), strict=True))
    for weight, bias, slope, numbers in slopes.by_row():
        assert torch.allclose(torch.outer(slope[2], numbers[2]), own[weight], rtol=1e-4, atol=1e-5)
        assert torch.allclose(slope[2], own[bias], rtol=1e-4, atol=1e-5)


def test_cells_learn_as_autograd_does() -> None:
    module = AttributeGenerators(ATTRIBUTES, 5, STEPS, 4)
    gradients, latent = lively(module), torch.randn(ROWS, 5)
    passed = Cells(module.gates, module.output, gradients)(latent)
    made, wanted = module(latent), torch.randn(ROWS, ATTRIBUTES, STEPS)
    assert torch.allclose(passed.output.transpose(0, 1), made, atol=1e-5)
    passed.learn(wanted.transpose(0, 1))
    for parameter, expected in zip(
        module.parameters(), torch.autograd.grad((made * wanted).sum(), module.parameters()), strict=True
    ):
        assert torch.allclose(gradients[id(parameter)], expected, rtol=1e-4, atol=1e-5)
