"""Drawing series again by weights is drawing series again."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.evaluation.odd import LEAST
from tests.unit.evaluation.sets import waves
from understudy.evaluation.measures import drawn_units, kolmogorov_smirnov, mean_figure, mean_share, of_sums
from understudy.evaluation.metric import Undefined
from understudy.evaluation.panels import Comparison

REAL, CANDIDATE = waves(40), waves(30, seed=1)
BOTH = Comparison(real=REAL, candidate=CANDIDATE, reference=CANDIDATE, unseen=CANDIDATE)


def test_replicates_are_those_of_series_taken_one_by_one() -> None:
    levels = [panel.values.mean(axis=(1, 2), dtype=np.float64) for panel in (REAL, CANDIDATE)]
    ones = [np.stack([level, np.ones(len(level))], axis=1) for level in levels]
    aspect = of_sums(["level"], *ones, lambda p, q: np.abs(p[0] / p[1] - q[0] / q[1]))
    found = mean_figure([aspect], BOTH, replace(LEAST, replicates=20), 3, otherwise="")
    drawn = [drawn_units(panel.unit, 20, [3, side]).astype(int) for side, panel in enumerate((REAL, CANDIDATE))]
    means = [[level.repeat(times).mean() for times in side] for level, side in zip(levels, drawn, strict=True)]
    again = np.abs(np.subtract(*means))
    np.testing.assert_allclose(found.replicates, again)
    assert found.value == pytest.approx(abs(levels[0].mean() - levels[1].mean()))
    assert np.std(again) > 0


def test_figures_that_are_not_there_are_left_out_and_none_at_all_is_said() -> None:
    empty = np.full((40, 5), np.nan)
    aspects = [
        kolmogorov_smirnov("empty", empty, empty[:30]),
        kolmogorov_smirnov("x", REAL.values[:, :, 0], CANDIDATE.values[:, :, 0]),
    ]
    assert set(mean_figure(aspects, BOTH, LEAST, 0, otherwise="").parts) == {"x"}
    with pytest.raises(Undefined, match="nothing there"):
        mean_figure(aspects[:1], BOTH, LEAST, 0, otherwise="nothing there")


def test_series_of_one_unit_are_drawn_together() -> None:
    unit = np.repeat(np.arange(50), 4)
    weights = drawn_units(unit, 200, 0)
    assert (weights.reshape(200, 50, 4).std(axis=2) == 0).all()
    assert (weights.reshape(200, 50, 4)[:, :, 0].sum(axis=1) == 50).all()
    contributions = np.repeat(np.random.default_rng(0).random(50) < 0.5, 4).astype(float)
    effort = replace(LEAST, replicates=2_000)
    together, apart = (mean_share(contributions, owner, effort, 0).replicates.std() for owner in (unit, np.arange(200)))
    assert together == pytest.approx(2 * apart, rel=0.15)  # four equal series are worth one


def test_many_parts_are_cut_to_the_largest() -> None:
    sums = np.broadcast_to(np.arange(100.0), (40, 100))
    aspect = of_sums([f"{place}" for place in range(100)], sums, sums[:30], lambda p, q: p / 40)
    parts = mean_figure([aspect], BOTH, LEAST, 0, otherwise="").parts
    assert list(parts) == [f"{place}" for place in range(60, 100)]
