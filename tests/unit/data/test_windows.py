"""Windows: which are cut, and that the declared stability is never exceeded."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.data.test_panel import small
from understudy.data import Continuous, NonNegative, Population, PrivacyUnit, Schema, Time, ZeroWhen, read_panel
from understudy.data.panel import Panel, broadcast_context
from understudy.data.windows import cut, stability
from understudy.errors import SchemaError


def weekly(unit=None, steps=48, homes=20, **kind):
    schema = Schema(
        name="w",
        population=Population(100),
        unit=PrivacyUnit(column="id", **kind),
        time=Time(column="t", steps=steps, min_steps=1),
        channels=(Continuous("x", 0.0, 1e6),),
        context=(Continuous("temperature", 0.0, 1e6),),
        constraints=(NonNegative("x"), ZeroWhen("x", hours=(0,))),
    )
    values = np.arange(homes * steps, dtype=np.float32).reshape(homes, steps, 1)
    return Panel(
        schema=schema,
        values=values,
        lengths=np.full(homes, steps, dtype=np.int32),
        unit=np.arange(homes) if unit is None else np.asarray(unit),
        static=np.empty((homes, 0), dtype=np.float32),
        context=broadcast_context(np.arange(steps, dtype=np.float32)[:, None], homes),
    )


def test_windows_are_contiguous_slices_with_their_own_context():
    windows = cut(weekly(), 24, 12)
    assert windows.values.shape == (60, 24, 1)
    assert (np.diff(windows.values[:, :, 0], axis=1) == 1).all()
    np.testing.assert_array_equal(windows.context[:3, 0, 0], [0, 12, 24])
    assert windows.unit.tolist() == np.repeat(np.arange(20), 3).tolist()


def test_windows_no_longer_know_the_hour_of_the_day():
    schema = cut(weekly(), 24, 12).schema
    assert schema.time.align == "relative"
    assert [type(constraint) for constraint in schema.constraints] == [NonNegative]
    whole = cut(weekly(), 48, 1).schema
    assert whole.time.align == "calendar"
    assert len(whole.constraints) == 2


def test_only_full_windows_inside_the_length_are_cut():
    panel = weekly(homes=2)
    values = panel.values.copy()
    values[1, 30:] = np.nan
    panel = panel.with_values(values, lengths=np.array([48, 30], dtype=np.int32))
    windows = cut(panel, 24, 12)
    assert windows.unit.tolist() == [0, 0, 0, 1]
    assert not np.isnan(windows.values).any()


def test_a_unit_without_a_full_window_drops_out():
    panel = small(unit=(0, 1))
    values = panel.values.copy()
    values[0, 1:] = np.nan
    panel = panel.with_values(values, lengths=np.array([1, 3], dtype=np.int32))
    assert cut(panel, 2, 1).num_units == 1


@pytest.mark.parametrize("seed", [None, 3])
def test_the_cap_holds_for_every_unit(seed):
    rng = None if seed is None else np.random.default_rng(seed)
    windows = cut(weekly(), 4, 1, max_windows_per_unit=7, rng=rng)
    assert (np.bincount(windows.unit) == 7).all()
    assert windows.schema.unit.max_series == 7


def test_without_a_cap_an_entity_weighs_all_its_windows():
    assert stability(weekly().schema, 24, 12) == 3
    assert stability(weekly(max_series=4).schema, 24, 12) == 12


@pytest.mark.parametrize(("length", "event", "stride"), [(24, 1, 1), (24, 6, 4), (12, 3, 5)])
def test_an_event_weighs_as_many_windows_as_can_touch_it(length, event, stride):
    schema = weekly(kind="event", event_steps=event, steps=480).schema
    assert stability(schema, length, stride) == math.ceil((length + event - 1) / stride)
    starts = np.arange(0, 480 - length + 1, stride)
    touched = [((starts < begin + event) & (starts + length > begin)).sum() for begin in range(480 - event + 1)]
    assert max(touched) <= stability(schema, length, stride)


def test_changing_an_event_changes_no_more_windows_than_declared():
    panel = weekly(kind="event", event_steps=5, steps=200, homes=3)
    before = cut(panel, 24, 7)
    for begin in range(0, 195, 11):
        values = panel.values.copy()
        values[1, begin : begin + 5] = 0.0
        after = cut(panel.with_values(values), 24, 7)
        changed = (before.values != after.values).any(axis=(1, 2)).sum()
        assert changed <= stability(panel.schema, 24, 7)


def test_a_unit_added_leaves_the_windows_of_all_others_bit_identical():
    everyone = weekly(homes=21)
    without = everyone.take_units(np.arange(20))
    one, two = (cut(panel, 24, 6) for panel in (everyone, without))
    assert one.values[one.unit < 20].tobytes() == two.values.tobytes()


def test_overlapping_windows_leave_out_the_last_one_as_the_papers_do():
    schema = replace(
        weekly().schema,
        unit=PrivacyUnit(kind="overlapping-window", column="window", dtype="int64"),
        time=Time(steps=24),
        context=(),
    )
    panel = read_panel(pa.table({"x": np.arange(3685.0)}), schema)
    assert panel.values.shape == (3661, 24, 1)
    assert panel.values[-1, -1, 0] == 3683


@pytest.mark.parametrize(("steps", "stride"), [(0, 1), (49, 1), (24, 0)])
def test_windows_that_do_not_fit_are_refused(steps, stride):
    with pytest.raises(SchemaError):
        cut(weekly(), steps, stride)
