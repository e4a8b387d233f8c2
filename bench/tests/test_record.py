"""The record: verdicts that follow from figures, a page that says why, and all methods on one table."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from understudy_bench.baselines.dp_gan import DpGan, Recipe
from understudy_bench.cells import Cells
from understudy_bench.cli import results_of
from understudy_bench.judging import Judged, figures, shown, verdict
from understudy_bench.record import contest as record_contest
from understudy_bench.record.data import Arena, homes
from understudy_bench.registry import BENCHMARKS
from understudy_bench.results import findings
from understudy_bench.results import page as results_page
from understudy_bench.results.published import ALL, OURS, Published, table_of
from understudy_bench.results.words import words_of

from understudy.errors import InputError
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.registry import METHODS

RECORD = Path(__file__).parents[1] / "docs" / "record"


def _result(values: list[float], paper: float, metric: str = "error", **facts: Any) -> dict[str, Any]:
    rows = [
        {"method": "ours", "epsilon": 1.0, "unit": "entity", "metrics": {metric: value}, "paper": {metric: paper}}
        | {"seed": seed, "seconds": 1.0, "peak_rss_mb": 100.0 + seed} | facts
        for seed, value in enumerate(values)
    ]  # fmt: skip
    data = {"name": "waves", "stand_in": True}
    return {"name": "cost-voting", "scale": "quick", "data": data, "rows": rows, "controls": []}


@pytest.mark.parametrize(
    ("values", "paper", "metric", "said"),
    [
        ([1.0, 1.1, 1.2], 1.15, "error", "reproduced"),
        ([1.0, 1.1, 1.2], 2.0, "error", "better"),
        ([1.0, 1.1, 1.2], 0.5, "error", "worse"),
        ([1.0, 1.1, 1.2], 0.5, "r2", "better"),
        ([1.0, 1.1], 1.05, "error", "not judged"),
    ],
)
def test_a_figure_is_judged_by_the_spread_of_three_seeds(
    values: list[float], paper: float, metric: str, said: str
) -> None:
    (found,) = figures(_result(values, paper, metric))
    assert found.verdict == said
    assert found.seeds == len(values)
    assert found.seconds == len(values)
    assert found.data == "waves (stand-in)"


@pytest.mark.parametrize(
    ("paper", "said"), [(0.30, "better"), (0.03, "better"), (0.041, "worse"), (0.035, "reproduced")]
)
def test_what_is_best_where_real_series_are_is_judged_by_how_near_it_is(paper: float, said: str) -> None:
    """A series without noise errs less from its sine than a real one does, and is no better for it."""
    one = _result([0.045, 0.046, 0.047], paper, "sine_error")
    one["controls"] = [{"method": "holdout", "epsilon": None, "unit": None, "metrics": {"sine_error": 0.040}}]
    assert [found.verdict for found in figures(one)] == [said]
    assert [found.verdict for found in figures({**one, "controls": []})] == ["not judged"]


def test_a_row_says_what_its_epsilon_is_and_how_loud_published_noise_was() -> None:
    one = _result([1.0], 1.0, published_noise=True, noise_multiplier=0.1)
    assert [(found.method, found.epsilon_kind) for found in figures(one)] == [("ours, noise 0.1", "computed")]
    assert figures(_result([1.0], 1.0))[0].epsilon_kind == "asked"
    assert figures(_result([1.0], 1.0, epsilon_certified=0.9))[0].epsilon_kind == ""
    assert figures(_result([1.0], 1.0, status="private"))[0].epsilon_kind == ""  # of a certificate, with its status
    assert [figures(_result([1.0], 1.0, epsilon=none))[0].epsilon_kind for none in (float("inf"), 0.0)] == ["", ""]


def test_every_figure_of_the_record_is_explained() -> None:
    quoted = {m for result in results_of(RECORD).values() for line in result["rows"] for m in line.get("paper", {})}
    for metric in (*quoted, *(metric for metrics in OURS.values() for metric in metrics)):
        assert words_of(metric) is not None, metric
    assert words_of("eta_p50") == words_of("eta")
    assert words_of("nonsense") is None


def test_a_result_of_which_only_the_page_was_kept_says_so() -> None:
    one = _result([1.0], 1.0)
    one["data"] |= {"kept": "kept in three digits"}
    assert figures(one)[0].data == "waves (stand-in), kept in three digits"


def test_rows_that_carry_their_spread_count_their_own_seeds() -> None:
    one = _result([0.0], 1.05)
    one["rows"][0] |= {"metrics": {"error": {"mean": 1.0, "low": 0.9, "high": 1.1}}, "seeds": 3}
    assert [found.verdict for found in figures(one)] == ["reproduced"]


def test_a_table_is_as_good_as_the_worst_of_its_figures() -> None:
    item = Published(paper="Pub2Priv", place="Table 1", shows="x", benchmarks=("cost-voting",))
    (good,) = figures(_result([1.0, 1.1, 1.2], 1.1))
    bad = replace(good, verdict="worse")
    assert verdict(item, [good], run=True) == "reproduced"
    assert verdict(item, [good, bad], run=True) == "worse"
    assert verdict(item, [], run=False) == "not judged"
    assert verdict(replace(item, apart="other data"), [good], run=True) == "not comparable"
    assert verdict(replace(item, apart="other data"), [], run=False) == "not judged"  # there is nothing to compare yet


def test_what_a_paper_only_draws_is_shown_with_its_range() -> None:
    one = _result([1.0, 1.2], 1.1, metric="awd", parties=4.0)
    one["controls"] = [{"method": "holdout", "epsilon": None, "unit": None, "metrics": {"awd": None}}]
    (found,) = shown(one, ("awd", "aada"))
    assert (found.method, found.seeds) == ("ours, parties 4", 2)
    assert found.figures == {"awd": (1.1, 1.0, 1.2)}
    text = results_page.markdown({"vertical-energy": {**one, "name": "vertical-energy", "day": "2026-01-02"}})
    assert "2 seconds, 2026-01-02:" in text
    assert "| ours, parties 4 | 1 (asked) | entity | 1.1 (1 to 1.2) |  |  |  | 2 |" in text


def test_every_published_figure_that_the_record_quotes_stands_beside_one_of_ours() -> None:
    """A figure under a name that no metric has would vanish from the page without a word."""
    lost = {
        (name, metric)
        for name, result in results_of(RECORD).items()
        for line in [*result["rows"], *result["controls"]]
        for metric in line.get("paper", {})
        if line["metrics"] and metric not in line["metrics"]
    }
    assert not lost


def test_every_table_names_benchmarks_that_exist_and_says_why_not_where_it_has_none() -> None:
    for item in ALL:
        assert item.benchmarks or item.apart, item
        assert set(item.benchmarks) <= set(BENCHMARKS), item
    assert {item.paper for item in ALL} == {"Pub2Priv", "PETS", "PPEM", "DP-aware AdaLN-Zero", "VFLGAN-TS"}


def test_the_page_shows_papers_beside_ours_and_escapes_names() -> None:
    result = {**_result([1.0, 1.1, 1.2], 1.1, method="<b>ours</b>"), "scale": "target"}
    result["notes"] = ["| a | b |\n|---|---|\n| 1 | 2 |", "A sentence."]
    results = {name: {**result, "name": name} for name in ("vertical-sine2", "vertical-sine6")}
    text, page = results_page.markdown(results), results_page.page(results)
    assert "real series is better) | `vertical-sine2`, `vertical-sine6` | reproduced | 2 reproduced |" in text
    assert "\n| a | b |\n" in text
    assert "\n- A sentence.\n" in text
    assert "1.1 (1 to 1.2)" in text
    assert "`vertical-sine2`, target, waves (stand-in), 3 seconds:" in text  # of three rows
    assert "| 1.1 | 1.1 (1 to 1.2) | 3 | 3 | reproduced |" in text
    assert "not run: pub2priv-toy" in text
    assert "<b>ours" not in page
    assert "<table>" in page


def test_every_table_figure_and_finding_is_counted_once_for_its_paper() -> None:
    one = {**_result([1.0, 1.1, 1.2], 1.1), "scale": "target"}
    results = {name: {**one, "name": name} for name in ("vertical-sine2", "vertical-sine6")}
    lines = results_page.markdown(results).splitlines()
    begins = [place for place, line in enumerate(lines) if line.endswith("| VFLGAN-TS | all |")]
    counted = []
    for begin in begins:
        rows = [line.strip("| ").split(" | ") for line in lines[begin + 2 : lines.index("", begin)]]
        counted.append({row[0]: [int(number) for number in row[1:]] for row in rows})
    assert [sum(row[-1] for row in table.values()) for table in counted] == [len(ALL), len(findings.ALL)]
    assert all(sum(row[:-1]) == row[-1] for table in counted for row in table.values())
    assert counted[0]["reproduced"] == [0, 0, 0, 0, 1, 1]
    drawn = [sum(item.paper == paper and not item.measured for item in ALL) for paper in ("Pub2Priv", "PETS")]
    assert counted[0]["not comparable: only drawn, or no measurement"][:2] == drawn


class Refusing(Independent):
    """A method that takes no table."""

    def spending_plan(self, *arguments: Any, **options: Any) -> Any:
        raise InputError("no table is good enough.")


def test_all_methods_meet_on_one_table_and_a_refusal_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    some = homes(60)
    few = Arena(entities=some.entities.take_units(np.arange(120)), num_train=60, data=some.data)
    monkeypatch.setitem(record_contest.ARENAS, "record-homes", lambda root: few)  # type: ignore[arg-type]
    monkeypatch.setattr(record_contest, "VARIANTS", {"spectral": METHODS["spectral"], "refusing": Refusing})
    small = partial(DpGan, mode="ads-gan", recipe=Recipe(width=8, iterations=4, batch=16, rounds=2))
    monkeypatch.setattr(record_contest, "UNPROTECTED", {"ads-gan, not private": small})
    few_fits = replace(record_contest.SCALES["quick"], further=(0.5, 10.0), seeds=2, more_seeds=3)
    monkeypatch.setitem(record_contest.SCALES, "quick", few_fits)
    found = record_contest.contest("record-homes", "quick", None, lambda *done: None, Cells())
    spectral, refused = found["rows"][:2]
    assert spectral["metrics"]["ratio"] > 0.5
    assert spectral["epsilon"] == 1.0
    assert spectral["seeds"] == 3  # seconds each, and splits of sixty homes differ much
    assert refused["metrics"] == {}
    assert "refusing: no table is good enough." in found["notes"]
    assert found["controls"][0]["metrics"]["ratio"] == 1.0
    assert {line["method"] for line in found["controls"]} >= {"train-on-real", "persistence", "ads-gan, not private"}
    assert found["controls"][-1]["epsilon"] is None  # it promises nothing
    ratios = spectral["metrics"]["split_ratio"]
    assert ratios["low"] <= spectral["metrics"]["ratio"] <= ratios["high"]
    assert 0 < spectral["epsilon_certified"] <= 1.0
    text = results_page.markdown({"record-homes": found})
    assert "## All methods on 60 homes" in text
    assert {line["epsilon"] for line in found["rows"] if line["method"] == "spectral"} == {0.5, 1.0, 10.0}
    assert results_page.curves({"record-homes": found})
    once = {**found, "rows": [line for line in found["rows"] if line["epsilon"] == 1.0]}
    assert not results_page.curves({"record-homes": once})  # one epsilon makes no curve
    assert found["data"]["units"] == 60


def test_a_method_is_compared_with_real_series_on_its_own_splits() -> None:
    real = {"rows": [], "errors": [1.0, 1.0, 1.0, 4.0, 4.0, 4.0]}
    few, many = ({"metrics": {"tstr_mae": {"mean": 3.0}}, "seeds": seeds} for seeds in (3, 6))
    assert record_contest._beside(few, real)["metrics"]["ratio"] == 3.0
    assert record_contest._beside(many, real)["metrics"]["ratio"] == 1.2


def test_methods_that_take_seconds_are_seen_over_more_splits_where_units_are_few() -> None:
    quick = record_contest.SCALES["quick"]
    assert (
        quick.splits("spectral", 100, 1.0) > quick.splits("spectral", 10_000, 1.0) == quick.splits("dit", 100, 1.0) == 3
    )
    assert quick.splits("spectral", 100, 5.0) > quick.splits("dit", 100, 5.0) == 1  # enough for a curve
    assert quick.splits("spectral", 100_000, 5.0) > quick.splits("dit", 100_000, 5.0) == 0  # which would take hours


DATA = {"name": "homes", "units": 100, "steps": 24, "channels": 1}


def test_curves_of_all_methods_share_their_axes() -> None:
    rows = [
        {
            "method": name,
            "epsilon": epsilon,
            "unit": "entity",
            "metrics": {"ratio": 1 + place / epsilon},
            "seconds": 1.0,
        }
        for place, name in enumerate(("spectral", "aim"), start=1)
        for epsilon in (1.0, 5.0)
    ]
    result = {"name": "record-homes", "scale": "target", "data": DATA, "rows": rows, "controls": []}
    (drawn,) = results_page.curves({"record-homes": result})
    assert {line.get_label() for line in drawn.figure.axes[0].lines} >= {"spectral", "aim"}
    shown = results_page.page({"record-homes": result})
    assert "<svg" in shown
    assert "mathdefault" not in shown  # ticks are plain numbers
    used, defined = (set(re.findall(pattern, shown)) for pattern in (r"var\((--[a-z]+)\)", r"(--[a-z]+):"))
    assert used
    assert used <= defined  # a colour that is not defined is not drawn


def test_a_judged_figure_is_complete() -> None:
    assert set(Judged.__annotations__) >= {
        "paper",
        "mean",
        "low",
        "high",
        "seeds",
        "unit",
        "epsilon",
        "data",
        "seconds",
    }


def test_the_page_judges_a_rule_on_tables_it_was_not_fitted_to_and_tries_findings() -> None:
    rows = [
        {"method": name, "epsilon": 1.0, "unit": "entity", "metrics": {"ratio": ratio}, "seconds": 1.0, "seeds": 3}
        for name, ratio in (("spectral", 1.0), ("aim", 1.05), ("gem", 2.0))
    ]
    records = {
        f"record-{name}": {
            "name": f"record-{name}", "scale": "quick", "data": {**DATA, "name": name}, "rows": rows, "controls": [],
        }
        for name in ("homes", "sp500")
    }  # fmt: skip
    text = results_page.markdown(records)
    assert "Near in all cells 2 of 2 (always `spectral`: 2)" in text
    assert "| homes | 1 | 4.17 | spectral | 1.00 | spectral | 1.00 | yes | 1.00 | yes |" in text
    assert "| not judged: not run |" in text
    assert "Which method when" not in results_page.markdown({"record-homes": records["record-homes"]})


def test_controls_are_set_beside_the_paper_too_and_rows_say_what_tells_them_apart() -> None:
    one = _result([1.0], 1.0, correlation=0.3, epsilon_certified=0.99)
    other = _result([2.0], 1.0)
    one["controls"] = [other["rows"][0] | {"method": "dp-gan"}]
    assert [(found.method, found.epsilon) for found in figures(one)] == [
        ("ours, correlation 0.3", 0.99),
        ("dp-gan", 1.0),
    ]


def test_rows_with_noise_and_without_belong_to_their_own_tables() -> None:
    """Of the VFLGAN-TS paper, Table 3 has another judge, and Table 4 an epsilon that does not hold."""
    plain, noisy = (table_of("vertical-energy", kind) for kind in (False, True))
    assert (plain.place, plain.apart.split(":")[0]) == ("Table 3", "another judge")
    assert (noisy.place, noisy.apart.split(" (")[0]) == ("Table 4", "the published epsilon does not hold")
    assert table_of("vertical-sine2", False).apart == ""
    both = _result([1.0, 1.1, 1.2], 1.1)
    both["rows"] += [line | {"epsilon": float("inf")} for line in both["rows"]]
    assert [found.verdict for found in figures(both, "", noisy=False)] == ["reproduced"]
    assert [found.verdict for found in figures(both, "its epsilon", noisy=True)] == ["not comparable"]
