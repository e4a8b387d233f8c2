"""Canary gradients against one iteration of private training: is a unit hidden as well as the plan says?

The mu-test over every canary and every crowd, through the real loop. All scenes of a test together raise a false
alarm with probability 1e-9; a defect of the stated size goes unnoticed in one scene with probability 1e-6, in the
test over all scenes with a tenth for each of the scenes that could show it.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from understudy_bench.audit.shift import required_runs

from tests.canaries.mechanisms import audit_mechanism, observe
from tests.canaries.scenes import Scene, scenes
from tests.canaries.training import training_iteration
from understudy.auditing.scores import LowerBound, audit_scores
from understudy.privacy.events import Gaussian, SubsampledGaussian
from understudy.training import DPSGDConfig, PrivateGradient
from understudy.training.clipping import engine
from understudy.training.clipping.engine import PerUnitClipper
from understudy.training.clipping.per_unit_gradients import Sums
from understudy.training.private_gradient import NormalReserve

FALSE_ALARM, MISSED = 1e-9, 1e-6
BLOCKS = (3, 4)  # two layers
CLIP_NORM = 50.0  # noise of more than one, so that a variance is not taken for a deviation unnoticed
SCENES = scenes(BLOCKS, canary_length=1000.0, others_length=100.0, rng=np.random.default_rng(0))
BY_NAME = {scene.name: scene for scene in SCENES}
CHARGED = 0.1  # little noise: the fewest runs, and the same code
HALF_NOISE, ACROSS_TWO_LAYERS, TEN_PERCENT_LESS = 1.0, math.sqrt(2) - 1, 1 / 0.9 - 1


def audited(
    *tried: Scene, excess: float = HALF_NOISE, noise_multiplier: float = CHARGED, missed: float = MISSED
) -> LowerBound:
    """One iteration of a plan, tried on scenes; enough runs to find `excess`."""
    plan = DPSGDConfig(
        sampling_rate=0.3, iterations=9, expected_batch=4.0, clipping_norm=CLIP_NORM, noise_multiplier=noise_multiplier
    )
    runs = required_runs(1 / CHARGED, excess, alpha=FALSE_ALARM / len(tried), power=1 - missed)
    return audit_mechanism(training_iteration(plan, BLOCKS), tried, runs=runs, confidence=1 - FALSE_ALARM)


def refuted(found: LowerBound) -> bool:
    return found.refutes([Gaussian(CHARGED)])


def test_an_iteration_hides_every_canary_in_every_crowd() -> None:
    found = audited(*SCENES, missed=0.1)
    assert found.family == 24
    assert not refuted(found)


def test_a_canary_in_two_layers_is_hidden_like_one_in_a_single_layer() -> None:
    assert not refuted(audited(BY_NAME["e_0 − e_3, others zero"], excess=ACROSS_TWO_LAYERS))


@pytest.mark.slow
def test_a_long_audit_of_the_real_iteration_finds_no_ten_percent_missing() -> None:
    assert not refuted(audited(BY_NAME["random, others opposed"], excess=TEN_PERCENT_LESS))


@pytest.mark.slow
def test_ten_percent_less_noise_than_the_plan_says_is_caught() -> None:
    scene = BY_NAME["random, others opposed"]
    assert refuted(audited(scene, excess=TEN_PERCENT_LESS, noise_multiplier=0.9 * CHARGED))


def test_half_of_the_noise_is_caught() -> None:
    assert refuted(audited(BY_NAME["e_0, others zero"], noise_multiplier=CHARGED / 2))


def test_one_scalar_of_noise_is_caught_by_coordinates_that_cancel_it_and_not_by_all_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    genuine = NormalReserve.add_to

    def shared(reserve: NormalReserve, vector: Tensor) -> None:
        one = torch.zeros(1)
        genuine(reserve, one)
        vector += one

    monkeypatch.setattr(NormalReserve, "add_to", shared)
    assert refuted(audited(BY_NAME["e_0 − e_1, others zero"]))
    assert not refuted(audited(BY_NAME["ones, others zero"]))


def test_a_layer_without_noise_is_caught_by_a_canary_inside_it_and_not_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    genuine = NormalReserve.add_to
    monkeypatch.setattr(NormalReserve, "add_to", lambda reserve, vector: genuine(reserve, vector[: BLOCKS[0]]))
    assert refuted(audited(BY_NAME["e_3, others zero"]))
    assert not refuted(audited(BY_NAME["e_0, others zero"]))


def test_a_clip_of_each_layer_is_caught_by_a_canary_in_two_layers_and_not_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_layer(clipper: PerUnitClipper, losses: object, num_units: int, sums: Sums, in_all: int) -> None:
        gradients = clipper.collect(losses, num_units).dense()
        for key, gradient in gradients.items():
            norms = gradient.reshape(num_units, -1).norm(dim=1)
            factors = engine.clip_factors(norms, clipper._clipping_norm).nan_to_num(0)
            sums.by_parameter[key].add_(torch.einsum("u,u...->...", factors, gradient))

    monkeypatch.setattr(PerUnitClipper, "add_clipped_sum", by_layer)
    assert refuted(audited(BY_NAME["e_0 − e_3, others zero"], excess=ACROSS_TWO_LAYERS))
    assert not refuted(audited(BY_NAME["e_0 − e_1, others zero"]))


def test_a_clip_of_the_batch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = engine.clip_factors
    monkeypatch.setattr(engine, "clip_factors", lambda norms, clip: genuine(norms.mean().expand_as(norms), clip))
    assert refuted(audited(BY_NAME["random, others opposed"]))


def test_division_by_the_realised_batch_is_caught_among_opponents_and_not_among_likes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    genuine = PrivateGradient.write

    def realised(
        gradient: PrivateGradient, loss: object, windows: object, drawn: np.ndarray, generator: object
    ) -> None:
        genuine(gradient, loss, windows, drawn, generator)
        gradient.flat.gradient.mul_(4.0 / max(len(drawn), 1))

    monkeypatch.setattr(PrivateGradient, "write", realised)
    assert refuted(audited(BY_NAME["ones, others opposed"]))
    assert not refuted(audited(BY_NAME["ones, others aligned"]))


@pytest.mark.slow
def test_with_subsampling_the_charged_curve_is_not_contradicted_and_a_fuller_batch_is() -> None:
    """Counted errors against the privacy loss distribution of one iteration: everybody drawn, a tenth charged."""
    plan = DPSGDConfig(sampling_rate=0.1, iterations=9, expected_batch=4.0, noise_multiplier=0.5)
    scene, charged = BY_NAME["random, others opposed"], SubsampledGaussian(0.1, 0.5, 1)
    found = {
        rate: audit_scores(
            {scene.name: observe(training_iteration(plan, BLOCKS, rate=rate), scene, 600)},
            delta=1e-5,
            confidence=1 - FALSE_ALARM,
            aim="mu",
        )
        for rate in (0.1, 1.0)
    }
    assert not found[0.1].refutes([charged])
    assert found[1.0].refutes([charged])
    assert not found[1.0].refutes([Gaussian(0.5)])
