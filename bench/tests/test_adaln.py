"""The comparison of DP-aware AdaLN-Zero: fillings that are right where the answer is known, and rows that add up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from understudy_bench.adaln import ablation as adaln_ablation
from understudy_bench.adaln import paper as adaln_paper
from understudy_bench.adaln.data import STUDIES, Study
from understudy_bench.adaln.errors import TASKS, GaussianFillings, errors, naive_ways
from understudy_bench.adaln.experiment import SCALES, Scale, Trial, _trials, trained

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.synthesizers.dit.recipe import Network, Recipe

TINY = Network(width=16, depth=1, num_heads=2, patch=12)


def _waves(number: int, steps: int = 48, seed: int = 0, noise: float = 0.1) -> Panel:
    """A day of 24 hours over and over, each series with a size of its own."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.5, 3, (number, 1))
    values = size * np.sin(2 * np.pi * np.arange(steps) / 24) + noise * rng.standard_normal((number, steps))
    schema = Schema(
        name="waves", population=Population(number), unit=PrivacyUnit(dtype="int64"),
        time=Time(column="when", steps=steps, frequency="1h", start="2024-01-01T00:00:00"),
        channels=(Continuous("height", -6.0, 6.0),),
    )  # fmt: skip
    return Panel(
        schema=schema, values=values[:, :, None].astype(np.float32), lengths=np.full(number, steps, dtype=np.int32),
        unit=np.arange(number, dtype=np.int64), static=np.zeros((number, 0), dtype=np.float32),
    )  # fmt: skip


@pytest.fixture(scope="module")
def study() -> Study:
    train, test, town = _waves(200), _waves(30, seed=1), _waves(40, seed=2)
    data = {"name": "waves", "sha256": None, "stand_in": False, "simulated": True}
    return Study(
        train=replace(train, private=True), test=test, window_steps=None, window_stride=None, unit="one wave",
        data=data, surrogate=town,
    )  # fmt: skip


def test_the_day_before_foretells_a_wave_and_a_line_does_not(study: Study) -> None:
    ways = naive_ways(study)
    told = {name: errors(study, fill) for name, fill in ways.items()}
    assert told["seasonal naive"]["forecast_rmse"] < 0.15 < told["straight lines"]["forecast_rmse"]
    assert told["last value"]["forecast_rmse"] > 0.5
    assert set(TASKS) == {name.split("_")[0] for name in told["last value"]}


def test_the_history_of_a_window_is_shown_to_everybody_and_not_judged(study: Study) -> None:
    """With a day of history the rule knows the day before; control: the judged day alone, where lines stand in."""
    days = _waves(30, steps=48, seed=3, noise=0.0)
    known = replace(study, test=days, history=24)
    alone = replace(study, test=_waves(30, steps=24, seed=3, noise=0.0))
    apart = [errors(one, naive_ways(one)["seasonal naive"])["forecast_rmse"] for one in (known, alone)]
    assert apart[0] < 1e-5 < 0.5 < apart[1]
    asked: list[np.ndarray] = []

    def fill(hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        asked.append(hidden)
        return days.values[None].astype(np.float64)

    assert errors(known, fill)["impute_rmse"] == 0.0
    assert all(not hidden[:, :24].any() and hidden[:, 24:].any(axis=1).all() for hidden in asked)


def test_the_normal_distribution_of_synthetic_series_fills_like_the_real_ones(study: Study) -> None:
    """Synthetic series here are real ones, so the filling is the best linear one; control: series without memory."""
    waves = GaussianFillings(_waves(600, seed=4), study.test)
    rng = np.random.default_rng(5)
    shuffled = replace(waves.synthetic, values=rng.permuted(waves.synthetic.values, axis=1))
    good, bad = errors(study, waves), errors(study, GaussianFillings(shuffled, study.test))
    for task in TASKS:
        assert good[f"{task}_rmse"] < 0.25 < 0.7 < bad[f"{task}_rmse"]
    assert good["forecast_coverage"] > 0.8


def test_what_is_shown_comes_back_as_it_was(study: Study) -> None:
    hidden = np.tile(np.arange(48) >= 36, (30, 1))
    filled = GaussianFillings(_waves(600, seed=4), study.test)(hidden, np.random.default_rng(0))
    np.testing.assert_allclose(filled[0][~hidden], study.test.values[~hidden], atol=0.05)  # by ranks of 600 series


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.1, None), (None, 8.0), (None, None)])
def test_a_row_tells_its_true_epsilon(study: Study, sigma: float | None, epsilon: float | None) -> None:
    recipe = Recipe(iterations=2, batch=32, draws=1)
    line = trained(study, Trial(name="tiny", network=TINY, recipe=recipe, sigma=sigma, epsilon=epsilon))
    assert (line["epsilon"] is None) == (sigma is None and epsilon is None)
    assert line["published_noise"] is (sigma is not None)
    private = sigma is not None or epsilon is not None
    assert (line["metrics"]["noise_ratio"] > 0) is private  # σ√p/B, from 200 series and batches of 32
    if sigma is not None:
        assert line["epsilon"] > 50  # a noise of a tenth promises nothing
    assert np.isfinite([line["metrics"][f"{task}_{figure}"] for task in TASKS for figure in ("rmse", "js")]).all()


def test_the_windows_that_are_trained_on_are_the_private_ones(study: Study) -> None:
    seen = replace(study, window_steps=24, window_stride=12).train_windows
    assert (seen.num_series, seen.num_steps, seen.num_units, seen.private) == (600, 24, 600, False)
    np.testing.assert_array_equal(seen.values[1], study.train.values[0, 12:36])


def test_every_row_of_the_papers_tables_is_visited() -> None:
    work: Scale = replace(SCALES["target"], seeds=1, judged_seeds=1)
    trials = _trials(work, "adaln-power", Path("packs"))
    names = {(one.name, one.sigma, one.epsilon) for one in trials}
    for sigma in (0.03, 0.05, 0.1, 0.2):
        assert {("dp-vanilla", sigma, None), ("dp-aware", sigma, None)} <= names
    for epsilon in (1.0, 2.0, 8.0):
        assert {
            (f"{name}{more}", None, epsilon) for name in ("dp-vanilla", "dp-aware") for more in ("", ", pre-trained")
        } <= names
    visited = {(table, one.name, one.sigma) for table, one in adaln_ablation._trials(work)}
    assert set(adaln_paper._ABLATIONS) <= visited
    assert all(one.paper for one in trials if one.sigma is not None)
    assert [one.epsilon for one in trials[:4]] == [8.0] * 4  # what is judged comes first
    assert all(one.epsilon != 8.0 for one in trials[4:])


def test_the_meters_figures_are_quoted_whole() -> None:
    """Tables 6 and 7: nine figures of each task, and those of Table 1 where both print one."""
    printed = adaln_paper.row("adaln-power", "dp-aware", 0.1)
    assert (printed["forecast_r2"], printed["impute_mmd"], printed["forecast_mae"]) == (0.353, 5.8e-2, 0.52)
    assert printed["impute_mape"] == 5.267
    assert len(printed) == 19
    assert len(adaln_paper.row("adaln-etth1", "dp-aware", 0.1)) == 6


def test_what_is_judged_has_three_seeds_at_every_scale() -> None:
    for work in SCALES.values():
        seeds = [one.seed for one in _trials(work, "adaln-power", Path("packs")) if one.epsilon == 8.0 and not one.pack]
        assert sorted(seeds) == [0, 0, 1, 1, 2, 2]
        noisy = [one for one in _trials(work, "adaln-etth1", Path("packs")) if one.sigma == 0.1]
        assert sorted(one.seed for one in noisy) == [0, 0, 1, 1, 2, 2]  # what the paper compares


def test_a_meters_faults_are_gaps_and_the_calendar_goes_with_every_window(tmp_path: Path) -> None:
    days = 80
    minutes = np.full(days * 24 * 60 + 396, 2.0)  # 396 minutes before the first midnight are left out
    minutes[396 + 5 * 60 : 396 + 6 * 60] = -1.0  # the sixth hour of the first whole day
    folder = tmp_path / "household_power"
    folder.mkdir()
    pq.write_table(pa.table({"Global_active_power": minutes}), folder / "household_power.parquet")
    made = STUDIES["adaln-power"](tmp_path)

    assert np.flatnonzero(~made.train.observed[0, :, 0]).tolist() == [5]
    assert made.train.values[0, 4, 0] == made.train.values[0, 6, 0] == 2.0
    names = [channel.name for channel in made.train.schema.context]
    assert made.train.context is not None
    assert made.test.context is not None
    whole = dict(zip(names, made.train.context[0].T, strict=True))
    assert np.allclose(whole["hour_sine"][[0, 6, 24]], [0, 1, 0], atol=1e-5)
    assert np.allclose(whole["weekday_cosine"][:-168], whole["weekday_cosine"][168:], atol=1e-4)
    assert np.isclose(whole["weekday_sine"][0], np.sin(2 * np.pi * 6 / 7), atol=1e-5)  # a Sunday
    begins = 351 + int(0.85 * days)  # the 17th of December is the 351st day
    yearday = made.test.context[0, 0, names.index("yearday_sine")]
    assert np.isclose(yearday, np.sin(2 * np.pi * begins / 365.25), atol=1e-4)
