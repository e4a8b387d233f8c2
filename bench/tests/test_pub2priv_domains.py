"""Every domain learns from some and is judged on others, for the same public stretches of time."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from understudy_bench.cells import Cells
from understudy_bench.cost import pub2priv as cost
from understudy_bench.data.datasets import DatasetInfo
from understudy_bench.data.electricity import Clients
from understudy_bench.data.portfolios import REVIEW_DAYS, simulate_market
from understudy_bench.data.trade import simulate_trade, trade_panel
from understudy_bench.pub2priv import portfolio as portfolios
from understudy_bench.pub2priv import toy
from understudy_bench.pub2priv.domains import electricity_experiment, refused, trade_experiment
from understudy_bench.pub2priv.experiment import EPSILONS, SCALES
from understudy_bench.pub2priv.households import many_weeks, one_week
from understudy_bench.pub2priv.portfolio import portfolio_experiment
from understudy_bench.registry import BENCHMARKS

from understudy.errors import MissingData
from understudy.evaluation.metric import Effort
from understudy.synthesizers.independent import Independent

JUDGE = Effort(name="tiny", repeats=1, iteration_cap=1, replicates=10, splits=1, max_series=30)
FIGURES = ("ks_r", "ks_ar", "corr_meta", "discriminative", "predictive")
WORK = replace(SCALES["quick"], judge=JUDGE, sampled=20)


def clients(number: int = 30) -> Clients:
    rng = np.random.default_rng(0)
    return Clients(consumption=1e3 * rng.random((number, 156)) + 1, first_day=dt.date(2012, 1, 1), days=7)


def apart(experiment) -> None:
    """The judged series are of the same contexts, and none of them was learned from."""
    np.testing.assert_array_equal(experiment.real.context, experiment.second.context)
    learned = {series.tobytes() for series in experiment.private.values}
    assert not learned & {series.tobytes() for panel in (experiment.real, experiment.second) for series in panel.values}
    assert not np.array_equal(experiment.real.values, experiment.second.values, equal_nan=True)


@pytest.mark.parametrize("unit", ["entity", "overlapping-window"])
def test_clients_that_are_judged_were_not_learned_from(unit):
    experiment = electricity_experiment(clients(), unit, WORK)
    apart(experiment)
    assert experiment.unit == unit
    assert experiment.private.num_units == (18 if unit == "entity" else 72)


def test_portfolios_are_judged_on_days_drawn_by_the_caller():
    experiment = portfolio_experiment(simulate_market(400), WORK, number=30)
    apart(experiment)
    assert experiment.private.num_units == 30
    assert experiment.paper["pub2priv"]["corr_meta"] == 0.18


def test_simulated_importers_are_judged_on_others_and_ten_countries_can_not_be_protected():
    apart(trade_experiment(simulate_trade(30), WORK))
    assert "fewer than 100 units" in refused(trade_panel(simulate_trade(), "entity"))


def test_real_countries_are_judged_beside_the_next_country_over_the_same_months():
    known = replace(simulate_trade(10), stand_in=False)
    experiment = trade_experiment(known, WORK)
    np.testing.assert_array_equal(experiment.real.context, experiment.second.context)
    assert not np.array_equal(experiment.real.values, experiment.second.values)


def test_homes_are_judged_on_weeks_that_nothing_was_learned_from():
    experiment = many_weeks(WORK, homes=40, weeks=4)
    apart(experiment)
    learned = {week.tobytes() for week in experiment.private.context}
    assert len(learned) == 4
    assert not learned & {week.tobytes() for week in experiment.real.context}
    together = one_week(WORK, homes=40)
    apart(together)
    assert (together.private.num_units, together.delta) == (40, 1 / 4000)


@pytest.mark.parametrize(
    "name", ["pub2priv-trade", "pub2priv-portfolio", "pub2priv-strategies", "pub2priv-electricity"]
)
def test_missing_data_end_a_benchmark_with_status_3(name, tmp_path):
    with pytest.raises(MissingData) as caught:
        BENCHMARKS[name]("quick", tmp_path, lambda *_: None, Cells())
    assert caught.value.exit_code == 3


def test_the_toy_says_whether_the_error_falls_with_every_step():
    rows = [
        {"method": "pub2priv", "series": 100, "epsilon": 1.0, "metrics": {"predictive": {"mean": error}}}
        for error in (0.04, 0.03, 0.02, 0.01)
    ]
    assert toy._falls(rows, 100, 1.0)
    assert not toy._falls([*rows[:2], rows[0], rows[3]], 100, 1.0)
    assert toy._falls([*rows, {**rows[0], "method": "pub2priv w/o c"}], 100, 1.0)


def test_a_trend_over_seeds_is_told_from_chance():
    def at(correlation, low, middle, high):
        errors = {"low": low, "mean": (low + middle + high) / 3, "high": high}
        return {"method": "pub2priv", "series": 100, "epsilon": 1.0, "correlation": correlation} | {
            "metrics": {"predictive": errors}
        }

    falling = [at(0.1 * step, 0.9 - 0.1 * step, 1.0 - 0.1 * step, 1.1 - 0.1 * step) for step in range(4)]
    assert toy._errors(falling[0]) == pytest.approx([0.9, 1.0, 1.1])
    assert toy.predictive_trend(falling, 100, 1.0)["p"] < 0.01
    level = [at(0.1 * step, 0.9, 1.0, 1.1) for step in range(4)]
    assert toy.predictive_trend(level, 100, 1.0)["p"] > 0.3
    rising = [{**line, "correlation": 0.3 - line["correlation"]} for line in falling]
    assert toy.predictive_trend(rising, 100, 1.0)["p"] > 0.99


@pytest.mark.filterwarnings("ignore:An input array is constant")
def test_the_toy_has_ablations_rivals_and_a_second_set_of_real_series(monkeypatch):
    monkeypatch.setattr(toy, "_SETTINGS", ((100, 1.0),))
    monkeypatch.setattr(toy, "CORRELATIONS", (0.9,))
    monkeypatch.setattr(toy, "SEEDS", 1)
    monkeypatch.setattr(toy, "FITS", 1)
    monkeypatch.setattr(toy, "LEAST_TRAINING", 1)
    monkeypatch.setattr(toy, "FEW_RIVALS", {"independent": Independent()})
    monkeypatch.setitem(toy.SCALES, "quick", replace(WORK, epsilons=(1.0, 5.0)))
    found = toy.toy("quick", None, lambda *_: None, Cells())
    line = found["rows"][0]
    assert (line["correlation"], line["series"], line["seeds"]) == (0.9, 100, 1)
    assert 0 < line["epsilon_certified"] <= 1
    assert line["paper"] == {"discriminative": 0.480, "predictive": 0.005}
    assert told(found["rows"]) == [
        ("pub2priv", 1.0), ("pub2priv", 5.0), ("pub2priv w/o c", 1.0),
    ]  # fmt: skip
    others = [("second real series", None), ("spectral", 1.0), ("spectral", 5.0), ("independent", 1.0)]
    assert told(found["controls"]) == others
    assert all(set(FIGURES) <= set(line["metrics"]) for line in (*found["rows"], *found["controls"]))
    assert not any(line["paper"] for line in (*found["rows"][1:], *found["controls"]))
    assert set(found["data"]["predictive_falls"]) == set(found["data"]["predictive_trend"]) == {"100 series, epsilon 1"}


def test_every_correlation_of_the_toy_has_the_method_and_spectral():
    ours, rivals = (make(SCALES["quick"]) for make in (toy._ours, toy._rivals))
    for name in ("pub2priv", "spectral"):
        at_one = {one.correlation for one in (*ours, *rivals) if (one.name, one.series, one.epsilon) == (name, 100, 1)}
        assert at_one == {0.0, 0.3, 0.6, 0.9}
    curve = {one.epsilon for one in ours if (one.name, one.series, one.correlation) == ("pub2priv", 100, 0.9)}
    assert curve == set(EPSILONS) == {one.epsilon for one in rivals if one.name == "spectral"}
    assert {"independent", "dp-gan", "pate-gan"} < {one.name for one in rivals}


def test_every_number_of_strategies_has_the_curve_ablations_and_rivals(monkeypatch):
    market, info = simulate_market(400), DatasetInfo(name="portfolios", path=Path("none"), sha256="0", stand_in=True)
    monkeypatch.setattr(portfolios, "load_market", lambda root: (market, info))
    monkeypatch.setattr(portfolios, "PERIODS", (3,))
    monkeypatch.setattr(portfolios, "FEW_RIVALS", {"independent": Independent()})
    monkeypatch.setattr(portfolio_experiment, "__defaults__", (REVIEW_DAYS, 100))
    monkeypatch.setitem(portfolios.SCALES, "quick", replace(WORK, epsilons=(1.0, 5.0), seeds=1))
    shares = []
    found = portfolios.strategies("quick", None, lambda stage, share: shares.append(share), Cells())
    ours = [("pub2priv", 1.0), ("pub2priv", 5.0), ("pub2priv w/o c", 1.0)]
    others = [("second real series", None), ("independent", 1.0), ("spectral", 1.0), ("spectral", 5.0)]
    for kind, lines in {"rows": ours, "controls": others}.items():
        assert told(found[kind]) == lines
        assert {line["strategies"] for line in found[kind]} == {6}
        assert not any(line["paper"] for line in found[kind])
    assert shares == sorted(shares)
    assert shares[-1] <= 1


def told(lines):
    return [(line["method"], line["epsilon"]) for line in lines]


def sizes(memory):
    return [
        {"channels": channels, "length": length, "metrics": {"peak_mb": memory(channels * length)}}
        for channels, length in cost.SIZES
    ]


def test_memory_on_a_line_holds_and_a_jump_does_not():
    assert cost.beyond_line(sizes(lambda size: 400 + size))["holds"]
    assert not cost.beyond_line(sizes(lambda size: 400 + size + 900 * (size == 300)))["holds"]


def test_a_cost_row_says_what_a_run_would_take(monkeypatch):
    for name, value in {"_TIMED": 1, "_BATCH": 2, "_MEMORY_STEPS": 1, "_peak_of_another": cost._child}.items():
        monkeypatch.setattr(cost, name, value)
    line = cost._measured(8, 1, 100)
    assert line["metrics"]["run_seconds"] == pytest.approx(1563 * line["metrics"]["step_seconds"])
    assert line["paper"] == {"run_seconds": 136.0, "peak_mb": 1208.0}
    assert line["metrics"]["over_non_private"] > 0
    assert line["metrics"]["peak_mb"] > 50
