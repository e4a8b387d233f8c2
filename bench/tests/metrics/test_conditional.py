"""Errors of fillings and distances of distributions agree with closed forms and with scipy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy, ks_2samp, norm, wasserstein_distance
from sklearn.metrics import mean_absolute_error, mean_absolute_percentage_error, mean_squared_error, r2_score
from understudy_bench.metrics.adaln import METRICS as DISTRIBUTIONS
from understudy_bench.metrics.kernels import gram, unbiased_discrepancy

from tests.unit.evaluation.odd import LEAST, ODD, odd_comparison, outcome
from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Panel
from understudy.data.masks import MASKS
from understudy.evaluation import fillings as point
from understudy.evaluation.fillings import METRICS as FILLINGS
from understudy.evaluation.fillings import straight_lines
from understudy.evaluation.metric import Measured, Undefined
from understudy.evaluation.panels import Comparison, Completion

BY_NAME = {metric.name.removeprefix("conditional."): metric for metric in (*FILLINGS, *DISTRIBUTIONS)}
RNG = np.random.default_rng(0)
TRUTH = RNG.uniform(1, 2, (40, 12))
DRAWS = TRUTH + RNG.normal(0.1, 0.3, (9, 40, 12))
HIDDEN = RNG.random((40, 12)) < 0.4


def compare(real: Panel, candidate: Panel, completions: tuple[Completion, ...] = ()) -> Comparison:
    return Comparison(real=real, candidate=candidate, reference=candidate, unseen=candidate, completions=completions)


def measured(name: str, *arguments, **effort) -> Measured:
    return BY_NAME[name].measure(compare(*arguments), replace(LEAST, **effort), 0)


def gaussian_score(mean: float, spread: float, truth: float) -> float:
    """CRPS of a normal distribution, Gneiting and Raftery (2007), Eq. 21."""
    z = (truth - mean) / spread
    return float(spread * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)))


def test_point_errors_are_those_of_scikit_learn_over_hidden_values() -> None:
    truth, draws = TRUTH[HIDDEN], DRAWS[:, HIDDEN]
    mean, median = draws.mean(axis=0), np.median(draws, axis=0)
    everywhere = np.where(HIDDEN, DRAWS, 1e6)  # what stands elsewhere must not matter
    assert point.squared_error(*point.counted(TRUTH, everywhere, HIDDEN)) == pytest.approx(
        mean_squared_error(truth, mean)
    )
    assert point.absolute_error(*point.counted(TRUTH, everywhere, HIDDEN)) == pytest.approx(
        mean_absolute_error(truth, median)
    )
    percent = 100 * mean_absolute_percentage_error(truth, median)
    assert point.percentage_error(*point.counted(TRUTH, everywhere, HIDDEN)) == pytest.approx(percent)
    assert point.determination(*point.counted(TRUTH, everywhere, HIDDEN)) == pytest.approx(r2_score(truth, mean))


def test_gaps_in_the_truth_do_not_count() -> None:
    holes = np.where(RNG.random(TRUTH.shape) < 0.3, np.nan, TRUTH)
    known = HIDDEN & ~np.isnan(holes)
    for figure in (point.squared_error, point.ranked_probability_score, point.interval_coverage):
        assert figure(*point.counted(holes, DRAWS, HIDDEN)) == figure(*point.counted(TRUTH, DRAWS, known))
        assert figure(*point.counted(holes, DRAWS, HIDDEN)) != figure(*point.counted(TRUTH, DRAWS, HIDDEN))


@pytest.mark.parametrize("number", [2, 5, 50])
@pytest.mark.parametrize(("mean", "spread"), [(0.0, 1.0), (0.7, 0.5)])
def test_the_ranked_score_of_normal_draws_is_the_closed_form(number: int, mean: float, spread: float) -> None:
    """Unbiased for any number of draws. False alarm: 6 standard errors of 60,000 truths, 2e-9."""
    rng = np.random.default_rng(number)
    draws = rng.normal(mean, spread, (number, 60_000))
    truth = np.full(60_000, 0.4)
    pieces = [
        point.ranked_probability_score(*point.counted(t, d, np.ones(600, bool))) for t, d in _in_parts(truth, draws)
    ]
    error = np.std(pieces, ddof=1) / 10
    expected = gaussian_score(mean, spread, 0.4)
    assert abs(np.mean(pieces) - expected) < 6 * error
    assert 6 * error < 0.1 * expected


def _in_parts(truth: np.ndarray, draws: np.ndarray):
    return zip(np.split(truth, 100), np.split(draws, 100, axis=1), strict=True)


def test_the_ranked_score_of_one_draw_is_its_error() -> None:
    one = DRAWS[:1]
    assert point.ranked_probability_score(*point.counted(TRUTH, one, HIDDEN)) == pytest.approx(
        point.absolute_error(*point.counted(TRUTH, one, HIDDEN))
    )


@pytest.mark.parametrize("number", [39, 199])
def test_intervals_cover_as_announced_and_narrow_ones_do_not(number: int) -> None:
    rng = np.random.default_rng(number)
    truth, draws = rng.standard_normal(20_000), rng.standard_normal((number, 20_000))
    everything = np.ones(20_000, dtype=bool)
    # 20,000 truths: 6 standard errors are 0.013.
    assert point.interval_coverage(*point.counted(truth, draws, everything)) == pytest.approx(0.9, abs=0.013)
    assert point.interval_coverage(*point.counted(truth, 0.8 * draws, everything)) < 0.85
    assert point.interval_coverage(*point.counted(truth, draws, everything), level=0.5) == pytest.approx(0.5, abs=0.022)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(IndexError):
        point.squared_error(*point.counted(TRUTH, DRAWS[:, :3], HIDDEN))


@pytest.mark.parametrize("metric", FILLINGS, ids=lambda metric: metric.name)
def test_without_fillings_there_is_a_reason_and_no_figure(metric) -> None:
    with pytest.raises(Undefined, match="can't impute"):
        metric.measure(compare(waves(30), waves(30, seed=1)), LEAST, 0)


def completions(panel: Panel, draw) -> tuple[Completion, ...]:
    rng, made = np.random.default_rng(0), []
    for kind, mask in MASKS.items():
        hidden = mask(panel.num_series, panel.num_steps, rng)
        draws = np.stack([draw(panel.values, rng) for _ in range(8)])
        made.append(Completion(kind=kind, truth=panel.values, hidden=hidden, draws=draws))
    return tuple(made)


def test_fillings_are_judged_by_the_way_steps_were_hidden() -> None:
    panel = waves(60, steps=48)
    good = completions(panel, lambda values, rng: values + rng.normal(0, 0.05, values.shape))
    bad = completions(panel, lambda values, rng: rng.normal(0.5, 0.2, values.shape))
    for name in ("rmse", "mae", "mape", "crps"):
        better, worse = (measured(name, panel, panel, made) for made in (good, bad))
        assert better.value < 0.5 * worse.value, name
        assert set(better.parts) == {f"{kind}{tail}" for kind in MASKS for tail in ("", ": straight lines")}
        assert better.value == pytest.approx(np.mean([better.parts[kind] for kind in MASKS]))
    spread = panel.values.std(axis=(0, 1)).mean()
    # The mean of 8 draws errs by 0.05/√8.
    assert measured("rmse", panel, panel, good).value == pytest.approx(0.05 / 8**0.5 / spread, rel=0.1)
    assert measured("r2", panel, panel, good).value > 0.98 > 0.1 > measured("r2", panel, panel, bad).value
    assert measured("coverage", panel, panel, good).value > 0.95  # the truth is in the middle of these draws


def test_straight_lines_fill_straight_series_without_error() -> None:
    line = np.linspace(0, 1, 24)[None, :, None] * np.ones((5, 1, 2))
    hidden = np.zeros((5, 24), dtype=bool)
    hidden[:, 5:9] = True
    made = Completion(kind="block", truth=line, hidden=hidden, draws=line[None])
    np.testing.assert_allclose(straight_lines(made)[0], line)
    everything = replace(made, hidden=np.ones((5, 24), dtype=bool))
    np.testing.assert_allclose(straight_lines(everything), 0.5)


def test_distributions_of_fillings_stand_beside_those_of_series() -> None:
    panel = waves(60, steps=48)
    good = completions(panel, lambda values, rng: values)
    bad = completions(panel, lambda values, rng: values * 0.2)
    for metric in DISTRIBUTIONS:
        better, worse = (metric.measure(compare(panel, panel, made), LEAST, 0).parts for made in (good, bad))
        for kind in MASKS:
            assert better[f"fillings, {kind}"] == pytest.approx(0.0, abs=1e-6), metric.name
            # A spectrum of shares does not see that everything shrank.
            assert (
                worse[f"fillings, {kind}"]
                > (0 if (metric.name, kind) == ("conditional.spectral", "full") else 1e-4) - 1e-9
            )


@pytest.mark.parametrize("metric", DISTRIBUTIONS, ids=lambda metric: metric.name)
def test_identical_series_are_at_no_distance_and_others_are(metric) -> None:
    real = waves(60)
    assert metric.measure(compare(real, real), LEAST, 0).value == pytest.approx(0.0, abs=1e-6)
    noise = panel_of(np.random.default_rng(0).random((60, 24, 2)) ** 3)
    assert metric.measure(compare(real, noise), LEAST, 0).value > 1e-3


def test_distances_are_those_of_scipy() -> None:
    real, candidate = np.array(waves(40, channels=1).values), np.array(waves(30, seed=1, channels=1).values) * 0.7
    real[np.random.default_rng(0).random(real.shape) < 0.2] = np.nan
    first, second = real[~np.isnan(real)].astype(float), candidate.ravel().astype(float)
    edges = np.linspace(min(first.min(), second.min()), max(first.max(), second.max()), 51)
    p, q = (np.histogram(pool, edges)[0] for pool in (first, second))
    expected = {
        "kl": entropy(p / p.sum() + 1e-10, q / q.sum() + 1e-10),
        "js": jensenshannon(p, q, base=2),
        "wasserstein": wasserstein_distance(first, second) / first.std(),
        "ks": ks_2samp(first, second).statistic,
    }
    for name, figure in expected.items():
        assert measured(name, panel_of(real), panel_of(candidate)).value == pytest.approx(figure, rel=1e-5), name
        assert figure > 0.2


def test_the_rounded_discrepancy_is_the_discrepancy_of_all_values() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((60, 10)), rng.normal(0.6, 1, (60, 10))
    matrix = gram(np.concatenate([first.ravel(), second.ravel()])[:, None])
    biased = matrix[:600, :600].mean() + matrix[600:, 600:].mean() - 2 * matrix[:600, 600:].mean()
    found = measured("mmd", panel_of(first[:, :, None]), panel_of(second[:, :, None])).value
    assert found == pytest.approx(biased, rel=0.02)
    assert biased > unbiased_discrepancy(matrix, 600) > 0.02


def test_distances_without_direction_are_the_same_both_ways_and_bounded() -> None:
    real, candidate = waves(40), panel_of(waves(40, seed=1).values * 0.1)
    for name in ("js", "ks", "mmd"):
        there, back = measured(name, real, candidate).value, measured(name, candidate, real).value
        assert there == pytest.approx(back, rel=1e-6)
        assert there <= BY_NAME[name].range[1]
    assert measured("kl", real, candidate).value != pytest.approx(measured("kl", candidate, real).value, rel=0.01)


def test_the_spectral_distance_of_two_pure_waves_is_known() -> None:
    clock = np.arange(24)
    slow, fast = (np.tile(0.5 + 0.3 * np.sin(2 * np.pi * n * clock / 24)[None, :, None], (30, 1, 1)) for n in (2, 5))
    # Each has all its power at one of 12 frequencies: two differences of 1.
    assert measured("spectral", panel_of(slow), panel_of(fast)).value == pytest.approx(2 / 12, rel=1e-4)


@pytest.mark.parametrize("odd", ODD)
def test_odd_panels_give_a_figure_or_a_reason(odd: str) -> None:
    comparison = odd_comparison(odd)
    for metric in BY_NAME.values():
        outcome(metric, comparison)
