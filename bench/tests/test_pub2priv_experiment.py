"""What the Pub2Priv benchmarks measure: real series pass, a mean collapses, series without context are found out."""

from dataclasses import replace

import numpy as np
import pytest
from understudy_bench.cells import Cells
from understudy_bench.data.portfolios import simulate_market, simulate_portfolios
from understudy_bench.pub2priv.experiment import (
    NO_NOISE,
    SCALES,
    Experiment,
    WithContext,
    between_extremes,
    correlation_distance,
    methods,
    published,
)
from understudy_bench.pub2priv.tables import PEARSON, RIVALS, TABLE, TOLD, beside_spectral, facts, judged, measure
from understudy_bench.pub2priv.toy import toy_experiment

from understudy.evaluation.metric import Effort
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.spectral import Spectral

JUDGE = Effort(name="tiny", repeats=1, iteration_cap=2, replicates=20, splits=1, max_series=60)
STEPS = 40


@pytest.fixture(scope="module")
def experiment():
    market, first = simulate_market(300), np.random.default_rng(0).integers(0, 260, 60)
    private = simulate_portfolios(market, 120, steps=STEPS)
    real, second = (
        simulate_portfolios(market, 60, steps=STEPS, first_days=first, seed=seed, review_days=(5, 10))
        for seed in (1, 2)
    )
    return Experiment(private=private, real=real, second=second, judge=JUDGE)


def test_each_series_lies_between_its_own_extremes(experiment):
    scaled = between_extremes(experiment.real)
    assert np.isclose(scaled.values.min(axis=1), 0).all()
    moves = np.ptp(experiment.real.values, axis=1) > 0
    assert np.isclose(scaled.values.max(axis=1)[moves], 1).all()
    holes = np.array(experiment.real.values)
    holes[0, 3:9, 0] = np.nan
    holes[1, :, 1] = np.nan
    assert np.array_equal(np.isnan(between_extremes(experiment.real.with_values(holes)).values), np.isnan(holes))


def test_all_five_figures_of_table_1_are_there_and_zero_for_the_same_series(experiment):
    figures = experiment.metrics(experiment.real)
    assert set(figures) >= set(TABLE["portfolio"]["pub2priv"])
    assert [figures[name] for name in ("ks_r", "ks_ar", "ks_corr")] == pytest.approx([0, 0, 0], abs=1e-9)
    assert experiment.metrics(experiment.second)["ks_r"] < 0.2


def test_a_rival_that_is_told_the_context_follows_it():
    """Without noise a joint model of series and context is followed; control: the same model without context."""
    toy = replace(toy_experiment(SCALES["quick"], 400, 0.9, 0), judge=JUDGE)
    toy = replace(toy, real=toy.real.take_units(np.arange(60)), second=toy.second.take_units(np.arange(60)))
    told, silent = (toy.fitted(method, NO_NOISE, 0)[0] for method in (WithContext(Spectral()), Spectral()))
    assert told.values.shape == toy.real.values.shape
    assert np.array_equal(told.context, toy.real.context)
    gaps = [toy.metrics(sampled, trained=())["corr_meta"] for sampled in (told, silent)]
    assert gaps[0] < 0.6 * gaps[1], gaps


def test_series_of_another_context_follow_this_one_less(experiment):
    other = simulate_portfolios(simulate_market(300, seed=5), 60, steps=STEPS, seed=3)
    strange = replace(other, context=experiment.real.context)
    control = experiment.control("second real series", experiment.second)
    line = {"metrics": {"corr_meta": {"mean": experiment.metrics(strange, trained=())["corr_meta"]}}}
    assert judged(line, control)["judgement"]["corr_meta"] == "worse than a second real series"
    again = {"metrics": {"corr_meta": {"mean": experiment.metrics(experiment.second, trained=())["corr_meta"]}}}
    assert judged(again, control)["judgement"]["corr_meta"] == "no worse than a second real series"


def test_one_series_for_all_of_a_context_is_called_a_collapse(experiment):
    copies = replace(experiment.real, values=experiment.real.values)
    control = experiment.control("second real series", experiment.second)
    line = {"metrics": {"corr_meta": {"mean": experiment.metrics(copies, trained=())["corr_meta"]}}}
    assert judged(line, control)["judgement"]["corr_meta"].startswith("collapse")


def test_a_distance_of_correlations_sees_ignorance_and_collapse_alike(experiment):
    same = correlation_distance(experiment.real, experiment.second)
    mean = np.broadcast_to(experiment.real.values.mean(axis=0), experiment.real.values.shape)
    asleep = experiment.real.with_values(np.ones_like(mean))
    assert same < 0.35
    assert correlation_distance(experiment.real, asleep) > 0.45


def test_judgements_say_what_training_on_synthetic_series_costs_and_what_context_brings():
    figures = {"corr_meta": {"mean": 0.3}, "predictive": {"mean": 0.012}}
    second = {"metrics": {"corr_meta": {"mean": 0.3, "low": 0.28, "high": 0.32}, "predictive": {"mean": 0.010}}}
    without = {"metrics": {"corr_meta": {"mean": 0.5}, "predictive": {"mean": 0.011}}}
    said = judged({"metrics": figures}, second, without)["judgement"]
    assert said["predictive_over_train_on_real"] == pytest.approx(1.2)
    assert not said["predictive_holds"]
    assert said["better_than_without_context"] == {"corr_meta": True, "predictive": False}
    line = {"metrics": figures, "judgement": {}}
    assert beside_spectral(line, without)["judgement"]["better_than_spectral"] == {
        "corr_meta": True,
        "predictive": False,
    }


def test_a_row_says_what_was_certified(experiment):
    line = experiment.row("independent", Independent(), 1.0, trained=())
    assert (line["epsilon"], line["delta"], line["unit"], line["seeds"]) == (1.0, 1e-5, "entity", 1)
    assert line["epsilon_certified"] == 0
    assert line["metrics"]["corr_meta"]["low"] <= line["metrics"]["corr_meta"]["high"]


def test_data_are_described_beside_table_2(experiment):
    said = facts(None, "portfolio", experiment.private)
    assert said["stand_in"]
    assert said["pearson"]["paper"] == PEARSON["portfolio"] == 0.573
    assert 0 < said["pearson"]["ours"] < 1


def test_quick_is_the_size_that_was_asked_for_and_ablations_differ_in_one_option():
    quick = SCALES["quick"]
    whole, without = methods(quick).values()
    assert without == replace(whole, knowledge="none")
    small, direct = published(quick).values()
    assert (small.recipe.width, small.recipe.diffusion_steps, small.recipe.sampling_steps) == (64, 100, 25)
    assert direct == replace(small, knowledge="direct")
    assert quick.epsilons == (0.25, 0.5, 1.0, 2.0, 5.0, NO_NOISE)


def test_a_whole_table_is_measured_and_goes_on_where_it_was_cut(experiment, tmp_path, monkeypatch):
    work = replace(SCALES["quick"], judge=JUDGE, epsilons=(1.0, 5.0))
    monkeypatch.setattr(Experiment, "fitted", lambda self, method, epsilon, seed: (self.second, 0.99 * epsilon))
    rows, controls, more = measure(experiment, work, "tiny", Cells(tmp_path), lambda *_: None)
    assert [(line["method"], line["epsilon"]) for line in rows] == [
        ("pub2priv", 1.0),
        ("pub2priv", 5.0),
        ("pub2priv w/o c", 1.0),
        ("pub2priv, published network", 1.0),
        ("pub2priv, published network w/o theta_T", 1.0),
    ]
    assert {line["method"] for line in controls} == {
        "second real series",
        "spectral",
        *RIVALS,
        *TOLD,
    }
    made = {line["method"].replace(", published network", "") for line in (*rows, *controls)}
    assert {*TABLE["portfolio"]} <= made  # all methods of the paper
    assert all("judgement" in line and 0 < line["epsilon_certified"] <= line["epsilon"] for line in rows)
    assert all(
        {*TABLE["portfolio"]["pub2priv"]} <= {*line["metrics"]} for line in rows
    )  # five figures at every epsilon
    assert [line["epsilon"] for line in controls if line["method"] == "spectral"] == [1.0, 5.0]
    assert len(more["pictures"]["same_condition"]) == 4
    again = measure(None, work, "tiny", Cells(tmp_path), lambda *_: None)  # from the finished parts alone
    assert again[0] == rows
