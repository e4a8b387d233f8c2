"""One unit moves a sum of clipped gradients by its own length, however many others there are and whatever they hold.

The units below make float32 drift: half of them reach a power of two, at which a float32 sum gets coarser, and the rest
add 1.1 and take away 0.9 of the last bit, in turn. One unit more decides on which side of the power that happens.
"""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.unit.training.toy import windows_of
from understudy.privacy.noise import NoiseSource
from understudy.training import DPSGDConfig, PrivateGradient
from understudy.training.clipping.per_unit_gradients import Outer, Products, Record, block_norms

WIDTH = 4
UNITS = 49_152


def drifting(number: int) -> tuple[Tensor, Tensor]:
    """Gradients [unit, number] of length at most one, without and with one unit more."""
    whole = 2 ** (number.bit_length() - 2)
    last_bit = whole * 2.0**-24
    rest = torch.tensor([1.1 * last_bit, -0.9 * last_bit]).repeat((number - whole) // 2)
    values = torch.cat([torch.ones(whole - 1), torch.tensor([0.5]), rest])
    gradients = values.unsqueeze(1).expand(-1, WIDTH) / WIDTH**0.5
    one = torch.full((1, WIDTH), WIDTH**-0.5)
    return gradients, torch.cat([gradients[:whole], one, gradients[whole:]])


FORMS = {
    "kept": lambda rows: Record(kept=rows),
    "outer": lambda rows: Record(outer=Outer(rows, torch.ones(len(rows), 1))),
    "groups": lambda rows: Record(outer=Outer(rows.unsqueeze(2), torch.ones(len(rows), WIDTH, 1))),
    "products": lambda rows: Record(outer=Products(rows.unsqueeze(1), torch.ones(len(rows), 1, 1))),
}
SHAPES = {"groups": (WIDTH, 1, 1)}


def summed(form: str, gradients: Tensor) -> Tensor:
    total = torch.zeros(SHAPES.get(form, (WIDTH, 1)), dtype=torch.float64)
    FORMS[form](gradients.contiguous()).add_to(total, torch.ones(len(gradients), dtype=torch.float64))
    return total.view(-1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [1024, 8192, UNITS])
def test_one_unit_moves_a_float64_sum_of_any_form_by_its_own_length(form: str, number: int) -> None:
    without, extra = drifting(number)
    moved = float((summed(form, extra) - summed(form, without)).norm())
    assert moved == pytest.approx(1.0, abs=2 * number**2 * 2.0**-53)


def test_a_float32_sum_would_move_by_many_times_that() -> None:
    without, extra = (torch.mv(rows.contiguous().t(), torch.ones(len(rows))) for rows in drifting(UNITS))
    assert float((extra - without).norm()) > 10


def gradient_as_given(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    """A loss whose gradient is the unit's own row."""
    return (model(torch.ones(len(batch["x"]), 1)) * batch["x"]).sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("number", "chunk"),
    [(UNITS, UNITS + 1), (UNITS, 7001), (8192, 500), (1024, 1025), (512, 64), (512, 7), (128, 129), (64, 65), (48, 49)],
)
@pytest.mark.parametrize("form", ["outer", "kept"])
def test_one_unit_moves_an_iteration_by_its_own_length_in_any_chunks(number: int, chunk: int, form: str) -> None:
    """A clip norm of 1.01 leaves all units as they are; the noise is replaced by nothing."""
    config = DPSGDConfig(sampling_rate=1.0, iterations=1, expected_batch=1.0, clipping_norm=1.01, noise_multiplier=1.0)
    written = []
    for rows in drifting(number):
        model = nn.Linear(1, WIDTH)
        (model.bias if form == "outer" else model.weight).requires_grad_(False)
        gradient = PrivateGradient(model, config, NoiseSource.constant(0.0), max_units=chunk)
        gradient.write(gradient_as_given, windows_of({"x": rows.numpy()}), np.arange(len(rows)), torch.Generator())
        written.append(gradient.flat.gradient.double())
    assert float((written[1] - written[0]).norm()) <= 1 + 2.0**-12 + 2.0**-11  # sums, lattice


@pytest.mark.parametrize("width", [1, 2047, 2048, 2049, 4097, 100_003, 1_000_000])
@pytest.mark.parametrize("value", [1 / 3, 1e-3, 1.0000001, 4097.0])
def test_a_squared_norm_is_short_by_less_than_an_eighth_of_the_margin(width: int, value: float) -> None:
    """In any order n additions lose at most n · 2⁻²⁴ of a sum of squares; n is at most 2,048 here."""
    row = torch.full((1, width), value)
    norms = block_norms(row)
    assert norms.shape[1] >= width / 2048
    found = float(norms.double().square().sum())
    assert found == pytest.approx(float(row.double().square().sum()), rel=2.0**-13)
