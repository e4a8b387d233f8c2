"""Public context: the same for everybody, and covering the whole axis."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.unit.data.toy import START, at, simple_schema
from understudy.data import Continuous, Schema, read_context, read_panel
from understudy.data.io.context import read_context_windows
from understudy.data.timegrid import step_ticks
from understudy.errors import DataError


def schema(**time):
    base = simple_schema(**time)
    return Schema(
        name="c",
        population=base.population,
        unit=base.unit,
        time=base.time,
        channels=base.channels,
        context=(Continuous("temperature", -50.0, 50.0),),
    )


def private(**columns):
    table = {
        "id": np.repeat(np.arange(100), 4),
        "t": pa.concat_arrays([at(0, 1, 2, 3)] * 100),
        "x": np.tile([1.0, 2.0, 3.0, 4.0], 100),
    }
    return pa.table({**table, **columns})


def weather(hours=(0, 1, 2, 3, 4, 5), **columns):
    return pa.table({"t": at(*hours), "temperature": np.array(hours, dtype=float) * 10 - 20, **columns})


def test_context_comes_from_a_public_table_by_time(tmp_path):
    panel = read_panel(private(), schema(), context=weather())
    assert panel.context.shape == (100, 4, 1)
    assert panel.context[42, :, 0].tolist() == [-20, -10, 0, 10]
    assert panel.context.strides[0] == 0
    pq.write_table(weather(), tmp_path / "c.parquet")
    pacsv.write_csv(weather(), tmp_path / "c.csv")
    for name in ("c.parquet", "c.csv"):
        np.testing.assert_array_equal(read_context(tmp_path / name, schema()), panel.context[0])


def test_a_public_table_may_hold_more_columns_and_any_order():
    mixed = weather((3, 0, 2, 1), humidity=np.ones(4))
    assert read_context(mixed, schema())[:, 0].tolist() == [-20, -10, 0, 10]


def test_later_steps_can_be_asked_for():
    assert read_context(weather(), schema(), steps=2, first_step=4)[:, 0].tolist() == [20, 30]


def test_context_in_the_private_table_has_to_be_the_same_for_everybody():
    shared = np.tile([5.0, 6.0, 7.0, 8.0], 100)
    assert read_panel(private(temperature=shared), schema()).context[9, :, 0].tolist() == [5, 6, 7, 8]
    own = shared.copy()
    own[203] = 9.0
    with pytest.raises(DataError, match="declared public context") as caught:
        read_panel(private(temperature=own), schema())
    assert caught.value.column == "temperature"


def test_series_with_their_own_start_get_the_context_of_their_own_time():
    starts = np.arange(100) % 5
    hours = (starts[:, None] + np.arange(4)).ravel()
    times = START + hours * np.timedelta64(3600, "s")
    table = private(t=pa.array(times))
    panel = read_panel(table, schema(align="relative"), context=weather(range(8)))
    np.testing.assert_array_equal(panel.context[:, :, 0], (starts[:, None] + np.arange(4)) * 10 - 20)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, "was not given"),
        (weather((0, 1, 3)), "does not cover"),
        (weather().drop_columns(["temperature"]), "temperature"),
        (weather().slice(0, 0), "empty"),
        (weather((0, 0.5, 1, 1.5, 2, 2.5, 3)), "rows between steps of 1h"),
        (weather((-0.5, 0, 1, 2, 3, 3.5)), None),
        (weather(range(9)), None),
        (pa.table({"t": at(0, 1, 2, 3), "temperature": [0.0, 1.0, 2.0, 99.0]}), "bounds"),
        (pa.table({"t": at(0, 0, 1, 2, 3), "temperature": [0.0, 1.0, 2.0, 3.0, 4.0]}), "two values"),
        (np.zeros((4, 1)), None),
        (np.zeros((3, 1)), "4 steps"),
        (np.zeros((100, 4, 1)), "one .step, context. for all series"),
        (np.full((4, 1), np.nan), "missing"),
    ],
)
def test_context_that_does_not_fit_is_refused(context, message):
    if message is None:
        assert read_panel(private(), schema(), context=context).context is not None
        return
    with pytest.raises(DataError, match=message):
        read_panel(private(), schema(), context=context)


def test_context_without_a_declaration_is_refused():
    with pytest.raises(DataError, match="declares none"):
        read_panel(private(), simple_schema(), context=weather())


def test_stretches_of_a_table_are_whole_and_begin_anywhere() -> None:
    """A table with a hole: no stretch goes over it; every other start turns up."""
    rows = weather()
    found, ticks = read_context_windows(rows, schema(), 400, np.random.default_rng(0))
    assert ticks is not None
    for window, when in zip(found, ticks, strict=True):  # they are of the same stretch
        first = int((when[0] - step_ticks(schema().time, 1)[0]) // (when[1] - when[0]))
        assert np.array_equal(window, read_context(rows, schema(), first_step=first))
    assert found.shape == (400, schema().num_steps, 1)
    values = read_context(rows, schema(), steps=len(rows), first_step=0)[:, 0]
    starts = {tuple(window) for window in found[:, :, 0]}
    whole = np.lib.stride_tricks.sliding_window_view(values, schema().num_steps)
    assert starts == {tuple(window) for window in whole}
    hole = rows.filter(np.arange(len(rows)) != 1)
    met = read_context_windows(hole, schema(), 400, np.random.default_rng(0))[0]
    after = {tuple(window) for window in met[:, :, 0]}
    assert after == {tuple(window) for window in whole[2:]}


def test_a_table_too_short_for_any_stretch_is_refused() -> None:
    with pytest.raises(DataError, match="does not cover"):
        read_context_windows(weather().slice(0, 3), schema(), 5, np.random.default_rng(0))


def test_rows_that_are_simply_in_order_are_checked_too() -> None:
    """The schema of a wide table has no time column: the first row is step 0."""
    bare = schema(column=None, layout="wide")
    rows = pa.table({"temperature": np.arange(6.0)})
    assert read_context(rows, bare, steps=2, first_step=3)[:, 0].tolist() == [3, 4]
    found, ticks = read_context_windows(rows, bare, 50, np.random.default_rng(0))
    assert ticks is None
    assert set(found[:, 0, 0].tolist()) == {0, 1, 2}
    with pytest.raises(DataError, match="does not cover"):
        read_context(rows, bare, first_step=3)
    with pytest.raises(DataError, match="declared bounds"):
        read_context(pa.table({"temperature": np.full(6, 99.0)}), bare)
