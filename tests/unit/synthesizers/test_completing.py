"""Whoever holds a release can fill gaps and look ahead; what was observed stays as it was, to the last bit."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from tests.unit.synthesizers.dit.small import small_release, waves
from understudy.data import Panel, Schema, Time, constraints
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.completing import fillings
from understudy.synthesizers.contract.panels import make_panel, rich_schema
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.release import Release
from understudy.synthesizers.sampling import CompletionRequest


@dataclass(frozen=True, kw_only=True)
class Places(Independent):
    """Fills an entry with its place in the window: the first is 1, the second 2, …; and remembers what it was asked."""

    name: ClassVar[str] = "places"
    asked: list[CompletionRequest]

    def complete(self, arrays: dict[str, np.ndarray], schema: Schema, gaps: CompletionRequest) -> np.ndarray:
        self.asked.append(gaps)
        places = np.arange(1, schema.num_steps + 1, dtype=np.float32)[None, :, None]
        return np.where(gaps.hidden, places / 100, gaps.values)


def _places(time: Time) -> Release:
    panel = waves(200, steps=time.steps, time=time)
    made = Independent().fit(panel, Ledger.in_memory(Guarantee(1.0, 1e-6)))
    return replace(made, synthesizer=Places(asked=[]))


def _hourly(steps: int, start: str = "2024-01-01T00:00:00", align: str = "calendar") -> Time:
    return Time(column="when", steps=steps, start=start, align=align)


@pytest.fixture(scope="module")
def release() -> Release:
    return small_release()


def _panel(**changes: object) -> Panel:
    return make_panel(rich_schema(**changes), 12, seed=9)


def _emptied(panel: Panel, rows: slice) -> Panel:
    values = np.array(panel.values)
    values[rows] = np.nan
    return panel.with_values(values)


@pytest.mark.parametrize("case", ["gaps", "longer", "one fully missing", "everything missing", "irregular"])
def test_observed_values_come_back_bit_by_bit_and_gaps_are_filled(release: Release, case: str) -> None:
    panel = _panel(time=replace(rich_schema().time, steps=29)) if case == "longer" else _panel()
    if case in ("one fully missing", "everything missing"):
        panel = _emptied(panel, slice(0, 1) if case == "one fully missing" else slice(None))
    if case == "irregular":
        values = np.array(panel.values)
        values[np.random.default_rng(0).random(values.shape) < 0.4] = np.nan
        panel = panel.with_values(values)
    made = release.impute(panel, rng=np.random.default_rng(0))
    observed, inside = panel.observed, np.arange(panel.num_steps) < panel.lengths[:, None]
    assert made.panel.values[observed].tobytes() == panel.values[observed].tobytes()
    assert made.low[observed].tobytes() == made.high[observed].tobytes() == panel.values[observed].tobytes()
    assert np.array_equal(made.filled, ~observed & inside[:, :, None])
    assert np.isnan(made.panel.values[~inside]).all()
    assert not np.isnan(made.panel.values[inside]).any()
    for place, channel in enumerate(panel.schema.channels):
        filled = made.panel.values[:, :, place][made.filled[:, :, place]]
        assert ((filled >= np.float32(channel.bounds[0])) & (filled <= np.float32(channel.bounds[1]))).all()
    assert (made.low <= made.high)[inside].all()


def test_a_panel_without_gaps_comes_back_as_it_is(release: Release) -> None:
    whole = release.impute(_panel(), rng=np.random.default_rng(0)).panel
    again = release.impute(whole)
    assert again.panel.values.tobytes() == whole.values.tobytes()
    assert not again.filled.any()


def test_a_panel_without_series_comes_back_without_series(release: Release) -> None:
    assert release.impute(make_panel(rich_schema(), 0)).panel.num_series == 0


def test_fillings_obey_constraints_where_all_of_a_step_was_hidden(release: Release) -> None:
    panel = _emptied(_panel(), slice(None))
    drawn = fillings(release, panel, np.ones(panel.values.shape, dtype=bool), num_draws=2)
    for draw in drawn:
        broken = constraints.violations(draw, panel.schema, context=panel.context)
        assert not broken


def test_a_forecast_has_ordered_quantiles_inside_the_bounds_however_far(release: Release) -> None:
    panel = _panel()
    for horizon in (1, 3, 40):  # 40 steps are five windows
        made = release.forecast(panel, horizon, rng=np.random.default_rng(0))
        assert made.values.shape == (3, 12, horizon, panel.schema.num_channels)
        assert (np.diff(made.values, axis=0) >= 0).all()
        low, high = np.array([channel.bounds for channel in panel.schema.channels], dtype=np.float32).T
        assert ((made.values >= low) & (made.values <= high)).all()
        written = made.as_panel()
        assert written.num_steps == horizon + panel.lengths.max() - panel.lengths.min()
        assert [channel.name for channel in written.schema.channels][:3] == ["load_q5", "load_q50", "load_q95"]


def test_a_forecast_begins_where_each_series_ends() -> None:
    release, panel = _places(_hourly(24)), waves(3, steps=24, time=replace(_hourly(24), min_steps=1))
    lengths = np.array([24, 20, 22], dtype=np.int32)
    values = np.where(np.arange(24)[None, :, None] < lengths[:, None, None], panel.values, np.nan)
    panel = panel.with_values(values, lengths=lengths)
    made = release.forecast(panel, 2, num_draws=19).as_panel()
    assert made.schema.time.start == "2024-01-01T20:00:00"
    assert np.array_equal(np.isnan(made.values[:, :, 0]), [[1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 1, 1]])


def test_windows_stay_in_step_with_the_hours_that_were_learned() -> None:
    """What was learned began on a Monday at midnight; series that begin at another hour are met at that hour."""
    release = _places(_hourly(48))
    late = waves(4, steps=30, time=_hourly(30, start="2024-01-03T05:00:00"))
    values = np.array(late.values)
    values[:, 3] = np.nan
    made = release.impute(late.with_values(values), num_draws=19)
    assert np.allclose(made.panel.values[:, 3], (5 + 3 + 1) / 100)
    ahead = release.forecast(late, 24, num_draws=19)  # from 11 o'clock, in a window that begins at a midnight
    hours = (ahead.values[0, :, :, 0] * 100 - 1) % 24
    assert np.allclose(hours, (np.arange(24) + 11) % 24, atol=0.01)


def test_beyond_a_window_each_draw_goes_on_from_its_own_steps() -> None:
    release = _places(_hourly(14, align="relative"))
    panel = waves(2, steps=14, time=_hourly(14, align="relative"))
    release.forecast(panel, 20, num_draws=19)
    asked = release.synthesizer.asked
    assert [int(gaps.hidden[0, :, 0].sum()) for gaps in asked] == [8, 8, 4]  # at most 4/7 of a window at a time
    for gaps in asked:
        known = ~np.isnan(gaps.values[0, :, 0]) & ~gaps.hidden[0, :, 0]
        assert known.sum() == 14 - gaps.hidden[0, :, 0].sum()  # all that is before is known: observed, or drawn
    assert not np.isnan(asked[1].values[:, :6]).any()


@pytest.mark.parametrize("horizon", [0, -1])
def test_a_horizon_below_one_is_refused(release: Release, horizon: int) -> None:
    with pytest.raises(InputError, match="horizon"):
        release.forecast(_panel(), horizon)


def test_series_with_other_columns_are_refused_by_name(release: Release) -> None:
    channels = rich_schema().channels
    unknown = _panel(channels=(replace(channels[0], name="pressure"), *channels[1:]))
    wider = _panel(channels=(replace(channels[0], high=40.0), *channels[1:]))
    slower = _panel(time=replace(rich_schema().time, frequency="1d"), constraints=())
    for panel, told in ((unknown, "pressure"), (wider, "load"), (slower, "1h")):
        with pytest.raises(InputError, match=told):
            release.impute(panel)
        with pytest.raises(InputError, match=told):
            release.forecast(panel, 2)


def test_what_few_draws_can_not_say_is_refused(release: Release) -> None:
    for attempt in (
        lambda: release.impute(_panel(), num_draws=18),
        lambda: release.impute(_panel(), level=1.0),
        lambda: release.forecast(_panel(), 2, num_draws=5),
        lambda: release.forecast(_panel(), 2, quantiles=(0.0,)),
        lambda: release.forecast(_panel(), 2, context=np.zeros((3, 2))),
    ):
        with pytest.raises(InputError):
            attempt()


def test_context_of_the_steps_ahead_is_taken_and_may_be_left_unsaid() -> None:
    release = small_release()
    ahead = np.zeros((3, 2), dtype=np.float32)
    for context in (None, ahead, np.zeros((12, 3, 2), dtype=np.float32)):
        assert np.isfinite(release.forecast(_panel(), 3, context=context).values).all()


def test_a_release_that_only_generates_says_so() -> None:
    made = Independent().fit(waves(200), Ledger.in_memory(Guarantee(1.0, 1e-6)))
    gappy = _emptied(waves(5), slice(0, 1))
    with pytest.raises(InputError, match="fills no gaps"):
        made.impute(gappy)
    assert not made.completes


def test_intervals_are_columns_beside_the_channels(release: Release) -> None:
    made = release.impute(_panel(), rng=np.random.default_rng(0)).with_intervals()
    names = [channel.name for channel in made.schema.channels]
    assert {"load_low", "load_high", "alarm_low"} <= set(names)
    assert "state_low" not in names  # categories have no interval
    assert "private" in repr(made)  # as private as what was observed
