"""No bit of a release tells neighbours apart: outcomes that one of them can't have.

Mironov (2012) for Laplace noise and Jin et al. (arXiv:2112.05307) for Gaussian noise read the last bits of value plus
noise. A double near one is a multiple of 2⁻⁵³; a double near zero may be far finer. So a small and fine answer says
that the value before the noise was zero, surely. No chance is involved below: one impossible outcome is a failure.
"""

import numpy as np
import pytest
import torch
from torch import nn

from tests.releases import released
from tests.unit.privacy.test_grant import granted
from tests.unit.training.toy import windows_of
from understudy.privacy.border import lattice_step
from understudy.privacy.events import Gaussian
from understudy.privacy.noise import NoiseSource
from understudy.training import DPSGDConfig, PrivateGradient
from understudy.training.private_gradient import gradient_step

RELEASES = 4000


def impossible(answers: np.ndarray, value: float, last_bit: float) -> int:
    """How many answers `value` plus a floating-point number can't give: finer than its last bit, and near zero."""
    finest = last_bit * value
    return int(((np.abs(answers) < value / 2) & (np.remainder(answers, finest) != 0)).sum())


def test_doubles_plus_doubles_told_neighbours_apart() -> None:
    """The control: what a release was before. One of the two neighbours gives thousands of telling answers."""
    noise = NoiseSource.seeded(5).normal(1.0, RELEASES)
    assert impossible(0.0 + noise, 1.0, 2.0**-53) > RELEASES / 10
    assert impossible(1.0 + noise, 1.0, 2.0**-53) == 0


@pytest.mark.parametrize("multiplier", [0.3, 1.0, 40.0, 1e6])
def test_answers_of_a_grant_are_multiples_of_a_public_step_whatever_the_value(multiplier: float) -> None:
    step = lattice_step(1.0, multiplier)
    for value in (0.0, 1.0, 1 / 3, 1e9 / 7):
        _, grant = granted(sum=Gaussian(multiplier))
        answers = released(grant, "sum", np.full((3, RELEASES), value))
        assert (np.remainder(answers, step) == 0).all()
        assert impossible(answers, 1.0, 2.0**-53) == 0


def noisy_gradients(value: float, iterations: int) -> np.ndarray:
    """One parameter that starts at zero; all units together pull it by `value`."""
    plan = DPSGDConfig(sampling_rate=1.0, iterations=iterations, expected_batch=1.0, noise_multiplier=1.0)
    model = nn.Linear(1, 1, bias=False)
    gradient = PrivateGradient(model, plan, NoiseSource.secure())
    windows = windows_of({"x": np.full((1, 1), value, np.float32)})
    written = []
    for _ in range(iterations):
        gradient.write(lambda model, batch, _: model(batch["x"]), windows, np.arange(1), torch.Generator())
        written.append(float(gradient.flat.gradient))
    return np.array(written)


def test_float32_gradients_plus_noise_told_neighbours_apart() -> None:
    noise = NoiseSource.seeded(6).normal(1.0, RELEASES).astype(np.float32)
    assert impossible(np.float32(0) + noise, 0.5, 2.0**-24) > RELEASES / 20
    assert impossible(np.float32(0.5) + noise, 0.5, 2.0**-24) == 0


@pytest.mark.parametrize("value", [0.0, 0.5, 1 / 3])
def test_noisy_gradients_are_multiples_of_a_public_step_whatever_the_data(value: float) -> None:
    answers = noisy_gradients(value, 400)
    assert (np.remainder(answers, gradient_step(1.0, 1)) == 0).all()
    assert impossible(answers, 0.5, 2.0**-24) == 0
