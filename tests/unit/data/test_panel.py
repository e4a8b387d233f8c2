"""Panels: what they hold, what they hide, and that units stay apart."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.data.toy import toy_schema, toy_table
from understudy.data import Continuous as Number
from understudy.data import Population, PrivacyUnit, Schema, Time, read_panel
from understudy.data.panel import Panel, broadcast_context, concatenate, take_context
from understudy.data.windows import cut, without_empty


def small(unit=(0, 0, 1, 2, 2, 2), steps=3, private=True, ids=None):
    series = len(unit)
    schema = Schema(
        name="small",
        population=Population(10),
        unit=PrivacyUnit(column="id", max_series=3),
        time=Time(column="t", steps=steps, min_steps=1),
        channels=(Number("x", 0.0, 1000.0),),
        static=(Number("s", 0.0, 1000.0),),
    )
    values = np.arange(series * steps, dtype=np.float32).reshape(series, steps, 1)
    return Panel(
        schema=schema,
        values=values,
        lengths=np.full(series, steps, dtype=np.int32),
        unit=np.array(unit, dtype=np.int64),
        static=np.arange(series, dtype=np.float32)[:, None],
        private=private,
        unit_ids=ids,
    )


def test_a_private_panel_shows_its_schema_and_nothing_else():
    panel = read_panel(toy_table(), toy_schema())
    for text in (repr(panel), str(panel), f"{panel}"):
        assert "power (continuous)" in text
        assert "120" not in text
        assert "p00" not in text


def test_a_synthetic_panel_may_say_how_many_series_it_has():
    assert "6 series" in repr(small(private=False))


def test_arrays_are_read_only():
    panel = small()
    for array in (panel.values, panel.lengths, panel.unit, panel.static):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_taking_units_brings_all_their_series_in_the_order_asked():
    ids = np.array(["a", "b", "c"], dtype=object)
    taken = small(ids=ids).take_units([2, 0])
    assert taken.unit.tolist() == [0, 0, 0, 1, 1]
    assert taken.static[:, 0].tolist() == [3, 4, 5, 0, 1]
    assert taken.unit_ids.tolist() == ["c", "a"]


def test_a_private_unit_can_not_be_taken_twice():
    with pytest.raises(ValueError, match="at most once"):
        small().take_units([1, 1])
    assert small(private=False).take_units([1, 1]).num_units == 2
    with pytest.raises(IndexError):
        small().take_units([3])


def test_taking_no_units_gives_an_empty_panel():
    empty = small().take_units([])
    assert (empty.num_series, empty.num_units) == (0, 0)


def test_split_puts_every_unit_whole_on_one_side():
    panel = small(unit=np.repeat(np.arange(500), 2), ids=np.arange(500).astype(object))
    train, holdout = panel.split(0.2, np.random.default_rng(0))
    assert set(train.unit_ids) | set(holdout.unit_ids) == set(range(500))
    assert not set(train.unit_ids) & set(holdout.unit_ids)
    assert train.num_series == 2 * train.num_units
    assert 50 < holdout.num_units < 160  # 500 coins of 0.2: outside by chance with probability < 1e-9


def test_one_more_unit_moves_no_other_unit_across_the_split():
    with_it = small(unit=np.arange(301), ids=np.arange(301).astype(object))
    without = with_it.take_units(np.arange(300))
    for panel, other in zip(
        with_it.split(0.3, np.random.default_rng(5)),
        without.split(0.3, np.random.default_rng(5)),
        strict=True,
    ):
        assert set(panel.unit_ids) - {300} == set(other.unit_ids)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1])
def test_a_split_needs_a_fraction(fraction):
    with pytest.raises(ValueError, match="holdout_fraction"):
        small().split(fraction, np.random.default_rng(0))


@pytest.mark.parametrize(
    "unit", [[1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 2, 2], [0, 0, 0, 2, 2, 2]], ids=["not 0", "mixed", "hole"]
)
def test_units_have_to_be_numbered_and_grouped(unit):
    with pytest.raises(ValueError, match=r"Panel\.unit"):
        small(unit=unit)


def test_values_beyond_the_length_are_refused():
    panel = small()
    with pytest.raises(ValueError, match="beyond"):
        panel.with_values(panel.values, lengths=np.array([3, 3, 3, 3, 3, 2], dtype=np.int32))


def test_shapes_follow_the_schema():
    panel = small()
    with pytest.raises(Exception, match=r"values|step"):
        panel.with_values(np.zeros((6, 4, 1)))


def test_concatenation_keeps_units_apart():
    both = concatenate([small(private=False), small(private=False)])
    assert both.unit.tolist() == [0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 5]
    assert not both.private
    assert concatenate([small(), small(private=False)]).private


def test_labels_are_codes_and_minus_one_where_missing():
    panel = read_panel(toy_table(), toy_schema())
    assert set(np.unique(panel.label)) == {0, 1}
    static = panel.static.copy()
    static[0, 0] = np.nan
    assert panel.with_values(panel.values, static=static).label[0] == -1
    assert small().label is None


def test_a_broadcast_context_stays_broadcast():
    context = broadcast_context(np.ones((3, 2)), 6)
    assert take_context(context, np.array([1, 2])).strides[0] == 0
    assert take_context(context, np.array([1, 2])).shape == (2, 3, 2)


def test_observed_is_where_values_are():
    panel = read_panel(toy_table(), toy_schema())
    assert (panel.observed == ~np.isnan(panel.values)).all()
    assert not panel.observed.all()


def test_what_all_series_share_stays_when_nobody_is_left():
    shown = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    schema = replace(small().schema, context=(Number("price", 0.0, 9.0),), time=Time(column="t", steps=3))
    panel = replace(small(), schema=schema, context=broadcast_context(shown, 6))
    empty = panel.take_units([])
    for some in (panel, empty, concatenate([empty, empty]), without_empty(empty, every_step=True), cut(empty, 3, 3)):
        assert np.array_equal(some.shared_context, shown)
    assert np.array_equal(cut(empty, 2, 2).shared_context, shown[:2])  # one window: its context is everybody's
    own = replace(panel, schema=replace(schema, time=Time(column="t", steps=3, align="relative")))
    assert own.shared_context is None
    assert own.take_units([]).shared_context is None
    assert replace(empty, schema=small().schema, context=None).shared_context is None
