"""The data of paper 003's experiments: one long series cut into windows, or homes, with what is kept for judging."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time, simulate_households, windows
from understudy.data.datasets import file_sha256, find_file

_ETT = "Electricity Transformer Temperature, github.com/zhouhaoyi/ETDataset"
_POWER = "Individual household electric power consumption, UCI Machine Learning Repository, dataset 235"
_MONTH_HOURS = 30 * 24


@dataclass(frozen=True, eq=False, kw_only=True)
class Study:
    """What is learned from, what is judged on, and who is protected.

    Attributes:
        train: Private side: one long series (events), or homes (entities).
        test: Windows that nothing was learned from.
        window_steps, window_stride: How the long series is cut; None takes series whole.
        unit: The protected unit in words.
    """

    train: Panel
    test: Panel
    window_steps: int | None
    window_stride: int | None
    unit: str
    data: dict[str, Any]


def ett(name: str, root: Path | None) -> Study:
    """ETTh1 or ETTm1: 12 months to learn from, the last 4 of 20 to judge on; windows of 96 steps."""
    path = find_file(name, f"ett/{name}.csv", _ETT, root)
    table = pacsv.read_csv(path).drop_columns(["date"])
    values = np.stack([table[column].to_numpy() for column in table.column_names], axis=1)
    per_hour, frequency = (1, "1h") if name == "ETTh1" else (4, "15min")
    ends = [months * _MONTH_HOURS * per_hour for months in (12, 16, 20)]
    channels = tuple(Continuous(column, -80.0, 80.0) for column in table.column_names)
    time = Time(column="date", frequency=frequency, start="2016-07-01T00:00:00")
    stride = 24 if per_hour == 1 else 96
    parts = values[: ends[0]], values[ends[1] : ends[2]]
    data = {"name": name, "sha256": file_sha256(path), "stand_in": False}
    return _long(name, parts, channels, time, 96, stride, data)


def power(root: Path | None) -> Study:
    """One household's hourly load, in place of the paper's meter, which is not public: 70 % and the last 15 %."""
    path = find_file("power", "household_power/household_power.parquet", _POWER, root)
    hourly = _hourly_load(pq.read_table(path))
    ends = [int(0.7 * len(hourly)) // 24 * 24, int(0.85 * len(hourly)) // 24 * 24]
    time = Time(column="date", frequency="1h", start="2006-12-17T00:00:00")
    data = {"name": "household power, hourly", "sha256": file_sha256(path), "stand_in": True}
    parts = hourly[: ends[0], None], hourly[ends[1] :, None]
    return _long("power", parts, (Continuous("load_kw", 0.0, 12.0, missing=True),), time, 168, 24, data)


def homes(num_homes: int, num_test: int) -> Study:
    """Simulated homes, each a unit."""
    made = simulate_households(num_homes + num_test)
    train = made.take_units(np.arange(num_homes))
    train = replace(train, schema=replace(train.schema, population=Population(num_homes)), private=True)
    data = {"name": "households", "sha256": None, "stand_in": False, "simulated": True}
    test = made.take_units(np.arange(num_homes, num_homes + num_test))
    return Study(
        train=train, test=test, window_steps=None, window_stride=None, unit="everything about one home", data=data
    )


def _long(
    name: str,
    parts: tuple[np.ndarray, np.ndarray],
    channels: tuple[Continuous, ...],
    time: Time,
    steps: int,
    stride: int,
    data: dict[str, Any],
) -> Study:
    unit = PrivacyUnit(kind="event", event_steps=1)
    panels = []
    for values in parts:
        schema = Schema(
            name=name, population=Population(1), unit=unit, time=replace(time, steps=len(values)), channels=channels
        )
        bounded = np.clip(values, *np.array([channel.bounds for channel in channels]).T)
        panels.append(
            Panel(
                schema=schema,
                values=bounded[None].astype(np.float32),
                lengths=np.array([len(values)], dtype=np.int32),
                unit=np.zeros(1, dtype=np.int64),
                static=np.zeros((1, 0), dtype=np.float32),
            )
        )
    test = windows.cut(panels[1], steps, steps).panel
    told = f"any one step of {time.frequency} of this one series"
    return Study(train=panels[0], test=test, window_steps=steps, window_stride=stride, unit=told, data=data)


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
