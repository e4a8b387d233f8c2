"""The engine as a whole: parameters used twice, unknown layers, second derivatives, loss shapes, bad gradients."""

import gc
import logging
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.unit.training.reference import engine_sum, relative_error, shaken
from understudy.errors import InputError, UnsafeModule
from understudy.training.clipping.engine import PerUnitClipper, clip_factors
from understudy.training.clipping.per_unit_gradients import NORM_MARGIN

UNITS = 5
TOLERANCE = 1e-6
CLIP = 0.3


def series(*shape: int) -> torch.Tensor:
    return torch.randn(UNITS, *shape, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def discriminator() -> nn.Module:
    return shaken(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1)))


class TiedDirectly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.mix = nn.Embedding(6, 4), nn.Linear(4, 4)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return functional.linear(self.mix(self.table(index)), self.table.weight)


class BareParameters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.position, self.start = nn.Parameter(torch.zeros(7, 4)), nn.Parameter(torch.zeros(1, 1, 4))
        self.mix, self.recurrent = nn.Linear(4, 3), nn.LSTM(3, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.start.expand(x.shape[0], -1, -1)
        return self.recurrent(self.mix(torch.cat([x + self.position, first], 1)))[0]


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.recurrent, self.conv = kind(4, 3, batch_first=True), nn.Conv1d(3, 2, 3)
        self.logit = nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.logit(self.conv(self.recurrent(x)[0].transpose(1, 2)).mean(2))


def test_a_layer_called_twice_has_its_gradients_summed_before_the_norm() -> None:
    model, x = shaken(nn.Linear(4, 4)), series(4)
    assert relative_error(model, lambda rows: model(model(x[rows]).tanh()).square(), UNITS) < TOLERANCE


def test_a_layer_called_on_vectors_and_on_sequences_has_both_summed() -> None:
    model, x, y = shaken(nn.Linear(4, 4)), series(4), series(7, 4)

    def losses(rows: slice) -> torch.Tensor:
        return model(x[rows]).square().mean(1) + model(y[rows]).square().mean((1, 2))

    assert relative_error(model, losses, UNITS) < TOLERANCE


def test_opposite_uses_cancel_exactly() -> None:
    model, x = shaken(nn.Linear(4, 4)), series(4)
    found = engine_sum(model, lambda: model(x) - model(x.clone()), UNITS, CLIP)
    assert float(found.norm()) < 1e-12


def test_weights_shared_by_two_layers_are_one_parameter() -> None:
    model = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6, bias=False))
    model[1].weight = model[0].weight
    shaken(model)
    index = torch.randint(0, 6, (UNITS, 9))
    assert relative_error(model, lambda rows: model(index[rows]).square(), UNITS) < TOLERANCE


def test_a_parameter_used_behind_its_layers_back_is_still_right(caplog: pytest.LogCaptureFixture) -> None:
    model, index = shaken(TiedDirectly()), torch.randint(0, 6, (UNITS, 9))
    with caplog.at_level(logging.INFO):
        assert relative_error(model, lambda rows: model(index[rows]).square(), UNITS) < TOLERANCE
    assert "outside the layer that owns it" in caplog.text


def test_a_parameter_used_from_outside_the_model_is_refused() -> None:
    model, x = shaken(nn.Linear(4, 4)), series(4)
    with pytest.raises(UnsafeModule, match="inside the forward"):
        engine_sum(model, lambda: functional.linear(x, model.weight), UNITS, CLIP)
    assert isinstance(model.weight, nn.Parameter)


UNKNOWN = {
    "bare parameters": (BareParameters, (7, 4)),
    "multi-head attention": (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (7, 4)),
    "two-dimensional convolution": (lambda: nn.Conv2d(3, 4, 3), (3, 6, 6)),
    "normalised weights": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (7, 4)),
    "a bilinear form": (lambda: nn.Sequential(nn.Linear(4, 4), nn.PReLU(4)), (4,)),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", UNKNOWN)
def test_a_layer_without_a_rule_runs_by_vmap_and_says_so_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    make, shape = UNKNOWN[name]
    model, x = shaken(make()), series(*shape)
    with caplog.at_level(logging.INFO):
        assert relative_error(model, lambda rows: model(x[rows]).square(), UNITS) < TOLERANCE
    assert sum("using vmap" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("kind", [None, nn.LSTM, nn.GRU], ids=["dense", "LSTM", "GRU"])
def test_gradient_penalties_are_differentiated_twice_within_each_unit(kind: type[nn.Module] | None) -> None:
    model = discriminator() if kind is None else shaken(Recurrent(kind))
    x = series(4) if kind is None else series(6, 4)

    def losses(rows: slice) -> torch.Tensor:
        point = x[rows].clone().requires_grad_()
        output = model(point)
        (slope,) = torch.autograd.grad(output.sum(), point, create_graph=True)
        return output.squeeze(1) + 10 * (slope.flatten(1).norm(dim=1) - 1).square()

    assert relative_error(model, losses, UNITS) < TOLERANCE


def test_a_gradient_taken_inside_the_loss_is_not_recorded() -> None:
    model, x = discriminator(), series(4)

    def losses(rows: slice) -> torch.Tensor:
        point = x[rows].clone().requires_grad_()
        (slope,) = torch.autograd.grad(model(point).sum(), point)
        return model(x[rows] + slope.detach())

    assert relative_error(model, losses, UNITS) < TOLERANCE


def test_real_and_fake_passes_of_a_unit_are_one_gradient() -> None:
    model, real, fake = discriminator(), series(4), series(4)
    assert relative_error(model, lambda rows: model(fake[rows]) - model(real[rows]), UNITS) < TOLERANCE


LOSS_SHAPES = {
    "(unit,)": lambda output: output.mean((1, 2)),
    "(unit, 1)": lambda output: output.mean((1, 2)).unsqueeze(1),
    "(unit, step, channel)": lambda output: output,
    "(unit, 1, 1)": lambda output: output.mean((1, 2), keepdim=True),
}


@pytest.mark.parametrize("shape", LOSS_SHAPES)
def test_losses_of_any_shape_are_right_and_bounded(shape: str) -> None:
    model, x = shaken(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))), series(7, 4)
    reduce = LOSS_SHAPES[shape]
    assert relative_error(model, lambda rows: reduce(model(x[rows]).square()), UNITS) < TOLERANCE
    total = engine_sum(model, lambda: 1e6 * reduce(model(x).square()), UNITS, CLIP)
    assert float(total.norm()) <= UNITS * CLIP


def test_a_loss_reduced_over_units_is_refused() -> None:
    model, x = shaken(nn.Linear(4, 1)), series(4)
    with pytest.raises(InputError, match="reduction='none'"):
        engine_sum(model, lambda: model(x).mean(), UNITS, CLIP)


def test_units_anywhere_but_first_are_refused() -> None:
    model, x = shaken(nn.Linear(4, 1)), series(7, 4)
    with pytest.raises(UnsafeModule, match="units in its first dimension"):
        engine_sum(model, lambda: model(x.transpose(0, 1)).sum(0), UNITS, CLIP)


def test_an_input_changed_in_place_after_use_is_refused() -> None:
    model, x = shaken(nn.Linear(4, 4)), series(4)

    def losses() -> torch.Tensor:
        hidden = x.clone()
        output = model(hidden)
        hidden.mul_(2)
        return output

    with pytest.raises(UnsafeModule, match="changed in place"):
        engine_sum(model, losses, UNITS, CLIP)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30, 1e20], ids=str)
@pytest.mark.parametrize("kind", ["dense", "sequence", "convolution", "embedding", "recurrent", "vmap"])
def test_a_unit_with_a_bad_gradient_stays_bounded_and_harms_nobody(bad: float, kind: str) -> None:
    models = {
        "dense": (nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), (4,)),
        "sequence": (nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1)), (7, 4)),
        "convolution": (nn.Sequential(nn.Conv1d(4, 3, 3), nn.GroupNorm(1, 3)), (4, 9)),
        "embedding": (nn.Embedding(6, 4), (3,)),
        "recurrent": (Recurrent(nn.LSTM), (6, 4)),
        "vmap": (nn.Conv2d(4, 2, 2), (4, 3, 3)),
    }
    model, shape = models[kind]
    x = torch.randint(0, 6, (UNITS, *shape)) if kind == "embedding" else torch.randn(UNITS, *shape)
    factor = torch.ones(UNITS)
    factor[2] = bad

    def losses() -> torch.Tensor:
        return model(x).flatten(1).square() * factor.unsqueeze(1)

    total = engine_sum(model, losses, UNITS, CLIP)
    keep = [0, 1, 3, 4]
    without = engine_sum(model, lambda: model(x[keep]).flatten(1).square(), 4, CLIP)
    assert torch.isfinite(total).all()
    assert float(total.norm()) <= UNITS * CLIP
    assert float((total - without).norm()) <= CLIP * (1 + 1e-6)


def test_a_zero_gradient_is_not_divided_by_zero() -> None:
    model, x = shaken(nn.Linear(4, 4)), series(4)
    assert float(engine_sum(model, lambda: 0 * model(x), UNITS, CLIP).norm()) == 0


def test_frozen_parameters_stay_out() -> None:
    model, x = shaken(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))), series(4)
    model[0].weight.requires_grad_(False)
    assert relative_error(model, lambda rows: model(x[rows]), UNITS) < TOLERANCE


def test_the_model_is_left_as_it_was_even_after_an_error() -> None:
    model, x = discriminator(), series(4)
    parameters = list(model.parameters())

    def losses() -> torch.Tensor:
        model(x)
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        engine_sum(model, losses, UNITS, CLIP)
    assert [id(parameter) for parameter in model.parameters()] == [id(parameter) for parameter in parameters]
    assert all("forward" not in module.__dict__ for module in model.modules())
    assert all(parameter.grad is None for parameter in parameters)


@pytest.mark.parametrize("steps", [1, 5])
def test_gradients_of_units_are_freed_at_once(steps: int) -> None:
    recurrent = Recurrent(nn.LSTM)
    recurrent.conv = nn.Conv1d(3, 2, 1)
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), recurrent), torch.randn(UNITS, steps, 4)
    clipper = PerUnitClipper(model, CLIP)
    gc.collect()
    gc.disable()
    try:
        collector = weakref.ref(clipper.collect(lambda: model(x), UNITS))
        assert collector() is None, "a reference cycle keeps private gradients alive"
    finally:
        gc.enable()


COUPLING = {
    "sequence": (lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1)), (7, 4)),
    "dense": (lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), (4,)),
    "convolution": (lambda: nn.Sequential(nn.Conv1d(4, 6, 3), nn.SiLU(), nn.Conv1d(6, 1, 3)), (4, 12)),
    "recurrent": (lambda: Recurrent(nn.LSTM), (6, 4)),
    "vmap": (BareParameters, (7, 4)),
}


def contributions(clipper: PerUnitClipper, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """What each unit adds to the sum, [unit, parameter], copied out of the engine's memory."""
    collector = clipper.collect(lambda: model(x).flatten(1).square(), UNITS)
    factors = clip_factors(collector.norms(), CLIP).float().unsqueeze(1)
    return torch.cat([factors * gradient.flatten(1) for gradient in collector.dense().values()], 1)


@pytest.mark.parametrize("name", COUPLING)
def test_perturbing_one_unit_leaves_every_other_contribution_bit_identical(name: str) -> None:
    make, shape = COUPLING[name]
    model, x = make(), torch.randn(UNITS, *shape)
    other = x.clone()
    other[2] = 1e3 * torch.randn(shape)
    clipper = PerUnitClipper(model, CLIP)
    before, after = contributions(clipper, model, x), contributions(clipper, model, other)
    keep = [0, 1, 3, 4]
    assert torch.equal(before[keep], after[keep])
    assert not torch.equal(before[2], after[2])


@pytest.mark.parametrize("value", [1 / 3, 1e-3, 16777217.0 / 16777216.0])
def test_float32_rounding_stays_within_the_clip_margin(value: float) -> None:
    """Equal values make every rounding error of a long sum point the same way: the worst case for a norm."""
    model = nn.Linear(700, 600, bias=False)
    x = torch.full((1, 3, 700), value)
    total = engine_sum(model, lambda: 1e6 * model(x), 1, clip=1.0)
    assert 1 - 1.1 * NORM_MARGIN < float(total.norm()) <= 1 - 0.9 * NORM_MARGIN


@pytest.mark.parametrize("width", [64, 256, 512])
@pytest.mark.parametrize("apart", [0.0, 1e-7, 1e-5, 1e-3, 0.03, 0.3])
def test_rows_that_nearly_cancel_weigh_no_more_than_the_clip(width: int, apart: float) -> None:
    """As many rows as are measured by their products; positive ones first, so that partial sums are long."""
    model, rows = nn.Linear(width, width, bias=False), width // 32
    row, slope = torch.rand(width), torch.rand(width)
    x = torch.cat([row.expand(rows, -1), -row.expand(rows, -1) + apart * torch.randn(rows, width)]).unsqueeze(0)
    for _ in range(5):
        total = engine_sum(model, lambda x=x: 1e9 * model(x) * slope, 1, clip=1.0)
        assert float(total.double().norm()) <= 1.0
        x = x * (1 + 1e-3 * torch.randn(width))


@pytest.mark.parametrize(
    ("rows", "width", "units", "places"),
    [(2, 128, 400, 8), (3, 128, 400, 8), (4, 128, 400, 8), (5, 128, 400, 80), (7, 128, 400, 60), (11, 256, 62, 62)],
)
def test_long_rows_that_cancel_swallow_no_other_units(rows: int, width: int, units: int, places: int) -> None:
    """A unit of nothing but +big and −big, anywhere among others, moves the sum by no more than the clip.

    Matrix products add up rows in blocks; where big ends one block and −big begins the next, a float32 sum loses all
    units of that block (several times the clip at the 77th of 400 units of five rows).
    """
    middle = min(76, units // 2)
    model, one = nn.Linear(width, width, bias=False), torch.full((width,), width**-0.5)
    x, slope = (0.9 * one).expand(units, rows, width), one.expand(units, rows, width)
    odd, odd_slope = torch.zeros(1, rows, width), torch.zeros(1, rows, width)
    odd[0, -2:], odd_slope[0, -2], odd_slope[0, -1] = 1e9 * one, one, -one

    def total(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
        return engine_sum(model, lambda: (model(x) * slope).sum(2), len(x), clip=1.0).double()

    without = total(x, slope)
    for place in range(max(0, middle - places // 2), middle + places // 2):
        among = [torch.cat([all_[:place], own, all_[place:]]) for all_, own in ((x, odd), (slope, odd_slope))]
        assert float((total(*among) - without).norm()) <= 1.0


@pytest.mark.parametrize("rows", [1, 2, 64])
@pytest.mark.parametrize("power", [30.0, 33.15, 35.0, 37.0])
def test_a_gradient_that_float32_can_not_hold_weighs_no_more_than_the_clip(rows: int, power: float) -> None:
    """A factor below the least normal float32 would be rounded up; whatever the form, such a unit is left out."""
    model, x, slope = nn.Linear(64, 64, bias=False), torch.zeros(1, rows, 64), torch.zeros(1, rows, 64)
    x[0, 0, 0], slope[0, 0, 0] = 1e12, min(10**power * rows * 64, 3e38)
    total = engine_sum(model, lambda: model(x) * slope, 1, clip=1.0)
    assert float(total.double().norm()) <= 1.0


def test_squares_that_float32_loses_let_no_unit_past_the_clip() -> None:
    """The slope's squares are zero in float32; times an input of length 10¹⁹ they are a fifth of the clip norm."""
    wide, other = nn.Linear(2048, 2048, bias=False), nn.Linear(1, 1, bias=False)
    x = torch.full((1, 2048), 4e17)

    def losses() -> torch.Tensor:
        return (wide(x) * 2.5e-23).sum(1) + other(torch.full((1, 1), 0.0999)).sum(1)

    assert float(engine_sum(nn.ModuleList([wide, other]), losses, 1, clip=0.1).norm()) <= 0.1


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_is_refused(kind: torch.dtype) -> None:
    with pytest.raises(InputError, match="float32 or float64"):
        PerUnitClipper(nn.Linear(4, 4).to(kind), CLIP)


@pytest.mark.parametrize("units", [2, 40])
def test_half_precision_inside_the_model_is_refused_whatever_the_batch(units: int) -> None:
    """Rounded to 2⁻⁹, the norm of one among 128 units came out short by more than the margin."""
    model = nn.Linear(48, 48)

    def losses() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(torch.ones(units, 48)).float().square().sum(1)

    with pytest.raises(UnsafeModule, match="precision of their parameters"):
        PerUnitClipper(model, CLIP).collect(losses, units)


def test_products_in_reduced_precision_are_refused() -> None:
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.raises(InputError, match="full precision"):
            PerUnitClipper(nn.Linear(4, 4), CLIP)
    finally:
        torch.set_float32_matmul_precision("highest")


def test_few_rows_are_never_written_out_and_many_are() -> None:
    """The form follows from shapes alone, which are public."""
    model = nn.Linear(64, 64, bias=False)
    for rows, short in ((4, True), (60, False)):
        collector = PerUnitClipper(model, CLIP).collect(lambda rows=rows: model(torch.randn(UNITS, rows, 64)), UNITS)
        (record,) = collector._records.values()
        assert (record.outer is not None) is short


def test_the_norm_of_a_wide_outer_product_is_a_product_of_whole_norms() -> None:
    wide = 4500  # more than one block of partial norms on either side
    model, x = nn.Linear(wide, wide, bias=False), torch.randn(2, wide)
    weights = torch.randn(wide)
    collector = PerUnitClipper(model, CLIP).collect(lambda: model(x) * weights, 2)
    truth = x.double().norm(dim=1) * (weights.double() / wide).norm()
    assert torch.allclose(collector.norms(), truth, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_opacus_agrees() -> None:
    opacus = pytest.importorskip("opacus")
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2)).double()
    x = series(7, 4)
    found = PerUnitClipper(model, CLIP).collect(lambda: model(x).square(), UNITS).dense()
    theirs = opacus.GradSampleModule(model, loss_reduction="sum")
    theirs(x).square().mean((1, 2)).sum().backward()
    for parameter in model.parameters():
        assert torch.allclose(found[id(parameter)], parameter.grad_sample, rtol=1e-9, atol=1e-12)
