"""Five tables whose units are what one would protect: sensors, stocks, clients, homes. All methods meet on them.

Entities of a public file are its rows by definition of this benchmark; nobody is protected by it. Half of the entities
are learned from and half are kept for judging; homes are simulated, so both sides can be as large as needed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from understudy.data import Channel, Continuous, Panel, Population, PrivacyUnit, Schema, Time, simulate_households
from understudy_bench.data.datasets import file_sha256, find_file
from understudy_bench.data.electricity import load_clients
from understudy_bench.data.markets import BARS
from understudy_bench.pets.data import speeds

_PER_HOUR, _WEEKS, _WEEK_DAYS = 12, 100, 5
_JUDGED_HOMES = 2_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Arena:
    """One table, to be split into what is learned from and what is judged on."""

    entities: Panel
    num_train: int
    data: dict[str, Any]

    @property
    def facts(self) -> dict[str, Any]:
        """What anybody may know of the table before it is learned from."""
        schema = self.entities.schema
        return {"units": self.num_train, "steps": schema.num_steps, "channels": schema.num_channels}

    def split(self, seed: int) -> tuple[Panel, Panel]:
        """Returns (private, kept out): other entities in each."""
        order = np.random.default_rng(seed).permutation(self.entities.num_units)
        train, test = (
            self.entities.take_units(np.sort(some)) for some in (order[: self.num_train], order[self.num_train :])
        )
        schema = replace(train.schema, population=Population(self.num_train))
        return replace(train, schema=schema, private=True), test


def traffic(name: str, root: Path | None) -> Arena:
    """A week of sensors, mean speeds of hours."""
    speed, sha256 = speeds(name, root)
    hours = speed[:, : speed.shape[1] // _PER_HOUR * _PER_HOUR].reshape(len(speed), -1, _PER_HOUR).mean(axis=2)
    time = Time(column="hour", steps=hours.shape[1], frequency="1h", start="2012-05-01T00:00:00")
    return _arena(name, hours, Continuous("speed", 0.0, 100.0), time, sha256)


def stocks(root: Path | None) -> Arena:
    """The last hundred weeks of S&P 500 members: logarithm of the price over the first of these prices."""
    path = find_file("sp500", *BARS, root)
    table = pq.read_table(path, columns=["date", "close", "Name"])
    (days, day), (names, name) = (
        np.unique(table[column].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
        for column in ("date", "Name")
    )
    closes = np.full((len(days), len(names)), np.nan)
    closes[day, name] = table["close"].to_numpy()
    closes = closes[-_WEEKS * _WEEK_DAYS :: _WEEK_DAYS]
    closes = closes[:, ~np.isnan(closes).any(axis=0)]
    relative = np.log(closes / closes[0]).T
    return _arena(
        "sp500",
        relative,
        Continuous("log_price", -3.0, 3.0),
        Time(column="week", frequency="7d", steps=_WEEKS),
        file_sha256(path),
    )


def clients(root: Path | None) -> Arena:
    """Electricity of clients by week (or day), as logarithms: they differ by factors of ten thousand."""
    found, info = load_clients(root)
    logs = np.log10(found.consumption + 1.0)
    time = Time(column="step", frequency=f"{found.days}d", steps=logs.shape[1])
    made = _arena("electricity", logs, Continuous("log_kwh", 0.0, 8.0), time, info.sha256)
    return replace(made, data={**made.data, "stand_in": info.stand_in})


def homes(number: int) -> Arena:
    """Simulated homes with gaps, lengths, a tariff and public context."""
    data = {"name": f"{number} homes", "sha256": None, "stand_in": False, "simulated": True}
    return Arena(entities=simulate_households(number + _JUDGED_HOMES), num_train=number, data=data)


def _arena(name: str, values: np.ndarray, channel: Channel, time: Time, sha256: str) -> Arena:
    number, steps = values.shape
    schema = Schema(
        name=name, population=Population(number), unit=PrivacyUnit(column="entity", dtype="int64"), time=time,
        channels=(channel,),
    )  # fmt: skip
    panel = Panel(
        schema=schema,
        values=np.clip(values, *channel.bounds)[:, :, None].astype(np.float32),
        lengths=np.full(number, steps, dtype=np.int32),
        unit=np.arange(number, dtype=np.int64),
        static=np.zeros((number, 0), dtype=np.float32),
    )
    return Arena(entities=panel, num_train=number // 2, data={"name": name, "sha256": sha256, "stand_in": False})


ARENAS: Mapping[str, Callable[[Path | None], Arena]] = {
    "record-metr-la": lambda root: traffic("metr-la", root),
    "record-pemsd7": lambda root: traffic("pemsd7", root),
    "record-sp500": stocks,
    "record-electricity": clients,
    "record-homes": lambda root: homes(10_000),
    "record-homes-many": lambda root: homes(100_000),
}
