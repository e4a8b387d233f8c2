"""One private iteration: where noise goes, what it is divided by, and that chunks change nothing."""

import multiprocessing

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.training.toy import plan_of, regression_arrays, squared_error, windows_of
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.dit.published import MaskedDiT
from understudy.training import PrivateGradient
from understudy.training.private_gradient import FlatParameters, NormalReserve


def gradient_of(model: nn.Module, noise: NoiseSource, units: int | None = None, **changes: object) -> PrivateGradient:
    return PrivateGradient(model, plan_of(**changes), noise, max_units=units)


NETWORKS = {
    "linear": lambda: nn.Linear(3, 1),
    "dit": lambda: MaskedDiT(channels=2, width=8, depth=1, num_heads=2),
    "conv": lambda: nn.Sequential(nn.Conv1d(2, 8, 3), nn.GroupNorm(2, 8), nn.Conv1d(8, 2, 1)),
    "lstm": lambda: nn.LSTM(3, 4, batch_first=True),
    "unused layers": lambda: nn.ModuleDict({"used": nn.Linear(3, 1), "not": nn.Linear(5, 5)}),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_parameter_gets_exactly_the_stated_noise(name: str) -> None:
    found = []
    for value in (0.0, 1.0):
        torch.manual_seed(0)
        gradient = gradient_of(NETWORKS[name](), NoiseSource.constant(value), clipping_norm=0.5, noise_multiplier=3.0)
        gradient.finish()
        found.append(gradient.flat.gradient)
    difference = found[1] - found[0]
    assert torch.allclose(difference, torch.full_like(difference, 3.0 * 0.5 / 20.0), rtol=1e-6, atol=0)
    assert difference.numel() == sum(parameter.numel() for parameter in NETWORKS[name]().parameters())


def test_an_empty_draw_is_noised_like_any_other() -> None:
    gradient = gradient_of(nn.Linear(3, 1), NoiseSource.constant(1.0))
    gradient.write(squared_error, windows_of(regression_arrays(5)), np.zeros(0, np.int64), torch.Generator())
    assert torch.allclose(gradient.flat.gradient, torch.full((4,), 4 / 20.0))


def test_the_sum_is_divided_by_the_expected_batch_and_not_by_the_realised_one() -> None:
    windows = windows_of(regression_arrays(12))
    norms = []
    for drawn in (np.arange(6), np.arange(12)):
        torch.manual_seed(0)
        gradient = gradient_of(nn.Linear(3, 1), NoiseSource.constant(0.0), clipping_norm=0.1)
        gradient.write(squared_error, windows, drawn, torch.Generator())
        norms.append(gradient.flat.gradient * 20.0)
    assert float(norms[1].norm()) <= 12 * 0.1
    torch.manual_seed(0)
    rest = gradient_of(nn.Linear(3, 1), NoiseSource.constant(0.0), clipping_norm=0.1)
    rest.write(squared_error, windows, np.arange(6, 12), torch.Generator())
    assert torch.allclose(norms[1] - norms[0], rest.flat.gradient * 20.0, atol=0.1 * 2**-11)  # a step of the lattice


@pytest.mark.parametrize("units", [1, 2, 5, 100])
def test_memory_chunks_do_not_change_the_gradient(units: int) -> None:
    results = []
    for chunk in (100, units):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
        gradient = gradient_of(model, NoiseSource.constant(0.0), chunk, clipping_norm=0.1)
        gradient.write(squared_error, windows_of(regression_arrays(11)), np.arange(11), torch.Generator())
        results.append(gradient.flat.gradient.clone())
    assert torch.allclose(results[0], results[1], rtol=1e-5, atol=1e-8)


def test_a_public_gradient_is_added_in_full_after_the_noise() -> None:
    model = nn.Linear(3, 1)
    gradient = gradient_of(model, NoiseSource.constant(0.0))
    gradient.flat.gradient.zero_()
    gradient.add_public(model.bias.sum() * 1e6)
    assert gradient.flat.views[id(model.bias)].item() == 1e6
    assert gradient.flat.views[id(model.weight)].norm() == 0


def test_flat_parameters_are_the_model_s_parameters() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    flat = FlatParameters(list(model.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    flat.values.zero_()
    assert all(float(parameter.detach().norm()) == 0 for parameter in model.parameters())


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_an_optimiser_moves_flat_parameters_as_it_would_move_the_model_s(make: type) -> None:
    torch.manual_seed(0)
    models = [nn.Linear(3, 5), nn.Linear(3, 5)]
    models[1].load_state_dict(models[0].state_dict())
    flat = FlatParameters(list(models[0].parameters()))
    optimisers = [flat.optimiser(lambda parameters: make(parameters, lr=0.1)), make(models[1].parameters(), lr=0.1)]
    for _ in range(3):
        flat.gradient.normal_()
        for parameter, own in zip(models[1].parameters(), models[0].parameters(), strict=True):
            parameter.grad = flat.views[id(own)].clone()
        for optimiser in optimisers:
            optimiser.step()
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-7)


def test_noise_is_never_handed_out_twice() -> None:
    reserve = NormalReserve(NoiseSource.seeded(3), 1.0, 2.0**-50)
    first, second = torch.zeros(200_000, dtype=torch.float64), torch.zeros(200_000, dtype=torch.float64)
    reserve.add_to(first)
    reserve.add_to(second)
    everything = torch.cat([first, second])
    assert len(torch.unique(everything)) == len(everything)


def _child(reserve: NormalReserve, pipe: "multiprocessing.connection.Connection") -> None:
    vector = torch.zeros(4, dtype=torch.float64)
    reserve.add_to(vector)
    pipe.send(vector.tolist())


def test_a_forked_process_does_not_share_drawn_noise() -> None:
    reserve = NormalReserve(NoiseSource.secure(), 1.0, 2.0**-50)
    reserve.add_to(torch.zeros(4, dtype=torch.float64))
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_child, args=(reserve, there))
    child.start()
    of_child = here.recv()
    child.join()
    mine = torch.zeros(4, dtype=torch.float64)
    reserve.add_to(mine)
    assert not set(mine.tolist()) & set(of_child)
