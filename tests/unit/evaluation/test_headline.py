"""The headline names what is wrong with planted releases, and passes other real series.

False alarms: each of six rows is beyond a 99.9 % interval by chance; seeds are fixed.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.evaluation.sets import panel_of, waves
from tests.unit.evaluation.test_words import score
from understudy.data import Continuous, Panel
from understudy.evaluation import words
from understudy.evaluation.metric import MATTERS, QUICK, metrics_of
from understudy.evaluation.panels import Panels
from understudy.evaluation.scorecard import Scorecard, scorecard_of
from understudy.evaluation.words import headline, with_verdicts
from understudy.report.page import scores

NUM_SERIES = 300
CHEAP = replace(QUICK, replicates=10)


def _with_gaps(panel: Panel, seed: int, share: float = 0.1) -> Panel:
    values = np.array(panel.values)
    values[np.random.default_rng(seed).random(values.shape) < share] = np.nan
    return panel.with_values(values)


def _sample(seed: int) -> Panel:
    return _with_gaps(waves(NUM_SERIES, seed=seed), seed)


def _permuted(panel: Panel) -> Panel:
    rng = np.random.default_rng(3)
    return panel.with_values(np.stack([series[rng.permutation(len(series))] for series in panel.values]))


def _one_channel(panel: Panel, change: Callable[[np.ndarray], np.ndarray]) -> Panel:
    values = np.array(panel.values)
    values[:, :, 1] = change(values[:, :, 1])
    return panel.with_values(values)


PLANTED: dict[str, tuple[Callable[[Panel], Panel], set[str]]] = {
    "shifted mean of one channel": (
        lambda panel: _one_channel(panel, lambda x: np.clip(x + 0.08, 0, 1)),
        {"marginal mean"},
    ),
    "collapsed tails of one channel": (
        lambda panel: _one_channel(panel, lambda x: np.clip(x, *np.nanquantile(x, (0.03, 0.97)) * [1.01, 0.99])),
        {"marginal tails"},
    ),
    "permuted time": (_permuted, {"TSTR forecasts", "discriminator on summaries"}),
    "wrong gaps": (lambda panel: _with_gaps(panel, 9, 0.2), {"missingness"}),
}


def _card(synthetic: Panel) -> Scorecard:
    panels = Panels.prepare(_sample(1), synthetic, _sample(2), max_series=NUM_SERIES)
    return scorecard_of(panels, [metric for metric in metrics_of(("general",)) if metric.name in MATTERS], CHEAP)


@pytest.mark.parametrize("planted", PLANTED)
def test_the_headline_names_what_is_wrong(planted: str) -> None:
    change, expected = PLANTED[planted]
    found = headline(_card(change(_sample(4))).as_dict())
    named = {one["what"] for one in found["apart"]}
    assert expected <= named
    assert found["verdict"] not in (words.LIKE_REAL, words.UNKNOWN)
    assert all(what in found["worst"] for what in expected)


def test_a_second_real_sample_is_like_real() -> None:
    found = headline(_card(_sample(4)).as_dict())
    assert (found["verdict"], found["apart"]) == (words.LIKE_REAL, []), found["sentence"]
    assert found["not_measured"] == []


def test_half_of_the_mean_is_not_like_real_whatever_wasserstein_says() -> None:
    """Levels with a heavy tail: five splits leave Wasserstein an interval that takes in half of the mean."""

    def levels(seed: int, factor: float) -> Panel:
        rng = np.random.default_rng(200 + seed)
        steady = np.minimum(factor * np.exp(rng.normal(2.3, 1.2, (400, 1, 1))), 900) + rng.random((400, 12, 1))
        return panel_of(steady, channels=(Continuous("level", 0.0, 1000.0),))

    panels = Panels.prepare(levels(1, 1.0), levels(4, 0.45), levels(2, 1.0), max_series=400)
    names = ("general.mean", "general.values_wasserstein")
    card = scorecard_of(panels, [metric for metric in metrics_of(("general",)) if metric.name in names], CHEAP)
    assert card["general.values_wasserstein"].like_real
    assert [one["what"] for one in headline(card.as_dict())["apart"]] == ["marginal mean"]
    shown = card.numbers["level"]
    assert shown["synthetic"]["mean"] < 0.6 * shown["real"]["mean"]
    assert shown["real"]["minimum"] <= shown["real"]["1 %"] <= shown["real"]["99 %"] <= shown["real"]["maximum"]


def _named(name: str, **facts: object) -> dict[str, object]:
    found = {**score(0.05), "name": name, "suite": "general", **facts}
    found["synthetic"] = {"problem": None, "notes": (), "low": None, "high": None, **found["synthetic"]}
    found["independent"] = {"low": None, "high": None, **found["independent"]}
    return {**found, "reference": "none"}


def _whole(**changes: dict[str, object]) -> dict[str, object]:
    rows = {name: _named(name) for name in MATTERS} | changes
    return {"scores": list(rows.values()), "effort": "quick", "seed": 0, "notes": ()}


def test_eleven_good_rows_do_not_outvote_the_trees() -> None:
    others = {f"toy.{place}": _named(f"toy.{place}") for place in range(11)}
    trees = {"general.trees_raw": _named("general.trees_raw", **score(1.0))}
    found = headline(_whole(**others, **trees))
    assert found["verdict"] == words.NO_BETTER
    assert found["worst"].startswith(
        "Worst of what matters: no better. Apart from real series in discriminator on values"
    )


def test_rows_that_cannot_tell_are_not_counted() -> None:
    blind = {f"toy.{place}": _named(f"toy.{place}", **score(0.05, control=0.02)) for place in range(4)}
    view = scores(_whole(**blind))
    assert [(part["number"], part["meaning"]) for part in view["tally"]] == [(len(MATTERS), words.LIKE_REAL)]
    assert view["uncounted"] == 4


def test_what_matters_and_was_not_measured_makes_like_real_unknown() -> None:
    late = _named("general.trees_raw", like_real=None, position=None)
    late["synthetic"] = {"value": None, "problem": "not measured: the time was up."}
    found = headline(_whole(**{"general.trees_raw": late}))
    assert found["verdict"] == words.UNKNOWN
    assert "Not measured: discriminator on values" in found["worst"]


def test_the_sentence_counts_what_can_tell_and_names_the_weakest() -> None:
    weak = {
        "general.tails": _named("general.tails", **score(0.8)),
        "toy.blind": _named("toy.blind", **score(0.05, control=0.02)),
    }
    forecasts = _named("general.forecast_skill")
    forecasts["synthetic"]["parts"] = {"MAE trained on candidate": 0.21, "MAE trained on real": 0.2}
    found = headline(_whole(**weak, **{"general.forecast_skill": forecasts}))
    assert found["sentence"] == (
        "Forecasts trained on it err 1.05 times as much as on real series; 5 of 6 checks are indistinguishable from "
        "real series; weakest: marginal tails."
    )
    assert headline({"scores": []})["sentence"].startswith("No check can tell")


def test_a_small_step_towards_a_far_control_is_not_called_near() -> None:
    far = {**score(5.0, control=100.0), "near": 0.1}
    assert words.verdict(far) == words.BETWEEN
    assert words.verdict({**far, "near": None}) == words.NEAR_REAL


def test_every_row_carries_its_verdict() -> None:
    facts = with_verdicts(_whole())
    assert {row["verdict"] for row in facts["scores"]} == {words.LIKE_REAL}
    assert facts["headline"]["verdict"] == words.LIKE_REAL
