"""The metrics of VFLGAN-TS on known answers, each with something it must notice."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import curve_fit
from scipy.stats import wasserstein_distance, wasserstein_distance_nd
from understudy_bench.metrics.vertical import METRICS
from understudy_bench.metrics.vertical.distances import wasserstein_nd
from understudy_bench.metrics.vertical.sine import FREQUENCIES, amplitudes, sine_errors, unequal_amplitudes
from understudy_bench.metrics.vertical.tasks import SIDES, forecast_task, total_performance_difference

from tests.unit.evaluation.labels import labelled
from tests.unit.evaluation.odd import LEAST, ODD, odd_comparison, outcome
from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Continuous, Panel
from understudy.evaluation.metric import QUICK, Undefined
from understudy.evaluation.panels import Comparison

BY_NAME = {metric.name.removeprefix("vertical."): metric for metric in METRICS}


def compare(real: Panel, candidate: Panel) -> Comparison:
    return Comparison(real=real, candidate=candidate, reference=candidate, unseen=candidate)


def measured(name: str, real: Panel, candidate: Panel, **effort):
    return BY_NAME[name].measure(compare(real, candidate), replace(LEAST, **effort), 0)


@pytest.mark.parametrize("name", ["awd", "awd_nd", "aada"])
def test_series_are_at_no_distance_from_themselves(name: str) -> None:
    # The joint distance draws its series; with no more than it draws it looks at all of them.
    assert measured(name, waves(40), waves(40)).value == pytest.approx(0.0, abs=1e-6)


def test_the_distance_of_steps_is_scipys_averaged_over_channels_and_steps() -> None:
    real, candidate = np.array(waves(50).values), np.array(waves(31, seed=1).values) * 0.9
    real[np.random.default_rng(0).random(real.shape) < 0.2] = np.nan
    low, width = np.nanmin(real, axis=(0, 1)), np.nanmax(real, axis=(0, 1)) - np.nanmin(real, axis=(0, 1))
    expected = np.zeros(2)
    for channel in range(2):
        for step in range(24):
            seen = real[:, step, channel][~np.isnan(real[:, step, channel])]
            expected[channel] += wasserstein_distance(seen, candidate[:, step, channel]) / width[channel] / 24
    found = measured("awd", panel_of(real), panel_of(candidate))
    assert found.value == pytest.approx(expected.mean(), rel=1e-5)
    assert list(found.parts.values()) == pytest.approx(expected, rel=1e-5)
    assert low.max() > 0  # so that forgetting to subtract it would not cancel by luck


def test_a_shift_moves_all_mass_by_so_much() -> None:
    real = waves(40)
    width = np.ptp(real.values, axis=(0, 1))
    found = measured("awd", real, panel_of(real.values + 0.05))
    assert found.value == pytest.approx((0.05 / width).mean(), rel=1e-4)
    together = measured("awd_nd", real, panel_of(real.values + 0.05))
    assert together.value == pytest.approx(np.linalg.norm(0.05 / width), rel=1e-4)


def test_the_joint_distance_is_scipys() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random((10, 3, 4)), rng.random((10, 3, 4)) ** 2
    expected = np.mean([wasserstein_distance_nd(first[:, step], second[:, step]) for step in range(3)])
    assert wasserstein_nd(first, second) == pytest.approx(expected, rel=1e-6)


def test_only_the_joint_distance_sees_channels_that_have_come_apart() -> None:
    rng = np.random.default_rng(1)
    level = rng.random((128, 1, 1)) * np.ones((1, 6, 2))
    apart = panel_of(np.stack([level[:, :, 0], rng.permutation(level[:, :, 1])], axis=2))
    assert measured("awd", panel_of(level), apart).value == pytest.approx(0.0, abs=1e-6)
    assert measured("awd_nd", panel_of(level), apart).value > 0.1


def test_the_difference_of_memory_is_the_equation_of_the_paper() -> None:
    first, second = waves(30), panel_of(np.random.default_rng(0).permuted(waves(25, seed=1).values, axis=1))
    means = []
    for panel in (first, second):
        values = panel.values.astype(np.float64)
        centred = values - values.mean(axis=1, keepdims=True)
        size = (centred**2).sum(axis=1)
        means.append([np.mean((centred[:, k:] * centred[:, :-k]).sum(axis=1) / size, axis=0) for k in range(1, 13)])
    gaps = np.abs(np.array(means[0]) - np.array(means[1]))  # [lag, channel]
    found = measured("aada", first, second)
    assert found.value == pytest.approx(gaps.sum(), rel=1e-6)
    assert found.parts["mean over all"] == pytest.approx(gaps.mean(), rel=1e-6)
    assert found.parts["wave1"] == pytest.approx(gaps[:, 1].sum(), rel=1e-6)
    assert found.value > 10 * measured("aada", waves(200), waves(200, seed=1)).value


def test_many_channels_are_all_summed_though_not_all_are_printed() -> None:
    found = measured("aada", waves(30, channels=45), waves(30, seed=1, channels=45))
    assert found.value == pytest.approx(45 * 12 * found.parts["mean over all"])


# VFLGAN-TS, Tables 2, 3 and 4: TRTR, TSTS, TRTS, TSTR and the printed total.
TABLES = [
    *((0.92, 1.0, 0.68, 0.68, 0.56), (0.92, 1.0, 0.87, 0.74, 0.31), (0.92, 1.0, 0.86, 0.74, 0.32)),
    *((0.050, 0.042, 0.063, 0.054, 0.025), (0.050, 0.048, 0.057, 0.056, 0.015), (0.050, 0.042, 0.046, 0.053, 0.015)),
    *((0.050, 0.048, 0.050, 0.050, 0.002), (0.062, 0.063, 0.122, 0.099, 0.098), (0.062, 0.060, 0.061, 0.067, 0.008)),
    *((0.050, 0.023, 0.079, 0.126, 0.132), (0.062, 0.023, 0.101, 0.169, 0.185)),
]


@pytest.mark.parametrize("row", TABLES)
def test_the_papers_tables_add_up_with_absolute_values(row: tuple[float, ...]) -> None:
    total = total_performance_difference(dict(zip(SIDES, row[:4], strict=True)))
    assert total == pytest.approx(row[4], abs=0.0051)


def test_the_papers_tables_do_not_add_up_as_the_equation_is_printed() -> None:
    signed = [sum(row[1:4]) - 3 * row[0] for row in TABLES]
    assert max(abs(value - row[4]) for value, row in zip(signed, TABLES, strict=True)) > 0.1


def test_forecasters_agree_on_waves_and_differ_on_shuffled_ones() -> None:
    real, other = waves(240, steps=12), waves(200, seed=1, steps=12)
    shuffled = panel_of(np.random.default_rng(0).permuted(other.values, axis=1))
    near, far = (measured("forecast_tpd", real, panel, iteration_cap=400) for panel in (other, shuffled))
    assert near.parts["TRTR"] < 0.6 * near.parts["persistence MAE"]
    assert far.value > 3 * near.value
    assert near.value == pytest.approx(total_performance_difference({side: near.parts[side] for side in SIDES}))


def test_the_authors_checkpoint_raises_every_error() -> None:
    comparison, effort = compare(waves(160), waves(150, seed=1)), replace(QUICK, repeats=1, iteration_cap=60)
    best, worst = (forecast_task(kept)(comparison, effort, 0).parts for kept in ("best", "worst_val"))
    assert all(worst[side] > 1.2 * best[side] for side in SIDES)


def test_classifiers_agree_on_labels_that_mean_the_same_and_differ_on_shuffled_ones() -> None:
    real = labelled(240, 0)
    near, far = (
        measured("classify_tpd", real, panel, iteration_cap=150)
        for panel in (labelled(200, 1), labelled(200, 1, shuffled=True))
    )
    assert near.parts["TRTR"] > 0.95
    assert near.parts["F1 TSTR"] > 0.95
    assert near.value < 0.1
    assert far.value > 0.5
    assert near.parts["TPD of mean performances"] <= near.value + 1e-12


def test_a_label_with_one_class_can_not_be_classified() -> None:
    panel = labelled(60, 0)
    with pytest.raises(Undefined, match="two classes"):
        measured("classify_tpd", replace(panel, static=np.zeros_like(panel.static)), panel)


# --- sine sets ------------------------------------------------------------------------------------------------------


def sines(num_series: int, seed: int, *, name: str = "sine-2", equal: bool = True, noise: float = 0.05) -> Panel:
    """The sets of Eq. 22 and App. D, 400 steps long; without `equal` every channel has an amplitude of its own."""
    rng = np.random.default_rng(seed)
    frequencies = np.array(FREQUENCIES[name])
    shape = (num_series, 1, 1 if equal else len(frequencies))
    amplitude = rng.normal(rng.choice([0.4, 0.6], shape), 0.05)
    wave = amplitude * np.sin(2 * np.pi * frequencies * np.arange(400)[:, None])
    channels = tuple(Continuous(f"f{place}", -2.0, 2.0) for place in range(len(frequencies)))
    return panel_of(wave + noise * rng.standard_normal(wave.shape), name=name, channels=channels)


def test_amplitudes_are_found_exactly_without_noise_whatever_phase_offset_and_frequency() -> None:
    rng = np.random.default_rng(0)
    true = rng.uniform(0.2, 1.0, (20, 3))
    clock = np.arange(300)[None, :, None]
    frequency, phase, offset = (rng.uniform(*ends, (20, 1, 3)) for ends in ((0.008, 0.05), (0, 6.28), (-1, 1)))
    found = amplitudes(offset + true[:, None] * np.sin(2 * np.pi * frequency * clock + phase))
    np.testing.assert_allclose(found, true, rtol=1e-3)


def test_amplitudes_of_noisy_sines_are_those_of_scipys_fit() -> None:
    values = sines(4, 1).values.astype(np.float64)
    clock = np.arange(400.0)

    def sine(t, amplitude, frequency, phase, offset):
        return amplitude * np.sin(2 * np.pi * frequency * t + phase) + offset

    found = amplitudes(values)
    for series in range(4):
        for channel, frequency in enumerate(FREQUENCIES["sine-2"]):
            track = values[series, :, channel]
            fitted = curve_fit(sine, clock, track, p0=(track.std() * 2**0.5, frequency, 0, 0))[0]
            assert found[series, channel] == pytest.approx(abs(fitted[0]), rel=1e-4)


def test_amplitudes_at_rest_are_nothing() -> None:
    np.testing.assert_allclose(amplitudes(np.full((2, 50, 2), 0.3)), 0, atol=1e-9)


def test_what_is_no_sine_has_no_larger_amplitude_than_it_spans() -> None:
    """Of a bend a piece of a large wave is near; at half a period per step a sine of any size is zero everywhere."""
    clock = np.arange(200)
    jumps = clock % 2 + np.random.default_rng(0).normal(0, 0.3, 200)
    shapes = np.stack([clock / 200, clock - clock**2 / 100, np.exp(-clock / 40), clock > 150, clock % 2, jumps])
    found = amplitudes(shapes[:, :, None])
    assert (found[:, 0] <= np.ptp(shapes, axis=1)).all()
    assert found[4, 0] == pytest.approx(0.5, rel=0.3)  # up and down, as fast as can be


def test_a_sine_with_the_papers_noise_errs_by_its_mean_size() -> None:
    # The mean of |N(0, 0.05²)|. Over 100 × 400 × 2 values its standard deviation is 1.1e-4: 6 of them, 2e-9.
    values = sines(100, 2).values
    expected = 0.05 * np.sqrt(2 / np.pi)
    assert sine_errors(values, FREQUENCIES["sine-2"]).mean() == pytest.approx(expected, abs=6.4e-4)
    assert sine_errors(-values, FREQUENCIES["sine-2"]).mean() > 0.3
    assert sine_errors(sines(100, 2, noise=0.055).values, FREQUENCIES["sine-2"]).mean() > expected + 3e-3


def test_the_ratio_of_amplitudes_tells_one_amplitude_from_several() -> None:
    assert unequal_amplitudes(sines(50, 3, noise=0.0).values).max() < 1e-3
    assert unequal_amplitudes(sines(50, 3, equal=False).values).mean() > 0.1
    pair = np.sin(2 * np.pi * 0.01 * np.arange(300))[None, :, None] * np.array([1.0, 0.25])
    assert unequal_amplitudes(pair)[0] == pytest.approx(0.75, abs=1e-6)


def test_the_sine_metrics_know_the_papers_sets() -> None:
    for name in FREQUENCIES:
        real, other = sines(60, 0, name=name), sines(60, 1, name=name)
        assert measured("sine_amplitude", real, real).value == pytest.approx(0.0, abs=1e-9)
        assert measured("sine_amplitude", real, other).value < 0.05 * len(FREQUENCIES[name])
        assert measured("sine_error", real, other).value == pytest.approx(0.04, abs=0.002)
        apart = measured("sine_ratio", real, sines(60, 1, name=name, equal=False)).value
        assert apart > 2 * measured("sine_ratio", real, other).value


def test_a_doubled_amplitude_is_as_far_as_the_mean_amplitude_in_each_channel() -> None:
    real = sines(60, 0)
    twice = panel_of(2 * real.values, name="sine-2", channels=real.schema.channels)
    expected = amplitudes(real.values).mean(axis=0).sum()
    assert measured("sine_amplitude", real, twice).value == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["sine_amplitude", "sine_error", "sine_ratio"])
def test_the_sine_metrics_refuse_other_series(name: str) -> None:
    for panel in (waves(30), waves(30, name="sine-6")):
        with pytest.raises(Undefined, match="sine-2 or sine-6"):
            measured(name, panel, panel)
    short = panel_of(sines(30, 0).values[:, :100], name="sine-2")
    with pytest.raises(Undefined, match="at least 200 steps"):
        measured(name, short, short)


@pytest.mark.parametrize("name", ODD)
def test_odd_series_give_a_figure_or_a_reason(name: str) -> None:
    comparison = odd_comparison(name)
    found = {key: outcome(metric, comparison) for key, metric in BY_NAME.items()}
    if "every kind" in name:
        assert {key for key, figure in found.items() if isinstance(figure, str)} == {
            "sine_amplitude", "sine_error", "sine_ratio",
        }  # fmt: skip
    if name == "categories only":
        assert "no channel holds numbers" in str(found["awd"])
