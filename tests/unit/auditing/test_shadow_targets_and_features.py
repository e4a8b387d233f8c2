"""Targets and features are those of the paper's equations."""

import numpy as np
import pytest

from understudy.auditing import shadows


def test_targets_are_the_isolated_the_influential_and_the_extreme() -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(200, 6)).astype(np.float32)
    real[17] += 50  # far from everybody
    real[31] = [9, -9, 9, -9, 9, -9]  # outside in every column, and nearer
    synthetic = np.concatenate([rng.normal(size=(50, 6)), real[31] + 0.1 * rng.normal(size=(50, 6))])
    chosen = {name: target(real, synthetic.astype(np.float32)) for name, target in shadows.TARGETS.items()}
    assert chosen["isolated"] == 17
    assert chosen["influential"] == 31
    assert {chosen["record-1"], chosen["record-2"]} == {17, 31}


def test_features_are_moments_correlations_and_near_distances() -> None:
    synthetic = np.array([[0.0, 1.0, 5.0], [2.0, 3.0, 5.0], [4.0, 9.0, 5.0]], dtype=np.float32)
    target = np.array([[0.0, 1.0, 5.0], [90.0, 0.0, 0.0]], dtype=np.float32)
    found = shadows.measured(synthetic, target)
    assert found["naive"].tolist() == pytest.approx([2, 13 / 3, 5, 2, 3, 5, 8 / 3, 104 / 9, 0], rel=1e-5)
    expected = np.corrcoef(synthetic[:, 0], synthetic[:, 1])[0, 1]
    assert found["correlation"].tolist() == pytest.approx([expected, 0, 0], rel=1e-5)
    assert found["knn"].tolist() == pytest.approx([0 + np.sqrt(8) + np.sqrt(80)], rel=1e-5)


def test_wide_tables_have_a_bounded_number_of_correlations() -> None:
    wide = np.random.default_rng(0).normal(size=(5, 1000)).astype(np.float32)
    assert len(shadows.correlations(wide, wide)) == 256 * 255 // 2
