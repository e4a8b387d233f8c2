"""Few units and much noise: other shares, fewer cells; the bounds hold there too, and cells follow what is declared."""

import numpy as np
import pytest

from tests.unit.synthesizers.spectral.recording import Tape, tape_of
from tests.unit.synthesizers.spectral.test_learning import LABELS, TOLERANCE, UNITS, append_unit, lean_schema
from understudy.data import Panel, Population
from understudy.privacy.budget import Guarantee
from understudy.synthesizers.contract.panels import make_panel
from understudy.synthesizers.spectral import Spectral

LITTLE = Guarantee(1.0, 1e-8)
FEW, MANY = Population(300), Population(400_000)
BOUGHT = LABELS - {"levels"}  # so few are divided by no level


@pytest.fixture(scope="module")
def few() -> tuple[Panel, Tape]:
    panel = make_panel(lean_schema(population=FEW), 60)
    return panel, tape_of(panel, guarantee=LITTLE)


def test_few_units_are_counted_in_few_cells(few: tuple[Panel, Tape]) -> None:
    many = tape_of(make_panel(lean_schema(population=MANY), 60), guarantee=LITTLE)
    for label in ("marginals", "shape"):
        assert few[1].sums[label].value.size < many.sums[label].value.size, label


@pytest.mark.parametrize("unit", UNITS)
def test_one_unit_moves_each_statistic_by_at_most_its_bound(unit: str, few: tuple[Panel, Tape]) -> None:
    panel, before = few
    values = UNITS[unit](panel.schema)
    static = np.array([[0, np.nan, 1, 9], [2, 300, 0, 1], [1, 10, 1, 5]])[: len(values)]
    lengths = np.full(len(values), 3) if unit.endswith("short") else np.full(len(values), 8)
    after = tape_of(append_unit(panel, values, lengths, static), frozen=before, guarantee=LITTLE)
    for label in BOUGHT:
        assert after.distance(before, label) <= TOLERANCE, label


def test_cells_and_shares_follow_the_declared_population_and_not_the_units_that_are_there(
    few: tuple[Panel, Tape],
) -> None:
    other = tape_of(make_panel(lean_schema(population=FEW), 3), guarantee=LITTLE, frozen=few[1])
    for label in BOUGHT:
        assert other.sums[label].value.shape == few[1].sums[label].value.shape, label
        assert other.sums[label].reach == few[1].sums[label].reach, label
    unheard = [(tape.sums["profile"].value == 0).all(axis=0) for tape in (few[1], other)]
    assert np.array_equal(*unheard)  # moments of weight 0 are those that the declared population can't pay for
    plans = [Spectral().plan(lean_schema(population=size), LITTLE) for size in (FEW, Population(300), MANY)]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]
    assert np.array_equal(other.arrays["gap_model"], few[1].arrays["gap_model"])  # made of answers, which are the same


def test_a_population_that_is_bought_gets_the_common_shares() -> None:
    bought = Spectral().plan(lean_schema(population=Population(count_epsilon=0.1)), LITTLE)
    assert bought == Spectral().plan(lean_schema(population=MANY), LITTLE)
