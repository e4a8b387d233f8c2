"""One unit moves each released sum by no more than the border says, whoever else is in the data.

Nothing here is statistical: noise is replaced by a constant, and earlier answers are frozen.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.unit.synthesizers.spectral.recording import MUCH, Tape, tape_of, tape_of_series
from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.data.panel import broadcast_context
from understudy.data.table import Table
from understudy.privacy.border import WIDENING
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, shared_context
from understudy.synthesizers.spectral import Spectral

TOLERANCE = 1 + 1e-6
LABELS = {"marginals", "factors", "levels", "profile", "spectrum", "shape", "dependence", "absence", "singles"}
LARGE = Population(40_000)  # public, so declared at will: large enough to divide series into kinds


def lean_schema(**changes) -> Schema:
    """Every kind of column, up to three series per unit, and a population that can be divided."""
    unit = PrivacyUnit(column="home", max_series=3)
    fields = {"population": LARGE, "unit": unit, "channels": rich_schema().channels[:5], "constraints": ()}
    return rich_schema(**{**fields, **changes})


def append_unit(panel: Panel, values: np.ndarray, lengths: np.ndarray, static: np.ndarray) -> Panel:
    """The panel and one unit more, with as many series as `values` has rows."""
    steps = np.arange(panel.num_steps) >= lengths[:, None]
    values = np.where(steps[:, :, None], np.nan, values).astype(np.float32)
    context = panel.context
    if context is not None and context.strides[0] != 0 and len(context):
        context = np.concatenate([context, context[: len(values)]])
    elif context is not None:
        context = broadcast_context(shared_context(panel.schema), panel.num_series + len(values))
    return replace(
        panel,
        values=np.concatenate([panel.values, values]),
        lengths=np.concatenate([panel.lengths, lengths.astype(np.int32)]),
        unit=np.concatenate([panel.unit, np.full(len(values), panel.num_units)]),
        static=np.concatenate([panel.static, static.astype(np.float32)]),
        context=context,
    )


def at_bounds(schema: Schema, place: int, number: int = 1) -> np.ndarray:
    bounds = np.array([channel.bounds[place] for channel in schema.channels])
    return np.broadcast_to(bounds, (number, schema.num_steps, len(bounds))).copy()


def alternating(schema: Schema) -> np.ndarray:
    values = at_bounds(schema, 0)
    values[:, ::2] = at_bounds(schema, 1)[:, ::2]
    return values


def one_spike(schema: Schema) -> np.ndarray:
    values = at_bounds(schema, 0)
    values[:, schema.num_steps // 2] = at_bounds(schema, 1)[:, 0]
    return values


def mostly_missing(schema: Schema) -> np.ndarray:
    values = alternating(schema)
    values[:, 1:-1] = np.nan
    return values


def three_different(schema: Schema) -> np.ndarray:
    return np.concatenate([at_bounds(schema, 0), at_bounds(schema, 1), alternating(schema)])


def middle(schema: Schema) -> np.ndarray:
    return np.rint((at_bounds(schema, 0) + at_bounds(schema, 1)) / 2)


UNITS: dict[str, Callable[[Schema], np.ndarray]] = {
    "at the lower bounds": lambda schema: at_bounds(schema, 0),
    "at the upper bounds": lambda schema: at_bounds(schema, 1),
    "alternating between the bounds": alternating,
    "one spike": one_spike,
    "constant in the middle": middle,
    "mostly missing": mostly_missing,
    "nothing observed": lambda schema: np.full_like(at_bounds(schema, 0), np.nan),
    "three times the same": lambda schema: at_bounds(schema, 1, 3),
    "three different series": three_different,
    "alternating and short": alternating,
    "three different series, short": three_different,
    "beyond every bound": lambda schema: 1e30 * (alternating(schema) + 1),
}
BACKGROUNDS = ["nobody", "one unit", "many", "all at the lower bounds", "all alike", "two kinds"]


def background(name: str, schema: Schema) -> Panel:
    panel = make_panel(schema, {"nobody": 0, "one unit": 1}.get(name, 199))
    values = np.array(panel.values)
    if name == "all at the lower bounds":
        values = np.where(np.isnan(values), values, at_bounds(schema, 0))
    elif name == "all alike":
        values = np.where(np.isnan(values), values, alternating(schema))
    elif name == "two kinds":  # levels with a valley between them, so that series are divided into kinds
        low, high = at_bounds(schema, 0), at_bounds(schema, 1)
        side = (np.arange(len(values)) % 2)[:, None, None]
        values = low + (high - low) * (0.15 + 0.6 * side + 0.2 * (values - low) / (high - low))
        coded = [channel.kind != "continuous" for channel in schema.channels]
        values[:, :, coded] = np.rint(values[:, :, coded])
    return panel.with_values(values)


@pytest.fixture(scope="module")
def runs() -> dict[str, tuple[Panel, Tape]]:
    """One noiseless run over every background."""
    panels = {name: background(name, lean_schema()) for name in BACKGROUNDS}
    return {name: (panel, tape_of(panel)) for name, panel in panels.items()}


def test_the_planned_statistics_cross_the_border_once_each(runs: dict[str, tuple[Panel, Tape]]) -> None:
    for _, tape in runs.values():
        assert set(tape.sums) == LABELS
        assert {entry.label for entry in Spectral().plan(lean_schema(), MUCH).entries} == LABELS


def test_the_background_of_two_kinds_is_divided(runs: dict[str, tuple[Panel, Tape]]) -> None:
    num_labels = 3
    assert len(runs["two kinds"][1].sums["profile"].value) > num_labels


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", BACKGROUNDS)
def test_one_unit_moves_each_statistic_by_at_most_its_bound(
    name: str, unit: str, runs: dict[str, tuple[Panel, Tape]]
) -> None:
    panel, before = runs[name]
    values = UNITS[unit](panel.schema)
    static = np.array([[0, np.nan, 1, 9], [2, 300, 0, 1], [1, 10, 1, 5]])[: len(values)]
    lengths = np.full(len(values), 3) if unit.endswith("short") else np.full(len(values), 8)
    after = tape_of(append_unit(panel, values, lengths, static), frozen=before)
    for label in LABELS:
        assert after.distance(before, label) <= TOLERANCE, label


def test_the_bounds_are_not_much_too_wide(runs: dict[str, tuple[Panel, Tape]]) -> None:
    """Counts reach their bounds: a bound twice too wide would waste half of the budget."""
    panel, before = runs["many"]
    lengths, static = np.array([8]), np.array([[0, 300, 1, 9]])
    after = tape_of(append_unit(panel, at_bounds(panel.schema, 1), lengths, static), frozen=before)
    for label in ("marginals", "levels", "shape"):
        least = np.sqrt(2 / 2.25) if label == "shape" else 1.0  # shocks of a series are rarely in one cell
        assert after.distance(before, label) > 0.99 * least, label
    after = tape_of(append_unit(panel, alternating(panel.schema), lengths, static), frozen=before)
    for label in ("profile", "spectrum", "dependence"):
        assert after.distance(before, label) > 0.6, label


def test_a_unit_with_a_context_of_its_own_moves_each_statistic_by_at_most_its_bound() -> None:
    panel = make_panel(lean_schema(), 60, own_context=True)
    before = tape_of(panel)
    more = append_unit(panel, alternating(panel.schema), np.array([8]), np.array([[2, 300, 1, 9]]))
    for extreme in (-50.0, 400.0, 1e30):
        assert more.context is not None
        context = np.array(more.context)
        context[-1] = extreme
        after = tape_of(replace(more, context=context), frozen=before)
        assert max(after.distance(before, label) for label in LABELS) <= TOLERANCE


@pytest.mark.parametrize("unit", ["at the upper bounds", "alternating between the bounds", "one spike"])
def test_a_unit_with_ten_thousand_windows_weighs_as_much_as_any_other(unit: str) -> None:
    time = Time(column="when", steps=20_000, min_steps=2)
    channels = (Continuous("load", 0.0, 20.0, missing=True), Continuous("solar", 0.0, 1.0))
    schema = plain_schema(time=time, channels=channels, population=LARGE)
    short = make_panel(replace(schema, time=replace(time, steps=20, min_steps=2)), 40)
    values = np.full((40, 20_000, 2), np.nan, dtype=np.float32)
    values[:, :20] = short.values
    panel = replace(short, schema=schema, values=values)
    method = Spectral(window_steps=2)
    before = tape_of(panel, method=method)
    more = append_unit(panel, UNITS[unit](schema), np.array([20_000]), np.zeros((1, 0)))
    after = tape_of(more, frozen=before, method=method)
    assert max(after.distance(before, label) for label in after.sums) <= TOLERANCE


@pytest.mark.parametrize("max_series", [1, 2])
@pytest.mark.parametrize("event_steps", [1, 3, 4])
def test_an_event_moves_each_statistic_by_at_most_its_bound(event_steps: int, max_series: int) -> None:
    """Neighbours at the event level: the windows that an event touches are there, or are not."""
    unit = PrivacyUnit(column="home", kind="event", event_steps=event_steps, max_series=max_series)
    schema = lean_schema(unit=unit, time=Time(column="when", steps=12))
    method, panel = Spectral(window_steps=3), make_panel(schema, 50)
    private = method.private_series(panel, 50)
    before = tape_of_series(private, method=method)
    for start in (0, 1, 2, 12 - event_steps):
        touched = _touched(private, unit=7, start=start, stop=start + event_steps)
        assert 0 < touched.sum() <= private.influence
        after = tape_of_series(_drop(private, touched), frozen=before, method=method)
        assert max(after.distance(before, label) for label in after.sums) <= TOLERANCE


@pytest.mark.parametrize("window_steps", [None, 3])
@pytest.mark.parametrize("what", ["taken out", "at the lower bounds", "at the upper bounds"])
def test_other_readings_in_an_event_move_each_statistic_by_at_most_its_bound(
    what: str, window_steps: int | None
) -> None:
    """Neighbours at the event level, as a table shows them: the same series, a few steps missing or different."""
    schema = lean_schema(
        unit=PrivacyUnit(column="home", kind="event", event_steps=3), time=Time(column="when", steps=12)
    )
    method, panel = Spectral(window_steps=window_steps), make_panel(schema, 50)
    before = tape_of(panel, method=method)
    values = np.array(panel.values)
    values[20, 5:8] = np.nan if what == "taken out" else at_bounds(schema, int("upper" in what))[0, 5:8]
    after = tape_of(panel.with_values(values), frozen=before, method=method)
    for label in after.sums:
        assert after.distance(before, label) <= TOLERANCE, label


def _touched(private: PrivateSeries, *, unit: int, start: int, stop: int) -> np.ndarray:
    """Windows (three steps, side by side, four to a series) of one unit that overlap an event."""
    window = np.arange(private.panel.num_series) % 4
    overlaps = (3 * window < stop) & (3 * window + 3 > start)
    return overlaps & (private.panel.unit == unit)


def _drop(private: PrivateSeries, rows: np.ndarray) -> PrivateSeries:
    panel, kept = private.panel, ~rows
    _, unit = np.unique(panel.unit[kept], return_inverse=True)
    assert panel.context is not None
    smaller = replace(
        panel,
        values=panel.values[kept],
        lengths=panel.lengths[kept],
        unit=unit.astype(np.int64),
        static=panel.static[kept],
        context=panel.context[kept],
    )
    return replace(private, table=Table.of(smaller), view=None)


def test_the_noise_on_every_coordinate_is_the_charged_multiple_of_the_bound() -> None:
    """Answers under a noise of one and of zero differ by noise_multiplier · reach, widened, everywhere."""
    panel = background("two kinds", lean_schema())
    silent = tape_of(panel)
    loud = tape_of(panel, noise=1.0, frozen=silent)
    plan = Spectral().plan(panel.schema, MUCH)
    for label in LABELS:
        scale = plan.event(label).noise_multiplier * silent.sums[label].reach * WIDENING
        assert np.array_equal(silent.answers[label], silent.sums[label].value), label  # exact
        np.testing.assert_allclose(loud.answers[label] - silent.answers[label], scale, rtol=1e-8, atol=0)


def test_the_released_arrays_are_a_function_of_the_answers_alone() -> None:
    """Given the same answers, a run over quite other people ends in the same arrays, bit by bit."""
    schema = lean_schema()
    first = tape_of(background("two kinds", schema), noise=None)
    other = background("all alike", schema)
    second = tape_of(other, frozen=first)
    assert set(first.arrays) == set(second.arrays)
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name
    assert not np.array_equal(first.sums["profile"].value, second.sums["profile"].value)


def test_a_method_that_forgot_to_share_the_weight_among_series_would_be_caught(
    runs: dict[str, tuple[Panel, Tape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: with a full vote for every series, three of them move counts beyond the bound."""
    genuine = Spectral.private_series

    def unshared(*arguments: Any) -> PrivateSeries:
        return replace(genuine(*arguments), by_series=True)

    monkeypatch.setattr(Spectral, "private_series", unshared)
    panel = runs["many"][0]
    before = tape_of(panel)
    more = append_unit(panel, at_bounds(panel.schema, 1, 3), np.full(3, 8), np.array([[0, 10, 1, 9]] * 3))
    after = tape_of(more, frozen=before)
    assert after.distance(before, "levels") > 2.9
