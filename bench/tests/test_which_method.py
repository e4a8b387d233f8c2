"""The rule of `--method auto`: found where it is planted, judged on tables it has not seen, and the one that ships."""

import json
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from understudy_bench.results.which_method import (
    Cell,
    _alone,
    _divided,
    _loss,
    cells_of,
    context_cells,
    contexts_left_out,
    fit_rule,
    left_out,
    no_worse,
    shipped,
)

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.synthesizers import auto


def _cells(crossing: float, tables: int = 6) -> list[Cell]:
    """Below the crossing `small` is best, above it `spectral`; a third method is never."""
    rng = np.random.default_rng(0)
    cells = []
    for table in range(tables):
        for epsilon in (0.5, 1.0, 5.0):
            signal = float(10 ** rng.uniform(-1.5, 1.5))
            low = signal < crossing
            ratios = {"spectral": 2.0 if low else 1.0, "small": 1.3 if low else 2.0, "never": 3.0}
            cells.append(Cell(table=f"t{table}", epsilon=epsilon, signal=signal, ratios=ratios))
    return cells


def test_a_planted_rule_is_found_and_holds_on_tables_it_has_not_seen() -> None:
    cells = _cells(crossing=1.0)
    rule = fit_rule(cells)
    below = max(cell.signal for cell in cells if cell.signal < 1)
    above = min(cell.signal for cell in cells if cell.signal >= 1)
    assert (rule.below, rule.above) == ("small", "spectral")
    assert below < rule.threshold < above
    judged = left_out(cells)
    assert len(judged) == len(cells)
    assert np.mean([one.near for one in judged]) > 0.9
    assert np.mean([one.rival_near for one in judged]) < 0.9  # control: always the same method


def test_one_method_alone_where_a_second_saves_next_to_nothing() -> None:
    cells = [replace(cell, ratios={"spectral": 1.0, "other": 0.995}) for cell in _cells(1.0)]
    assert fit_rule(cells).below == fit_rule(cells).above


def test_a_second_method_that_is_better_by_chance_on_every_table_is_not_taken() -> None:
    """Errors of five equal methods are noise: some pair divides the tables at hand better than one method does."""
    rng = np.random.default_rng(1)
    taken, fits_better = [], []
    for _ in range(20):
        cells = [
            replace(cell, ratios={name: float(np.exp(rng.normal(0, 0.2))) for name in "abcde"})
            for cell in _cells(1.0, tables=5)
        ]
        rule = fit_rule(cells)
        taken.append(rule.below != rule.above)
        fits_better.append(_loss(_divided(cells), cells) < _loss(_alone(cells), cells) - 0.02)
    assert np.mean(fits_better) > 0.9  # control: by the tables at hand alone nearly all would be taken
    assert np.mean(taken) <= 0.35  # a fifth is expected by chance


def test_a_table_does_not_judge_itself() -> None:
    """One table on which another method is a hundred times better: the rule it is judged by does not know."""
    cells = [replace(cell, ratios={"spectral": 1.0, "odd": 2.0}) for cell in _cells(1.0)]
    odd = [replace(cell, ratios={"spectral": 1.0, "odd": 0.01}) if cell.table == "t0" else cell for cell in cells]
    chosen = [one for one in left_out(odd) if one.cell.table == "t0"]
    assert {one.method for one in chosen} == {"spectral"}
    assert not any(one.near for one in chosen)
    assert left_out([cell for cell in odd if cell.table == "t0"]) == []


def test_controls_refusals_and_single_splits_are_no_methods_to_choose() -> None:
    rows = [
        {"method": "spectral", "epsilon": 1.0, "metrics": {"ratio": 1.2}, "seeds": 3},
        {"method": "dit", "epsilon": 1.0, "metrics": {"ratio": 1.0}, "seeds": 1},
        {"method": "independent", "epsilon": 0.0, "metrics": {"ratio": 0.1}, "seeds": 3},
        {"method": "pub2priv", "epsilon": 1.0, "metrics": {}},
    ]
    data = {"name": "x", "units": 100, "steps": 25, "channels": 2}
    (cell,) = cells_of({"record-x": {"data": data, "rows": rows}, "pub2priv-toy": {"data": data, "rows": rows}})
    assert dict(cell.ratios) == {"spectral": 1.2}
    assert cell.signal == 2.0


def test_the_rule_that_ships_is_the_one_its_figures_give() -> None:
    text = files("understudy_bench.results").joinpath("auto.json").read_text("utf-8")
    record = json.loads(text)
    cells = [Cell(**cell) for cell in record["cells"]]
    contexts = [Cell(**cell) for cell in record["context_cells"]]
    assert record == json.loads(json.dumps(shipped(cells, contexts)))
    assert record["own_contexts"]["cells"] >= 5
    assert {record["rule"]["below"], record["rule"]["above"]} == {auto.choose(_schema(), "series")[0]}
    assert not no_worse(record["own_contexts"])  # so `auto` takes the first there too
    assert (record["left_out"]["rule"], record["left_out"]["cells"]) == (27, 30)  # as `auto` says
    strict = [one for one in left_out(cells) if one.cell.epsilon == 1.0]
    assert np.mean([one.near for one in strict]) >= 0.8
    assert record["left_out"]["rule"] >= record["left_out"]["rival"]
    assert len({cell.table for cell in cells}) >= 5


def _schema(**changes: object) -> Schema:
    whole = {
        "name": "wards", "population": Population(10_000), "unit": PrivacyUnit(column="id"),
        "time": Time(column="hour", steps=24), "channels": (Continuous("x", 0.0, 1.0),),
    }  # fmt: skip
    return Schema(**(whole | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "27 of 30"),
        ({"context": (Continuous("heat", 0.0, 1.0),)}, "public context"),
        ({"channels": (Continuous("x", 0.0, 1.0, party="a"), Continuous("y", 0.0, 1.0, party="b"))}, "parties"),
    ],
)
def test_the_rule_says_why(changes: dict[str, object], word: str) -> None:
    method, reason = auto.choose(_schema(**changes), "series")
    assert method == "spectral"
    assert word in reason


def test_a_table_with_contexts_is_judged_by_what_was_near_on_other_data() -> None:
    def cell(name: str, following: float) -> Cell:
        return Cell(table=name, epsilon=1.0, signal=0.0, ratios={"spectral": 1.0, "pub2priv": following})

    cells = [cell("a, entity", 0.5), cell("b, entity", 2.0), cell("b, window", 2.0)]
    assert [one.method for one in contexts_left_out(cells)] == ["spectral", "pub2priv", "pub2priv"]


def test_only_methods_and_tables_whose_series_have_contexts_are_compared() -> None:
    def line(method: str, error: float, **facts: object) -> dict[str, object]:
        return {"method": method, "epsilon": 1.0, "unit": "entity", "metrics": {"predictive": {"mean": error}}} | facts

    rows = [line("pub2priv", 1.0), line("pub2priv w/o c", 0.1), line("spectral", 2.0, homes="one week")]
    controls = [line("spectral", 1.2), line("independent", 0.1), line("dp-gan", 0.2, epsilon=5.0)]
    results = {"pub2priv-x": {"data": {"name": "x"}, "rows": rows, "controls": controls}}
    (cell,) = context_cells(results)
    assert dict(cell.ratios) == {"pub2priv": 1.0, "spectral": 1.2}
    assert context_cells({"record-x": results["pub2priv-x"]}) == []


def test_rows_of_several_correlations_or_strategies_are_no_table_to_choose_by() -> None:
    """The toy's last row is of fifty times as many series as that of `spectral` beside it."""
    for fact in ("correlation", "strategies"):
        rows = [
            {"method": name, "epsilon": 1.0, "unit": "entity", "metrics": {"predictive": {"mean": 1.0}}, fact: 2}
            for name in ("pub2priv", "spectral")
        ]
        assert context_cells({"pub2priv-x": {"data": {"name": "x"}, "rows": rows, "controls": []}}) == []


def test_who_wants_gaps_filled_gets_the_method_that_fills_them() -> None:
    assert auto.choose(_schema(), "complete")[0] == "dit"


def test_few_and_many_homes_of_one_simulator_are_left_out_together() -> None:
    """A rule that learned from one number of homes has seen the other."""
    common = {"epsilon": 1.0, "signal": 1.0}
    cells = [
        Cell(table="10000 homes", ratios={"spectral": 1.0, "aim": 2.0}, **common),
        Cell(table="100000 homes", ratios={"spectral": 1.0, "aim": 2.0}, **common),
        Cell(table="roads", ratios={"spectral": 1.5, "aim": 1.0}, **common),
    ]
    chosen = {one.cell.table: one.method for one in left_out(cells)}
    assert chosen == {"10000 homes": "aim", "100000 homes": "aim", "roads": "spectral"}
