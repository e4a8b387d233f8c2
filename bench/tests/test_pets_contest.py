"""What is measured first, which controls stand beside it, and when votes may be said to improve the result."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from understudy_bench.cells import Cells
from understudy_bench.pets.ablation import OPTIONS, SCHEDULES, changed, quoted
from understudy_bench.pets.contest import (
    BOUGHT,
    CENTRAL,
    CHANCE,
    IMPROVES,
    UNJUDGED,
    Contender,
    Contest,
    WithoutVotes,
    improves,
    notes,
    verdict,
    without_private_data,
    without_votes,
)
from understudy_bench.pets.experiment import EPSILONS, SEEDS
from understudy_bench.result import Row, row, spread

from understudy.data import Schema
from understudy.synthesizers.contract.checks import BUDGET, fit
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.recipe import Recipe


def line(*figures: float) -> Row:
    return row("pets", {"c_fid": spread(figures)}, epsilon=1.0, unit="entity")


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ((1.0, 1.1, 1.2), (2.0, 2.1, 2.2), True),
        ((2.0, 2.1, 2.2), (1.0, 1.1, 1.2), False),
        ((1.0, 1.1, 1.2), (1.1, 1.2, 1.3), False),  # ranges overlap
        ((1.0, 1.0, 1.0), (1.1, 1.5, 3.0), False),  # the control spreads by more than the difference
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), False),
    ],
)
def test_a_difference_counts_if_it_exceeds_the_spread_of_the_seeds(
    ours: tuple[float, ...], theirs: tuple[float, ...], expected: bool
) -> None:
    assert improves(line(*ours), line(*theirs)) is expected


def test_every_control_has_to_be_beaten_and_without_any_there_is_no_verdict() -> None:
    ours, worse, better = line(1.0, 1.0, 1.1), line(2.0, 2.1, 2.2), line(0.5, 0.5, 0.6)
    assert verdict(ours, [worse]) == IMPROVES
    assert verdict(ours, [worse, worse]) == IMPROVES
    assert verdict(ours, [worse, better]) == BOUGHT
    assert verdict(ours, [better, worse]) == CHANCE
    assert verdict(ours, [better]) == CHANCE
    assert verdict(ours, []) == UNJUDGED


def test_the_sentence_is_printed_only_where_it_is_true() -> None:
    rows = [{**line(1.0), "verdict": said} for said in (IMPROVES, BOUGHT, CHANCE, UNJUDGED)]
    printed = notes(rows)
    assert len(printed) == 3
    assert [IMPROVES in text for text in printed] == [True, False, False]


class Recording:
    """An experiment that fits nothing and remembers what was asked of it."""

    public = None
    unseen = None

    def __init__(self) -> None:
        self.asked: list[tuple[str, float, int]] = []

    def row(self, name: str, method: Any, epsilon: float, seeds: int = SEEDS) -> Row:
        self.asked.append((name, epsilon, seeds))
        figure = 2.0 if name.startswith("no") else 1.0
        return row(name, {"c_fid": spread([figure] * seeds)}, epsilon=epsilon, unit="entity")

    def control(self, name: str, panel: Any) -> Row:
        return row(name, {"c_fid": spread([0.0])}, unit="entity")


def run(*, all_seeds: bool) -> tuple[Recording, list[Row], list[Row]]:
    experiment = Recording()
    contenders = (
        Contender(name="a", method=PETS()),
        Contender(name="b", method=PETS(scale="bounds")),
        Contender(name="as published", method=PETS(scale="bounds"), epsilons=(CENTRAL,)),
    )
    contest = Contest(experiment=experiment, contenders=contenders, key="toy", all_seeds=all_seeds)  # type: ignore[arg-type]
    return experiment, *contest.run(Cells(), lambda stage, share: None)


def test_the_central_epsilon_is_measured_first_with_every_seed_and_its_controls() -> None:
    experiment, rows, controls = run(all_seeds=False)
    assert experiment.asked[:5] == [
        ("a", CENTRAL, SEEDS),
        ("no_private of a", CENTRAL, SEEDS),
        ("no votes in a", CENTRAL, SEEDS),
        ("b", CENTRAL, SEEDS),
        ("no_private of b", CENTRAL, SEEDS),
    ]
    assert [(line["method"], line["epsilon"]) for line in rows] == [
        *(("a", epsilon) for epsilon in EPSILONS),
        *(("b", epsilon) for epsilon in EPSILONS),
        ("as published", CENTRAL),
    ]
    assert {epsilon: seeds for name, epsilon, seeds in experiment.asked if name == "a"} == {
        0.7: SEEDS, CENTRAL: SEEDS, 5.0: 1, 32.0: SEEDS,
    }  # fmt: skip
    judged = {line["epsilon"] for line in rows if line["verdict"] != UNJUDGED}
    assert judged == {CENTRAL}
    assert {line["method"] for line in controls} >= {"other real series", "spectral", "no_private of b"}


def test_with_every_seed_each_epsilon_has_controls_of_its_own() -> None:
    _, rows, controls = run(all_seeds=True)
    assert {line["verdict"] for line in rows} == {IMPROVES}
    assert {line["epsilon"] for line in controls if line["method"] == "no votes in a"} == set(EPSILONS)


@pytest.mark.parametrize("method", [PETS(), PETS(selection="votes"), PETS(start="public", scale="public", public="x")])
def test_the_control_reads_no_private_data_and_keeps_the_recipe(method: PETS) -> None:
    control = without_private_data(method)
    assert control.scale != "bought"
    assert isinstance(control, WithoutVotes)
    assert (control.selection, control.recipe) == (method.selection, method.recipe)


@pytest.mark.parametrize("schema", [plain_schema(), rich_schema()], ids=["plain", "rich"])
def test_the_control_does_not_depend_on_private_series(schema: Schema) -> None:
    """Bit by bit the same for private sets of different sizes, with classes, gaps and lengths too."""
    method = PETS(scale="bounds", recipe=Recipe(iterations=3, population=24, lookahead=1))
    releases = [fit(without_private_data(method), make_panel(schema, number)) for number in (3, 150)]
    for name, array in releases[0].arrays.items():
        np.testing.assert_array_equal(array, releases[1].arrays[name])


def test_the_control_buys_what_the_method_buys_beside_the_votes() -> None:
    assert without_votes(PETS()).plan(rich_schema(), BUDGET) == PETS().plan(rich_schema(), BUDGET)


def test_the_ablation_varies_options_that_exist_and_takes_the_papers_values() -> None:
    for option, values in OPTIONS.items():
        for value in values:
            if option != "delta":
                recipe = changed(option, value, SimpleNamespace(private=SimpleNamespace(num_series=400)))
                assert recipe.as_published
                assert getattr(recipe, option, value) == SCHEDULES.get(value, value)
    assert changed("private_fraction", 0.5, SimpleNamespace(private=SimpleNamespace(num_series=400))).population == 200
    assert OPTIONS["schedule"] == ("S1", "S2", "S3", "S4", "S5", "S6", "S7")


def test_figures_of_an_unnamed_best_value_stand_beside_our_best() -> None:
    """The paper marks no best delta, lookahead or fraction: its figures must not all stand beside the default."""
    rows = [
        row(f"{option} = {value}", {"c_fid": spread([float(place)])})
        for option, values in OPTIONS.items()
        for place, value in enumerate(reversed(values))
    ]
    printed = {line["method"]: line["paper"]["c_fid"] for line in quoted(rows) if line["paper"]}
    assert printed == {
        "delta = 1e-06": 1.77, "threshold = 12.0": 1.90, "lookahead = 16": 1.74, "neighbours = 1": 1.85,
        "private_fraction = 1.5": 1.73, "schedule = S2": 1.90,
    }  # fmt: skip
