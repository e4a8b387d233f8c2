"""Electricity of single clients with the season, and weather where it is at hand, as public context (Pub2Priv, C.2).

The original has 370 clients in 15-minute readings, summed here to days. Public weekly totals of 321 of them stand in
for it where only they are at hand. Temperature at Évora is not among the public files: days of Perth, of a similar
climate on the other half of the earth, stand in half a year later. Prices are left out.
"""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.data.panel import Panel
from understudy.errors import MissingData
from understudy_bench.data.datasets import DatasetInfo, file_sha256, find_file

READINGS = ("electricity/LD2011_2014.txt", "ElectricityLoadDiagrams20112014, UCI Machine Learning Repository, 321")
WEEKLY = ("electricity_weekly/electricity_weekly_dataset.tsf", "weekly totals of the same, zenodo.org/record/4656141")
WEATHER = ("weather/weatherAUS.parquet", "daily observations of Australian stations, kaggle.com/jsphyg/weather-dataset")
STATION = "Perth"
_HALF_A_YEAR = dt.timedelta(days=182)
_PER_YEAR = {1: 365, 7: 52}  # steps of a window, by days of a step
_LOW, _HIGH = 0.0, 8.0  # logarithm to base 10 of one and kilowatt hours in a step
WINDOWS = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Clients:
    """Consumption [client, step] from `first_day` on, a step every `days` days; `temperature` [step] if known."""

    consumption: np.ndarray
    first_day: dt.date
    days: int
    temperature: np.ndarray | None = None


def load_clients(root: str | Path | None = None) -> tuple[Clients, DatasetInfo]:
    """Returns the days of the original where it is there, else the weeks that stand in for them."""
    try:
        path, read, stand_in = find_file("electricity", *READINGS, root), _read_days, False
    except MissingData:
        path, read, stand_in = find_file("electricity", *WEEKLY, root), _read_weeks, True
    clients = read(path)
    return clients, DatasetInfo(name="electricity", path=path, sha256=file_sha256(path), stand_in=stand_in)


def with_weather(clients: Clients, root: str | Path | None = None) -> Clients:
    """Returns the clients with the stand-in's mean temperature of each step."""
    path = find_file("weather", *WEATHER, root)
    table = pq.read_table(path, columns=["Date", "Location", "MinTemp", "MaxTemp"])
    table = table.filter(pc.equal(table["Location"], STATION))
    mean = pc.divide(pc.add(table["MinTemp"], table["MaxTemp"]), 2.0).to_pylist()
    known = {dt.date.fromisoformat(day): now for day, now in zip(table["Date"].to_pylist(), mean, strict=True)}
    number = clients.consumption.shape[1] * clients.days
    days = [clients.first_day + _HALF_A_YEAR + dt.timedelta(days=place) for place in range(number)]
    found = np.array([np.nan if known.get(day) is None else known[day] for day in days], dtype=np.float64)
    seen = ~np.isnan(found)
    if not seen.any():
        raise MissingData(f"'{path.name}' knows none of the days at {STATION}. Bring the file of 2007 to 2017.")
    filled = np.interp(np.arange(number), np.flatnonzero(seen), found[seen])
    steps = filled.reshape(-1, clients.days).mean(axis=1)
    return Clients(consumption=clients.consumption, first_day=clients.first_day, days=clients.days, temperature=steps)


def electricity_panel(clients: Clients, unit: str = "entity", *, windows: int = WINDOWS, seed: int = 7) -> Panel:
    """Returns random windows of a year of every client: the logarithm of consumption, with the season and the weather.

    Args:
        unit: "entity" protects clients, "overlapping-window" the paper's single windows, which protects none of them.
    """
    rng, steps = np.random.default_rng(seed), _PER_YEAR[clients.days]
    used = clients.consumption[(clients.consumption > 0).mean(axis=1) > 0.5]  # some clients joined late
    first = rng.integers(0, used.shape[1] - steps + 1, (len(used), windows))
    places = (first[:, :, None] + np.arange(steps)).reshape(-1, steps)
    owner = np.repeat(np.arange(len(used), dtype=np.int64), windows)
    values = np.log10(1 + used[owner[:, None], places])
    schema = electricity_schema(len(used), clients, unit, windows)
    return Panel(
        schema=schema,
        values=np.clip(values, _LOW, _HIGH).astype(np.float32)[:, :, None],
        lengths=np.full(len(owner), steps, dtype=np.int32),
        unit=owner if unit == "entity" else np.arange(len(owner), dtype=np.int64),
        static=np.zeros((len(owner), 0), dtype=np.float32),
        context=public_context(clients)[places].astype(np.float32),
        private=False,
    )


def electricity_schema(num_clients: int, clients: Clients, unit: str, windows: int = WINDOWS) -> Schema:
    """Returns the public contract, for clients or for windows as units."""
    entity = unit == "entity"
    kind = PrivacyUnit(column="client", dtype="int64", max_series=windows)
    weather = (Continuous("temperature_stand_in", -10.0, 50.0),) if clients.temperature is not None else ()
    return Schema(
        name="electricity",
        population=Population(num_clients if entity else num_clients * windows),
        unit=kind if entity else PrivacyUnit(kind="overlapping-window", column="window", dtype="int64"),
        time=Time(
            column="when" if entity else None,
            frequency=f"{clients.days}d",
            start=f"{clients.first_day.isoformat()}T00:00:00",
            steps=_PER_YEAR[clients.days],
            align="relative",
            series_column="window" if entity else None,
        ),
        channels=(Continuous("log_kwh", _LOW, _HIGH, out_of_bounds="clip"),),
        context=(Continuous("season_cosine", -1.0, 1.0), Continuous("season_sine", -1.0, 1.0), *weather),
    )


def public_context(clients: Clients) -> np.ndarray:
    """Returns the season, and the temperature if it is known [step, context]."""
    day = clients.first_day.timetuple().tm_yday + clients.days * np.arange(clients.consumption.shape[1])
    angle = 2 * np.pi * day / 365.25
    columns = [np.cos(angle), np.sin(angle)]
    return np.stack(columns if clients.temperature is None else [*columns, clients.temperature], axis=1)


def _read_weeks(path: Path) -> Clients:
    """Reads a `.tsf` file: after `@data` a line per client, name:start:numbers."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split(":") for line in lines[lines.index("@data") + 1 :] if line]
    first = dt.date.fromisoformat(rows[0][1][:10])
    return Clients(consumption=np.array([np.fromstring(row[2], sep=",") for row in rows]), first_day=first, days=7)


def _read_days(path: Path) -> Clients:
    """Sums kilowatts of quarter hours to kilowatt hours of days, block by block: the file is large."""
    totals: dict[dt.date, np.ndarray] = {}
    options = {
        "parse_options": pacsv.ParseOptions(delimiter=";"),
        "convert_options": pacsv.ConvertOptions(decimal_point=","),
    }
    with pacsv.open_csv(path, **options) as blocks:
        for block in blocks:
            _add_block(totals, block)
    days = sorted(totals)
    return Clients(consumption=np.stack([totals[day] for day in days], axis=1), first_day=days[0], days=1)


def _add_block(totals: dict[dt.date, np.ndarray], block: pa.RecordBatch) -> None:
    # A reading is stamped with its end: midnight belongs to the day before.
    stamps = [stamp - dt.timedelta(minutes=15) for stamp in block.column(0).cast(pa.timestamp("us")).to_pylist()]
    kilowatts = np.stack([block.column(place).to_numpy() for place in range(1, block.num_columns)]).astype(float)
    for day in sorted({stamp.date() for stamp in stamps}):
        here = np.array([stamp.date() == day for stamp in stamps])
        totals[day] = totals.get(day, np.zeros(len(kilowatts))) + kilowatts[:, here].sum(axis=1) / 4
