"""Units are clipped at the border, whole, wherever they come from; nothing is looked at without a charge."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.unit.privacy.test_grant import granted
from understudy.data import Panel
from understudy.data.table import Table
from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.border import WIDENING, Statistic, lattice_step
from understudy.privacy.contributions import Rows
from understudy.privacy.events import Gaussian, PureDP
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.contract.panels import make_panel, plain_schema

SILENT = NoiseSource.constant(0.0)


def sizes(panel: Panel) -> Rows:
    """The numbers of each series: of any length."""
    return Rows(np.nan_to_num(panel.values.astype(np.float64)).reshape(panel.num_series, -1))


def statistic_of(panel: Panel, bound: float = 1.0, **more: object) -> Statistic:
    shape = (panel.num_steps * panel.schema.num_channels,)
    return Statistic(label="sum", shape=shape, bound=bound, contributions=sizes, **more)  # type: ignore[arg-type]


def total(panel: Panel | Table, statistic: Statistic, **more: object) -> np.ndarray:
    table = Table.of(panel) if isinstance(panel, Panel) else panel
    private = PrivateSeries(table, table.schema, 1, 100, **more)  # type: ignore[arg-type]
    return private.total(statistic, lattice_step(statistic.bound, 1.0)) * lattice_step(statistic.bound, 1.0)


@pytest.fixture
def panel() -> Panel:
    """Units of one to three series each."""
    whole = make_panel(plain_schema())
    unit = np.repeat(np.arange(whole.num_series), 1 + np.arange(whole.num_series) % 3)[: whole.num_series]
    return replace(whole, unit=unit.astype(np.int64), unit_ids=None)


@pytest.mark.parametrize("bound", [1e-3, 1.0, 1e6])
def test_every_unit_moves_the_sum_by_at_most_the_bound(panel: Panel, bound: float) -> None:
    statistic = statistic_of(panel, bound)
    everybody = total(panel, statistic)
    for unit in range(panel.num_units):
        others = np.delete(np.arange(panel.num_units), unit)
        moved = np.linalg.norm(everybody - total(panel.take_units(others), statistic))
        assert moved <= bound * WIDENING
    assert np.linalg.norm(everybody) > 0


def test_a_unit_of_several_series_adds_their_mean(panel: Panel) -> None:
    one = panel.take_units([2])
    assert one.num_series == 3
    vectors = sizes(one).vectors
    np.testing.assert_allclose(total(one, statistic_of(panel, 1e6)), vectors.mean(axis=0), rtol=1e-4)


def test_where_events_are_protected_every_series_is_clipped_by_itself(panel: Panel) -> None:
    one, statistic = panel.take_units([2]), statistic_of(panel, 1e-3)
    assert np.linalg.norm(total(one, statistic, by_series=True)) == pytest.approx(3e-3, rel=0.5)
    assert np.linalg.norm(total(one, statistic)) <= 1e-3 * WIDENING


@dataclass(frozen=True, eq=False)
class Once:
    """A partition that says when it is read."""

    panel: Panel
    reads: list[int]

    def panels(self) -> Iterator[Panel]:
        self.reads.append(1)
        yield self.panel


def test_partitions_in_any_order_give_the_same_integers_and_each_is_counted_once(panel: Panel) -> None:
    rng, reads, statistic = np.random.default_rng(0), [], statistic_of(panel)
    expected = total(panel, statistic)
    for parts in (1, 3, panel.num_units):
        pieces = np.array_split(rng.permutation(panel.num_units), parts)
        table = Table(panel.schema, tuple(Once(panel.take_units(piece), reads) for piece in pieces), None)
        reads.clear()
        assert np.array_equal(total(table, statistic), expected)
        assert len(reads) == parts


def test_the_execution_is_written_down_before_anybody_is_looked_at(panel: Panel) -> None:
    ledger, grant = granted(SILENT, sum=Gaussian(1.0))

    def look(seen: Panel) -> Rows:
        assert ledger.entries()[0].executed == {"sum": 1}
        raise RuntimeError("looked")

    statistic = replace(statistic_of(panel), contributions=look)
    private = PrivateSeries.of(panel, 100)
    with pytest.raises(RuntimeError, match="looked"):
        grant.release(statistic, private)
    with pytest.raises(BudgetExceeded):  # a failed look was a look
        grant.release(statistic, private)


def test_nobody_is_looked_at_without_a_charge(panel: Panel) -> None:
    _, grant = granted(SILENT, other=Gaussian(1.0), sum=PureDP(1.0))
    reads: list[int] = []
    private = PrivateSeries(Table(panel.schema, (Once(panel, reads),), None), panel.schema, 1, 100)
    for label in ("sum", "nothing"):
        with pytest.raises(InputError):
            grant.release(replace(statistic_of(panel), label=label), private)
    assert not reads


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan"), float("inf"), 1e-200])
def test_a_bound_that_bounds_nothing_is_refused(panel: Panel, bound: float) -> None:
    with pytest.raises(InputError, match="bound"):
        statistic_of(panel, bound)


def test_a_sum_of_another_shape_or_of_other_vectors_is_refused(panel: Panel) -> None:
    statistic = statistic_of(panel)
    for wrong in (
        replace(statistic, shape=(3,)),
        replace(statistic, contributions=lambda seen: Rows(np.zeros((1, *statistic.shape)))),
    ):
        with pytest.raises(InputError, match="expected"):
            total(panel, wrong)


def test_a_view_changes_what_is_seen_and_is_remembered(panel: Panel) -> None:
    calls: list[Panel] = []

    def doubled(seen: Panel) -> Panel:
        calls.append(seen)
        return seen.with_values(2 * seen.values)

    private = PrivateSeries.of(panel, 100).seen_as(panel.schema, doubled)
    statistic = statistic_of(panel, 1e6)
    for _ in range(2):
        found = private.total(statistic, lattice_step(1e6, 1.0)) * lattice_step(1e6, 1.0)
        np.testing.assert_allclose(found, 2 * total(panel, statistic), atol=1e-2)
    assert len(calls) == 1


def test_a_release_of_a_table_is_that_of_its_panel(panel: Panel) -> None:
    released = [
        granted(NoiseSource.seeded(3), sum=Gaussian(1.0))[1].release(statistic_of(panel), private)
        for private in (
            PrivateSeries.of(panel, 100),
            PrivateSeries.of(panel.take_units(np.arange(panel.num_units)[::-1]), 1),
        )
    ]
    assert np.array_equal(*released)


def test_a_panel_in_slices_counts_every_unit_once(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = total(panel, statistic_of(panel))
    monkeypatch.setattr("understudy.data.panel._CHUNK_VALUES", 2 * panel.num_steps * panel.schema.num_channels)
    table = Table.of(panel)
    assert sum(seen.num_units for partition in table.partitions for seen in partition.panels()) == panel.num_units
    assert np.array_equal(total(table, statistic_of(panel)), expected)
    assert PrivateSeries(table, panel.schema, 1, 1).num_units == panel.num_units
