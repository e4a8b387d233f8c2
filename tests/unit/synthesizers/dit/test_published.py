"""The transformer that fills gaps reads what it is shown and nothing else."""

from typing import get_args

import pytest
import torch

from understudy.errors import InputError
from understudy.nn.diffusion import Diffusion, Prediction
from understudy.synthesizers.dit.published import Bounds, DiTBlock, MaskedDiT, shown_statistics


def _model(**options: int) -> MaskedDiT:
    torch.manual_seed(0)
    model = MaskedDiT(**{"channels": 2, "width": 16, "depth": 2, "num_heads": 4} | options)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def _inputs(num_units: int = 3) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(1)
    values = torch.randn(num_units, 12, 2)
    shown = (torch.rand(num_units, 12, 2) < 0.6).float()
    return torch.randn(num_units, 12, 2) * (1 - shown), torch.arange(num_units), values, shown


def test_an_untrained_network_predicts_zero_and_its_blocks_are_the_identity() -> None:
    model = MaskedDiT(channels=2, width=16, depth=2, num_heads=4)
    assert not model(*_inputs()).any()
    hidden = torch.randn(3, 5, 16)
    assert torch.equal(model.blocks[0](hidden, torch.randn(3, 16)), hidden)


@pytest.mark.parametrize("patch", [1, 3, 4])
def test_what_is_not_shown_is_not_read(patch: int) -> None:
    model, (noisy, time, values, shown) = _model(patch=patch), _inputs()
    other = torch.where(shown > 0, values, torch.full_like(values, torch.nan))
    assert torch.equal(model(noisy, time, values, shown), model(noisy, time, other, shown))
    moved = values + shown
    assert not torch.allclose(model(noisy, time, values, shown), model(noisy, time, moved, shown))


def test_every_series_is_treated_on_its_own() -> None:
    model, (noisy, time, values, shown) = _model(), _inputs()
    alone = model(noisy[1:2], time[1:2], values[1:2], shown[1:2])
    assert torch.allclose(model(noisy, time, values, shown)[1:2], alone, atol=1e-5)


def test_classes_and_contexts_matter_and_none_is_a_class_of_its_own() -> None:
    model, inputs = _model(num_classes=2, context=1), _inputs()
    context = torch.zeros(3, 12, 1)
    silent = model(*inputs, context=context)
    assert torch.equal(silent, model(*inputs, label=torch.full((3,), 2), context=context))
    assert not torch.allclose(silent, model(*inputs, label=torch.zeros(3, dtype=torch.long), context=context))
    assert not torch.allclose(silent, model(*inputs, context=context + 1))


def test_a_length_that_patches_do_not_fill_is_refused() -> None:
    with pytest.raises(InputError, match="multiple of 5"):
        _model(patch=5)(*_inputs())


def test_statistics_are_those_of_the_shown_entries() -> None:
    values = torch.tensor([[1.0, 9.0], [2.0, 9.0], [4.0, 9.0], [8.0, 9.0]]).unsqueeze(0)
    shown = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]).unsqueeze(0)
    found = shown_statistics(values, shown).reshape(7, 2)
    deviation = torch.tensor([1.0, 2.0, 8.0]).std(correction=0)
    assert found[:, 0].tolist() == pytest.approx([11 / 3, float(deviation), 1, 8, 8, 1, 0.75])
    assert found[:, 1].tolist() == pytest.approx([0, 0, 0, 0, 0, 0, 0])


def test_bounds_reach_every_block_and_the_last_layer() -> None:
    model = MaskedDiT(channels=2, width=16, depth=2, num_heads=4, bounds=Bounds(gate=0.1))
    assert [module.bounds.gate for module in (*(b.condition for b in model.blocks), model.condition)] == [0.1] * 3


@pytest.mark.parametrize("predicts", get_args(Prediction))
def test_every_prediction_says_the_same_noise(predicts: Prediction) -> None:
    diffusion, time = Diffusion(steps=100, last_beta=0.02, schedule="linear"), torch.tensor([0, 50, 99])
    x, noise = torch.randn(3, 4, 2), torch.randn(3, 4, 2)
    noisy = diffusion.noised(x, noise, time)
    told = diffusion.noise_of(predicts, diffusion.target(predicts, x, noise, time), noisy, time)
    assert torch.allclose(told, noise, atol=1e-4)


def test_all_blocks_see_the_condition_inside_the_ball() -> None:
    """Control: without the ball the same network's conditions are longer."""
    longest = {}
    for radius in (0.5, float("inf")):
        torch.manual_seed(0)
        model = MaskedDiT(channels=2, width=16, depth=2, num_heads=4, bounds=Bounds(condition=radius))
        seen: list[torch.Tensor] = []
        for module in (*(block.condition for block in model.blocks), model.condition):
            module.register_forward_hook(
                lambda module, inputs, output, seen=seen: seen.append(inputs[0].detach().norm(dim=1))
            )
        noisy, time, values, shown = _inputs()
        model(noisy, time, 1e6 * values, shown)
        assert len(seen) == 3
        longest[radius] = float(torch.cat(seen).max())
    assert longest[0.5] <= 0.5 * (1 + 1e-5) < longest[float("inf")]


def test_a_dit_block_starts_as_the_identity() -> None:
    block, x = DiTBlock(16, 4), torch.randn(2, 5, 16)
    assert torch.equal(block(x, torch.randn(2, 16)), x)
