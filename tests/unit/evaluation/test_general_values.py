"""Marginals and dynamics agree with scipy and numpy, and each notices what it is there for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import periodogram
from scipy.stats import ks_2samp, wasserstein_distance

from tests.unit.evaluation.labels import labelled
from tests.unit.evaluation.odd import LEAST, ODD, odd_comparison, outcome
from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Categorical, Panel, Time, simulate_households
from understudy.evaluation.general import METRICS
from understudy.evaluation.metric import Measured, Undefined
from understudy.evaluation.panels import Comparison
from understudy.synthesizers.contract.panels import make_panel, rich_schema

BY_NAME = {metric.name.removeprefix("general."): metric for metric in METRICS}
IDEAL = {
    **dict.fromkeys(("values_ks", "values_wasserstein", "levels_ks", "missingness", "profile", "constraints"), 0.0),
    **dict.fromkeys(("autocorrelation", "cross_correlation", "lagged_correlation", "spectrum", "lengths"), 0.0),
    **dict.fromkeys(("categories", "static", "label"), 0.0),
    **dict.fromkeys(("precision", "recall", "coverage", "variety"), 1.0),
}


def measured(name: str, real: Panel, candidate: Panel, reference: Panel | None = None, **effort) -> Measured:
    reference = candidate if reference is None else reference
    comparison = Comparison(real=real, candidate=candidate, reference=reference, unseen=reference)
    return BY_NAME[name].measure(comparison, replace(LEAST, **effort), 0)


@pytest.fixture(scope="module")
def rich() -> Panel:
    return make_panel(rich_schema(), 60, seed=1)


@pytest.mark.parametrize("name", IDEAL)
def test_identical_panels_have_the_ideal_figure(name: str, rich: Panel) -> None:
    assert measured(name, rich, rich).value == pytest.approx(IDEAL[name], abs=1e-6)


@pytest.mark.parametrize("odd", ODD)
def test_odd_panels_give_a_figure_or_a_reason(odd: str) -> None:
    comparison = odd_comparison(odd)
    outcomes = {metric.name: outcome(metric, comparison) for metric in METRICS}
    assert any(isinstance(found, Measured) for found in outcomes.values())


def test_values_are_compared_as_scipy_compares_them_and_gaps_do_not_count() -> None:
    real, candidate = np.array(waves(50).values), np.array(waves(33, seed=1).values) * 0.8
    real[np.random.default_rng(0).random(real.shape) < 0.3] = np.nan
    smirnov, moved, levels = (
        measured(name, panel_of(real), panel_of(candidate)).parts
        for name in ("values_ks", "values_wasserstein", "levels_ks")
    )
    for place, name in enumerate(("wave0", "wave1")):
        seen = real[:, :, place][~np.isnan(real[:, :, place])]
        other = candidate[:, :, place].ravel()
        assert smirnov[name] == pytest.approx(ks_2samp(seen, other).statistic, abs=1e-9)
        assert moved[name] == pytest.approx(wasserstein_distance(seen, other) / seen.std(), rel=1e-5)
        means = np.nanmean(real[:, :, place], axis=1), candidate[:, :, place].mean(axis=1)
        assert levels[name] == pytest.approx(ks_2samp(*means).statistic, abs=1e-9)


def test_frequencies_are_half_the_summed_difference() -> None:
    channels = (Categorical("state", ("a", "b", "c")),)
    real = panel_of(np.array([[0, 0, 1, 1]] * 30)[:, :, None], channels=channels)
    candidate = panel_of(np.array([[0, 1, 1, 2]] * 30)[:, :, None], channels=channels)
    assert measured("categories", real, candidate).value == pytest.approx(0.25)
    first, second = labelled(200, 0), labelled(200, 0)
    second = replace(second, static=np.zeros_like(second.static))
    assert measured("label", first, second).value == pytest.approx(first.static.mean())


def test_static_columns_have_the_distance_of_their_kind(rich: Panel) -> None:
    static = np.array(rich.static)
    static[:, 1] = 299.0  # area: all numbers at one place
    static[:, 2] = 0.0  # region: all categories one
    parts = measured("static", rich, replace(rich, static=static)).parts
    seen = rich.static[:, 1][~np.isnan(rich.static[:, 1])]
    assert parts["area"] == pytest.approx(ks_2samp(seen, np.full(60, 299.0)).statistic)
    assert parts["region"] == pytest.approx((rich.static[:, 2] == 1).mean())
    assert parts["people"] == pytest.approx(0.0, abs=1e-12)


def test_gaps_are_counted_placed_and_measured() -> None:
    real = np.array(waves(100).values)
    real[:, 3:6, 0] = np.nan
    moved, split = np.array(waves(100).values), np.array(waves(100).values)
    moved[:, 13:16, 0] = np.nan
    split[:, [3, 8, 12], 0] = np.nan
    first, second = (measured("missingness", panel_of(real), panel_of(other)).parts for other in (moved, split))
    unchanged = first["wave0: share"], first["wave0: runs"], second["wave0: share"], first["wave1: share"]
    assert unchanged == pytest.approx((0.0,) * 4, abs=1e-9)
    assert first["wave0: by step"] == pytest.approx(6 / 24)
    assert second["wave0: runs"] == pytest.approx(1.0)


def test_lengths_are_compared_where_they_may_differ(rich: Panel) -> None:
    shortest = np.full(60, 3, dtype=np.int32)
    values = np.where((np.arange(8) < 3)[None, :, None], rich.values, np.nan)
    expected = ks_2samp(rich.lengths, shortest).statistic
    assert measured("lengths", rich, rich.with_values(values, lengths=shortest)).value == pytest.approx(expected)
    with pytest.raises(Undefined, match="declared number of steps"):
        measured("lengths", waves(30), waves(30, seed=1))


def test_correlations_are_numpys_over_steps_where_both_were_observed() -> None:
    rng = np.random.default_rng(0)
    real, candidate = (rng.standard_normal((40, 20, 3)) @ rng.standard_normal((3, 3)) for _ in range(2))
    real[rng.random(real.shape) < 0.2] = np.nan
    together = measured("cross_correlation", panel_of(real), panel_of(candidate)).parts
    later = measured("lagged_correlation", panel_of(real), panel_of(candidate)).parts

    def correlation(values: np.ndarray, i: int, j: int, lag: int) -> float:
        x, y = values[:, : 20 - lag, i].ravel(), values[:, lag:, j].ravel()
        both = ~np.isnan(x) & ~np.isnan(y)
        return float(np.corrcoef(x[both], y[both])[0, 1])

    gap = abs(correlation(real, 0, 2, 0) - correlation(candidate, 0, 2, 0))
    assert together["wave0 – wave2"] == pytest.approx(gap, abs=1e-5)
    gap = abs(correlation(real, 2, 1, 4) - correlation(candidate, 2, 1, 4))
    assert later["wave2 – wave1 4 later"] == pytest.approx(gap, abs=1e-5)
    assert len(together) == 3
    assert len(later) == 12


def test_time_reversal_shows_in_lagged_correlations_only() -> None:
    rng = np.random.default_rng(1)
    leader = rng.standard_normal((200, 25))
    values = np.stack([leader[:, 1:], leader[:, :-1]], axis=2)  # the second channel follows one step later
    forwards, backwards = panel_of(values), panel_of(values[:, ::-1])
    assert measured("lagged_correlation", forwards, backwards).value > 0.4
    assert measured("cross_correlation", forwards, backwards).value < 0.01
    assert measured("autocorrelation", forwards, backwards).value < 0.01


def test_spectra_are_the_periodograms_of_scipy() -> None:
    real, candidate = waves(30, channels=1), panel_of(np.random.default_rng(0).random((30, 24, 1)))
    shares = []
    for panel in (real, candidate):
        power = periodogram(panel.values[:, :, 0], axis=1, detrend="constant", scaling="spectrum")[1][:, 1:]
        power[:, -1] *= 2  # scipy halves the last frequency of an even number of steps
        shares.append((power / power.sum(axis=1, keepdims=True)).mean(axis=0))
    expected = np.abs(shares[0] - shares[1]).sum() / 2
    assert measured("spectrum", real, candidate).value == pytest.approx(expected, rel=1e-4)
    assert expected > 0.3


def test_shuffling_in_time_shows_in_dynamics_and_not_in_marginals() -> None:
    homes = simulate_households(150)
    values = np.array(homes.values)
    for row, length in enumerate(homes.lengths):
        values[row, :length] = values[row, np.random.default_rng(row).permutation(length)]
    shuffled = homes.with_values(values)
    assert measured("values_ks", homes, shuffled).value == pytest.approx(0.0, abs=1e-9)
    for name in ("autocorrelation", "spectrum", "profile"):
        assert measured(name, homes, shuffled).value > 0.15, name


def test_the_profile_is_compared_by_step_and_by_hour() -> None:
    day = np.sin(np.arange(48) * np.pi / 12)
    noise = np.random.default_rng(0).normal(0, 0.01, (2, 50, 48, 1))
    real, candidate = noise[0] + 0.5 + 0.2 * day[:, None], noise[1] + 0.5
    time = Time(column="when", steps=48)
    parts = measured("profile", panel_of(real, time=time), panel_of(candidate, time=time)).parts
    expected = 0.2 * np.abs(day).mean() / real.std()
    assert parts == pytest.approx({"wave0": expected, "wave0: by hour": expected}, rel=0.02)


def test_replicates_spread_as_the_figure_does() -> None:
    figures = [measured("values_ks", waves(100), waves(100, seed=seed)).value for seed in range(1, 40)]
    found = measured("values_ks", waves(100), waves(100, seed=50), replicates=300)
    # Real series were drawn once for all figures and again for each replicate: √2 more.
    assert np.std(found.replicates) == pytest.approx(2**0.5 * np.std(figures), rel=0.5)
