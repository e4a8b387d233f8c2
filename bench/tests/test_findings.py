"""Findings of the papers: holding, failing, or open, by ranges over seeds."""

from typing import Any

import pytest
from understudy_bench.pub2priv.experiment import SCALES, methods, published
from understudy_bench.pub2priv.portfolio import PERIODS
from understudy_bench.pub2priv.tables import RIVALS
from understudy_bench.registry import BENCHMARKS
from understudy_bench.results.findings import ALL, Finding, Which, tried

FINDING = Finding(
    paper="Pub2Priv",
    place="Table 1",
    says="a beats b",
    benchmark="x",
    metric="error",
    better=Which("a", 1.0),
    worse=Which("b"),
)


def _results(a: tuple[float, float], b: tuple[float, float], seeds: int = 3) -> dict[str, Any]:
    rows = [
        {"method": name, "epsilon": epsilon, "seeds": seeds, "metrics": {"error": _spread(*ends)}}
        for name, epsilon, ends in (("a", 1.0001, a), ("a", 5.0, (9.0, 9.0)), ("b", None, b))
    ]
    return {"x": {"rows": rows[:2], "controls": rows[2:]}}


def _spread(low: float, high: float) -> dict[str, float]:
    return {"mean": (low + high) / 2, "low": low, "high": high}


@pytest.mark.parametrize(
    ("a", "b", "seeds", "verdict", "points"),
    [
        ((1.0, 1.1), (1.2, 1.3), 3, "holds", True),
        ((1.0, 1.25), (1.2, 1.3), 3, "not shown", True),
        ((1.2, 1.4), (1.2, 1.3), 3, "not shown", False),
        ((1.2, 1.3), (1.2, 1.3), 3, "not shown", False),
        ((1.4, 1.5), (1.2, 1.3), 3, "the reverse holds", False),
        ((1.0, 1.0), (1.2, 1.2), 1, "not judged", True),
    ],
)
def test_ranges_have_to_be_apart_in_the_stated_direction(
    a: tuple[float, float], b: tuple[float, float], seeds: int, verdict: str, points: bool
) -> None:
    found = tried(FINDING, _results(a, b, seeds))
    assert found is not None
    assert (found.verdict, found.points) == (verdict, points)


def test_rows_that_differ_by_their_seed_are_one_figure() -> None:
    results = {
        "x": {
            "rows": [{"method": "a", "epsilon": 1.0, "metrics": {"error": value}} for value in (1.0, 1.1, 1.2)],
            "controls": [{"method": "b", "epsilon": None, "metrics": {"error": value}} for value in (2.0, 2.1, 2.2)],
        }
    }
    found = tried(FINDING, results)
    assert found is not None
    assert (found.better.low, found.better.high, found.better.seeds) == (1.0, 1.2, 3)
    assert found.verdict == "holds"


def test_rows_of_another_unit_are_another_figure() -> None:
    results = _results((1.0, 1.1), (1.2, 1.3))
    results["x"]["rows"].append({**results["x"]["rows"][0], "unit": "entity", "metrics": {"error": _spread(7.0, 8.0)}})
    found = tried(FINDING, results)
    assert found is not None
    assert found.better.high == 1.1


def test_a_mean_without_its_range_is_not_judged() -> None:
    results = _results((1.0, 1.0), (2.0, 2.0), seeds=5)
    for line in (*results["x"]["rows"], *results["x"]["controls"]):
        line["metrics"] = {"error": line["metrics"]["error"]["mean"]}
    found = tried(FINDING, results)
    assert found is not None
    assert (found.verdict, found.better.seeds) == ("not judged", 1)


def test_what_was_not_run_is_not_judged() -> None:
    assert tried(FINDING, {}) is None
    assert tried(FINDING, {"x": {"rows": [], "controls": []}}) is None


def test_every_finding_names_a_benchmark_and_every_paper_has_some() -> None:
    assert {finding.benchmark for finding in ALL} <= set(BENCHMARKS)
    assert {finding.paper for finding in ALL} == {"Pub2Priv", "PETS", "PPEM", "DP-aware AdaLN-Zero", "VFLGAN-TS"}


def test_findings_of_pub2priv_name_rows_that_its_benchmarks_have() -> None:
    made = {*methods(SCALES["quick"]), *published(SCALES["quick"]), *RIVALS}
    named = {which.method for one in ALL if one.paper == "Pub2Priv" for which in (one.better, one.worse)}
    assert named <= made
    assert "pub2priv w/o c" in named
    ways = {fact for one in ALL for which in (one.better, one.worse) for fact in which.facts if fact[0] == "strategies"}
    assert ways == {("strategies", 2 * PERIODS[0]), ("strategies", 2 * PERIODS[-1])}


def test_rows_that_differ_by_a_fact_are_told_apart_by_it() -> None:
    toy = next(finding for finding in ALL if finding.benchmark == "pub2priv-toy")
    assert toy.better == Which("pub2priv", 1.0, (("correlation", 0.9), ("series", 100.0)))
    line = {"method": "pub2priv", "epsilon": 1.0, "correlation": 0.9, "series": 100}
    assert toy.better.means(line)
    assert not toy.worse.means(line)
    assert not toy.better.means({**line, "series": 5_000})


def test_a_figure_that_real_series_have_too_is_compared_by_its_distance_from_theirs() -> None:
    """A gap below that of other real series is a collapse and no better than one above it."""
    finding = Finding(
        paper="Pub2Priv", place="Table 1", says="a follows", benchmark="x", metric="corr_meta", better=Which("a"),
        worse=Which("b"),
    )  # fmt: skip
    ends = {"a": (0.40, 0.44), "b": (0.52, 0.58), "second real series": (0.54, 0.54)}
    rows = [
        {"method": name, "epsilon": 1.0, "seeds": 3, "metrics": {"corr_meta": _spread(*two)}}
        for name, two in ends.items()
    ]
    seen = tried(finding, {"x": {"rows": rows, "controls": []}})
    assert seen is not None
    assert seen.real == 0.54
    assert seen.verdict == "the reverse holds"
    assert (seen.better.low, seen.worse.low) == (pytest.approx(0.10), 0.0)  # real series lie within the second range
    plain = tried(finding, {"x": {"rows": rows[:2], "controls": []}})
    assert plain is not None
    assert plain.verdict == "holds"
