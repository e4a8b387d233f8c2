"""Several iterations with subsampling, against the trade-off curve of their privacy loss distribution.

Each audit alarms falsely with probability 1e-4. The controls are a tenth of the noise in the short test, half of it and
twice the rate in the long ones, which found it in 40 of 40 simulated audits of that size.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from tests.canaries.composition import audit_composition, log_likelihood_ratio
from tests.canaries.scenes import scenes
from understudy.auditing.scores import LowerBound
from understudy.privacy.events import SubsampledGaussian
from understudy.training import DPSGDConfig

BLOCKS = (3, 4)
SCENES = [
    scene
    for scene in scenes(BLOCKS, canary_length=100.0, rng=np.random.default_rng(0))
    if scene.name == "random, others orthogonal"
]
CHARGED = DPSGDConfig(sampling_rate=0.5, iterations=8, expected_batch=3.0, noise_multiplier=1.4)


def audited(config: DPSGDConfig, runs: int) -> LowerBound:
    return audit_composition(config, BLOCKS, SCENES, runs=runs, confidence=1 - 1e-4)


def event_of(plan: DPSGDConfig) -> SubsampledGaussian:
    assert isinstance(plan.event, SubsampledGaussian)
    return plan.event


def test_the_score_is_the_likelihood_ratio_of_the_claimed_mixture() -> None:
    seen, rate, noise = np.array([[0.3, -1.2, 2.0]]), 0.3, 0.7
    present = (1 - rate) * norm.pdf(seen, 0, noise) + rate * norm.pdf(seen, 1, noise)
    expected = np.log(present / norm.pdf(seen, 0, noise)).sum(axis=1)
    assert log_likelihood_ratio(seen, rate, noise) == pytest.approx(expected)
    assert log_likelihood_ratio(seen, 1.0, noise) == pytest.approx(((2 * seen - 1) / (2 * noise**2)).sum(axis=1))


def test_what_is_charged_for_several_iterations_is_not_contradicted_and_a_tenth_of_the_noise_is() -> None:
    charged = event_of(CHARGED)
    assert not audited(CHARGED, 150).refutes([charged])
    assert audited(replace(CHARGED, noise_multiplier=0.14), 150).refutes([charged])


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [{"noise_multiplier": 0.7}, {"sampling_rate": 1.0}], ids=["noise", "rate"])
def test_half_of_the_noise_or_twice_the_rate_contradicts_the_curve(wrong: dict[str, float]) -> None:
    charged = event_of(CHARGED)
    assert not audited(CHARGED, 800).refutes([charged])
    assert audited(replace(CHARGED, **wrong), 800).refutes([charged])  # type: ignore[arg-type]
