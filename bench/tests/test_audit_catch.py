"""The table of what audits catch: its sizes, its defects, and one line of each verdict."""

import numpy as np
import pytest
from understudy_bench.audit import catch as audit_catch
from understudy_bench.audit.canaries import ALL, DIFFERENCES, Neighbours, answer_scores, random_panel
from understudy_bench.audit.defects import DEFECTS, noise_times, stretched
from understudy_bench.audit.subjects import SUBJECTS

from understudy.privacy.budget import Guarantee
from understudy.privacy.events import DiscreteGaussian, Gaussian, SubsampledGaussian
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.registry import METHODS

LOUD = Guarantee(200.0, 1e-7)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little noise and one scene: the fewest runs, and the same code."""
    genuine = audit_catch.panel_scenes

    def one(*args: object, **options: object) -> dict:
        kept = ("ones, others ordinary", "ones, others nobody")
        return {name: pair for name, pair in genuine(*args, **options).items() if name in kept}  # type: ignore[arg-type]

    monkeypatch.setattr(audit_catch, "panel_scenes", one)
    monkeypatch.setattr(audit_catch, "GUARANTEE", LOUD)


def test_every_method_that_claims_something_is_tried_with_half_of_its_noise() -> None:
    assert set(SUBJECTS) == set(METHODS) - {"independent"}  # which reads nothing and claims nothing


@pytest.mark.usefixtures("short")
def test_a_method_is_not_contradicted_as_it_is_and_is_with_half_of_its_noise() -> None:
    """May alarm falsely with the probability of 0.001 that the table states for each line."""
    fair, broken = (audit_catch._claimed("spectral", defect, 0.99) for defect in ("as it is", "half of the noise"))
    assert fair["as_expected"]
    assert broken["as_expected"]
    assert fair["metrics"]["runs"] == broken["metrics"]["runs"]
    page = audit_catch.table([fair, broken])
    assert page.count("\n") == 3
    assert "| spectral | half of the noise | 200 |" in page


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("defect", "runs"), [("one scalar of noise", 32), ("as it is", 8)])
def test_one_scalar_of_noise_is_seen_in_differences(defect: str, runs: int) -> None:
    """A constant under all coordinates of a gradient cancels; what is left of the noise is that of other answers.

    The logarithm of how much further differences keep neighbours apart than sums do is 0.61 with the defect, over 32
    runs within 0.08 (one standard deviation of six trials), and 0.00 within 0.01 as it is. By Student's distribution
    for six trials either side alarms falsely at most once in a thousand.
    """
    with DEFECTS[defect]():
        neighbours, reach = audit_catch._strongest(SUBJECTS["vflgan-ts"], stretch=False)
        scores = answer_scores(neighbours, reach, runs)
    apart = {name: _apart(scores[name].present, scores[name].absent) for name in (DIFFERENCES, ALL)}
    assert len([label for label in reach.moved if label.startswith("gradients")]) == 9
    assert (apart[DIFFERENCES] > 1.1 * apart[ALL]) == (defect != "as it is")


def _apart(first: np.ndarray, second: np.ndarray) -> float:
    """Distance of means in deviations."""
    return float((first.mean() - second.mean()) / np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2))


def test_charges_add_up_in_squares() -> None:
    events = [Gaussian(2.0, 2), DiscreteGaussian(1.0, 1), SubsampledGaussian(1.0, 0.5, 3)]
    assert audit_catch.charged_mu(events) == pytest.approx(np.sqrt(0.5 + 1 + 12))


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_noise_is_planted_as_it_says_and_taken_away_again(share: float) -> None:
    noise = NoiseSource.constant(1.0)
    with noise_times(share):
        assert noise.normal(4.0, 3).tolist() == [4 * share] * 3
        assert noise.discrete_gaussian(4.0, 3).tolist() == [4 * share] * 3
    assert noise.normal(4.0, 3).tolist() == [4.0] * 3


def test_one_scalar_is_the_same_on_every_coordinate_of_a_gradient() -> None:
    subject = SUBJECTS["dit"]
    with DEFECTS["one scalar of noise"]():
        empty = random_panel(subject.schema, 0, np.random.default_rng(0))
        fit = Neighbours(method=subject.make(), absent=empty, present=empty, guarantee=LOUD).fit(empty)
    first = fit.answers["gradients"]
    assert np.ptp(first) == pytest.approx(0.0, abs=1e-6)
    assert np.abs(first).max() > 0


def test_private_extremes_meet_the_bounds() -> None:
    panel = random_panel(SUBJECTS["spectral"].schema, 3, np.random.default_rng(0))
    narrow = panel.with_values((0.3 * panel.values + 0.1).astype(np.float32))
    wide = stretched(narrow).values
    assert wide.min(axis=(0, 1)).tolist() == pytest.approx([0.0, 0.0], abs=1e-5)
    assert wide.max(axis=(0, 1)).tolist() == pytest.approx([20.0, 1.0], rel=1e-5)
