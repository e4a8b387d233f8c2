"""Trees tell apart what differs and nothing else; forecasters learn what there is to learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.unit.evaluation.odd import LEAST
from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Panel, Time
from understudy.evaluation.general import METRICS
from understudy.evaluation.general.learners import alone, summary_features, told_apart
from understudy.evaluation.general.values import resolutions, rounded
from understudy.evaluation.metric import Measured, Undefined
from understudy.evaluation.panels import Comparison
from understudy.synthesizers.contract.panels import make_panel, rich_schema

BY_NAME = {metric.name.removeprefix("general."): metric for metric in METRICS}


def compare(real: Panel, candidate: Panel, reference: Panel | None = None) -> Comparison:
    reference = candidate if reference is None else reference
    return Comparison(real=real, candidate=candidate, reference=reference, unseen=reference)


def measured(name: str, *panels: Panel, **effort) -> Measured:
    return BY_NAME[name].measure(compare(*panels), replace(LEAST, **effort), 0)


def saw(num_series: int, seed: int, *, backwards: bool = False) -> Panel:
    """Slow rises and sudden falls at random times: the same spectrum and marginals in both directions."""
    rng = np.random.default_rng(seed)
    values = (np.arange(24)[None, :, None] + rng.integers(0, 8, (num_series, 1, 1))) % 8 / 8
    values = values + 0.05 * rng.standard_normal(values.shape)
    return panel_of(values[:, ::-1] if backwards else values)


@pytest.mark.parametrize("name", ["trees_raw", "trees_summary"])
def test_series_of_one_kind_are_not_told_apart(name: str) -> None:
    # Accuracy on 400 rows has a standard deviation of 0.025, somewhat more with learned trees.
    assert measured(name, waves(200), waves(200, seed=1)).value < 0.1


@pytest.mark.parametrize("name", ["trees_raw", "trees_summary"])
def test_a_shift_is_told_apart(name: str) -> None:
    found = measured(name, waves(150), panel_of(waves(150, seed=1).values * 0.3 + 0.6), replicates=20)
    assert found.value > 0.45
    assert found.replicates is not None
    assert 0 < found.replicates.std() < 0.05 or (found.replicates == 0.5).all()


def test_running_backwards_is_seen_in_the_skewness_of_changes() -> None:
    found = measured("trees_summary", saw(150, 0), saw(150, 1, backwards=True))
    assert found.value > 0.45
    assert "alone: wave0: skewness of changes" in found.parts


def test_units_are_never_split_between_learning_and_testing() -> None:
    """Rows of a unit are equal and say nothing else: whoever saw one of them knows the rest."""
    rng = np.random.default_rng(0)
    tables = [np.repeat(rng.standard_normal((40, 5)), 10, axis=0) for _ in range(2)]
    owner = np.repeat(np.arange(40), 10)
    honest = told_apart(*tables, (owner, owner), 0).mean()
    leaky = told_apart(*tables, (np.arange(400), np.arange(400)), 0).mean()
    assert honest < 0.75
    assert leaky > 0.95


def test_single_features_are_ranked_by_the_area_under_the_curve() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((50, 3)), rng.normal([0, 0.5, 2], 1, (70, 3))
    side = np.repeat([0, 1], [50, 70])
    for place, found in enumerate(alone(first, second)):
        area = roc_auc_score(side, np.concatenate([first, second])[:, place])
        assert found == pytest.approx(abs(area - 0.5))


def test_features_are_finite_and_named_once_whatever_the_columns() -> None:
    panel = make_panel(rich_schema(), 40)
    names, table = summary_features(compare(panel, panel), panel)
    known = [place for place, name in enumerate(names) if name != "area"]  # a static column that may be missing
    assert np.isfinite(table[:, known]).all()
    assert len(set(names)) == len(names) == table.shape[1]


def test_digits_are_a_metric_of_their_own_and_do_not_blind_the_trees() -> None:
    real = panel_of(np.round(waves(150).values, 2))
    smooth = waves(150, seed=1)
    assert resolutions(real) == (0.01, 0.01)
    assert resolutions(smooth) == (None, None)
    assert measured("resolution", real, panel_of(np.round(waves(150, seed=2).values, 2))).value == 1.0
    assert measured("resolution", real, smooth).value < 0.05
    assert measured("trees_summary", real, smooth).value < 0.12
    np.testing.assert_allclose(rounded(smooth, real).values, np.round(smooth.values, 2), atol=1e-6)
    with pytest.raises(Undefined, match="no grid"):
        measured("resolution", smooth, real)


def autoregression(num_series: int, seed: int, memory: float) -> Panel:
    rng = np.random.default_rng(seed)
    steps = [rng.standard_normal(num_series)]
    for _ in range(39):
        steps.append(memory * steps[-1] + np.sqrt(1 - memory**2) * rng.standard_normal(num_series))
    return panel_of(np.stack(steps, axis=1)[:, :, None], time=Time(column="when", frequency="1mo", steps=40))


@pytest.mark.parametrize("memory", [-0.5, 0.0, 0.6])
def test_skill_on_a_known_process_is_the_closed_form(memory: float) -> None:
    """The best forecast errs by √(1 − φ²), repeating what was k steps before by √(2(1 − φᵏ)); a year has 12."""
    panels = (autoregression(300, seed, memory) for seed in range(3))
    naive = min(2 * (1 - memory), 2 * (1 - memory**12))
    assert measured("forecast_skill", *panels).value == pytest.approx(1 - np.sqrt((1 - memory**2) / naive), abs=0.03)


def test_nothing_is_learned_from_series_of_another_memory() -> None:
    real, reference = autoregression(300, 0, -0.5), autoregression(300, 2, -0.5)
    found = measured("forecast_skill", real, autoregression(300, 1, 0.9), reference)
    assert found.value < 0
    assert found.parts["skill when trained on real"] == pytest.approx(1 - np.sqrt(0.75 / 2), abs=0.03)
    assert found.parts["MAE persistence"] > found.parts["MAE trained on real"]
