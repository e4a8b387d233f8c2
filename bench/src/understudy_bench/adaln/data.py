"""The data of DP-aware AdaLN-Zero's experiments: one long series cut into windows, or homes; held-out series."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time, simulate_households, windows
from understudy.synthesizers.pets.rules import RuleBased
from understudy_bench.data.datasets import file_sha256, find_file

_ETT = "Electricity Transformer Temperature, github.com/zhouhaoyi/ETDataset"
_POWER = "Individual household electric power consumption, UCI Machine Learning Repository, dataset 235"
_CALENDAR = tuple(
    Continuous(f"{cycle}_{side}", -1.0, 1.0) for side in ("sine", "cosine") for cycle in ("hour", "weekday", "yearday")
)
_MONTH_HOURS = 30 * 24
_PUBLIC_HOMES, _PUBLIC_SERIES = 1000, 2000


@dataclass(frozen=True, eq=False, kw_only=True)
class Study:
    """What is learned from, what is judged on, and who is protected.

    Attributes:
        train: Private side: one long series (events), or homes (entities).
        test: Windows that nothing was learned from.
        history: First steps of a window, which everybody sees: a day, where the judged steps are no longer than that.
        surrogate: Public series with the columns of `train`, for pre-training.
        window_steps, window_stride: How the long series is cut; None takes series whole.
        unit: The protected unit in words.
    """

    train: Panel
    test: Panel
    window_steps: int | None
    window_stride: int | None
    unit: str
    data: dict[str, Any]
    surrogate: Panel
    history: int = 0

    @property
    def train_windows(self) -> Panel:
        """The private side as windows, each a unit of its own; for benchmarks, which may look at it."""
        steps = self.window_steps or self.train.num_steps
        cut = windows.without_empty(windows.cut(self.train, steps, self.window_stride or steps), every_step=True)
        return replace(cut, unit=np.arange(cut.num_series, dtype=np.int64), unit_ids=None, private=False)

    def first(self, number: int) -> "Study":
        """Returns the study with so many test windows, each a unit of its own."""
        rows = np.arange(min(number, self.test.num_series))
        own = replace(self.test, unit=np.arange(self.test.num_series, dtype=np.int64), unit_ids=None, private=False)
        return replace(self, test=own.take_units(rows))


def ett(name: str, root: Path | None) -> Study:
    """ETTh1 or ETTm1: 12 months to learn from, the last 4 of 20 to judge on; 96 steps are judged.

    96 quarters of an hour are a day, so windows of ETTm1 are two: the day before is known to the seasonal rule too.
    """
    path = find_file(name, f"ett/{name}.csv", _ETT, root)
    table = pacsv.read_csv(path).drop_columns(["date"])
    values = np.stack([table[column].to_numpy() for column in table.column_names], axis=1)
    per_hour, frequency = (1, "1h") if name == "ETTh1" else (4, "15min")
    ends = [months * _MONTH_HOURS * per_hour for months in (12, 16, 20)]
    channels = tuple(Continuous(column, -80.0, 80.0) for column in table.column_names)
    time = Time(column="date", frequency=frequency, start="2016-07-01T00:00:00")
    history, stride = (0, 24) if per_hour == 1 else (96, 96)
    parts = values[: ends[0]], values[ends[1] : ends[2]]
    data = {"name": name, "sha256": file_sha256(path), "stand_in": False}
    return _long(name, parts, channels, time, data, judged=96, history=history, stride=stride)


def power(root: Path | None) -> Study:
    """One household's hourly load, in place of the paper's meter, which is not public: 70 % and the last 15 %.

    As in the paper the calendar goes with it, which is public. A reading below zero, which the paper smooths over a
    week, is a gap here: nothing looks further than its own hour, so a reading is in no more windows than cover it.
    """
    path = find_file("power", "household_power/household_power.parquet", _POWER, root)
    hourly = _hourly_load(pq.read_table(path))
    hourly = np.where(hourly < 0, np.nan, hourly)
    ends = [int(0.7 * len(hourly)) // 24 * 24, int(0.85 * len(hourly)) // 24 * 24]
    time = Time(column="date", frequency="1h", start="2006-12-17T00:00:00")
    data = {"name": "household power, hourly", "sha256": file_sha256(path), "stand_in": True}
    known = _calendar(len(hourly), time)
    parts = hourly[: ends[0], None], hourly[ends[1] :, None]
    channels = (Continuous("load_kw", 0.0, 12.0, missing=True),)
    calendar = known[: ends[0]], known[ends[1] :]
    return _long("power", parts, channels, time, data, judged=168, history=0, stride=24, calendar=calendar)


def homes(num_homes: int, num_test: int) -> Study:
    """Simulated homes, each a unit."""
    made = simulate_households(num_homes + num_test)
    train = made.take_units(np.arange(num_homes))
    train = replace(train, schema=replace(train.schema, population=Population(num_homes)), private=True)
    data = {"name": "households", "sha256": None, "stand_in": False, "simulated": True}
    test = made.take_units(np.arange(num_homes, num_homes + num_test))
    town = replace(simulate_households(_PUBLIC_HOMES, seed=11), private=False, unit_ids=None)
    return Study(
        train=train, test=test, window_steps=None, window_stride=None, unit="everything about one home", data=data,
        surrogate=town,
    )  # fmt: skip


def _long(
    name: str,
    parts: tuple[np.ndarray, np.ndarray],
    channels: tuple[Continuous, ...],
    time: Time,
    data: dict[str, Any],
    *,
    judged: int,
    history: int,
    stride: int,
    calendar: tuple[np.ndarray, np.ndarray] | None = None,
) -> Study:
    unit, context = PrivacyUnit(kind="event", event_steps=1), () if calendar is None else _CALENDAR
    panels = []
    for place, values in enumerate(parts):
        schema = Schema(
            name=name, population=Population(1), unit=unit, time=replace(time, steps=len(values)), channels=channels,
            context=context,
        )  # fmt: skip
        bounded = np.clip(values, *np.array([channel.bounds for channel in channels]).T)
        panels.append(
            Panel(
                schema=schema,
                values=bounded[None].astype(np.float32),
                lengths=np.array([len(values)], dtype=np.int32),
                unit=np.zeros(1, dtype=np.int64),
                static=np.zeros((1, 0), dtype=np.float32),
                context=None if calendar is None else calendar[place][None],
            )
        )
    steps = history + judged
    test = windows.cut(panels[1], steps, judged)
    test = replace(test, unit=np.arange(test.num_series, dtype=np.int64), unit_ids=None)
    told = f"any one step of {time.frequency} of this one series"
    return Study(
        train=panels[0], test=test, window_steps=steps, window_stride=stride, unit=told, data=data,
        surrogate=_rule_based(test, time.frequency), history=history,
    )  # fmt: skip


def _rule_based(like: Panel, frequency: str | None) -> Panel:
    """Returns made-up series of a day's and other seasons with the columns of `like`, spread over its bounds."""
    schema, per_day = like.schema, 24 if frequency == "1h" else 96
    draw = RuleBased(num_steps=schema.num_steps, num_channels=schema.num_channels, levels="spread", season=per_day)
    low, high = np.array([channel.bounds for channel in schema.channels]).T
    unit = draw(_PUBLIC_SERIES, np.random.default_rng(11)) / 8  # working scale is within ±4
    values = ((low + high) / 2 + (high - low) / 2 * unit.clip(-1, 1)).astype(np.float32)
    return Panel(
        schema=schema, values=values, lengths=np.full(len(values), schema.num_steps, dtype=np.int32),
        unit=np.arange(len(values), dtype=np.int64), static=np.zeros((len(values), 0), dtype=np.float32),
        context=None if like.context is None else np.resize(like.context, (len(values), *like.context.shape[1:])),
    )  # fmt: skip


def _calendar(num_steps: int, time: Time) -> np.ndarray:
    """Returns sine and cosine of hour, weekday and day of the year [step, 6]; public, as they follow from the date."""
    assert time.start is not None
    begin = datetime.fromisoformat(time.start)
    hours = np.arange(num_steps) + begin.hour
    days = hours / 24 + np.array([begin.weekday(), begin.timetuple().tm_yday])[:, None]
    turns = np.stack([hours / 24, days[0] / 7, days[1] / 365.25], axis=1) * 2 * np.pi
    return np.concatenate([np.sin(turns), np.cos(turns)], axis=1).astype(np.float32)


def _hourly_load(table: pa.Table) -> np.ndarray:
    """Returns mean load of whole hours from the first midnight on; NaN where a whole hour is missing."""
    column = next(name for name in table.column_names if "active_power" in name.lower())
    minutes = table[column].to_numpy().astype(np.float64)
    minutes = minutes[(24 * 60 - (17 * 60 + 24)) :]  # the file begins at 17:24
    hours = minutes[: len(minutes) // 60 * 60].reshape(-1, 60)
    known = ~np.isnan(hours)
    return np.where(known.any(axis=1), np.where(known, hours, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1), np.nan)


STUDIES: Mapping[str, Callable[[Path | None], Study]] = {
    "adaln-etth1": lambda root: ett("ETTh1", root),
    "adaln-ettm1": lambda root: ett("ETTm1", root),
    "adaln-power": power,
    "adaln-households": lambda root: homes(10_000, 200),
}
