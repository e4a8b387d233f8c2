"""Canary series against whole fits: does one unit move what a method answers by more than it was charged for?

First without statistics: how far the unit moves each answer, in deviations of the noise that is really there. Then
with real noise, on the scene that moves most. False alarm 1e-9 over all labels of a test. Half of the noise would go
unnoticed with probability 0.1 on the real code, and does with 1e-6 in the control.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from understudy_bench.audit.canaries import (
    ALL,
    Neighbours,
    Reach,
    answer_scores,
    panel_scenes,
    reach_of,
    release_scores,
)
from understudy_bench.audit.shift import mu_test, required_runs

from understudy.auditing.scores import audit_scores
from understudy.data import Continuous, Panel, Population, Time
from understudy.privacy.border import Statistic, lattice_step
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import Private, PrivateSeries
from understudy.synthesizers.base import Progress
from understudy.synthesizers.contract.panels import plain_schema
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.spectral import Spectral

FALSE_ALARM = 1e-9
MUCH = Guarantee(200.0, 1e-7)  # little noise: the fewest runs, and the same code
SCHEMA = plain_schema(
    channels=(Continuous("load", 0.0, 20.0, missing=True), Continuous("solar", 0.0, 1.0)),
    time=Time(column="when", steps=6),
    population=Population(500),
)
PLAN = Spectral().plan(SCHEMA, MUCH)
CHARGED = {entry.label: 1 / entry.event.noise_multiplier for entry in PLAN.entries}
CHARGED_IN_ALL = math.hypot(*CHARGED.values())
SCENES = panel_scenes(SCHEMA, rng=np.random.default_rng(0))
STRONGEST = "ones, others ordinary"


def neighbours_in(scene: str, method: Spectral | Independent | None = None, guarantee: Guarantee = MUCH) -> Neighbours:
    absent, present = SCENES[scene]
    return Neighbours(method=method or Spectral(), absent=absent, present=present, guarantee=guarantee)


@pytest.fixture(scope="module")
def reaches() -> dict[str, Reach]:
    return {scene: reach_of(neighbours_in(scene)) for scene in SCENES}


def excess_of(reach: Reach) -> float:
    """How far a unit moves answers beyond what was charged: at most 1, or the charge is too small."""
    labels = [reach.mu(label) / CHARGED[label] for label in reach.moved]
    return max(*labels, reach.mu() / CHARGED_IN_ALL)


def test_no_canary_moves_an_answer_by_more_noise_than_was_charged(reaches: dict[str, Reach]) -> None:
    assert len(reaches) == 16
    for scene, reach in reaches.items():
        assert set(reach.moved) == set(CHARGED)
        assert excess_of(reach) <= 1 + 1e-6, scene


def test_some_canary_uses_up_each_charge_so_that_a_tenth_less_noise_would_show(reaches: dict[str, Reach]) -> None:
    used = {label: max(reach.mu(label) for reach in reaches.values()) / CHARGED[label] for label in CHARGED}
    del used["absence"]  # a series with gaps, which these canaries have not
    assert min(used.values()) > 0.95, used
    assert reaches[STRONGEST].mu() > 0.95 * CHARGED_IN_ALL


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_noise_below_the_charge_is_caught_without_statistics(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = NoiseSource.discrete_gaussian
    monkeypatch.setattr(
        NoiseSource, "discrete_gaussian", lambda noise, scale, size: genuine(noise, share * scale, size)
    )
    assert excess_of(reach_of(neighbours_in(STRONGEST))) > 1.05


def runs_for(reach: Reach, missed: float) -> int:
    """Enough to find that half of the noise is missing, by what this canary can show of it."""
    alpha = FALSE_ALARM / (1 + len(CHARGED))
    return required_runs(CHARGED_IN_ALL, 2 * reach.mu() / CHARGED_IN_ALL - 1, alpha=alpha, power=1 - missed)


def test_answers_of_real_fits_do_not_contradict_the_certificate(reaches: dict[str, Reach]) -> None:
    reach, pair = reaches[STRONGEST], neighbours_in(STRONGEST)
    scores = answer_scores(pair, reach, runs_for(reach, 0.1))
    each = 1 - FALSE_ALARM / len(scores)
    certificate = pair.fit(pair.absent).certificate
    assert not mu_test({ALL: scores[ALL]}, delta=MUCH.delta, confidence=each).contradicts(certificate)
    for label in CHARGED:
        found = mu_test({label: scores[label]}, delta=MUCH.delta, confidence=each)
        assert not found.refutes([PLAN.event(label)]), label


def test_half_of_the_noise_contradicts_the_certificate(
    reaches: dict[str, Reach], monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = NoiseSource.discrete_gaussian
    monkeypatch.setattr(NoiseSource, "discrete_gaussian", lambda noise, scale, size: genuine(noise, scale / 2, size))
    reach, pair = reaches[STRONGEST], neighbours_in(STRONGEST)
    scores = answer_scores(pair, reach, runs_for(reach, 1e-6))
    found = mu_test({ALL: scores[ALL]}, delta=MUCH.delta, confidence=1 - FALSE_ALARM / len(scores))
    assert found.contradicts(pair.fit(pair.absent).certificate)


@dataclass(frozen=True, kw_only=True)
class Leaking(Independent):
    """Says that it looks at nothing, and keeps a mean."""

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        return {"nothing": np.array([np.nanmean(private.panel.values)])}


@pytest.mark.parametrize(("method", "contradicted"), [(Independent(), False), (Leaking(), True)])
def test_a_method_that_spends_nothing_releases_nothing(method: Independent, contradicted: bool) -> None:
    pair = neighbours_in(STRONGEST, method)
    found = audit_scores({"arrays": release_scores(pair, 12)}, delta=MUCH.delta)
    assert found.contradicts(pair.fit(pair.absent).certificate) == contradicted
    assert (found.epsilon == 0) != contradicted


def test_a_statistic_that_went_round_the_border_is_seen_in_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charged and noised, and the sum without noise is used: answers look right, released arrays do not vary."""
    pair, genuine = neighbours_in(STRONGEST, guarantee=Guarantee(0.3, 1e-7)), Grant.release

    def raw(grant: Grant, statistic: Statistic, private: Private) -> np.ndarray:
        genuine(grant, statistic, private)
        step = lattice_step(statistic.bound, 0.0)
        return private.total(statistic, step) * step

    monkeypatch.setattr(Grant, "release", raw)
    found = audit_scores({"arrays": release_scores(pair, 12)}, delta=1e-7)
    assert found.epsilon == found.ceiling
    assert found.contradicts(pair.fit(pair.absent).certificate)


def test_neighbours_are_compared_under_the_same_earlier_answers(reaches: dict[str, Reach]) -> None:
    """Told other answers, a fit computes other statistics later on; told the same, the same."""
    pair, reach = neighbours_in(STRONGEST), reaches[STRONGEST]
    silent = NoiseSource.constant(0.0)
    panel: Panel = pair.absent
    first, again = (pair.fit(panel, silent, reach.told).answers for _ in range(2))
    other = pair.fit(panel, silent, pair.fit(pair.present).answers).answers
    assert all(np.array_equal(first[label], again[label]) for label in first)
    assert not np.array_equal(first["dependence"], other["dependence"])
    assert isinstance(PLAN.event("dependence"), Gaussian)
