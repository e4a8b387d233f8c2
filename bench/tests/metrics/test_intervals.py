"""Intervals cover what they say they cover."""

import numpy as np
from scipy.stats import norm
from understudy_bench.metrics.distances import bootstrap, bootstrap_mean

from tests.unit.evaluation.sets import panel_of
from understudy.evaluation.measures import confidence_interval, prediction_interval
from understudy.evaluation.metric import Measured

ANYWHERE = (-np.inf, np.inf)


def test_the_bootstrap_of_a_mean_has_its_standard_error() -> None:
    """Relative error of a standard deviation from 4,000 replicates is 1.1 %; 8 % is beyond seven of these."""
    contributions = np.random.default_rng(0).standard_normal(400)
    replicates = bootstrap_mean(contributions, 4_000, seed=1)
    assert np.isclose(replicates.std(), contributions.std() / 20, rtol=0.08)
    panel = panel_of(np.repeat(contributions[:, None, None], 2, axis=1))
    rows = bootstrap(lambda real, _: float(contributions[real].mean()), panel, panel, 4_000, seed=1)
    assert np.isclose(rows.std(), contributions.std() / 20, rtol=0.08)


def test_series_of_one_unit_are_drawn_together() -> None:
    from dataclasses import replace

    panel = replace(panel_of(np.zeros((6, 2, 1))), unit=np.repeat(np.arange(3), 2))
    drawn = []
    bootstrap(lambda real, _: drawn.append(real) or 0.0, panel, panel, 20, seed=0)
    often = [np.bincount(rows, minlength=panel.num_series) for rows in drawn]
    assert all(np.array_equal(own[::2], own[1::2]) for own in often)


def test_a_prediction_interval_holds_the_next_figure_as_often_as_it_says() -> None:
    """2,000 draws at level 0.9: standard error 0.0067, so 0.05 is beyond seven of these; 0.8 would be seen."""
    rng = np.random.default_rng(2)
    figures = rng.standard_normal((2_000, 6))
    inside = [low <= last <= high for *first, last in figures for low, high in [_interval(first)]]
    assert abs(np.mean(inside) - 0.9) < 0.05


def _interval(figures):
    return prediction_interval(np.array(figures), ANYWHERE, 0.9)


def test_intervals_stay_within_the_range_of_the_metric() -> None:
    measured = Measured(value=0.01, replicates=np.array([0.0, 0.02, 0.05]))
    low, high = confidence_interval(measured, (0.0, 1.0))
    assert low == 0
    assert 0.01 < high < 1
    assert confidence_interval(Measured(value=1.0), ANYWHERE) is None


def test_repeated_trainings_give_the_interval_of_their_mean() -> None:
    figures = np.array([1.0, 2.0, 3.0])
    low, high = confidence_interval(Measured(value=2.0, replicates=figures, kind="repeats"), ANYWHERE)
    assert np.isclose(high - 2.0, 4.3027 * 1.0 / np.sqrt(3), rtol=1e-4)
    wide = confidence_interval(Measured(value=2.0, replicates=figures), ANYWHERE)
    assert np.isclose(wide[1] - 2.0, norm.ppf(0.975) * 1.0, rtol=1e-3)
    assert low < 2.0
